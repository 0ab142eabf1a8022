"""The coordinator in the topologies in which users enrol before they answer: it fixes a roster
and has the aggregator seal it.
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
    """The coordinator where users enrol first: the roster, and what a user is told who comes by."""

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Enrolment, the roster for who asks, and visits."""
        return {
            **super().user_handlers(),
            Enrolment: self.enrol,
            OutcomeRequest: self.show_roster,
            PollRequest: self.answer_visit,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """What the aggregator says about the roster."""
        return {
            **super().aggregator_handlers(),
            RosterConfirmation: self.on_seal,
            RejectedEntries: self.on_bad_entries,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """Enrolment ends with a roster."""
        return {Phase.ENROLLING: self.close_roster}

    def enrol(self, s: Coordinator, rows: StepRows, message: Enrolment) -> coordinator.Change:
        """A user joins.

        After a restore, a user whom the aggregator has sealed may say again what the coordinator
        forgot.
        """
        user = coordinator.admit_person(s, rows, message.access, message.public_key)
        if isinstance(user, Rejection):
            return s, (user,)
        open_ = s.phase is Phase.ENROLLING and not s.roster
        return coordinator.write_body(
            s,
            rows,
            user,
            message,
            open_=open_ or RosterEntry(user, message.public_key, message.mac) in s.roster,
        )

    def close_roster(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix the roster, ascending by user id, and ask the aggregator to seal it."""
        if not s.roster:
            held = ((user, rows.first_messages.intact(user)) for user in rows.first_messages)
            lines = (
                RosterEntry(user, body.public_key, body.mac)
                for user, body in held
                if body is not None
            )
            s = replace(s, roster=tuple(lines))
        if s.n < s.params.minimum:
            return coordinator.give_up(s, too_few_enrolled(s.n, s.params.minimum))
        return s, (coordinator.to_aggregator(s, coordinator.roster_proposal(s)),)

    def on_bad_entries(
        self, s: Coordinator, rows: StepRows, message: RejectedEntries, _: Statement
    ) -> coordinator.Change:
        """The aggregator does not believe some entries: leave them out and ask again."""
        if (
            s.phase is not Phase.ENROLLING
            or message.request_hash != sha256(encode(coordinator.roster_proposal(s))).digest()
        ):
            return s, ()
        doubted = set(message.positions)
        left = tuple(each for i, each in enumerate(s.roster) if i not in doubted)
        if not left:  # an empty roster would be made anew from the same entries
            return coordinator.give_up(s, Ending(EndCode.NOT_INVITED))
        return self.close_roster(replace(s, roster=left), rows)

    def on_seal(
        self, s: Coordinator, rows: StepRows, message: RosterConfirmation, statement: Statement
    ) -> coordinator.Change:
        """The roster is sealed: the next phase of the users begins.

        Another roster than ours: ask the aggregator what stands.
        """
        if s.phase is not Phase.ENROLLING:
            return s, ()
        if message.digest != s.digest:
            return s, (coordinator.to_aggregator(s, SyncRequest(s.params.survey)),)
        if not s.roster or (message.n, message.root) != (s.n, s.levels[-1][0]):
            return s, (reject(Reason.MALFORMED, "this is no seal of the roster with its digest"),)
        begins = s.params.topology.phases[1]
        return replace(
            s, confirmation=statement, phase=advance(s.phase, Phase.CONFIRMED, begins)
        ), ()

    def show_roster(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """The roster with the aggregator's signature, for an invited person who asks."""
        # check: roster-for-invited - anybody could read who takes part
        if coordinator.invited_user(rows, message.access) is None:
            return s, (reject(Reason.UNKNOWN, "no such invitation for this survey"),)
        return s, (roster_message(s),)

    def answer_visit(
        self, s: Coordinator, rows: StepRows, message: PollRequest
    ) -> coordinator.Change:
        """What a user who comes by is told: how it ended, what there is to do, or to come back
        later.
        """
        problem = coordinator.credential_problem(s, rows, message.index, message.credential)
        if problem is not None:
            return s, (problem,)
        told = outcome(s, rows, message.index) or self.next_task(s, rows, message.index)
        return s, (told or NotReady(s.params.survey, s.phase.encode()),)

    @abstractmethod
    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """What there is to do for the user at this place of the roster; None if there is nothing
        now.
        """


def roster_message(s: Coordinator) -> Message:
    """The roster with the aggregator's signature, or that there is none yet."""
    if s.confirmation is None:
        return NotReady(s.params.survey, s.phase.encode())
    return Roster(s.confirmation.signed, _lines(s.roster))


@lru_cache(maxsize=4)
def _lines(roster: tuple[RosterEntry, ...]) -> tuple[PeerKey, ...]:
    """The roster as users see it; made once, shown to everybody."""
    return tuple(PeerKey(each.user, each.public_key) for each in roster)


def outcome(s: Coordinator, rows: StepRows, index: int) -> Message | None:
    """How the survey ended, for the user at this place of the roster; None while it goes on."""
    if s.phase not in FINAL or s.final is None or s.final.signed.by != Party.AGGREGATOR:
        return None
    final, places = s.final.signed, s.rules.included_places(s)
    if s.phase is Phase.ABORTED or index not in places:
        return FinalStatement(final)
    entries = s.rules.included_entries(s)
    return prove_inclusion(
        final, lambda some: entries[some.start : some.stop], len(entries), places.index(index)
    )
