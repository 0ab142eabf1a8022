"""Messages about the roster: the coordinator proposes it, the aggregator confirms it once.

Tags 33, 34 and 37. DAP has no rosters: any client may upload to a task that it knows.
"""

from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, message


@dataclass(frozen=True, slots=True)
class RosterEntry:
    """One participant of the roster, with the MAC of their invitation over their key.

    `device_key` is that of the enrolment. The aggregator does not use it: a restored coordinator
    learns from the roster whose devices have enrolled.
    """

    user: Id
    public_key: Hash
    mac: Hash
    device_key: Hash


@message(33, Party.AGGREGATOR)
class RosterProposal(Message):
    """The coordinator's roster, ascending by user id; it can be confirmed once."""

    survey: Id
    params: Hash
    entries: tuple[RosterEntry, ...]


@message(34, Party.COORDINATOR)
class RosterConfirmation(Message):
    """The one roster of this survey, and the value that the aggregator had committed to.

    The value is the randomness of graphs and elections: nobody can choose a key after seeing it.
    """

    survey: Id
    digest: Hash
    n: U32
    root: Hash
    revealed: Hash


@message(37, Party.COORDINATOR)
class RejectedEntries(Message):
    """Positions of roster entries that no invitation vouches for; no roster was confirmed."""

    survey: Id
    request_hash: Hash
    positions: tuple[U32, ...]
