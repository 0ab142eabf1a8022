"""Memory outside every backup: what a server must not do twice, even if it is rolled back.

A server that is restored from an old backup, by accident or by somebody who wants two results,
knows nothing of what it has signed since. An anchor does. It holds a few values by name where no
backup of the server reaches (another machine, a monotonic counter, a public log), and changes one
only if the server knows the current value: compare and set.

    aggregator    before a statement leaves: the end of its chain of statements, the ledger's head
    coordinator   before its one aggregate share leaves: the hash of that share
    both          before a survey with proven reports begins: which survey uses the committed value

A server passes each step through here, then writes it, then sends its messages. In this order a
crash after the anchor has advanced is harmless: the repeated step leads to the value that the
anchor already has, and counts as the same step.
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

        An operator who has shown all reservations after a restore advances the ledger from it.
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


def ledger_name(population: str) -> bytes:
    """The name of the value that is the newest head of a population's reservations."""
    return b"ledger/" + population.encode()


def anchor_aggregator_step(
    anchor: Anchor, before: Aggregator, step: Step[Aggregator], reader: RowReader
) -> Step[Aggregator]:
    """The aggregator's step, if the anchor confirms that it follows the last one.

    Otherwise the aggregator was rolled back, and the step aborts the survey instead.
    """
    after = step.state
    ledger = ledger_name(after.ledger.population)
    survey = b"s2/" + after.params.survey
    advances = (
        # check: ledger-anchored - an old backup would give the spent budget back
        (ledger, _ledger_head(before), _ledger_head(after)),
        (survey, before.chain_end.hash, after.chain_end.hash),
    )
    is_next = all(anchor.advance(name, old, new) for name, old, new in advances if old != new)
    # check: aggregator-step-anchored - a rolled back aggregator would sign twice
    if is_next:
        return step
    return aggregator.abort_after_restore(before, reader)


def record_value_use(anchor: Anchor, params: SurveyParameters, server: Party) -> None:
    """Record that a server's committed value is used in this survey.

    A value that was used has been revealed, and whoever knows the values of both servers before
    the manifest is fixed can forge proofs.

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
    """The hash of the newest reservation in the ledger's chain."""
    return s.ledger.head(len(s.ledger.heads))


def anchor_coordinator_step(
    anchor: Anchor, before: Coordinator, step: Step[Coordinator]
) -> Step[Coordinator]:
    """The coordinator's step, unless it sends a second, different aggregate share.

    Then the coordinator was rolled back, and requests an abort instead: from the difference of two
    aggregate shares the aggregator could compute a single report.
    """
    # The anchor is asked only when the aggregate share appears in the state, once per survey.
    name = b"s1/" + before.params.survey
    sent = before.rules.aggregate_share_hash(step.state)
    # check: aggregate-share-anchored - a rolled back coordinator would send a second sum
    if sent in (UNSET, before.rules.aggregate_share_hash(before)) or anchor.advance(
        name, UNSET, sent
    ):
        return step
    detail = "it forgot the aggregate share that it had sent"
    ending = Ending(EndCode.COORDINATOR_RESTORED, (), detail)
    return Step(*coordinator.request_abort(before, ending))
