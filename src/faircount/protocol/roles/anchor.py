"""Memory outside every backup: what a server must not do twice, even if it is rolled back.

A server that is restored from an old backup, by accident or by somebody who wants two results,
knows nothing of what it has signed since. An anchor does. It holds a few values by name where no
backup of the server reaches (another machine, a monotonic counter, a public log), and changes one
only if the server knows the current value: compare and set.

    aggregator    before a statement leaves: the end of its chain of statements, the ledger's head
    coordinator   before its one aggregate share leaves: the hash of that share
    both          before a survey with proven reports begins: which survey uses the committed value

Roles stay functions of a state and a message. The service passes each step through here, then
writes, then sends. In this order a crash after the anchor's change is harmless: the same step done
again leads to the value that the anchor already holds, and counts as the same step.
"""

from abc import ABC, abstractmethod

from faircount.core.errors import ProtocolError
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import RowReader, Step
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.server_secrets import commitment_of
from faircount.protocol.wire.codec import Party

UNSET = bytes(32)
"""The value under a name that was never set."""


class Anchor(ABC):
    """A few values that no restored backup resets."""

    @abstractmethod
    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Replace `before` by `after` atomically.

        Returns:
            True if the value is `after` now, also if it was already; False, with nothing changed,
            if it is something else
        """

    @abstractmethod
    def current_value(self, name: bytes) -> bytes:
        """The value under a name.

        An owner who has shown all reservations after a restore advances the ledger from it.
        """


class MemoryAnchor(Anchor):
    """An anchor for tests and trials: it lasts as long as the process."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Compare and set."""
        # check: anchor-compares - a rolled back server would move on from a stale value
        if self._values.get(name, UNSET) not in (before, after):
            return False
        self._values[name] = after
        return True

    def current_value(self, name: bytes) -> bytes:
        """The value, or `UNSET`."""
        return self._values.get(name, UNSET)


def anchor_aggregator_step(
    anchor: Anchor, before: Aggregator, step: Step[Aggregator], reader: RowReader
) -> Step[Aggregator]:
    """The aggregator's step if the anchor confirms that it comes next.

    Otherwise the aggregator was rolled back: it aborts the survey, and signs nothing else.
    """
    after = step.state
    ledger = b"ledger/" + after.ledger.population.encode()
    survey = b"s2/" + after.params.survey
    moves = (
        # check: ledger-anchored - an old backup would give the spent budget back
        (ledger, _ledger_head(before), _ledger_head(after)),
        (survey, before.newest.hash, after.newest.hash),
    )
    is_next = all(anchor.advance(name, old, new) for name, old, new in moves if old != new)
    # check: aggregator-step-anchored - a rolled back aggregator would sign twice
    return step if is_next else aggregator.restored(before, reader)


def record_value_use(anchor: Anchor, params: SurveyParameters, server: Party) -> None:
    """Record that a server's committed value is used in this survey.

    Whoever knows the values of both servers before the manifest can forge proofs, and a value that
    was used has been revealed.

    Raises:
        ProtocolError: another survey has used the value
    """
    name = b"value/" + commitment_of(params, server)
    # check: committed-value-once - whoever knows both values before can forge proofs
    if not anchor.advance(name, UNSET, params.digest):
        raise ProtocolError(
            f"the {server.name.lower()} has used this value in another survey: "
            "make a new one, and new parameters"
        )


def _ledger_head(s: Aggregator) -> bytes:
    """The end of the chain of the ledger's reservations."""
    return s.ledger.head(len(s.ledger.heads))


def anchor_coordinator_step(
    anchor: Anchor, before: Coordinator, step: Step[Coordinator]
) -> Step[Coordinator]:
    """The coordinator's step unless it sends a second, different aggregate share.

    Then the coordinator was rolled back, and ends the survey: from the difference of two aggregate
    shares the aggregator could compute a single report.
    """
    name = b"s1/" + before.params.survey
    sent = before.rules.sent_once(step.state)
    # check: aggregate-share-anchored - a rolled back coordinator would send a second sum
    if sent in (UNSET, before.rules.sent_once(before)) or anchor.advance(name, UNSET, sent):
        return step
    reason = "it forgot the aggregate share that it had sent"
    return Step(*coordinator.give_up(before, Ending(EndCode.COORDINATOR_RESTORED, (), reason)))
