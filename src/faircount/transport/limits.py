"""How long an answer may be, by kind of call, and how long a call may take."""

KIB = 1024
MIB = 1024 * KIB

SMALL_ANSWER = MIB
"""Maximum size of an answer that does not grow with the number of people, in bytes."""
PARAMETERS_ANSWER = 4 * MIB
"""Maximum size of published parameters, in bytes: as much as a server accepts from an owner."""
LIST_ANSWER = 32 * MIB
"""Maximum size of an answer that lists people, surveys or reservations, in bytes."""
MESSAGE_ANSWER = 32 * MIB
"""Maximum size of the coordinator's answer to a message of a participant, in bytes."""

STATEMENTS = 4 * MIB
STATEMENTS_PER_PERSON = 512
MAX_STATEMENTS = 256 * MIB


def max_statement_bytes(people: int) -> int:
    """Return the maximum size of the aggregator's answer about a survey of so many people.

    The longest one repeats roster and manifest after a restore, about 300 bytes per person.
    """
    # Bounded, because parameters can name billions of people.
    return min(STATEMENTS + STATEMENTS_PER_PERSON * people, MAX_STATEMENTS)


CALL_SECONDS = 120.0
"""Maximum duration of one call, from its first byte to the last one of its answer."""
READ_SECONDS = 30.0
"""How long one read or write may take: a server that is gone is noticed earlier than a slow one."""
CONNECT_SECONDS = 5.0
"""How long a server may take to accept a connection: one that is down is noticed in seconds."""
