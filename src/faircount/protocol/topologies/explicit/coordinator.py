"""S1 in the `explicit` topology: it relays shares, forms a set for each attempt, and adds up when everybody sent."""

from collections.abc import Sequence
from dataclasses import replace

from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.explicit.messages import Call, Complaint, PeersClaim, ShareBundle, SumUpload
from faircount.protocol.topologies.peers import one_sum, roster
from faircount.protocol.topologies.peers.messages import PeersIncluded
from faircount.protocol.topologies.peers.peer_set import PeerSet, peer_set, shrunk
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Published, Reason, Visit, rejected
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import packed_size


def current_set(s: Coordinator) -> PeerSet:
    """The set of the current attempt."""
    return PeerSet(s.digest, s.attempt, s.n, s.members, s.removed)


def take_bundle(s: Coordinator, message: ShareBundle) -> coordinator.Step:
    """A user's shares for all others."""
    size = packed_size(s.params.q, s.params.N) + OVERHEAD
    if len(message.blobs) != s.n - 1 or any(len(blob) != size for blob in message.blobs):
        return s, (rejected(Reason.MALFORMED, f"{s.n - 1} sealed shares of {size} bytes are needed"),)
    return coordinator.upload(s, message, made_for=0, open_=s.state is State.SHARING)


def take_sum(s: Coordinator, message: SumUpload) -> coordinator.Step:
    """A user's sum for the current attempt, over the very set that S1 has now, checked at the door.

    After a restore S1 may form another set for the same attempt: a sum over the former one would spoil everybody's.
    """
    if len(message.blob) != SEALED_SEED or not is_vector(message.vector, s.params.q, s.params.N):
        return s, (rejected(Reason.MALFORMED, "the vector or the sealed seed does not have the form of this survey"),)
    open_ = _may_send(s, message) and message.set_digest == current_set(s).set_digest
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def take_complaint(s: Coordinator, message: Complaint) -> coordinator.Step:
    """A user cannot open some shares: alive, but not in this attempt's sum.

    All shares travel with the first attempt, so an honest user complains there or never; later it counts as absent.
    """
    named = set(message.senders)
    if not named or len(named) < len(message.senders) or not named <= set(range(s.n)) - {message.index}:
        return s, (rejected(Reason.MALFORMED, "a complaint names other users of the roster, each once"),)
    open_ = message.attempt == 1 and _may_send(s, message)
    return coordinator.upload(s, message, made_for=message.attempt, open_=open_)


def _may_send(s: Coordinator, message: SumUpload | Complaint) -> bool:
    return s.state is State.SUBMITTING and message.attempt == s.attempt and message.index in s.members


def answer_visit(s: Coordinator, message: Visit) -> coordinator.Step:
    """What there is to do for a user: share, or take part in the current attempt."""
    return roster.to_do(s, message, lambda index: _next_task(s, index))


def _next_task(s: Coordinator, index: int) -> Message | None:
    if s.state is State.SHARING and not coordinator.holds(s, ShareBundle, 0, index):
        return roster.roster_message(s)
    if s.state is State.SUBMITTING and index in s.members and not _heard(s, index):
        return _call(s, index)
    return None


def _heard(s: Coordinator, index: int) -> bool:
    sent = coordinator.holds(s, SumUpload, current_set(s).set_digest, index)
    return sent or coordinator.holds(s, Complaint, s.attempt, index)


def _call(s: Coordinator, index: int) -> Call:
    """Shares travel with the first attempt only: later sets are subsets, and the user has kept them."""
    wanted, blobs = current_set(s), ()
    if s.attempt == 1:
        bundles = [(j, s.uploads[ShareBundle.tag, 0, j]) for j in s.members if j != index]
        blobs = tuple(each.blobs[index - (index > j)] for j, each in bundles)
    return Call(s.params.survey, s.attempt, wanted.bits, wanted.edges, blobs)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Those who shared are the first set."""
    members = tuple(j for j in range(s.n) if coordinator.holds(s, ShareBundle, 0, j))
    return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), members, frozenset())


def _attempt(s: Coordinator, alive: Sequence[int], removed: frozenset[tuple[int, int]]) -> coordinator.Step:
    """The next attempt, with those of whom S1 has heard; the vectors of the last one are of no use any more."""
    members, pairs = shrunk(alive, removed, s.params.phi)
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} users are left, {s.params.minimum} are needed")
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, f"somebody was missing in each of {s.params.attempts} attempts: try `masked`")
    one_sum.forget_vectors(s, SumUpload, current_set(s).set_digest, s.members)
    return replace(s, attempt=s.attempt + 1, members=members, removed=pairs), ()


def end_attempt(s: Coordinator) -> coordinator.Step:
    """Everybody sent its sum: claim. Otherwise the next attempt, with those who were heard of.

    A pair is left out if one of the two could not open the other's share.
    """
    digest = current_set(s).set_digest
    sums = [j for j in s.members if coordinator.holds(s, SumUpload, digest, j)]
    if len(sums) == len(s.members):
        after = make_claim(s)
        return after, one_sum.pending(after)
    complaints = [coordinator.held(s, Complaint, s.attempt, j) for j in s.members]
    apart = {(min(c.index, j), max(c.index, j)) for c in complaints if c is not None for j in c.senders}
    alive = {*sums, *(c.index for c in complaints if c is not None)}
    return _attempt(s, sorted(alive), s.removed | apart)


def make_claim(s: Coordinator) -> Coordinator:
    """Close writes and fix the claim of the current attempt, with every member's sealed seed."""
    wanted = current_set(s)
    seeds = tuple(s.uploads[SumUpload.tag, wanted.set_digest, j].blob for j in s.members)
    claim = PeersClaim(
        s.params.survey, wanted.digest, wanted.attempt, wanted.bits, wanted.edges, wanted.set_digest, seeds
    )
    return coordinator.with_claim(s, claim, State.CLAIMED)


def on_included(s: Coordinator, message: PeersIncluded, statement: Statement) -> coordinator.Step:
    """All seeds open: the one sum is due. Otherwise the next attempt, without those whose seeds do not."""
    return one_sum.take_set(s, message, statement, s.members, _go_on)


def _go_on(s: Coordinator, places: tuple[int, ...]) -> coordinator.Step:
    if len(places) < len(s.members):
        return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), places, s.removed)
    if not complete(s):
        return coordinator.give_up(s, "a vector was damaged or lost after the claim")
    digest = current_set(s).set_digest
    return one_sum.hand_over(s, places, [s.uploads[SumUpload.tag, digest, j].vector for j in places])


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet; once the sum is made, another one ends the survey."""
    if not isinstance(claim, PeersClaim) or claim.digest != s.digest:
        return None
    if s.claim == claim:
        return s
    wanted = peer_set(s.digest, claim.attempt, s.n, claim.members, claim.removed)
    if wanted is None or len(claim.blobs) != len(wanted.members):
        return None
    if one_sum.peers_state(s).total is not None:
        return coordinator.end_alone(s, "S2 names another claim than the one that S1 has added up")[0]
    if claim.set_digest != wanted.set_digest:
        return None
    path = {State.SHARING: (State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}.get(s.state, ())
    s = replace(s, attempt=wanted.attempt, members=wanted.members, removed=wanted.removed)
    return coordinator.with_claim(s, claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether the sum is made, or every vector of the claim is here, with the very seeds that were claimed."""
    if not isinstance(s.claim, PeersClaim):
        return False
    held = (coordinator.held(s, SumUpload, s.claim.set_digest, j) for j in s.members)
    return one_sum.peers_state(s).total is not None or all(
        each is not None and each.blob == seed for each, seed in zip(held, s.claim.blobs, strict=True)
    )


S1 = Rules(
    users={
        **roster.USERS,
        ShareBundle: take_bundle,
        SumUpload: take_sum,
        Complaint: take_complaint,
        Visit: answer_visit,
    },
    s2={**roster.S2, PeersIncluded: on_included, Published: one_sum.on_published},
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_attempt,
    },
    pending=one_sum.pending,
    adopt=adopt,
    complete=complete,
    answers=(SumUpload,),
    scrubbed=one_sum.scrubbed,
    sent_once=one_sum.sent_once,
    spends=one_sum.nothing_spent,
)
