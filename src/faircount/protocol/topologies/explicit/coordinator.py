"""S1 in the `explicit` topology: it relays shares, forms a set for each attempt, and claims when everybody sent."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.explicit.messages import Call, Complaint, PeersClaim, ShareBundle, SumUpload
from faircount.protocol.topologies.peers import roster
from faircount.protocol.topologies.peers.peer_set import PeerSet, peer_set, shrunk
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import BadBlobs, Reason, Visit, rejected
from faircount.protocol.wire.sealing import OVERHEAD
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
    """A user's sum for the current attempt, over the very set that S1 has now.

    After a restore S1 may form another set for the same attempt: a sum over the former one, sent again, would not open,
    and S2 could take the difference to the further claim.
    """
    if len(message.blob) != packed_size(s.params.q, s.params.N) + OVERHEAD:
        return s, (rejected(Reason.MALFORMED, "a sealed sum has another length"),)
    open_ = _may_send(s, message) and message.set_digest == current_set(s).set_digest
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def take_complaint(s: Coordinator, message: Complaint) -> coordinator.Step:
    """A user cannot open some shares: alive, but not in this attempt's sum."""
    named = set(message.senders)
    if not named or len(named) < len(message.senders) or not named <= set(range(s.n)) - {message.index}:
        return s, (rejected(Reason.MALFORMED, "a complaint names other users of the roster, each once"),)
    return coordinator.upload(s, message, made_for=message.attempt, open_=_may_send(s, message))


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
    members, pairs = shrunk(alive, removed, s.params.phi)
    if s.claim is not None and len(members) < len(alive):
        return coordinator.give_up(s, "users complain of each other after the claim, and the set is final")
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} users are left, {s.params.minimum} are needed")
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, f"somebody was missing in each of {s.params.attempts} attempts: try `masked`")
    return replace(s, attempt=s.attempt + 1, members=members, removed=pairs), ()


def end_attempt(s: Coordinator) -> coordinator.Step:
    """Everybody sent its sum: claim. Otherwise the next attempt, with those who were heard of.

    Once S2 has blobs the set is final: it must not get a sum without somebody of whom it has had one with.
    """
    digest = current_set(s).set_digest
    sums = [j for j in s.members if coordinator.holds(s, SumUpload, digest, j)]
    if len(sums) == len(s.members):
        after = make_claim(s)
        return after, pending(after)
    complaints = [coordinator.held(s, Complaint, s.attempt, j) for j in s.members]
    apart = {(min(c.index, j), max(c.index, j)) for c in complaints if c is not None for j in c.senders}
    alive = {*sums, *(c.index for c in complaints if c is not None)}
    if s.claim is not None and len(alive) < len(s.members):
        return coordinator.give_up(s, "somebody vanished after the claim, and the set is final")
    return _attempt(s, sorted(alive), s.removed | apart)


def on_bad_blobs(s: Coordinator, message: BadBlobs, _: Statement) -> coordinator.Step:
    """S2 could not open some sums and added none: one further attempt without those users."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash:
        return s, ()
    bad = {s.members[position] for position in message.positions if position < len(s.members)}
    again = replace(s, receipt=None, state=advance(s.state, State.SUBMITTING))
    return _attempt(again, [j for j in s.members if j not in bad], s.removed)


def make_claim(s: Coordinator) -> Coordinator:
    """Close writes and fix the batch of the current attempt: every member's sum, by hash."""
    wanted = current_set(s)
    hashes = tuple(sha256(s.uploads[SumUpload.tag, wanted.set_digest, j].blob).digest() for j in s.members)
    claim = PeersClaim(
        s.params.survey, wanted.digest, wanted.attempt, wanted.bits, wanted.edges, wanted.set_digest, hashes
    )
    return coordinator.with_claim(s, claim, State.CLAIMED)


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then its blobs."""
    digest = current_set(s).set_digest
    return coordinator.claim_or_batch(s, lambda: (s.uploads[SumUpload.tag, digest, j].blob for j in s.members))


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, PeersClaim) or claim.digest != s.digest:
        return None
    if s.claim == claim:
        return s
    wanted = peer_set(s.digest, claim.attempt, s.n, claim.members, claim.removed)
    if wanted is None or len(claim.blob_hashes) != len(wanted.members):
        return None
    path = {State.SHARING: (State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}.get(s.state, ())
    s = replace(s, attempt=wanted.attempt, members=wanted.members, removed=wanted.removed)
    return coordinator.with_claim(s, claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether every sum of the claim is here, with the very bytes that were claimed."""
    if not isinstance(s.claim, PeersClaim):
        return False
    held = [s.uploads.get((SumUpload.tag, s.claim.set_digest, j)) for j in s.members]
    return all(
        each is not None and sha256(each.blob).digest() == wanted
        for each, wanted in zip(held, s.claim.blob_hashes, strict=True)
    )


S1 = Rules(
    users={
        **roster.USERS,
        ShareBundle: take_bundle,
        SumUpload: take_sum,
        Complaint: take_complaint,
        Visit: answer_visit,
    },
    s2={**roster.S2, BadBlobs: on_bad_blobs},
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_attempt,
    },
    pending=pending,
    adopt=adopt,
    complete=complete,
    answers=(SumUpload,),
)
