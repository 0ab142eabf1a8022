"""S1 in the `masked` topology: it draws the graph, forms the set, adds up who sent, and gathers help for the rest."""

from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from faircount.core.arrays import Marks
from faircount.core.errors import ProtocolError
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.masked.aggregator import needed, recoverable
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
    Ready,
    Unrecoverable,
)
from faircount.protocol.topologies.peers import one_sum, roster
from faircount.protocol.topologies.peers.messages import Peer, PeersIncluded
from faircount.protocol.topologies.peers.one_sum import PeersState
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import beside, bitmap, members_of
from faircount.protocol.wire.messages import Inquiry, Published, Reason, Visit, Wait, rejected
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.roster_messages import Seal
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import KEY_BYTES, canonical_key
from faircount.sharing.shamir import SHARE_BYTES


@dataclass(frozen=True)
class MaskedState(PeersState):
    """What S1 keeps of this topology: the graph, and what was fixed at each deadline."""

    stored_version = 2
    graph: Graph
    bits: bytes = b""  # the set of the attempt
    set_digest: bytes = b""
    members: frozenset[int] = frozenset()
    included: tuple[int, ...] = ()
    gone: frozenset[int] = frozenset()  # in the set, but not included
    helped: bool = False  # the time for help is over: it is with S2


def _masked(s: Coordinator) -> MaskedState:
    if not isinstance(s.own, MaskedState):
        raise ProtocolError("the graph is drawn once the roster is sealed")
    return s.own


def _including(masked: MaskedState, members: frozenset[int], included: tuple[int, ...]) -> MaskedState:
    return replace(masked, members=members, included=included, gone=members - frozenset(included), helped=False)


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
    return replace(after, own=MaskedState(None, graph)), out


def show_place(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """An invited person's place in the roster, with its neighbours' lines."""
    user = coordinator.invited_user(s, message.access)
    if user is None:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
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
        return s, (rejected(Reason.MALFORMED, "a mask key is canonical, not of low order, and used once"),)
    return coordinator.upload(s, message, made_for=0, open_=s.state is State.SHARING)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Those who shared their key, hang together and have t neighbours each, are the set."""
    inside = _masked(s).graph.settled(_holding(s, KeyBundle), s.params.t)
    return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), inside)


def _attempt(s: Coordinator, inside: Marks) -> coordinator.Step:
    """The next attempt; the vectors of the last one are of no use any more."""
    members = tuple(np.flatnonzero(inside).tolist())
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} users are left, {s.params.minimum} are needed")
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, "a dropped user's key could not be recovered, and there is no further attempt")
    one_sum.forget_vectors(s, MaskedSum, _masked(s).set_digest, s.members)
    wanted = PeerSet(s.digest, s.attempt + 1, s.n, members)
    masked = replace(_masked(s), bits=wanted.bits, set_digest=wanted.set_digest)
    masked = _including(masked, frozenset(members), ())
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
    if s.included is not None and _asked(s, i) and not coordinator.holds(s, Help, masked.set_digest, i):
        return HelpCall(s.included.signed)
    return None


def _call(s: Coordinator, i: int) -> MaskCall:
    masked = _masked(s)
    near = zip(masked.graph.near[i].tolist(), masked.graph.back[i].tolist(), strict=True)
    sent = [(s.uploads[KeyBundle.tag, 0, j], at) for j, at in near if j in masked.members]
    keys, blobs = tuple(each.mask_key for each, _ in sent), tuple(each.blobs[at] for each, at in sent)
    return MaskCall(s.params.survey, s.attempt, masked.bits, keys, blobs)


def take_sum(s: Coordinator, message: MaskedSum) -> coordinator.Step:
    """A user's masked vector for the current attempt, made for the very set and with the very keys that S1 has now.

    After the deadline it is not even kept. After a restore S1 may form another set for the same attempt: masks made for
    the former one would not cancel.
    """
    if len(message.blob) != SEALED_SEED or not is_vector(message.vector, s.params.q, s.params.N):
        return s, (rejected(Reason.MALFORMED, "the vector or the sealed seed does not have the form of this survey"),)
    if s.seal is None:
        return s, (rejected(Reason.EARLY, "the roster is not sealed yet"),)
    masked = _masked(s)
    here = s.state is State.SUBMITTING and message.index in masked.members and message.set_digest == masked.set_digest
    open_ = here and message.keys_digest == _keys_around(s, message.index)
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def end_submitting(s: Coordinator) -> coordinator.Step:
    """Claim the largest connected part of those who sent; begin again if a dropped user has too few neighbours in it.

    Begin again, too, if a stored mask key was spoiled: its neighbours may have added masks that do not cancel.
    """
    graph = _masked(s).graph
    inside, keys = graph.marks(s.members), _holding(s, KeyBundle)
    if (inside & ~keys).any():
        return _attempt(s, graph.settled(inside & keys, s.params.t))
    sent = _sent(s)
    included = graph.largest(sent)
    if included.sum() >= s.params.minimum and not recoverable(graph, inside, included, s.params.t):
        return _attempt(s, graph.settled(sent, s.params.t))
    return _claim(s, tuple(np.flatnonzero(included).tolist()))


def _sent(s: Coordinator) -> Marks:
    """Those of whom S1 has a vector for the current set, made with the mask keys that S1 has now."""
    masked, found = _masked(s), np.zeros(s.n, dtype=np.bool_)
    for j in s.members:
        held = coordinator.held(s, MaskedSum, masked.set_digest, j)
        found[j] = held is not None and held.keys_digest == _keys_around(s, j)
    return found


def _keys_around(s: Coordinator, i: int) -> bytes:
    """Digest of the mask keys of a user and of its neighbours in the set, as S1 has given them to others."""
    masked = _masked(s)
    near = [j for j in masked.graph.of(i) if j in masked.members]
    own, *others = (s.uploads[KeyBundle.tag, 0, j].mask_key for j in (i, *near))
    return keys_digest(own, others)


def _claim(s: Coordinator, places: tuple[int, ...]) -> coordinator.Step:
    """Close writes and claim: the set, who of it has sent, and the sealed seed of each."""
    if len(places) < s.params.minimum:
        return coordinator.give_up(s, f"{len(places)} users are left, {s.params.minimum} are needed")
    masked = _including(_masked(s), _masked(s).members, places)
    keys = tuple(s.uploads[KeyBundle.tag, 0, j].mask_key for j in s.members)
    seeds = tuple(s.uploads[MaskedSum.tag, masked.set_digest, j].blob for j in places)
    set_of = s.attempt, masked.bits, bitmap(places, s.n), masked.set_digest
    claim = MaskedClaim(s.params.survey, s.digest, *set_of, keys, seeds)
    after = coordinator.with_claim(replace(s, own=masked), claim, State.CLAIMED)
    return after, pending(after)


def on_included(s: Coordinator, message: PeersIncluded, statement: Statement) -> coordinator.Step:
    """Whose seeds open: the others are dropped, and their vectors deleted."""
    claimed = _masked(s).included if s.seal is not None else ()
    return one_sum.take_set(s, message, statement, claimed, _go_on)


def _go_on(s: Coordinator, places: tuple[int, ...]) -> coordinator.Step:
    """Nobody is dropped: the one sum is due. Else their neighbours are asked, or there is a further attempt."""
    masked, graph = _masked(s), _masked(s).graph
    if not one_sum.enough(s, places):
        return coordinator.give_up(s, f"{len(places)} seeds open, {s.params.minimum} are needed")
    inside, counted = graph.marks(list(masked.members)), graph.marks(places)
    if not recoverable(graph, inside, counted, s.params.t):
        return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), graph.settled(counted, s.params.t))
    one_sum.forget_vectors(s, MaskedSum, masked.set_digest, sorted(masked.members - frozenset(places)))
    s = replace(s, own=_including(masked, masked.members, places))
    if needed(graph, inside, counted).any():
        return replace(s, state=advance(s.state, State.RECOVERING)), ()
    return _hand_over(s)


def _hand_over(s: Coordinator) -> coordinator.Step:
    places, digest = _masked(s).included, _masked(s).set_digest
    if not complete(s):
        return coordinator.give_up(s, "a vector was damaged or lost after the claim")
    return one_sum.hand_over(s, places, [s.uploads[MaskedSum.tag, digest, j].vector for j in places])


# --- recovery -----------------------------------------------------------------------------------------------------


def _asked(s: Coordinator, i: int) -> int:
    """How many dropped neighbours a user is asked to help with."""
    if s.state is not State.RECOVERING:
        return 0
    masked = _masked(s)
    if masked.helped or i not in masked.members or i in masked.gone:
        return 0
    return len(masked.gone.intersection(masked.graph.of(i)))


def take_help(s: Coordinator, message: Help) -> coordinator.Step:
    """A user's message keys for the key shares that its dropped neighbours had dealt to it."""
    asked = _asked(s, message.index)
    open_ = asked > 0 and message.set_digest == _masked(s).set_digest
    if open_ and len(message.blob) != asked * KEY_BYTES + OVERHEAD:
        return s, (rejected(Reason.MALFORMED, "one message key for each dropped neighbour is needed"),)
    return coordinator.upload(s, message, made_for=message.set_digest, open_=open_)


def end_recovering(s: Coordinator) -> coordinator.Step:
    """Hand over the help that came: S2 says whether it is enough."""
    after = replace(s, own=replace(_masked(s), helped=True))
    return after, pending(after)


def _help(s: Coordinator) -> HelpBatch:
    masked = _masked(s)
    helpers = [j for j in masked.included if coordinator.holds(s, Help, masked.set_digest, j)]
    blobs = tuple(s.uploads[Help.tag, masked.set_digest, j].blob for j in helpers)
    shares = tuple(_dealt(s, j, i) for i in helpers for j in masked.graph.of(i) if j in masked.gone)
    return HelpBatch(s.params.survey, s.claim_hash, bitmap(helpers, s.n), blobs, shares)


def _dealt(s: Coordinator, dealer: int, to: int) -> bytes:
    """The sealed share that a dropped user had dealt to a neighbour; nothing if S1 does not have it any more."""
    bundle = coordinator.held(s, KeyBundle, 0, dealer)
    return b"" if bundle is None else bytes(bundle.blobs[_masked(s).graph.of(dealer).index(to)])


def on_ready(s: Coordinator, message: Ready, _: Statement) -> coordinator.Step:
    """S2 can use the sum: now it is made, over the set that S2 had named."""
    if s.state is not State.RECOVERING or s.final is not None or message.claim_hash != s.claim_hash:
        return s, ()
    return _hand_over(s)


def on_unrecoverable(s: Coordinator, message: Unrecoverable, _: Statement) -> coordinator.Step:
    """Dropped users' keys are lost: a further attempt with those whose seeds opened, in which nobody needs them."""
    if s.state is not State.RECOVERING or s.final is not None or message.claim_hash != s.claim_hash:
        return s, ()
    graph = _masked(s).graph
    left = graph.settled(graph.marks(_masked(s).included), s.params.t)
    return _attempt(replace(s, state=advance(s.state, State.SUBMITTING)), left)


# --- S2's word ----------------------------------------------------------------------------------------------------


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until S2 has named a set, then the help once its time is over, then the one sum."""
    waits = s.state is State.RECOVERING and _masked(s).helped
    return (coordinator.to_s2(s, _help(s)),) if waits else one_sum.pending(s)


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet; once the sum is made, another one ends the survey."""
    if not isinstance(claim, MaskedClaim) or claim.digest != s.digest or s.seal is None:
        return None
    if s.claim == claim:
        return s
    members, included = members_of(claim.members, s.n), members_of(claim.included, s.n)
    if members is None or included is None or len(claim.blobs) != len(included):
        return None
    if _masked(s).total is not None:
        return coordinator.end_alone(s, "S2 names another claim than the one that S1 has added up")[0]
    path = {State.SHARING: (State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}.get(s.state, ())
    if s.state is State.RECOVERING:
        path = State.SUBMITTING, State.CLAIMED
    masked = replace(_masked(s), bits=claim.members, set_digest=claim.set_digest)
    masked = _including(masked, frozenset(members), included)
    return coordinator.with_claim(replace(s, attempt=claim.attempt, members=members, own=masked), claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether the sum is made, or every vector that it needs is here, with the very seeds that were claimed."""
    if not isinstance(s.claim, MaskedClaim):
        return False
    masked = _masked(s)
    seeds = dict(zip(members_of(s.claim.included, s.n) or (), s.claim.blobs, strict=True))
    held = ((j, coordinator.held(s, MaskedSum, s.claim.set_digest, j)) for j in masked.included)
    return masked.total is not None or all(each is not None and each.blob == seeds[j] for j, each in held)


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
    s2={
        **roster.S2,
        Seal: on_seal,
        PeersIncluded: on_included,
        Ready: on_ready,
        Unrecoverable: on_unrecoverable,
        Published: one_sum.on_published,
    },
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
    scrubbed=one_sum.scrubbed,
    sent_once=one_sum.sent_once,
    spends=one_sum.nothing_spent,
)
