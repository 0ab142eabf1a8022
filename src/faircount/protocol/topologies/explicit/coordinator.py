"""The coordinator in the `explicit` topology: it relays shares, and needs everybody of a set.

    end of sharing      the first set: everybody who shared
    sum request         the set of the attempt, with the shares that the others sent -> clients
    end of an attempt   all members of the set sent their sums: the manifest -> aggregator.
                        Otherwise a further attempt among those who sent a sum or a complaint
    accepted members    all of them: the total -> aggregator.
                        Otherwise a further attempt among the accepted

A pair of members is removed if one of the two could not decrypt the other's share: both leave the
pair out of their sums, so that the rest still cancels. Sets only shrink. The vectors of a failed
attempt are deleted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from faircount.protocol.peers import one_sum, roster
from faircount.protocol.peers.one_sum import PeersCoordinator, PeersState
from faircount.protocol.peers.peer_set import PeerSet, drop_until_connected, parse_peer_set
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
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.explicit.messages import (
    Complaint,
    ExplicitManifest,
    PeerSum,
    ShareBundle,
    SumRequest,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.messages import Reason, reject
from faircount.protocol.wire.packed_rows import is_vector
from faircount.sharing.packing import packed_size


@dataclass(frozen=True)
class ExplicitState(PeersState):
    """What the coordinator stores for an `explicit` survey."""

    stored_tag = "explicit-coordinator"
    removed: frozenset[tuple[int, int]] = frozenset()  # pairs that leave each other's shares out


def _explicit_state(s: Coordinator) -> ExplicitState:
    return s.topology_state if isinstance(s.topology_state, ExplicitState) else ExplicitState(None)


def current_set(s: Coordinator) -> PeerSet:
    """The set of the current attempt."""
    return PeerSet(s.digest, s.attempt, s.n, s.members, _explicit_state(s).removed)


class ExplicitCoordinator(PeersCoordinator):
    """The coordinator of `explicit`: bundles of shares, then everybody's sums in one attempt."""

    answer_messages = (PeerSum,)

    def initial_state(self, order_key: bytes) -> ExplicitState:
        """No pair is removed, and there is no total."""
        return ExplicitState(None)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Shares, sums and complaints."""
        return {
            **super().user_handlers(),
            ShareBundle: self.take_bundle,
            PeerSum: self.take_sum,
            Complaint: self.take_complaint,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of sharing, and of an attempt."""
        return {
            **super().deadline_handlers(),
            Phase.SHARING: self.end_sharing,
            Phase.SUBMITTING: self.end_attempt,
        }

    # --- uploads

    def take_bundle(
        self, s: Coordinator, rows: StepRows, message: ShareBundle
    ) -> coordinator.Change:
        """Store a member's shares for all others."""
        size = packed_size(s.params.q, s.params.N) + OVERHEAD
        if len(message.encrypted_shares) != s.n - 1 or not all(
            len(encrypted_share) == size for encrypted_share in message.encrypted_shares
        ):
            problem = f"{s.n - 1} encrypted shares of {size} bytes are needed"
            return s, (reject(Reason.MALFORMED, problem),)
        return coordinator.upload(
            s, rows, message, made_for=0, phase_is_open=s.phase is Phase.SHARING
        )

    def take_sum(self, s: Coordinator, rows: StepRows, message: PeerSum) -> coordinator.Change:
        """Store a member's sum for the current attempt, made over the current set.

        After a restore the coordinator may form another set for the same attempt, and the shares in
        a sum over the former one would not cancel.
        """
        if len(message.encrypted_share) != ENCRYPTED_SEED_BYTES or not is_vector(
            message.vector, s.params.q, s.params.N
        ):
            problem = "the vector or the encrypted seed does not have the form of this survey"
            return s, (reject(Reason.MALFORMED, problem),)
        is_expected = _is_of_attempt(s, message) and message.set_digest == current_set(s).set_digest
        return coordinator.upload(
            s, rows, message, made_for=message.set_digest, phase_is_open=is_expected
        )

    def take_complaint(
        self, s: Coordinator, rows: StepRows, message: Complaint
    ) -> coordinator.Change:
        """Store a complaint about shares that a member cannot decrypt.

        Such a member is there, but sends no sum in this attempt. All shares travel with the first
        attempt, so an honest client complains there or never; later it counts as absent.
        """
        named = set(message.senders)
        if (
            not named
            # check: complaint-names-once - a user inflates a complaint by naming somebody many
            # times
            or len(named) < len(message.senders)
            or not named <= set(range(s.n)) - {message.index}
        ):
            problem = "a complaint names other participants of the roster, each once"
            return s, (reject(Reason.MALFORMED, problem),)
        is_expected = (
            _is_of_attempt(s, message)
            # check: complaint-first-attempt - complaints kept back for later use up all attempts
            and message.attempt == 1
        )
        return coordinator.upload(
            s, rows, message, made_for=message.attempt, phase_is_open=is_expected
        )

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """Share, or take part in the current attempt."""
        if s.phase is Phase.SHARING and not coordinator.has_upload(s, rows, ShareBundle, 0, index):
            return roster.roster_message(s)
        if s.phase is Phase.SUBMITTING and index in s.members and not _has_sent(s, rows, index):
            return _sum_request(s, rows, index)
        return None

    # --- attempts

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Form the first set: everybody who shared."""
        members = [j for j in range(s.n) if coordinator.has_upload(s, rows, ShareBundle, 0, j)]
        s = replace(s, phase=advance(s.phase, Phase.SUBMITTING))
        return _begin_attempt(s, rows, members, frozenset())

    def end_attempt(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix the manifest if everybody sent a sum; else try again with those who sent anything."""
        set_digest = current_set(s).set_digest
        senders = [j for j in s.members if coordinator.has_upload(s, rows, PeerSum, set_digest, j)]
        if len(senders) == len(s.members):
            after = _fix_manifest(s, rows)
            return after, self.unanswered_messages(after, rows)
        alive = set(senders)
        removed = set(_explicit_state(s).removed)
        for j in s.members:
            complaint = coordinator.intact_upload(s, rows, Complaint, s.attempt, j)
            if complaint is not None:
                alive.add(j)
                # Nobody can tell which of the two was dishonest, so the pair goes, not a member.
                removed.update((min(j, sender), max(j, sender)) for sender in complaint.senders)
        return _begin_attempt(s, rows, sorted(alive), frozenset(removed))

    def manifest_places(self, s: Coordinator) -> Sequence[int]:
        """Everybody of the current set."""
        return s.members

    def continue_with(
        self, s: Coordinator, rows: StepRows, places: tuple[int, ...]
    ) -> coordinator.Change:
        """Record the total if all were accepted; else try again with those who were."""
        # Shares cancel over the whole set only, so one missing member spoils the attempt.
        if len(places) < len(s.members):
            s = replace(s, phase=advance(s.phase, Phase.SUBMITTING))
            return _begin_attempt(s, rows, places, _explicit_state(s).removed)
        if not self.is_complete(s, rows):
            return coordinator.request_abort(s, Ending(EndCode.REPORTS_LOST))
        set_digest = current_set(s).set_digest
        vectors = [rows.uploads[PeerSum.tag, set_digest, j].vector for j in places]
        return one_sum.record_sum(s, rows, places, vectors)

    # --- called by the code that all topologies share

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message
    ) -> Coordinator | None:
        """The state with the manifest that the aggregator recorded, after a restore.

        If this coordinator has made a total for another manifest, the survey ends.
        """
        if not isinstance(manifest, ExplicitManifest) or manifest.digest != s.digest:
            return None
        if s.manifest == manifest:
            return s
        wanted = parse_peer_set(s.digest, manifest.attempt, s.n, manifest.members, manifest.removed)
        if wanted is None or len(manifest.encrypted_shares) != len(wanted.members):
            return None
        # Once recorded it may have been sent: the aggregator may have this total already.
        # check: explicit-second-manifest - a second aggregate share would differ by one report
        if _explicit_state(s).total is not None:
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(OTHER_BATCH)
            )[0]
        # check: explicit-set-digest - the aggregator pairs a set with the digest of another one
        if manifest.set_digest != wanted.set_digest:
            return None
        paths = {
            Phase.SHARING: (Phase.SUBMITTING, Phase.COUNTING),
            Phase.SUBMITTING: (Phase.COUNTING,),
        }
        state = replace(_explicit_state(s), removed=wanted.removed)
        s = replace(s, attempt=wanted.attempt, members=wanted.members, topology_state=state)
        return coordinator.with_manifest(s, manifest, *paths.get(s.phase, ()))

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the total is made, or its vectors are stored, with the seeds of the manifest."""
        if not isinstance(s.manifest, ExplicitManifest):
            return False
        if _explicit_state(s).total is not None:
            return True
        for j, seed in zip(s.members, s.manifest.encrypted_shares, strict=True):
            stored = coordinator.intact_upload(s, rows, PeerSum, s.manifest.set_digest, j)
            # After a restore the stored sum may have another seed, whose mask would remain.
            if stored is None or stored.encrypted_share != seed:
                return False
        return True


def _is_of_attempt(s: Coordinator, message: PeerSum | Complaint) -> bool:
    """Whether the message is for the current attempt, from a member of its set, and in time."""
    return (
        s.phase is Phase.SUBMITTING and message.attempt == s.attempt and message.index in s.members
    )


def _has_sent(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether a member has sent its sum or a complaint in the current attempt."""
    if coordinator.has_upload(s, rows, PeerSum, current_set(s).set_digest, index):
        return True
    return coordinator.has_upload(s, rows, Complaint, s.attempt, index)


def _sum_request(s: Coordinator, rows: StepRows, index: int) -> SumRequest:
    """The set of the attempt, and in the first one the shares for this member.

    Later sets are subsets of the first, and the client has stored its shares.
    """
    wanted = current_set(s)
    encrypted_shares = []
    if s.attempt == 1:
        for sender in s.members:
            if sender != index:
                bundle = rows.uploads[ShareBundle.tag, 0, sender]
                # A bundle has no share for its own sender, so later places move up by one.
                position = index - 1 if index > sender else index
                encrypted_shares.append(bundle.encrypted_shares[position])
    return SumRequest(
        s.params.survey, s.attempt, wanted.bits, wanted.removed_pairs, tuple(encrypted_shares)
    )


def _begin_attempt(
    s: Coordinator, rows: StepRows, alive: Sequence[int], removed: frozenset[tuple[int, int]]
) -> coordinator.Change:
    """The next attempt among these members, or the end if they are too few or it was the last one.

    The vectors of the last attempt are deleted: they can be in no total any more.
    """
    members, pairs = drop_until_connected(alive, removed, s.params.phi)
    if len(members) < s.params.minimum:
        return coordinator.request_abort(s, too_few_left(len(members), s.params.minimum))
    if s.attempt >= s.params.attempts:
        return coordinator.request_abort(s, attempts_used(s.params.attempts, "try `masked`"))
    # Deleted before the next attempt is announced: no vector of this one can be unmasked later.
    one_sum.delete_vectors(s, rows, PeerSum, current_set(s).set_digest, s.members)
    state = replace(_explicit_state(s), removed=pairs)
    return replace(s, attempt=s.attempt + 1, members=members, topology_state=state), ()


def _fix_manifest(s: Coordinator, rows: StepRows) -> Coordinator:
    """Close writing and fix the manifest of the attempt, with every member's encrypted seed."""
    wanted = current_set(s)
    sums = (rows.uploads[PeerSum.tag, wanted.set_digest, j] for j in s.members)
    manifest = ExplicitManifest(
        s.params.survey,
        wanted.digest,
        wanted.attempt,
        wanted.bits,
        wanted.removed_pairs,
        wanted.set_digest,
        tuple(peer_sum.encrypted_share for peer_sum in sums),
    )
    return coordinator.with_manifest(s, manifest, Phase.COUNTING)
