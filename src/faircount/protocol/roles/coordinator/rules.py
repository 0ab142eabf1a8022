"""What a topology adds to the coordinator (S1): a subclass of `CoordinatorRules`.

There is one instance per topology, and it keeps no state: everything about a survey is in its
`Coordinator`. A subclass brings three tables of handlers:

    user_handlers          by the kind of a participant's message
    aggregator_handlers    by the kind of statement that the aggregator signed
    deadline_handlers      by the phase whose deadline has passed

The other methods answer questions of the common code: what to send again, whether anything is
missing, which rows a message needs. The statements that every topology knows (reservation,
refusal, result, abort) are handled here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from typing import Any

from faircount.core.errors import MalformedError
from faircount.protocol.roles.coordinator.state import Change, Coordinator, Out, RowAddress
from faircount.protocol.roles.coordinator.steps import (
    abort_without_aggregator,
    request_abort,
    roster_proposal,
    to_aggregator,
    unanswered_request_hashes,
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

# Reasons that no repetition changes. After any other refusal the coordinator waits or repeats.
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
    """Kinds of uploads that depend on an answer: ignored once their sender has withdrawn."""

    reads_in_order: bool = False
    """Whether every step reads rows in ascending order of keys, so that storage can page them."""

    shared_messages: tuple[type[Message], ...] = ()
    """Kinds of messages that several workers may handle at the same time, for different people.

    All that such a message writes is a new first message. Whatever else follows from it is written
    under the exclusive lock.
    """

    # --- handlers: a subclass adds its own to those of its base class

    def user_handlers(self) -> Mapping[type[Message], UserHandler]:
        """The function for each kind of message from a participant."""
        return {Withdrawal: withdraw}

    def aggregator_handlers(self) -> Mapping[type[Message], AggregatorHandler]:
        """The function for each kind of statement that the aggregator signs."""
        return {
            Reservation: self.on_reservation,
            Refusal: self.on_refused,
            Published: self.on_published,
            Aborted: self.on_aborted,
        }

    @abstractmethod
    def deadline_handlers(self) -> Mapping[Phase, DeadlineHandler]:
        """The function that ends each phase in which participants act."""

    # --- what the common code asks

    @abstractmethod
    def unanswered_messages(self, s: Coordinator, rows: StepRows) -> Out:
        """The messages that the aggregator has not answered yet."""

    @abstractmethod
    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> Coordinator | None:
        """The state with the manifest that the aggregator recorded, after a restore.

        Returns None if this is no manifest of the survey. A manifest that contradicts one which the
        coordinator has sent shares for ends the survey.
        """

    def fetch_manifest(self, s: Coordinator, rows: StepRows, manifest: Message) -> Change | None:
        """Ask for a part of a long manifest that is missing; None if all of it is here."""
        return None

    @abstractmethod
    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether every report of the manifest is still stored, with the bytes that it names."""

    def parts_to_send(self, s: Coordinator, rows: StepRows) -> Sequence[int]:
        """Numbers of messages that may be sent at the same time now, and in any order."""
        return ()

    def part_shares(self, s: Coordinator, rows: StepRows, number: int) -> Out:
        """The message with one of these numbers; nothing if it must not leave."""
        return ()

    def initial_state(self, order_key: bytes) -> TopologyState | None:
        """What this topology stores from the beginning.

        order_key: 32 random bytes where `Topology.needs_order_key`, else empty
        """
        return None

    def current_request(self, s: Coordinator) -> Message | None:
        """What the aggregator is asked to grant now, once the roster is confirmed."""
        return s.manifest

    def request_hashes(self, s: Coordinator) -> tuple[bytes, ...]:
        """Hashes of the requests whose refusal ends the survey."""
        request = roster_proposal(s) if s.phase is Phase.ENROLLING else self.current_request(s)
        if request is None:
            return ()
        return (sha256(encode(request)).digest(),)

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """Positions in the roster of the participants that the result counts."""
        return s.members

    def included_entries(self, s: Coordinator) -> tuple[Entry, ...]:
        """User ids and keys of those whom the result counts, in the order of its Merkle tree."""
        included = (s.roster[place] for place in self.included_places(s))
        return tuple((entry.user, entry.public_key) for entry in included)

    def rows_needed(self, message: Message) -> tuple[RowAddress, ...] | None:
        """The rows that a participant's message concerns; None if it may concern all of them."""
        return None

    def aggregate_share_hash(self, s: Coordinator) -> bytes:
        """Hash of the aggregate share, which must never change once sent; zeros before that."""
        return bytes(32)

    def charges_abort(self, s: Coordinator) -> bool:
        """Whether an abort that the coordinator requests should be charged to the budget.

        Only a coordinator with a manifest but without a reservation knows that no share has left
        it. One that was restored and has no manifest does not know this.
        """
        return s.manifest is None or s.reservation is not None

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The state after the survey is over.

        Of what participants sent only hashes stay, by which repeated messages are recognized.
        """
        rows.scrub("uploads")
        return s

    # --- the aggregator's statements in every topology

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> Change:
        """Store the reservation: from now on encrypted shares of this manifest may be sent."""
        is_ours = message.manifest_hash == s.manifest_hash
        if s.phase in FINAL or (s.reservation is not None and is_ours):
            return s, ()
        if s.manifest is None or not is_ours:
            # The aggregator recorded a manifest that this coordinator has forgotten.
            return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
        return replace(s, reservation=statement), ()

    def on_refused(self, s: Coordinator, rows: StepRows, message: Refusal, _: Statement) -> Change:
        """Request an abort if the aggregator will never grant the current request.

        If it recorded something else instead, that arrives as a statement.
        """
        # check: set-before-shares - an aggregator that denies its progress stalls the survey
        if s.phase not in FINAL and s.accepted is not None and message.reason == Reason.EARLY:
            if message.request_hash not in unanswered_request_hashes(s, rows):
                return s, ()
            why = "it named reports to add up before it had come so far"
            return abort_without_aggregator(s, rows, aggregator_contradiction(why))
        if s.phase in FINAL or s.reservation is not None or message.reason not in _REFUSED_FOR_GOOD:
            return s, ()
        # A refusal of something that was sent earlier says nothing about the current request.
        if message.request_hash not in self.request_hashes(s):
            return s, ()
        detail = message.detail.decode(errors="replace")
        return request_abort(s, Ending(EndCode.AGGREGATOR_REFUSED, (message.reason,), detail))

    def on_aborted(
        self, s: Coordinator, rows: StepRows, _: Aborted, statement: Statement
    ) -> Change:
        """Store the aggregator's abort, whatever the coordinator was about to do."""
        if s.phase in FINAL:
            return s, ()
        aborted = replace(s, final=statement, phase=advance(s.phase, Phase.ABORTED))
        return self.scrub(aborted, rows), ()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> Change:
        """Store the result, and delete what participants sent."""
        if s.phase in FINAL:
            return s, ()
        if not _is_result(s, message):
            return s, (reject(Reason.MALFORMED, "this is no result of this survey"),)
        if s.manifest is None or message.manifest_hash != s.manifest_hash:
            # A restored coordinator lacks the manifest, which inclusion proofs are made from.
            return s, (to_aggregator(s, SyncRequest(s.params.survey)),)
        # Only the aggregator stays in this phase: the coordinator learns of it with the result.
        phase = s.phase
        if phase is not Phase.AGGREGATED:
            phase = advance(phase, Phase.AGGREGATED)
        published = replace(s, final=statement, phase=advance(phase, Phase.PUBLISHED))
        return self.scrub(published, rows), ()


def _is_result(s: Coordinator, message: Published) -> bool:
    """Whether a result has a count for every item, and numbers where the page shows numbers.

    The coordinator shows the result to everybody, so a malformed one must not get that far.
    """
    guarantees = [
        (message.epsilon, message.delta),
        (message.realized_epsilon, message.realized_delta),
    ]
    guarantees += [(guarantee.epsilon, guarantee.delta) for guarantee in message.against]
    try:
        for amount in chain.from_iterable(guarantees):
            parse_real(amount.decode())
    # ValueError: the bytes are no text.
    except (MalformedError, ValueError):
        return False
    return len(message.counts) == s.params.N
