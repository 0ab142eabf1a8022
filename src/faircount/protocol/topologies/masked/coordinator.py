"""The coordinator in the `masked` topology: the graph, the set, one total, and unmask shares.

    roster confirmed     draw the graph of neighbours from the value that the aggregator revealed
    end of sharing       the set: those who shared their mask key, are connected, and have t
                         neighbours in the set each
    end of submitting    the manifest: the largest connected part of the set that sent its sums
    accepted members     nobody's mask is left uncancelled: the total.
                         Otherwise their neighbours are asked for unmask shares
    end of unmasking     all unmask shares go to the aggregator, which is then ready for the total,
                         or names members whose keys are lost: a further attempt, or the end

A vector that can be in no total any more is deleted at once. Masks and seeds are fresh in every
attempt, so the vectors of two attempts cannot be combined.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Bools
from faircount.protocol.peers import one_sum
from faircount.protocol.peers.one_sum import PeersCoordinator
from faircount.protocol.peers.peer_set import PeerSet
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import (
    OTHER_BATCH,
    EndCode,
    Ending,
    aggregator_contradiction,
    too_few_left,
    too_few_readable,
)
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.masked.aggregator import find_uncancelled, is_recoverable
from faircount.protocol.topologies.masked.graph import draw_graph
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import (
    KeyBundle,
    MaskedManifest,
    MaskedSum,
    ReadyForTotal,
    UnmaskRequest,
    UnmaskShares,
    Unrecoverable,
)
from faircount.protocol.topologies.masked.relay import (
    masked_sum_request,
    neighbourhood,
    unmask_batch,
)
from faircount.protocol.topologies.masked.state import MaskedState, masked_state, with_accepted
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import (
    NotReady,
    OutcomeRequest,
    Reason,
    Rejection,
    reject,
)
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.roster_messages import RosterConfirmation
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import KEY_BYTES, is_canonical_key
from faircount.sharing.shamir import SHARE_BYTES


class MaskedCoordinator(PeersCoordinator):
    """The coordinator of `masked`: mask keys, masked vectors, and unmask shares for the dropped."""

    answer_messages = (MaskedSum,)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Key shares, sums and unmask shares.

        A client is shown its neighbours instead of the whole roster.
        """
        return {
            **super().user_handlers(),
            OutcomeRequest: self.show_neighbourhood,
            KeyBundle: self.take_keys,
            MaskedSum: self.take_sum,
            UnmaskShares: self.take_unmask_shares,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """Whether the aggregator could recover the keys of the dropped members."""
        return {
            **super().aggregator_handlers(),
            ReadyForTotal: self.on_ready,
            Unrecoverable: self.on_unrecoverable,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of sharing keys, of submitting sums, and of unmasking."""
        return {
            **super().deadline_handlers(),
            Phase.SHARING: self.end_sharing,
            Phase.SUBMITTING: self.end_submitting,
            Phase.UNMASKING: self.end_unmasking,
        }

    # --- roster and keys

    def on_confirmation(
        self, s: Coordinator, rows: StepRows, message: RosterConfirmation, statement: Statement
    ) -> coordinator.Change:
        """Draw the graph: the roster is confirmed, and the aggregator's value revealed."""
        after, out = super().on_confirmation(s, rows, message, statement)
        # The confirmation was not accepted: there is no graph to draw.
        if after is s:
            return s, out
        graph = draw_graph(message.revealed, message.digest, message.n, s.params.k)
        return replace(after, topology_state=MaskedState(None, graph)), out

    def show_neighbourhood(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """An invited participant's place in the roster, with the entries of its neighbours."""
        user = coordinator.recognize_device(s, rows, message)
        if isinstance(user, Rejection):
            return s, (user,)
        if s.confirmation is None:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        # The roster is ascending by user id.
        place = bisect_left(s.roster, user, key=lambda entry: entry.user)
        if place == s.n or s.roster[place].user != user:
            return s, (reject(Reason.UNKNOWN, "this person is not on the confirmed roster"),)
        return s, (neighbourhood(s, s.confirmation, place),)

    def take_keys(self, s: Coordinator, rows: StepRows, message: KeyBundle) -> coordinator.Change:
        """Store a member's public mask key, and the shares of the secret key for its neighbours."""
        if s.confirmation is None:
            return s, (reject(Reason.EARLY, "the roster is not confirmed yet"),)
        degree = masked_state(s).graph.degree
        size = SHARE_BYTES + OVERHEAD
        if len(message.encrypted_shares) != degree or not all(
            len(encrypted_share) == size for encrypted_share in message.encrypted_shares
        ):
            problem = f"{degree} encrypted key shares of {size} bytes are needed"
            return s, (reject(Reason.MALFORMED, problem),)
        # A mask made with a low-order key hides nothing, and two members with one key would have
        # equal masks.
        if not is_canonical_key(message.mask_key) or message.mask_key in rows.public_keys:
            problem = "a mask key is canonical, not of low order, and used once"
            return s, (reject(Reason.MALFORMED, problem),)
        return coordinator.upload(
            s, rows, message, made_for=0, phase_is_open=s.phase is Phase.SHARING
        )

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Form the first set: connected members who shared a key, with t neighbours each."""
        everybody = np.ones(s.n, dtype=np.bool_)
        return _begin_attempt(replace(s, phase=advance(s.phase, Phase.SUBMITTING)), rows, everybody)

    # --- sums and manifest

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """Share its mask key, send its masked vector, or unmask dropped neighbours."""
        if s.confirmation is None or s.final is not None:
            return None
        masked = masked_state(s)
        if s.phase is Phase.SHARING and not coordinator.has_upload(s, rows, KeyBundle, 0, index):
            return neighbourhood(s, s.confirmation, index)
        if (
            s.phase is Phase.SUBMITTING
            and index in masked.members
            and not coordinator.has_upload(s, rows, MaskedSum, masked.set_digest, index)
        ):
            return masked_sum_request(s, rows, index)
        if (
            s.accepted is not None
            and _count_dropped_neighbours(s, index)
            and not coordinator.has_upload(s, rows, UnmaskShares, masked.set_digest, index)
        ):
            return UnmaskRequest(s.accepted.signed)
        return None

    def take_sum(self, s: Coordinator, rows: StepRows, message: MaskedSum) -> coordinator.Change:
        """Store a masked vector for the current attempt.

        It must be made for the current set and with the mask keys that the coordinator has now.
        After a restore the coordinator may form another set for the same attempt, and masks made
        for the former one would not cancel. After the deadline no vector is even stored.
        """
        if len(message.encrypted_share) != ENCRYPTED_SEED_BYTES or not is_vector(
            message.vector, s.params.q, s.params.N
        ):
            problem = "the vector or the encrypted seed does not have the form of this survey"
            return s, (reject(Reason.MALFORMED, problem),)
        if s.confirmation is None:
            return s, (reject(Reason.EARLY, "the roster is not confirmed yet"),)
        masked = masked_state(s)
        is_expected = (
            s.phase is Phase.SUBMITTING
            and message.index in masked.members
            and message.set_digest == masked.set_digest
            and message.keys_digest == _keys_around(s, rows, message.index)
        )
        return coordinator.upload(
            s, rows, message, made_for=message.set_digest, phase_is_open=is_expected
        )

    def end_submitting(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix the manifest over the largest connected part of those who sent, or begin again."""
        graph = masked_state(s).graph
        is_inside = graph.marks(s.members)
        has_key = _have_shared_keys(s, rows)
        # A stored mask key was damaged: its neighbours may have added masks that do not cancel.
        if (is_inside & ~has_key).any():
            return _begin_attempt(s, rows, is_inside)
        has_sent = _have_sent(s, rows)
        accepted = graph.largest_component(has_sent)
        # Too few neighbours sent a sum to recover the key of somebody who did not.
        if accepted.sum() >= s.params.minimum and not is_recoverable(
            graph, is_inside, accepted, s.params.t
        ):
            return _begin_attempt(s, rows, has_sent)
        return self._fix_manifest(s, rows, tuple(np.flatnonzero(accepted).tolist()))

    def _fix_manifest(
        self, s: Coordinator, rows: StepRows, places: tuple[int, ...]
    ) -> coordinator.Change:
        """Close writing and fix the manifest: the set, who of it sent a sum, and their seeds."""
        if len(places) < s.params.minimum:
            return coordinator.request_abort(s, too_few_left(len(places), s.params.minimum))
        masked = with_accepted(masked_state(s), masked_state(s).members, places)
        mask_keys = tuple(rows.uploads[KeyBundle.tag, 0, j].mask_key for j in s.members)
        sums = (rows.uploads[MaskedSum.tag, masked.set_digest, j] for j in places)
        manifest = MaskedManifest(
            s.params.survey,
            s.digest,
            s.attempt,
            masked.bits,
            bitmap(places, s.n),
            masked.set_digest,
            mask_keys,
            tuple(masked_sum.encrypted_share for masked_sum in sums),
        )
        s = replace(s, topology_state=masked)
        after = coordinator.with_manifest(s, manifest, Phase.COUNTING)
        return after, self.unanswered_messages(after, rows)

    def manifest_places(self, s: Coordinator) -> Sequence[int]:
        """Those who had sent their vectors when the manifest was fixed."""
        return masked_state(s).accepted if s.confirmation is not None else ()

    def continue_with(
        self, s: Coordinator, rows: StepRows, places: tuple[int, ...]
    ) -> coordinator.Change:
        """Record the total if all masks cancel; else ask for unmask shares, or begin again."""
        masked = masked_state(s)
        graph = masked.graph
        if not one_sum.has_enough_members(s, places):
            return coordinator.request_abort(s, too_few_readable(len(places), s.params.minimum))
        is_inside = graph.marks(list(masked.members))
        is_accepted = graph.marks(places)
        if not is_recoverable(graph, is_inside, is_accepted, s.params.t):
            s = replace(s, phase=advance(s.phase, Phase.SUBMITTING))
            return _begin_attempt(s, rows, is_accepted)
        # The keys of the others are recovered next. Their vectors must be gone by then: without
        # pairwise masks only their seeds, which the aggregator has, would still hide them.
        others = sorted(masked.members - frozenset(places))
        one_sum.delete_vectors(s, rows, MaskedSum, masked.set_digest, others)
        s = replace(s, topology_state=with_accepted(masked, masked.members, places))
        if find_uncancelled(graph, is_inside, is_accepted).any():
            return replace(s, phase=advance(s.phase, Phase.UNMASKING)), ()
        return self._record_sum(s, rows)

    def _record_sum(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Record the total over the accepted members."""
        if not self.is_complete(s, rows):
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        masked = masked_state(s)
        sums = (rows.uploads[MaskedSum.tag, masked.set_digest, j] for j in masked.accepted)
        vectors = [masked_sum.vector for masked_sum in sums]
        return one_sum.record_sum(s, rows, masked.accepted, vectors)

    # --- unmasking

    def take_unmask_shares(
        self, s: Coordinator, rows: StepRows, message: UnmaskShares
    ) -> coordinator.Change:
        """Store a member's message keys for the key shares that its dropped neighbours dealt it."""
        dropped = _count_dropped_neighbours(s, message.index)
        is_expected = dropped > 0 and message.set_digest == masked_state(s).set_digest
        if is_expected and len(message.encrypted_share) != dropped * KEY_BYTES + OVERHEAD:
            problem = "one message key for each dropped neighbour is needed"
            return s, (reject(Reason.MALFORMED, problem),)
        return coordinator.upload(
            s, rows, message, made_for=message.set_digest, phase_is_open=is_expected
        )

    def end_unmasking(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Send the unmask shares that came; the aggregator decides whether they are enough.

        From now on no more are taken: a batch must have the same bytes when it is sent again.
        """
        after = replace(s, topology_state=replace(masked_state(s), unmasking_closed=True))
        return after, self.unanswered_messages(after, rows)

    def on_ready(
        self, s: Coordinator, rows: StepRows, message: ReadyForTotal, _: Statement
    ) -> coordinator.Change:
        """Record the total over the accepted members: the aggregator has all keys that it needs."""
        if not _is_unmasking(s, message):
            return s, ()
        return self._record_sum(s, rows)

    def on_unrecoverable(
        self, s: Coordinator, rows: StepRows, message: Unrecoverable, _: Statement
    ) -> coordinator.Change:
        """Begin an attempt among the accepted members, in which nobody needs the lost keys."""
        if not _is_unmasking(s, message):
            return s, ()
        masked = masked_state(s)
        is_accepted = masked.graph.marks(masked.accepted)
        s = replace(s, phase=advance(s.phase, Phase.SUBMITTING))
        return _begin_attempt(s, rows, is_accepted)

    # --- called by the code that all topologies share

    def unanswered_messages(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The unmask shares while the aggregator combines keys; else the manifest or the total."""
        if s.phase is Phase.UNMASKING and masked_state(s).unmasking_closed:
            return (coordinator.to_aggregator(s, unmask_batch(s, rows)),)
        return super().unanswered_messages(s, rows)

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> Coordinator | None:
        """The state with the manifest that the aggregator recorded, after a restore.

        If this coordinator has made a total for another manifest, the survey ends.
        """
        if (
            not isinstance(manifest, MaskedManifest)
            or manifest.digest != s.digest
            or s.confirmation is None
        ):
            return None
        if s.manifest == manifest:
            return s
        members = members_of(manifest.members, s.n)
        senders = members_of(manifest.senders, s.n)
        if members is None or senders is None or len(manifest.encrypted_shares) != len(senders):
            return None
        # Once recorded it may have been sent: the aggregator may have this total already.
        # check: masked-second-manifest - a second aggregate share would differ by one report
        if masked_state(s).total is not None:
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_BATCH)
            )[0]
        paths = {
            Phase.SHARING: (Phase.SUBMITTING, Phase.COUNTING),
            Phase.SUBMITTING: (Phase.COUNTING,),
            Phase.UNMASKING: (Phase.SUBMITTING, Phase.COUNTING),
        }
        masked = replace(masked_state(s), bits=manifest.members, set_digest=manifest.set_digest)
        masked = with_accepted(masked, frozenset(members), senders)
        s = replace(s, attempt=manifest.attempt, members=members, topology_state=masked)
        return coordinator.with_manifest(s, manifest, *paths.get(s.phase, ()))

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the total is made, or its vectors are stored, with the seeds of the manifest."""
        if not isinstance(s.manifest, MaskedManifest):
            return False
        masked = masked_state(s)
        if masked.total is not None:
            return True
        senders = members_of(s.manifest.senders, s.n) or ()
        seeds = dict(zip(senders, s.manifest.encrypted_shares, strict=True))
        for j in masked.accepted:
            stored = coordinator.intact_upload(s, rows, MaskedSum, s.manifest.set_digest, j)
            # After a restore the stored sum may have another seed, whose mask would remain.
            if stored is None or stored.encrypted_share != seeds[j]:
                return False
        return True

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """The members that the result counts."""
        return s.topology_state.accepted if isinstance(s.topology_state, MaskedState) else ()


def _begin_attempt(s: Coordinator, rows: StepRows, candidates: Bools) -> coordinator.Change:
    """The next attempt, or the end if too few members are left or it was the last one.

    Its members are those of the candidates who shared a key and are connected, with t neighbours
    each. The vectors of the last attempt are deleted: they can be in no total any more.
    """
    # A coordinator that was restored may have adopted a set in which it does not know every key.
    can_take_part = candidates & _have_shared_keys(s, rows)
    inside = masked_state(s).graph.stable_component(can_take_part, s.params.t)
    members = tuple(np.flatnonzero(inside).tolist())
    if len(members) < s.params.minimum:
        return coordinator.request_abort(s, too_few_left(len(members), s.params.minimum))
    if s.attempt >= s.params.attempts:
        return coordinator.request_abort(s, Ending(EndCode.KEY_LOST))
    # Deleted before the next attempt is announced: no vector of this one can be unmasked later.
    masked = masked_state(s)
    one_sum.delete_vectors(s, rows, MaskedSum, masked.set_digest, s.members)
    wanted = PeerSet(s.digest, s.attempt + 1, s.n, members)
    masked = replace(masked, bits=wanted.bits, set_digest=wanted.set_digest)
    masked = with_accepted(masked, frozenset(members), ())
    return replace(s, attempt=wanted.attempt, members=members, topology_state=masked), ()


def _is_unmasking(s: Coordinator, message: ReadyForTotal | Unrecoverable) -> bool:
    """Whether the coordinator waits for this answer to its unmask shares."""
    return (
        s.phase is Phase.UNMASKING and s.final is None and message.manifest_hash == s.manifest_hash
    )


def _have_shared_keys(s: Coordinator, rows: StepRows) -> Bools:
    """Which members' mask keys the coordinator has, as it acknowledged them."""
    has_key = [coordinator.has_upload(s, rows, KeyBundle, 0, place) for place in range(s.n)]
    return np.array(has_key, dtype=np.bool_)


def _have_sent(s: Coordinator, rows: StepRows) -> Bools:
    """Whose vectors for the current set the coordinator has, made with the mask keys it has now."""
    masked = masked_state(s)
    found = np.zeros(s.n, dtype=np.bool_)
    for j in s.members:
        stored = coordinator.intact_upload(s, rows, MaskedSum, masked.set_digest, j)
        found[j] = stored is not None and stored.keys_digest == _keys_around(s, rows, j)
    return found


def _keys_around(s: Coordinator, rows: StepRows, place: int) -> bytes:
    """Digest of the mask keys of a member and of its neighbours in the set."""
    masked = masked_state(s)
    own = rows.uploads[KeyBundle.tag, 0, place].mask_key
    neighbours = [j for j in masked.graph.neighbours_of(place) if j in masked.members]
    others = (rows.uploads[KeyBundle.tag, 0, j].mask_key for j in neighbours)
    return keys_digest(own, others)


def _count_dropped_neighbours(s: Coordinator, place: int) -> int:
    """For how many dropped neighbours a member is asked for unmask shares now."""
    if s.phase is not Phase.UNMASKING:
        return 0
    # A dropped member does not help to unmask the others: its own key is being recovered.
    masked = masked_state(s)
    if masked.unmasking_closed or place not in masked.members or place in masked.dropped:
        return 0
    return len(masked.dropped.intersection(masked.graph.neighbours_of(place)))
