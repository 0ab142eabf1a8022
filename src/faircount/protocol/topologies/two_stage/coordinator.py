"""The coordinator in the two-stage topology once the election is held (`announcing` comes
before): shares, sums, the one total.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from faircount.protocol.peers import one_sum, roster
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import (
    OTHER_BATCH,
    EndCode,
    Ending,
    aggregator_contradiction,
    attempts_used,
    too_few_left,
)
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.two_stage.announcing import AnnouncingCoordinator
from faircount.protocol.topologies.two_stage.blame import assign_blame
from faircount.protocol.topologies.two_stage.messages import (
    Indicator,
    SlotBundle,
    SlotComplaint,
    SlotSums,
    TwoStageManifest,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.relay import (
    assignment,
    ballot_of,
    call,
    called,
    claimed,
    due_sums,
    item_totals,
    items_of,
    owed_shares,
    parts_now,
    reporter_entries,
    reporters,
    rounds,
    slots_of,
)
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.messages import Reason, Reservation, reject
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import packed_size

_LISTS_LOST = Ending(EndCode.COORDINATOR_RESTORED, (), "it lost who reports which item")


class TwoStageCoordinator(AnnouncingCoordinator):
    """The coordinator of `two-stage`: bundles of shares by reporters, sums by elected helpers."""

    answer_messages = (SlotBundle,)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Shares, sums and complaints."""
        return {
            **super().user_handlers(),
            SlotBundle: self.take_bundle,
            SlotSums: self.take_sums,
            SlotComplaint: self.take_complaint,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of sharing, and of adding up."""
        return {
            **super().deadline_handlers(),
            Phase.SHARING: self.end_sharing,
            Phase.SUBMITTING: self.end_sums,
        }

    def take_bundle(
        self, s: Coordinator, rows: StepRows, message: SlotBundle
    ) -> coordinator.Change:
        """A reporter's shares: of all its slots, or of those taken over."""
        open_ = (
            s.phase is Phase.SHARING
            and message.attempt == s.attempt
            and _owes_shares(s, rows, message.index)
        )
        if open_ and not items_of(s, message.index):
            return s, (
                reject(
                    Reason.EARLY,
                    "The coordinator was restored and lost indicators: they must be sent again "
                    "first",
                ),
            )
        if open_ and not _fits(
            s, message.encrypted_shares, owed_shares(s, message.index, s.attempt).size
        ):
            return s, (reject(Reason.MALFORMED, "one sealed share for each slot is needed"),)
        return coordinator.upload(s, rows, message, made_for=message.attempt, open_=open_)

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Who has not sent its shares leaves the set with all its items; the elected users are
        called.
        """
        late = {j for j in s.members if _owes_shares(s, rows, j)}
        members = tuple(j for j in s.members if j not in late)
        if not rounds(s).lists:
            return coordinator.give_up(s, _LISTS_LOST)
        if len(members) < s.params.minimum:
            return coordinator.give_up(s, too_few_left(len(members), s.params.minimum))
        if late:
            _forget_sums(s, rows)
        known = replace(rounds(s), formed=s.attempt) if late else rounds(s)
        return replace(
            s, members=members, topology_state=known, phase=advance(s.phase, Phase.SUBMITTING)
        ), ()

    def take_sums(self, s: Coordinator, rows: StepRows, message: SlotSums) -> coordinator.Change:
        """An elected user's sums for the slots that it was called for, over the very set that the
        coordinator has now.

        After a restore the coordinator may form another set in the same attempt: the seed of
        sums over the former one would not open.
        """
        open_ = _owes_sums(s, rows, message.index) and message.request_digest == called(s).digest(
            ballot_of(s)
        )
        size = due_sums(s, message.index).size if open_ else 0
        if open_ and not (
            is_vector(message.vector, s.params.q, size)
            and len(message.encrypted_share) == ENCRYPTED_SEED_BYTES
        ):
            return s, (
                reject(
                    Reason.MALFORMED, "one element for each slot, and a sealed seed, are needed"
                ),
            )
        return coordinator.upload(s, rows, message, made_for=message.request_digest, open_=open_)

    def take_complaint(
        self, s: Coordinator, rows: StepRows, message: SlotComplaint
    ) -> coordinator.Change:
        """An elected user cannot open shares from some reporters."""
        open_ = message.attempt == s.attempt and _owes_sums(s, rows, message.index)
        named = set(message.numbers)
        once = named and len(named) == len(message.numbers)
        if open_ and not (once and named <= {number for number, _ in reporters(s)}):
            return s, (
                reject(Reason.MALFORMED, "a complaint names reporters of the set, each once"),
            )
        return coordinator.upload(s, rows, message, made_for=message.attempt, open_=open_)

    def end_sums(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Every slot has its sum: claim.

        Otherwise others take over, and reporters whose shares do not open leave.
        """
        spoiled = {j for j in s.members if not _vouched_for(s, rows, j)}
        if spoiled:  # nobody could be called: who is silent is not to blame
            return _next_attempt(s, rows, (), spoiled)
        heard = [(attempt, j) for attempt in range(1, s.attempt + 1) for j in ballot_of(s).eligible]
        complaints = [coordinator.intact_upload(s, rows, SlotComplaint, *each) for each in heard]
        said = [(each.attempt, each.index, each.numbers) for each in complaints if each is not None]
        helpers, senders = assign_blame(said, s.attempt, s.params.phi)
        silent = {
            part.holder
            for part in parts_now(s)
            if not coordinator.has_upload(s, rows, SlotSums, part.digest, part.holder)
        }
        complained = {index for attempt, index, _ in said if attempt == s.attempt}
        leaving, dropped = (silent - complained) | helpers, {rounds(s).order[i] for i in senders}
        if leaving or dropped:
            return _next_attempt(s, rows, leaving, dropped & set(s.members))
        after = _make_claim(s, rows)
        return after, self.pending(after, rows)

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """Indicate, share, add up."""
        known, indicated = rounds(s), coordinator.has_upload(s, rows, Indicator, 0, index)
        forgotten = s.phase is Phase.SHARING and not known.lists and index in known.order
        if not indicated and (s.phase is Phase.INDICATING or forgotten):
            return roster.roster_message(s)
        if s.phase is Phase.SHARING and known.lists and _owes_shares(s, rows, index):
            return assignment(s, index)
        return call(s, rows, index) if _owes_sums(s, rows, index) else None

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> coordinator.Change:
        """Before there is a claim it is that of the election, which `AnnouncementReply` follows;
        later that of the claim.
        """
        return (
            (s, ()) if s.manifest is None else super().on_reservation(s, rows, message, statement)
        )

    def manifest_places(self, s: Coordinator) -> Sequence[int]:
        """The helpers whose sums were claimed."""
        return [] if s.manifest is None else slots_of(s, s.attempt).holder.tolist()

    def continue_with(
        self, s: Coordinator, rows: StepRows, opened: tuple[int, ...]
    ) -> coordinator.Change:
        """All helpers' seeds open: the one sum is due.

        Otherwise others take over from those whose seeds do not.
        """
        closed = {part.holder for part in parts_now(s)} - set(opened)
        if closed:
            return _next_attempt(
                replace(s, phase=advance(s.phase, Phase.SUBMITTING)), rows, closed, ()
            )
        if not self.is_complete(s, rows):
            return coordinator.give_up(s, Ending(EndCode.REPORTS_LOST))
        root = merkle_root(roster_leaves(reporter_entries(s)))
        return one_sum.record_total(s, rows, s.members, root, lambda: item_totals(s, rows))

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """The aggregator's claim instead of ours, with nothing said about it yet; once the sum
        is made, another one ends the survey.
        """
        if not isinstance(manifest, TwoStageManifest) or manifest.digest != s.digest:
            return None
        # check: manifest-attempts - the aggregator names attempts that never were
        if not SumScope.of(manifest).is_within(s.params.attempts):
            return None
        if s.manifest == manifest:
            return s
        known = rounds(s)
        # check: two-stage-second-manifest - a second aggregate share would differ by one report
        if known.total is not None:
            return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_BATCH))[0]
        path = (Phase.INDICATING, Phase.SHARING, Phase.SUBMITTING, Phase.COUNTING)
        ahead = path[path.index(s.phase) + 1 :] if s.phase in path else ()
        own = replace(known, formed=manifest.formed, gone=manifest.gone)
        s = coordinator.with_manifest(
            replace(s, attempt=manifest.attempt, topology_state=own), manifest, *ahead
        )
        return s if known.election is None else replace(s, members=claimed(s, manifest))

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the sum is made, or every helper's sums of the claim are here, with the very
        seeds that were claimed.
        """
        if not isinstance(s.manifest, TwoStageManifest) or rounds(s).election is None:
            return False
        held = [
            coordinator.intact_upload(s, rows, SlotSums, part.digest, part.holder)
            for part in parts_now(s)
        ]
        return rounds(s).total is not None or (
            len(held) == len(s.manifest.encrypted_shares)
            and all(
                each is not None and each.encrypted_share == seed
                for each, seed in zip(held, s.manifest.encrypted_shares, strict=True)
            )
        )

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """The reporters that the result counts, by number."""
        return tuple(place for _, place in reporters(s))

    def included_entries(self, s: Coordinator) -> tuple[Entry, ...]:
        """A result names reporters by their keys alone."""
        return reporter_entries(s)


def _fits(s: Coordinator, encrypted_shares: Sequence[bytes], count: int) -> bool:
    return len(encrypted_shares) == count and all(
        len(encrypted_share) == packed_size(s.params.q, 1) + OVERHEAD
        for encrypted_share in encrypted_shares
    )


def _owes_shares(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether a reporter has shares to send in this attempt and has not sent them."""
    if index not in s.members or coordinator.has_upload(s, rows, SlotBundle, s.attempt, index):
        return False
    return s.attempt == 1 or bool(owed_shares(s, index, s.attempt).size)


def _owes_sums(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether an elected user is called in this attempt and was not heard of."""
    if s.phase is not Phase.SUBMITTING:
        return False
    if not due_sums(s, index).size or coordinator.has_upload(
        s, rows, SlotComplaint, s.attempt, index
    ):
        return False
    return not coordinator.has_upload(s, rows, SlotSums, called(s).digest(ballot_of(s)), index)


def _vouched_for(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether the coordinator still has all the shares that a reporter has sent: its part in the
    sums rests on them.
    """
    later = [attempt for attempt in range(2, s.attempt + 1) if owed_shares(s, index, attempt).size]
    return all(
        coordinator.has_upload(s, rows, SlotBundle, attempt, index) for attempt in (1, *later)
    )


def _next_attempt(
    s: Coordinator, rows: StepRows, leaving: Collection[int], dropped: Collection[int]
) -> coordinator.Change:
    """Once more: without the reporters `dropped`, and with others in the places of the helpers
    `leaving`.
    """
    members, attempt = tuple(j for j in s.members if j not in dropped), s.attempt + 1
    gone = (*rounds(s).gone, *(VanishedHelper(attempt, j) for j in sorted(leaving)))
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, too_few_left(len(members), s.params.minimum))
    if attempt > s.params.attempts:
        return coordinator.give_up(s, attempts_used(s.params.attempts))
    if ballot_of(s).after(gone) is None:
        return coordinator.give_up(s, Ending(EndCode.NO_SUBSTITUTE))
    if not rounds(s).lists:
        return coordinator.give_up(s, _LISTS_LOST)
    # check: replaced-helper-sums-deleted - sums of helper and successor could be compared
    _forget_sums(s, rows, None if dropped else leaving)
    known = replace(rounds(s), gone=gone, formed=attempt if dropped else rounds(s).formed)
    state = advance(s.phase, Phase.SHARING) if leaving else s.phase
    return replace(s, attempt=attempt, members=members, topology_state=known, phase=state), ()


def _forget_sums(s: Coordinator, rows: StepRows, holders: Collection[int] | None = None) -> None:
    """Delete the sums of these helpers, or of all over a set that is no more: they are in no
    sum.
    """
    for part in parts_now(s):
        if holders is None or part.holder in holders:
            one_sum.delete_vectors(s, rows, SlotSums, part.digest, (part.holder,))


def _make_claim(s: Coordinator, rows: StepRows) -> Coordinator:
    """Close writes and fix the claim: the present reporters, and the sealed seed of every helper's
    mask.
    """
    now, ballot = called(s), ballot_of(s)
    seeds = tuple(
        rows.uploads[SlotSums.tag, part.digest, part.holder].encrypted_share
        for part in parts_now(s)
    )
    about = now.attempt, now.formed, now.members, now.gone, now.digest(ballot)
    manifest = TwoStageManifest(s.params.survey, s.digest, ballot.hash, *about, seeds)
    return coordinator.with_manifest(s, manifest, Phase.COUNTING)
