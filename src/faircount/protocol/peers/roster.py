"""The coordinator where participants enrol before they respond: the roster and its confirmation.

    enrolments, until the deadline   <- clients
    roster proposal                  -> aggregator, which checks every enrolment MAC
    RejectedEntries                  <- aggregator: propose again without these entries
    RosterConfirmation               <- aggregator, signed, once; the next phase begins
    roster with its confirmation     -> clients, which poll from now on for what to do

A client uses other participants' keys only under the aggregator's signature, so the coordinator
cannot put in keys of its own.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from faircount.protocol.peers.messages import Enrolment, PeerKey, Roster
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, CoordinatorRules
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import EndCode, Ending, too_few_enrolled
from faircount.protocol.survey.inclusion import prove_inclusion
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.messages import (
    FinalStatement,
    NotReady,
    OutcomeRequest,
    PollRequest,
    Reason,
    Rejection,
    SyncRequest,
    reject,
)
from faircount.protocol.wire.roster_messages import RejectedEntries, RosterConfirmation, RosterEntry
from faircount.protocol.wire.signing import Statement


class RosterCoordinator(CoordinatorRules):
    """The coordinator where participants enrol first: the roster, and answers to polls."""

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Enrolments, requests for the roster, and polls."""
        return {
            **super().user_handlers(),
            Enrolment: self.enrol,
            OutcomeRequest: self.show_roster,
            PollRequest: self.answer_poll,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """The aggregator's statements about the roster."""
        return {
            **super().aggregator_handlers(),
            RosterConfirmation: self.on_confirmation,
            RejectedEntries: self.on_rejected_entries,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """Enrolment ends with a roster."""
        return {Phase.ENROLLING: self.close_roster}

    def enrol(self, s: Coordinator, rows: StepRows, message: Enrolment) -> coordinator.Change:
        """Enrol a participant.

        After a restore, a member of the confirmed roster may repeat the enrolment that the
        coordinator lost.
        """
        user = coordinator.admit_participant(s, rows, message)
        if isinstance(user, Rejection):
            return s, (user,)
        # check: enrolled-key - with a copied key, members and aggregator refuse the roster for all
        if not rows.public_keys.put(message.public_key, user):
            why = "this public key belongs to another participant: make a new one"
            return s, (reject(Reason.MALFORMED, why),)
        is_enrolling = s.phase is Phase.ENROLLING and not s.roster
        # Only with the very keys and MAC that are on the roster: with others the client's messages
        # would not fit what the aggregator confirmed.
        is_on_roster = _entry_of(user, message) in s.roster
        return coordinator.store_first_message(
            s, rows, user, message, phase_is_open=is_enrolling or is_on_roster
        )

    def close_roster(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix the roster, ascending by user id, and propose it to the aggregator."""
        if not s.roster:
            s = replace(s, roster=tuple(_enrolled_entries(rows)))
        if s.n < s.params.minimum:
            return coordinator.request_abort(s, too_few_enrolled(s.n, s.params.minimum))
        return s, (coordinator.to_aggregator(s, coordinator.roster_proposal(s)),)

    def on_rejected_entries(
        self, s: Coordinator, rows: StepRows, message: RejectedEntries, _: Statement
    ) -> coordinator.Change:
        """Propose the roster again without the entries whose MACs the aggregator rejects."""
        if s.phase is not Phase.ENROLLING:
            return s, ()
        # Positions of an earlier, longer proposal would remove the wrong entries.
        if message.request_hash != sha256(encode(coordinator.roster_proposal(s))).digest():
            return s, ()
        rejected = set(message.positions)
        left = tuple(entry for i, entry in enumerate(s.roster) if i not in rejected)
        # An empty roster counts as not fixed yet, and would be made again of the same entries.
        if not left:
            return coordinator.request_abort(s, Ending(EndCode.NOT_INVITED))
        return self.close_roster(replace(s, roster=left), rows)

    def on_confirmation(
        self, s: Coordinator, rows: StepRows, message: RosterConfirmation, statement: Statement
    ) -> coordinator.Change:
        """Store the confirmation: the participants' next phase begins.

        If the aggregator confirmed another roster, ask it for everything it has recorded.
        """
        if s.phase is not Phase.ENROLLING:
            return s, ()
        if message.digest != s.digest:
            return s, (coordinator.to_aggregator(s, SyncRequest(s.params.survey)),)
        if not s.roster or (message.n, message.root) != (s.n, s.roster_tree[-1][0]):
            problem = "this does not confirm the roster that has its digest"
            return s, (reject(Reason.MALFORMED, problem),)
        next_phase = s.params.topology.phases[1]
        phase = advance(s.phase, Phase.CONFIRMED, next_phase)
        return replace(s, confirmation=statement, phase=phase), ()

    def show_roster(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """The roster and its confirmation, for somebody who was invited."""
        user = coordinator.recognize_device(s, rows, message)
        # check: roster-for-invited - anybody could read who takes part
        if isinstance(user, Rejection):
            return s, (user,)
        return s, (roster_message(s),)

    def answer_poll(
        self, s: Coordinator, rows: StepRows, message: PollRequest
    ) -> coordinator.Change:
        """How the survey ended, what the client has to do now, or that it should poll again."""
        problem = coordinator.credential_problem(s, rows, message.index, message.credential)
        if problem is not None:
            return s, (problem,)
        answer = outcome_for(s, message.index) or self.next_task(s, rows, message.index)
        return s, (answer or NotReady(s.params.survey, s.phase.encode()),)

    @abstractmethod
    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """What the member at this place of the roster has to do now; None if nothing."""


def _enrolled_entries(rows: StepRows) -> list[RosterEntry]:
    """An entry for every enrolment that is still as it was acknowledged, ascending by user id."""
    entries = []
    for user in rows.first_messages:
        enrolment = rows.first_messages.intact(user)
        if enrolment is not None:
            entries.append(_entry_of(user, enrolment))
    return entries


def _entry_of(user: bytes, enrolment: Enrolment) -> RosterEntry:
    return RosterEntry(user, enrolment.public_key, enrolment.mac, enrolment.device_key)


def roster_message(s: Coordinator) -> Message:
    """The roster and its confirmation, or that there is none yet."""
    if s.confirmation is None:
        return NotReady(s.params.survey, s.phase.encode())
    return Roster(s.confirmation.signed, _peer_keys(s.roster))


@lru_cache(maxsize=4)
def _peer_keys(roster: tuple[RosterEntry, ...]) -> tuple[PeerKey, ...]:
    """The roster as clients see it; cached, because every client asks for it."""
    return tuple(PeerKey(entry.user, entry.public_key) for entry in roster)


def outcome_for(s: Coordinator, index: int) -> Message | None:
    """How the survey ended, for the member at this place; None while it goes on.

    A member that the result counts gets a proof of inclusion with it.
    """
    # Clients accept only an ending that the aggregator signed.
    if s.phase not in FINAL or s.final is None or s.final.signed.by != Party.AGGREGATOR:
        return None
    final = s.final.signed
    places = s.rules.included_places(s)
    if s.phase is Phase.ABORTED or index not in places:
        return FinalStatement(final)
    entries = s.rules.included_entries(s)
    return prove_inclusion(
        final, lambda some: entries[some.start : some.stop], len(entries), places.index(index)
    )
