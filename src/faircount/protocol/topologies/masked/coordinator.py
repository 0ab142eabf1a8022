"""S1 in the `masked` topology: it draws the graph, forms the set, claims who sent, and gathers help for the rest."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np

from faircount.core.arrays import Ints, Marks
from faircount.core.errors import ProtocolError
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules, TopologyState
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.masked.aggregator import needed
from faircount.protocol.topologies.masked.graph import Graph, draw
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import (
    Help,
    HelpBatch,
    HelpCall,
    KeyBundle,
    MaskCall,
    MaskedClaim,
    MaskedSum,
    Neighbourhood,
    Recovery,
)
from faircount.protocol.topologies.peers import roster
from faircount.protocol.topologies.peers.messages import Peer
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import beside, bitmap, members_of
from faircount.protocol.wire.messages import BadBlobs, Inquiry, Reason, Visit, Wait, rejected
from faircount.protocol.wire.roster_messages import Seal
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import canonical_key
from faircount.sharing.packing import packed_size
from faircount.sharing.shamir import SHARE_BYTES


@dataclass(frozen=True)
class MaskedState(TopologyState):
    """What S1 keeps of this topology: the graph, and what was fixed at each deadline."""

    stored_version = 1
    graph: Graph
    bits: bytes = b""  # the set of the attempt
    set_digest: bytes = b""
    members: frozenset[int] = frozenset()
    included: tuple[int, ...] = ()
    gone: frozenset[int] = frozenset()  # in the set, but not included
    recovery: Statement | None = None  # S2's one call for key shares


def _masked(s: Coordinator) -> MaskedState:
    if not isinstance(s.own, MaskedState):
        raise ProtocolError("the graph is drawn once the roster is sealed")
    return s.own


def _including(masked: MaskedState, members: frozenset[int], included: tuple[int, ...]) -> MaskedState:
    return replace(masked, members=members, included=included, gone=members - frozenset(included))


def _holding(s: Coordinator, kind: type[Message], made_for: int | bytes = 0) -> Marks:
    """Those of whom S1 has a message of this kind, as it was acknowledged."""
    return np.array([coordinator.holds(s, kind, made_for, j) for j in range(s.n)], dtype=np.bool_)


# --- roster and keys ----------------------------------------------------------------------------------------------


def on_seal(s: Coordinator, message: Seal, statement: Statement) -> coordinator.Step:
    """The roster is sealed and S2's value revealed: the graph is drawn."""
    after, out = roster.on_seal(s, message, statement)
    if after is s:
        return s, out
    graph = draw(message.revealed, message.digest, message.n, s.params.k)
    return replace(after, own=MaskedState(graph)), out


def show_place(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """An invited person's place in the roster, with its neighbours' lines."""
    if message.access not in s.invited:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
    user = user_id(message.access)
    place = bisect_left(s.roster, user, key=lambda line: line.user)
    if s.seal is None:
        return s, (Wait(s.params.survey, s.state.encode()),)
    if place == s.n or s.roster[place].user != user:
        return s, (rejected(Reason.UNKNOWN, "this person is not on the sealed roster"),)
    return s, (_neighbourhood(s, s.seal, place),)


def _neighbourhood(s: Coordinator, seal: Statement, place: int) -> Neighbourhood:
    masked = _masked(s)
    places = sorted((*masked.graph.of(place), place))
    lines = tuple(Peer(s.roster[j].user, s.roster[j].public_key) for j in places)
    return Neighbourhood(seal.signed, place, lines, beside(s.levels, places))


def take_keys(s: Coordinator, message: KeyBundle) -> coordinator.Step:
    """A user's mask key, shared with its neighbours."""
    if s.seal is None:
        return s, (rejected(Reason.EARLY, "the roster is not sealed yet"),)
    degree, size = _masked(s).graph.degree, SHARE_BYTES + OVERHEAD
    if len(message.blobs) != degree or any(len(blob) != size for blob in message.blobs):
        return s, (rejected(Reason.MALFORMED, f"{degree} sealed key shares of {size} bytes are needed"),)
    if not canonical_key(message.mask_key) or message.mask_key in s.keys:
        return s, (rejected(Reason.MALFORMED, "a mask key is canonical, and nobody's key for anything else"),)
    return coordinator.upload(s, message, made_for=0, open_=s.state is State.SHARING)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Those who shared their key, hang together and have t neighbours each, are the set."""
    inside = _masked(s).graph.settled(_holding(s, KeyBundle), s.params.t)
    return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), inside)


def _attempt(s: Coordinator, inside: Marks) -> coordinator.Step:
    members = tuple(np.flatnonzero(inside).tolist())
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} users are left, {s.params.minimum} are needed")
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, "a dropped user's key could not be recovered, and there is no further attempt")
    wanted = PeerSet(s.digest, s.attempt + 1, s.n, members)
    masked = replace(_masked(s), bits=wanted.bits, set_digest=wanted.set_digest, members=frozenset(members))
    return replace(s, attempt=wanted.attempt, members=members, own=masked), ()


# --- sums and claim -----------------------------------------------------------------------------------------------


def answer_visit(s: Coordinator, message: Visit) -> coordinator.Step:
    """What there is to do for a user: share its key, send its masked vector, or help to recover keys."""
    return roster.to_do(s, message, lambda index: _next_task(s, index))


def _next_task(s: Coordinator, i: int) -> Message | None:
    if s.seal is None or s.final is not None:
        return None
    masked = _masked(s)
    if s.state is State.SHARING and not coordinator.holds(s, KeyBundle, 0, i):
        return _neighbourhood(s, s.seal, i)
    if (
        s.state is State.SUBMITTING
        and i in masked.members
        and not coordinator.holds(s, MaskedSum, masked.set_digest, i)
    ):
        return _call(s, i)
    if masked.recovery is not None and _asked(s, i) and not coordinator.holds(s, Help, 0, i):
        return HelpCall(masked.recovery.signed)
    return None


def _call(s: Coordinator, i: int) -> MaskCall:
    masked = _masked(s)
    near = zip(masked.graph.near[i].tolist(), masked.graph.back[i].tolist(), strict=True)
    sent = [(s.uploads[KeyBundle.tag, 0, j], at) for j, at in near if j in masked.members]
    keys, blobs = tuple(each.mask_key for each, _ in sent), tuple(each.blobs[at] for each, at in sent)
    return MaskCall(s.params.survey, s.attempt, masked.bits, keys, blobs)


def take_sum(s: Coordinator, message: MaskedSum) -> coordinator.Step:
    """A user's masked vector for the current attempt, made for the very set and with the very keys that S1 has now.

    After the deadline it is not even kept. After a restore S1 may form another set for the same attempt: a vector made
    for the former one would not open, its sender would be dropped, and S2 would hold the vector and the mask key.
    """
    if len(message.blob) != packed_size(s.params.q, s.params.N) + OVERHEAD:
        return s, (rejected(Reason.MALFORMED, "a sealed sum has another length"),)
    if s.seal is None:
        return s, (rejected(Reason.EARLY, "the roster is not sealed yet"),)
    masked = _masked(s)
    here = s.state is State.SUBMITTING and message.index in masked.members and message.set_digest == masked.set_digest
    near = [j for j in masked.graph.of(message.index) if j in masked.members] if here else []
    if here and list(message.lacking) != sorted(set(message.lacking) & set(near)):
        return s, (rejected(Reason.MALFORMED, "only shares of neighbours in the set can be lacking"),)
    open_ = here and message.keys_digest == _keys_around(s, message.index)
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def end_submitting(s: Coordinator) -> coordinator.Step:
    """Claim the largest connected part of those who sent.

    Begin again without a dropped user whose key is lost, and without anybody whose key would be lost if its sum did not
    open. Begin again, too, if a stored mask key was spoiled: its neighbours may have added masks that do not cancel.
    """
    graph = _masked(s).graph
    inside, keys = graph.marks(s.members), _holding(s, KeyBundle)
    if (inside & ~keys).any():
        return _attempt(s, graph.settled(inside & keys, s.params.t))
    sent = _sent(s)
    included = graph.largest(sent)
    dealt, there = _holders(s, included), graph.count(included)
    weak = included & (dealt < there) & (dealt < s.params.t)  # it dealt shares that do not open
    if included.sum() >= s.params.minimum and (weak.any() or _lost(s, included, included)):
        return _attempt(s, graph.settled(sent & ~weak, s.params.t))
    return _claim(s, _first_claim(s, included))


def _sent(s: Coordinator) -> Marks:
    """Those of whom S1 has a vector for the current set, made with the mask keys that S1 has now."""
    masked, found = _masked(s), np.zeros(s.n, dtype=np.bool_)
    for j in s.members:
        held = coordinator.held(s, MaskedSum, masked.set_digest, j)
        found[j] = held is not None and held.keys_digest == _keys_around(s, j)
    return found


def _keys_around(s: Coordinator, i: int) -> bytes:
    """Digest of the mask keys of a user's neighbours in the set."""
    masked = _masked(s)
    return keys_digest(s.uploads[KeyBundle.tag, 0, j].mask_key for j in masked.graph.of(i) if j in masked.members)


def _holders(s: Coordinator, helpers: Marks) -> Ints:
    """How many of the helpers hold a share of each user's mask key."""
    masked = _masked(s)
    holders = masked.graph.count(helpers)
    for i in np.flatnonzero(helpers).tolist():
        sent = coordinator.held(s, MaskedSum, masked.set_digest, i)
        holders[[] if sent is None else list(sent.lacking)] -= 1
    return holders


def _lost(s: Coordinator, included: Marks, helpers: Marks) -> bool:
    """Whether fewer than t of the helpers hold a share of some dropped user's key."""
    graph = _masked(s).graph
    dropped = needed(graph, graph.marks(s.members), included)
    return bool((_holders(s, helpers)[dropped] < s.params.t).any())


def _first_claim(s: Coordinator, included: Marks) -> MaskedClaim:
    """The set, who of it is included, and the hash of each one's blob."""
    places = tuple(np.flatnonzero(included).tolist())
    keys = tuple(s.uploads[KeyBundle.tag, 0, j].mask_key for j in s.members)
    masked = _masked(s)
    hashes = tuple(sha256(s.uploads[MaskedSum.tag, masked.set_digest, j].blob).digest() for j in places)
    return MaskedClaim(
        s.params.survey, s.digest, s.attempt, masked.bits, bitmap(places, s.n), masked.set_digest, keys, hashes
    )


def _claim(s: Coordinator, claim: MaskedClaim) -> coordinator.Step:
    """Close writes and fix the batch."""
    places = members_of(claim.included, s.n) or ()
    if len(places) < s.params.minimum:
        return coordinator.give_up(s, f"{len(places)} users are left, {s.params.minimum} are needed")
    masked = _including(_masked(s), _masked(s).members, places)
    after = coordinator.with_claim(replace(s, own=masked), claim, State.CLAIMED)
    return after, pending(after)


def on_bad_blobs(s: Coordinator, message: BadBlobs, _: Statement) -> coordinator.Step:
    """S2 could not open some blobs and added none: one further claim, in which their senders are dropped."""
    claim = s.claim
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash or not isinstance(claim, MaskedClaim):
        return s, ()
    masked = _masked(s)
    bad = [masked.included[position] for position in message.positions if position < len(masked.included)]
    left = masked.graph.marks(masked.included) & ~masked.graph.marks(bad)
    again = replace(s, receipt=None, state=advance(s.state, State.SUBMITTING))
    if not masked.graph.connected(left):
        return coordinator.give_up(again, "without those whose sums do not open, the others do not hang together")
    if _lost(again, left, left):
        return coordinator.give_up(again, "too few users hold key shares of those whose sums do not open")
    hashes = dict(zip(masked.included, claim.blob_hashes, strict=True))
    places = np.flatnonzero(left).tolist()
    fewer = replace(claim, included=bitmap(places, s.n), blob_hashes=tuple(hashes[j] for j in places))
    return _claim(again, fewer)


# --- recovery -----------------------------------------------------------------------------------------------------


def on_recovery(s: Coordinator, message: Recovery, statement: Statement) -> coordinator.Step:
    """S2 has opened the batch: users are asked for the key shares of those who are dropped."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash:
        return s, ()
    masked = replace(_masked(s), recovery=statement)
    return replace(s, own=masked, state=advance(s.state, State.RECOVERING)), ()


def _asked(s: Coordinator, i: int) -> int:
    """How many dropped neighbours a user is asked to help with."""
    if s.state is not State.RECOVERING:
        return 0
    masked = _masked(s)
    if i not in masked.members or i in masked.gone:
        return 0
    return len(masked.gone.intersection(masked.graph.of(i)))


def take_help(s: Coordinator, message: Help) -> coordinator.Step:
    """A user's key shares of its dropped neighbours."""
    asked = _asked(s, message.index)
    if asked and len(message.blob) != asked * SHARE_BYTES + OVERHEAD:
        return s, (rejected(Reason.MALFORMED, "one key share for each dropped neighbour is needed"),)
    return coordinator.upload(s, message, made_for=0, open_=asked > 0)


def end_recovering(s: Coordinator) -> coordinator.Step:
    """Hand over the help, if for every dropped user t of its neighbours gave some."""
    if _lost(s, _masked(s).graph.marks(_masked(s).included), _holding(s, Help)):
        return coordinator.give_up(s, f"fewer than {s.params.t} neighbours of a dropped user came back with key shares")
    after = replace(s, state=advance(s.state, State.OPENED))
    return after, pending(after)


# --- S2's word ----------------------------------------------------------------------------------------------------


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then its blobs; after the last deadline the help."""
    if s.seal is None:
        return ()
    masked = _masked(s)
    if s.state is State.OPENED:
        helpers = np.flatnonzero(_holding(s, Help)).tolist()
        blobs = tuple(s.uploads[Help.tag, 0, j].blob for j in helpers)
        return (coordinator.to_s2(s, HelpBatch(s.params.survey, s.claim_hash, bitmap(helpers, s.n), blobs)),)
    places, digest = masked.included, masked.set_digest
    return coordinator.claim_or_batch(s, lambda: (s.uploads[MaskedSum.tag, digest, j].blob for j in places))


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, MaskedClaim) or claim.digest != s.digest or s.seal is None:
        return None
    if s.claim == claim:
        return s
    members, included = members_of(claim.members, s.n), members_of(claim.included, s.n)
    if members is None or included is None or len(claim.blob_hashes) != len(included):
        return None
    path = {State.SHARING: (State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}.get(s.state, ())
    masked = replace(_masked(s), bits=claim.members, set_digest=claim.set_digest)
    masked = _including(masked, frozenset(members), included)
    return coordinator.with_claim(replace(s, attempt=claim.attempt, members=members, own=masked), claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether S2 has the blobs of the claim already, or every one is here with the very bytes that were claimed."""
    if not isinstance(s.claim, MaskedClaim):
        return False
    held = [s.uploads.get((MaskedSum.tag, s.claim.set_digest, j)) for j in _masked(s).included]
    return s.state is not State.CLAIMED or all(
        each is not None and sha256(each.blob).digest() == wanted
        for each, wanted in zip(held, s.claim.blob_hashes, strict=True)
    )


def included_places(s: Coordinator) -> tuple[int, ...]:
    """Those whose sums the result counts."""
    return s.own.included if isinstance(s.own, MaskedState) else ()


S1 = Rules(
    users={
        **roster.USERS,
        Inquiry: show_place,
        KeyBundle: take_keys,
        MaskedSum: take_sum,
        Help: take_help,
        Visit: answer_visit,
    },
    s2={**roster.S2, Seal: on_seal, BadBlobs: on_bad_blobs, Recovery: on_recovery},
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_submitting,
        State.RECOVERING: end_recovering,
    },
    pending=pending,
    adopt=adopt,
    complete=complete,
    included=included_places,
    answers=(MaskedSum,),
)
