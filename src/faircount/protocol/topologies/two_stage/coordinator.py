"""The coordinator of `two-stage` once the election is held (`announcing` comes before).

    sharing      reporters send encrypted shares for the slots of their items. Who does not leaves
                 the set, with all its items
    submitting   helpers send the masked sums of their slots, or complain. If somebody is missing
                 or complains, others take over in the next attempt. If not, the manifest is fixed
    counting     the aggregator decrypts the seeds of the masks. If all decrypt, the coordinator
                 adds up the sums item by item and sends the one total; if not, there is another
                 attempt

A sum stays valid as long as the set of reporters and the slot's holder do. The sums of a replaced
helper are deleted, so that nobody can compare them with those of the successor.
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
from faircount.protocol.topologies.two_stage.blame import ComplaintRecord, assign_blame
from faircount.protocol.topologies.two_stage.messages import (
    Indicator,
    SlotBundle,
    SlotComplaint,
    SlotSums,
    TwoStageManifest,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.relay import (
    ballot_of,
    current_helper_sums,
    current_scope,
    due_sums,
    item_totals,
    items_of,
    make_assignment,
    make_sum_request,
    manifest_members,
    owed_shares,
    present_reporters,
    reporter_entries,
    slots_of,
    two_stage_state,
)
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.digests import entry_leaves, merkle_root
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
            SlotBundle: self.on_bundle,
            SlotSums: self.on_sums,
            SlotComplaint: self.on_complaint,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of sharing, and of summing."""
        return {
            **super().deadline_handlers(),
            Phase.SHARING: self.end_sharing,
            Phase.SUBMITTING: self.end_sums,
        }

    def on_bundle(self, s: Coordinator, rows: StepRows, message: SlotBundle) -> coordinator.Change:
        """Store a reporter's encrypted shares: for all its slots, or for those taken over."""
        is_open = (
            s.phase is Phase.SHARING
            and message.attempt == s.attempt
            and _owes_shares(s, rows, message.index)
        )
        if is_open:
            if not items_of(s, message.index):
                why = "The coordinator was restored and lost indicators: send them again first"
                return s, (reject(Reason.EARLY, why),)
            count = owed_shares(s, message.index, s.attempt).size
            if not _has_form(s, message.encrypted_shares, count):
                why = "one encrypted share for each slot is needed"
                return s, (reject(Reason.MALFORMED, why),)
        return coordinator.upload(s, rows, message, made_for=message.attempt, phase_is_open=is_open)

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Reporters without shares leave the set with all their items; the helpers may sum."""
        late = {place for place in s.members if _owes_shares(s, rows, place)}
        members = tuple(place for place in s.members if place not in late)
        state = two_stage_state(s)
        # After a restore not all indicators came back, and without lists nobody can be asked.
        if not state.lists:
            return coordinator.request_abort(s, _LISTS_LOST)
        if len(members) < s.params.minimum:
            return coordinator.request_abort(s, too_few_left(len(members), s.params.minimum))
        if late:
            # Sums over the former set are in no total any more.
            _delete_sums(s, rows)
            state = replace(state, formed=s.attempt)
        phase = advance(s.phase, Phase.SUBMITTING)
        return replace(s, members=members, topology_state=state, phase=phase), ()

    def on_sums(self, s: Coordinator, rows: StepRows, message: SlotSums) -> coordinator.Change:
        """Store a helper's sums for the slots that it was asked for, over the present set.

        After a restore the coordinator may form another set in the same attempt. Then sums over the
        former set are refused: the seed of their masks could not be decrypted.
        """
        is_open = False
        if _owes_sums(s, rows, message.index):
            is_open = message.request_digest == current_scope(s).digest(ballot_of(s))
        if is_open:
            count = due_sums(s, message.index).size
            is_encrypted_seed = len(message.encrypted_share) == ENCRYPTED_SEED_BYTES
            if not is_encrypted_seed or not is_vector(message.vector, s.params.q, count):
                why = "one element for each slot, and an encrypted seed, are needed"
                return s, (reject(Reason.MALFORMED, why),)
        return coordinator.upload(
            s, rows, message, made_for=message.request_digest, phase_is_open=is_open
        )

    def on_complaint(
        self, s: Coordinator, rows: StepRows, message: SlotComplaint
    ) -> coordinator.Change:
        """Store a helper's complaint that it cannot decrypt the shares of some reporters."""
        is_open = message.attempt == s.attempt and _owes_sums(s, rows, message.index)
        if is_open:
            named = set(message.numbers)
            present = {number for number, _ in present_reporters(s)}
            names_each_once = len(named) == len(message.numbers)
            if not named or not names_each_once or not named <= present:
                why = "a complaint names reporters of the set, each once"
                return s, (reject(Reason.MALFORMED, why),)
        return coordinator.upload(s, rows, message, made_for=message.attempt, phase_is_open=is_open)

    def end_sums(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """If every slot has its sum, fix the manifest; otherwise begin another attempt.

        In it others take over from helpers without sums, and reporters whose shares cannot be
        decrypted are left out.
        """
        lost = {place for place in s.members if not _has_all_bundles(s, rows, place)}
        if lost:
            # The helpers could not be asked without these shares: they are not to blame.
            return _begin_attempt(s, rows, (), lost)
        complaints = _complaints(s, rows)
        blamed_helpers, blamed_numbers = assign_blame(complaints, s.attempt, s.params.phi)
        # A helper that has complained has an excuse, unless the complaint itself is its fault.
        missing = set[int]()
        for helper in current_helper_sums(s):
            if not coordinator.has_upload(s, rows, SlotSums, helper.digest, helper.holder):
                missing.add(helper.holder)
        complaining = {helper for attempt, helper, _ in complaints if attempt == s.attempt}
        leaving = (missing - complaining) | blamed_helpers
        dropped = {two_stage_state(s).order[number] for number in blamed_numbers}
        if leaving or dropped:
            return _begin_attempt(s, rows, leaving, dropped & set(s.members))
        after = _fix_manifest(s, rows)
        return after, self.unanswered_messages(after, rows)

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """What a participant is asked for now: the indicator, shares, or sums."""
        state = two_stage_state(s)
        has_indicated = coordinator.has_upload(s, rows, Indicator, 0, index)
        is_lost = s.phase is Phase.SHARING and not state.lists and index in state.order
        if not has_indicated and (s.phase is Phase.INDICATING or is_lost):
            return roster.roster_message(s)
        if s.phase is Phase.SHARING and state.lists and _owes_shares(s, rows, index):
            return make_assignment(s, index)
        if _owes_sums(s, rows, index):
            return make_sum_request(s, rows, index)
        return None

    def on_reservation(
        self, s: Coordinator, rows: StepRows, message: Reservation, statement: Statement
    ) -> coordinator.Change:
        """Keep the reservation of the manifest.

        The first one, before there is a manifest, is for the election. `AnnouncementReply` follows
        it and says what the coordinator needs.
        """
        if s.manifest is None:
            return s, ()
        return super().on_reservation(s, rows, message, statement)

    def manifest_places(self, s: Coordinator) -> Sequence[int]:
        """The helpers whose sums are in the manifest."""
        return [] if s.manifest is None else slots_of(s, s.attempt).holder.tolist()

    def continue_with(
        self, s: Coordinator, rows: StepRows, decrypted: tuple[int, ...]
    ) -> coordinator.Change:
        """Send the one total if all helpers' seeds decrypt; otherwise replace the other helpers."""
        holders = {helper.holder for helper in current_helper_sums(s)}
        unreadable = holders - set(decrypted)
        if unreadable:
            reopened = replace(s, phase=advance(s.phase, Phase.SUBMITTING))
            return _begin_attempt(reopened, rows, unreadable, ())
        if not self.is_complete(s, rows):
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        # `record_total` compares the root with the aggregator's: the set is the same for both.
        root = merkle_root(entry_leaves(reporter_entries(s)))
        return one_sum.record_total(s, rows, s.members, root, lambda: item_totals(s, rows))

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> Coordinator | None:
        """Replace the coordinator's manifest by the one that the aggregator has recorded.

        Once the total is stored, another manifest ends the survey: a second total over another set
        would reveal the difference.
        """
        if not isinstance(manifest, TwoStageManifest) or manifest.digest != s.digest:
            return None
        # check: manifest-attempts - the aggregator names attempts that never were
        if not SumScope.of(manifest).is_within(s.params.attempts):
            return None
        if s.manifest == manifest:
            return s
        state = two_stage_state(s)
        # check: two-stage-second-manifest - a second aggregate share would differ by one report
        if state.total is not None:
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_BATCH)
            )[0]
        path = (Phase.INDICATING, Phase.SHARING, Phase.SUBMITTING, Phase.COUNTING)
        phases_left = path[path.index(s.phase) + 1 :] if s.phase in path else ()
        adopted = replace(state, formed=manifest.formed, gone=manifest.gone)
        s = replace(s, attempt=manifest.attempt, topology_state=adopted)
        s = coordinator.with_manifest(s, manifest, *phases_left)
        if state.election is None:
            # The members follow from the election, which comes next (`on_election`).
            return s
        return replace(s, members=manifest_members(s, manifest))

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the total is stored, or all sums of the manifest are, with the same seeds."""
        state = two_stage_state(s)
        if not isinstance(s.manifest, TwoStageManifest) or state.election is None:
            return False
        if state.total is not None:
            return True
        helpers = current_helper_sums(s)
        seeds = s.manifest.encrypted_shares
        if len(helpers) != len(seeds):
            return False
        for helper, seed in zip(helpers, seeds, strict=True):
            sums = coordinator.intact_upload(s, rows, SlotSums, helper.digest, helper.holder)
            if sums is None or sums.encrypted_share != seed:
                return False
        return True

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """The reporters that the result counts, in the order of their numbers."""
        return tuple(place for _, place in present_reporters(s))

    def included_entries(self, s: Coordinator) -> tuple[Entry, ...]:
        """The result names reporters by their keys alone."""
        return reporter_entries(s)


def _has_form(s: Coordinator, encrypted_shares: Sequence[bytes], count: int) -> bool:
    """Whether these are `count` encrypted shares of one field element each."""
    size = packed_size(s.params.q, 1) + OVERHEAD
    return len(encrypted_shares) == count and all(len(share) == size for share in encrypted_shares)


def _owes_shares(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether a reporter has shares to send in this attempt and has not sent them."""
    if index not in s.members or coordinator.has_upload(s, rows, SlotBundle, s.attempt, index):
        return False
    return s.attempt == 1 or bool(owed_shares(s, index, s.attempt).size)


def _owes_sums(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether a helper has slots to sum in this attempt, and has sent no sums or complaint."""
    if s.phase is not Phase.SUBMITTING or not due_sums(s, index).size:
        return False
    if coordinator.has_upload(s, rows, SlotComplaint, s.attempt, index):
        return False
    digest = current_scope(s).digest(ballot_of(s))
    return not coordinator.has_upload(s, rows, SlotSums, digest, index)


def _has_all_bundles(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether the coordinator still has all shares that a reporter has sent."""
    for attempt in range(1, s.attempt + 1):
        # In the first attempt everybody sends a bundle, later only for slots taken over.
        is_needed = attempt == 1 or owed_shares(s, index, attempt).size
        if is_needed and not coordinator.has_upload(s, rows, SlotBundle, attempt, index):
            return False
    return True


def _complaints(s: Coordinator, rows: StepRows) -> list[ComplaintRecord]:
    """All complaints so far, by attempt and place."""
    complaints = list[ComplaintRecord]()
    # Complaints of earlier attempts count too: two attempts prove that the reporter is malicious.
    for attempt in range(1, s.attempt + 1):
        for place in ballot_of(s).eligible:
            complaint = coordinator.intact_upload(s, rows, SlotComplaint, attempt, place)
            if complaint is not None:
                complaints.append((attempt, place, complaint.numbers))
    return complaints


def _begin_attempt(
    s: Coordinator, rows: StepRows, leaving: Collection[int], dropped: Collection[int]
) -> coordinator.Change:
    """Begin the next attempt.

    `dropped` reporters leave the set, and others take over the slots of the `leaving` helpers.
    """
    state = two_stage_state(s)
    attempt = s.attempt + 1
    members = tuple(place for place in s.members if place not in dropped)
    vanished = tuple(VanishedHelper(attempt, place) for place in sorted(leaving))
    gone = (*state.gone, *vanished)
    if len(members) < s.params.minimum:
        return coordinator.request_abort(s, too_few_left(len(members), s.params.minimum))
    if attempt > s.params.attempts:
        return coordinator.request_abort(s, attempts_used(s.params.attempts))
    if ballot_of(s).after(gone) is None:
        return coordinator.request_abort(s, Ending(EndCode.NO_SUBSTITUTE))
    if not state.lists:
        return coordinator.request_abort(s, _LISTS_LOST)
    # check: replaced-helper-sums-deleted - sums of helper and successor could be compared
    _delete_sums(s, rows, None if dropped else leaving)
    # Over a smaller set every sum is made anew; otherwise the other helpers' sums stay valid.
    formed = attempt if dropped else state.formed
    state = replace(state, gone=gone, formed=formed)
    # Only new holders need shares. Without any, the helpers sum the shares that they have.
    phase = advance(s.phase, Phase.SHARING) if leaving else s.phase
    return replace(s, attempt=attempt, members=members, topology_state=state, phase=phase), ()


def _delete_sums(s: Coordinator, rows: StepRows, holders: Collection[int] | None = None) -> None:
    """Delete the sums of these helpers; by default of all, because the set is no longer theirs."""
    for helper in current_helper_sums(s):
        if holders is None or helper.holder in holders:
            one_sum.delete_vectors(s, rows, SlotSums, helper.digest, (helper.holder,))


def _fix_manifest(s: Coordinator, rows: StepRows) -> Coordinator:
    """Fix the manifest: the present reporters, and the encrypted seed of every helper's mask."""
    scope = current_scope(s)
    ballot = ballot_of(s)
    # Only encrypted seeds leave here. The masked sums leave as one total, once the set is accepted.
    seeds = list[bytes]()
    for helper in current_helper_sums(s):
        sums = rows.uploads[SlotSums.tag, helper.digest, helper.holder]
        seeds.append(sums.encrypted_share)
    manifest = TwoStageManifest(
        s.params.survey,
        s.digest,
        ballot.hash,
        scope.attempt,
        scope.formed,
        scope.members,
        scope.gone,
        scope.digest(ballot),
        tuple(seeds),
    )
    return coordinator.with_manifest(s, manifest, Phase.COUNTING)
