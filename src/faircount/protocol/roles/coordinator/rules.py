"""What a topology adds to the coordinator (S1): a subclass of `CoordinatorRules`, one instance per
topology.

The methods that return handlers say what the coordinator does with a user's message, with a
statement of the aggregator, and when the time of a phase is up. The others answer what the
common code asks. An instance keeps nothing: everything about a survey is in its `Coordinator`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import Any

from faircount.core.errors import MalformedError
from faircount.protocol.roles.coordinator.state import Change, Coordinator, Out, Place
from faircount.protocol.roles.coordinator.steps import (
    end_alone,
    give_up,
    request_hashes_now,
    roster_proposal,
    to_aggregator,
    withdraw,
)
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import EndCode, Ending, aggregator_contradiction
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.messages import (
    Aborted,
    Published,
    Reason,
    Refusal,
    Reservation,
    SyncRequest,
    Withdrawal,
    reject,
)
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import TopologyState

UserHandler = Callable[[Coordinator, StepRows, Any], Change]
AggregatorHandler = Callable[[Coordinator, StepRows, Any, Statement], Change]
DeadlineHandler = Callable[[Coordinator, StepRows], Change]

_REFUSED_FOR_GOOD = (
    Reason.TOO_FEW,
    Reason.FULL,
    Reason.WRONG_DIGEST,
    Reason.MALFORMED,
    Reason.DISCONNECTED,
)


class CoordinatorRules(ABC):
    """The coordinator's side of one topology."""

    answer_messages: tuple[type[Message], ...] = ()
    """Uploads that carry a user's answer: of no use once that user has withdrawn."""

    reads_in_order: bool = False
    """Whether every step asks for bodies in ascending order, so that storage can read a few at a
    time.
    """

    # --- handlers: a subclass adds its own to those of its base class

    def user_handlers(self) -> Mapping[type[Message], UserHandler]:
        """What is done with a user's message, by its class."""
        return {Withdrawal: withdraw}

    def aggregator_handlers(self) -> Mapping[type[Message], AggregatorHandler]:
        """What is done with a statement of the aggregator, by the class of what it says."""
        return {
            Reservation: self.on_reservation,
            Refusal: self.on_refused,
            Published: self.on_published,
            Aborted: self.on_aborted,
        }

    @abstractmethod
    def deadline_handlers(self) -> Mapping[Phase, DeadlineHandler]:
        """What is done when the time of a phase is up."""

    # --- what the common code asks

    @abstractmethod
    def pending(self, s: Coordinator, rows: StepRows) -> Out:
        """What the aggregator has not answered yet, to be sent (again)."""

    @abstractmethod
    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """The state with the aggregator's claim instead of its own, after a restore; None if this
        is no claim of the survey.

        `parts` are the earlier parts of a claim that comes in several.
        """

    @abstractmethod
    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether everything that the claim needs is still here, with the very bytes that were
        claimed.
        """

    def initial_state(self, order_key: bytes) -> TopologyState | None:
        """What this topology keeps from the beginning; `order_key` is given where
        `Topology.needs_order_key`.
        """
        return None

    def current_request(self, s: Coordinator) -> Message | None:
        """What the coordinator asks the aggregator to grant now, once the roster is sealed."""
        return s.manifest

    def request_hashes(self, s: Coordinator) -> tuple[bytes, ...]:
        """Hashes of what a refusal that ends the survey can be about."""
        asked = roster_proposal(s) if s.phase is Phase.ENROLLING else self.current_request(s)
        return () if asked is None else (sha256(encode(asked)).digest(),)

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """Places in the roster that the result counts."""
        return s.members

    def included_entries(self, s: Coordinator) -> tuple[Entry, ...]:
        """How the result names those whom it counts, in its order."""
        lines = (s.roster[place] for place in self.included_places(s))
        return tuple((line.user, line.public_key) for line in lines)

    def rows_needed(self, message: Message) -> tuple[Place, ...] | None:
        """The rows of the coordinator's stores that a message is about; None if it may need all
        of them.
        """
        return None

    def sent_once(self, s: Coordinator) -> bytes:
        """Hash of what the coordinator hands over once for good; zeros before that."""
        return bytes(32)

    def charges_abort(self, s: Coordinator) -> bool:
        """Whether the coordinator, giving up, asks the aggregator to charge the budget.

        Only a coordinator that holds a claim without a receipt knows that no blob has left; one
        that was restored does not.
        """
        return s.manifest is None or s.reservation is not None

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The state when the survey is over: of what users sent only hashes stay, to know a
        repeated message.
        """
        rows.scrub("uploads")
        return s

    # --- the aggregator's statements in every topology

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> Change:
        """Keep the aggregator's receipt: now the blobs of this claim may leave.

        For a claim not ours, ask the aggregator what stands.
        """
        if s.phase in FINAL or (
            s.reservation is not None and message.manifest_hash == s.manifest_hash
        ):
            return s, ()
        if s.manifest is None or message.manifest_hash != s.manifest_hash:
            return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
        return replace(s, reservation=statement), ()

    def on_refused(self, s: Coordinator, rows: StepRows, message: Refusal, _: Statement) -> Change:
        """The aggregator will never grant what we ask for now: give up.

        What it has instead comes as a statement of its own.
        """
        # check: set-before-shares - an aggregator that denies its progress stalls the survey
        if s.phase not in FINAL and s.included is not None and message.reason == Reason.EARLY:
            if message.request_hash not in request_hashes_now(s, rows):
                return s, ()
            why = "it named reports to add up before it had come so far"
            return end_alone(s, rows, aggregator_contradiction(why))
        if s.phase in FINAL or s.reservation is not None or message.reason not in _REFUSED_FOR_GOOD:
            return s, ()
        if message.request_hash not in self.request_hashes(s):
            return s, ()
        detail = message.detail.decode(errors="replace")
        return give_up(s, Ending(EndCode.AGGREGATOR_REFUSED, (message.reason,), detail))

    def on_aborted(
        self, s: Coordinator, rows: StepRows, _: Aborted, statement: Statement
    ) -> Change:
        """The aggregator has ended the survey: that stands whatever the coordinator was about to
        do.
        """
        if s.phase in FINAL:
            return s, ()
        return self.scrub(
            replace(s, final=statement, phase=advance(s.phase, Phase.ABORTED)), rows
        ), ()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> Change:
        """Keep the result: it stands whatever the coordinator was about to do, and nothing that
        users sent is needed any more.
        """
        if s.phase in FINAL:
            return s, ()
        if not _is_result(s, message):
            return s, (reject(Reason.MALFORMED, "this is no result of this survey"),)
        if s.manifest is None or message.manifest_hash != s.manifest_hash:
            return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
        path = (
            (Phase.PUBLISHED,)
            if s.phase is Phase.AGGREGATED
            else (Phase.AGGREGATED, Phase.PUBLISHED)
        )
        return self.scrub(replace(s, final=statement, phase=advance(s.phase, *path)), rows), ()


def _is_result(s: Coordinator, message: Published) -> bool:
    """Whether it has a count for every item, and numbers where numbers stand: the coordinator
    shows them to everybody.
    """
    stated = [(message.epsilon, message.delta), (message.realized_epsilon, message.realized_delta)]
    stated += [(guarantee.epsilon, guarantee.delta) for guarantee in message.against]
    try:
        for amount in chain.from_iterable(stated):
            parse_real(amount.decode())
    except (MalformedError, ValueError):  # no number, or no text
        return False
    return len(message.counts) == s.params.N
