"""The coordinator in the `explicit` topology: it relays shares, forms a set for each attempt,
and adds up when everybody sent.
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
    """What the coordinator keeps of this topology."""

    stored_tag = "explicit-coordinator"
    removed: frozenset[tuple[int, int]] = frozenset()  # pairs that leave each other's shares out


def _explicit(s: Coordinator) -> ExplicitState:
    return s.topology_state if isinstance(s.topology_state, ExplicitState) else ExplicitState(None)


def current_set(s: Coordinator) -> PeerSet:
    """The set of the current attempt."""
    return PeerSet(s.digest, s.attempt, s.n, s.members, _explicit(s).removed)


class ExplicitCoordinator(PeersCoordinator):
    """The coordinator of `explicit`: bundles of shares, then a sum of everybody in one of the
    attempts.
    """

    answer_messages = (PeerSum,)

    def initial_state(self, order_key: bytes) -> ExplicitState:
        """No pair is left out, and nothing is added up."""
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

    def take_bundle(
        self, s: Coordinator, rows: StepRows, message: ShareBundle
    ) -> coordinator.Change:
        """A user's shares for all others."""
        size = packed_size(s.params.q, s.params.N) + OVERHEAD
        if len(message.encrypted_shares) != s.n - 1 or any(
            len(encrypted_share) != size for encrypted_share in message.encrypted_shares
        ):
            return s, (
                reject(Reason.MALFORMED, f"{s.n - 1} sealed shares of {size} bytes are needed"),
            )
        return coordinator.upload(s, rows, message, made_for=0, open_=s.phase is Phase.SHARING)

    def take_sum(self, s: Coordinator, rows: StepRows, message: PeerSum) -> coordinator.Change:
        """A user's sum for the current attempt, over the very set that the coordinator has now,
        checked at the door.

        After a restore the coordinator may form another set for the same attempt: a sum over the
        former one would spoil everybody's.
        """
        if len(message.encrypted_share) != ENCRYPTED_SEED_BYTES or not is_vector(
            message.vector, s.params.q, s.params.N
        ):
            return s, (
                reject(
                    Reason.MALFORMED,
                    "the vector or the sealed seed does not have the form of this survey",
                ),
            )
        open_ = _may_send(s, message) and message.set_digest == current_set(s).set_digest
        return coordinator.upload(s, rows, message, made_for=message.set_digest, open_=open_)

    def take_complaint(
        self, s: Coordinator, rows: StepRows, message: Complaint
    ) -> coordinator.Change:
        """A user cannot open some shares: alive, but not in this attempt's sum.

        All shares travel with the first attempt, so an honest user complains there or never; later
        it counts as absent.
        """
        named = set(message.senders)
        if (
            not named
            # check: complaint-names-once - a user inflates a complaint by naming somebody many
            # times
            or len(named) < len(message.senders)
            or not named <= set(range(s.n)) - {message.index}
        ):
            return s, (
                reject(Reason.MALFORMED, "a complaint names other users of the roster, each once"),
            )
        open_ = (
            _may_send(s, message)
            # check: complaint-first-attempt - complaints kept back for later use up all attempts
            and message.attempt == 1
        )
        return coordinator.upload(s, rows, message, made_for=message.attempt, open_=open_)

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """Share, or take part in the current attempt."""
        if s.phase is Phase.SHARING and not coordinator.has_upload(s, rows, ShareBundle, 0, index):
            return roster.roster_message(s)
        if s.phase is Phase.SUBMITTING and index in s.members and not _heard(s, rows, index):
            return _call(s, rows, index)
        return None

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Those who shared are the first set."""
        members = tuple(j for j in range(s.n) if coordinator.has_upload(s, rows, ShareBundle, 0, j))
        return _attempt(
            replace(s, phase=advance(s.phase, Phase.SUBMITTING)), rows, members, frozenset()
        )

    def end_attempt(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Everybody sent its sum: claim. Otherwise the next attempt, with those who were heard of.

        A pair is left out if one of the two could not open the other's share.
        """
        digest = current_set(s).set_digest
        sums = [j for j in s.members if coordinator.has_upload(s, rows, PeerSum, digest, j)]
        if len(sums) == len(s.members):
            after = make_claim(s, rows)
            return after, self.pending(after, rows)
        alive = set(sums)
        apart = set[tuple[int, int]]()
        for j in s.members:
            complaint = coordinator.intact_upload(s, rows, Complaint, s.attempt, j)
            if complaint is not None:
                alive.add(j)
                apart |= {(min(j, sender), max(j, sender)) for sender in complaint.senders}
        return _attempt(s, rows, sorted(alive), _explicit(s).removed | apart)

    def claimed_places(self, s: Coordinator) -> Sequence[int]:
        """Everybody of the current set."""
        return s.members

    def go_on(self, s: Coordinator, rows: StepRows, places: tuple[int, ...]) -> coordinator.Change:
        """All seeds open: the one sum is due.

        Otherwise the next attempt, without those whose seeds do not.
        """
        if len(places) < len(s.members):
            return _attempt(
                replace(s, phase=advance(s.phase, Phase.SUBMITTING)),
                rows,
                places,
                _explicit(s).removed,
            )
        if not self.is_complete(s, rows):
            return coordinator.give_up(s, Ending(EndCode.REPORTS_LOST))
        digest = current_set(s).set_digest
        return one_sum.hand_over(
            s, rows, places, [rows.uploads[PeerSum.tag, digest, j].vector for j in places]
        )

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """The aggregator's claim instead of ours, with nothing said about it yet; once the sum
        is made, another one ends the survey.
        """
        if not isinstance(manifest, ExplicitManifest) or manifest.digest != s.digest:
            return None
        if s.manifest == manifest:
            return s
        wanted = parse_peer_set(s.digest, manifest.attempt, s.n, manifest.members, manifest.removed)
        if wanted is None or len(manifest.encrypted_shares) != len(wanted.members):
            return None
        # check: explicit-second-manifest - a second aggregate share would differ by one report
        if _explicit(s).total is not None:
            return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_BATCH))[0]
        # check: explicit-set-digest - the aggregator pairs a set with the digest of another one
        if manifest.set_digest != wanted.set_digest:
            return None
        path = {
            Phase.SHARING: (Phase.SUBMITTING, Phase.COUNTING),
            Phase.SUBMITTING: (Phase.COUNTING,),
        }.get(s.phase, ())
        own = replace(_explicit(s), removed=wanted.removed)
        s = replace(s, attempt=wanted.attempt, members=wanted.members, topology_state=own)
        return coordinator.with_manifest(s, manifest, *path)

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the sum is made, or every vector of the claim is here, with the very seeds that
        were claimed.
        """
        if not isinstance(s.manifest, ExplicitManifest):
            return False
        held = (
            coordinator.intact_upload(s, rows, PeerSum, s.manifest.set_digest, j) for j in s.members
        )
        return _explicit(s).total is not None or all(
            each is not None and each.encrypted_share == seed
            for each, seed in zip(held, s.manifest.encrypted_shares, strict=True)
        )


def _may_send(s: Coordinator, message: PeerSum | Complaint) -> bool:
    return (
        s.phase is Phase.SUBMITTING and message.attempt == s.attempt and message.index in s.members
    )


def _heard(s: Coordinator, rows: StepRows, index: int) -> bool:
    sent = coordinator.has_upload(s, rows, PeerSum, current_set(s).set_digest, index)
    return sent or coordinator.has_upload(s, rows, Complaint, s.attempt, index)


def _call(s: Coordinator, rows: StepRows, index: int) -> SumRequest:
    """Shares travel with the first attempt only: later sets are subsets, and the user has kept
    them.
    """
    wanted, encrypted_shares = current_set(s), ()
    if s.attempt == 1:
        bundles = [(j, rows.uploads[ShareBundle.tag, 0, j]) for j in s.members if j != index]
        encrypted_shares = tuple(each.encrypted_shares[index - (index > j)] for j, each in bundles)
    return SumRequest(
        s.params.survey, s.attempt, wanted.bits, wanted.removed_pairs, encrypted_shares
    )


def _attempt(
    s: Coordinator, rows: StepRows, alive: Sequence[int], removed: frozenset[tuple[int, int]]
) -> coordinator.Change:
    """The next attempt, with those of whom the coordinator has heard; the vectors of the last
    one are of no use any more.
    """
    members, pairs = drop_until_connected(alive, removed, s.params.phi)
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, too_few_left(len(members), s.params.minimum))
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, attempts_used(s.params.attempts, "try `masked`"))
    one_sum.forget_vectors(s, rows, PeerSum, current_set(s).set_digest, s.members)
    own = replace(_explicit(s), removed=pairs)
    return replace(s, attempt=s.attempt + 1, members=members, topology_state=own), ()


def make_claim(s: Coordinator, rows: StepRows) -> Coordinator:
    """Close writes and fix the claim of the current attempt, with every member's sealed seed."""
    wanted = current_set(s)
    seeds = tuple(
        rows.uploads[PeerSum.tag, wanted.set_digest, j].encrypted_share for j in s.members
    )
    manifest = ExplicitManifest(
        s.params.survey,
        wanted.digest,
        wanted.attempt,
        wanted.bits,
        wanted.removed_pairs,
        wanted.set_digest,
        seeds,
    )
    return coordinator.with_manifest(s, manifest, Phase.COUNTING)
