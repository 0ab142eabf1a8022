"""S2 in the `masked` topology: whose seeds open, the keys of those who are dropped, one sum.

S1's sum over the included users lacks the masks that dropped users would have cancelled: S2 puts each dropped user's
mask key together from t shares, checks it against the public half in the claim, and adds what that user would have
added. Fewer than t shares of one key say nothing. A share opens with the message key of the neighbour to whom it was
dealt: a lying helper can withhold it, and not change it. If t shares that open do not give the key, the dealer lied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Marks
from faircount.core.errors import ShareError
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.masked.graph import Graph, draw
from faircount.protocol.topologies.masked.masks import help_info, mask_secrets, masks_of
from faircount.protocol.topologies.masked.messages import HelpBatch, MaskedClaim, Ready, Unrecoverable
from faircount.protocol.topologies.peers import opening
from faircount.protocol.topologies.peers.messages import PeersIncluded, Total
from faircount.protocol.topologies.peers.peer_set import PeerSet, peer_set
from faircount.protocol.topologies.peers.self_mask import Round
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import sum_vectors
from faircount.protocol.wire.sealing import KeyPair
from faircount.sharing.field import subtract
from faircount.sharing.keys import KEY_BYTES, canonical_key
from faircount.sharing.shamir import KeyShare, combine_key


def needed(graph: Graph, inside: Marks, included: Marks) -> Marks:
    """Dropped users who left masks in the sum: in the set, not included, with an included neighbour."""
    return inside & ~included & (graph.count(included) > 0)


def recoverable(graph: Graph, inside: Marks, included: Marks, least: int) -> bool:
    """Whether those included hang together, and every lost mask has `least` included neighbours to recover it."""
    lost = needed(graph, inside, included)
    return graph.connected(included) and bool((graph.count(included)[lost] >= least).all())


def _graph(s: Aggregator) -> Graph:
    return draw(s.committed, s.digest, opening.roster_size(s), s.params.k)


def _sets(s: Aggregator, claim: MaskedClaim) -> tuple[PeerSet, PeerSet] | None:
    """The set of a claim and the part of it that has sent, if it names them in the canonical way."""
    n = opening.roster_size(s)
    inside = peer_set(s.digest, claim.attempt, n, claim.members, ())
    part = peer_set(s.digest, claim.attempt, n, claim.included, ())
    if inside is None or part is None or not set(part.members) <= set(inside.members):
        return None
    return inside, part


def _round(s: Aggregator, claim: MaskedClaim) -> Round:
    return Round(s.params, s.digest, claim.attempt, claim.set_digest)


# --- claim --------------------------------------------------------------------------------------------------------


def on_claim(s: Aggregator, claim: MaskedClaim) -> aggregator.Step:
    """Check digest, set, connection, keys, minimum and budget, record the claim and open its seeds."""
    known = opening.repeated(s, claim)
    if known is not None:
        return known
    sets = _sets(s, claim)
    problem = _claim_problem(s, claim, sets)
    if problem is not None or sets is None:
        return aggregator.refuse_claim(s, problem)
    places = sets[1].members
    step = opening.admitted(s, claim, len(places), places)
    return _included(s, claim, places, step) if step[0].claim == claim else step


def _claim_problem(s: Aggregator, claim: MaskedClaim, sets: tuple[PeerSet, PeerSet] | None) -> Rejected | None:
    if s.roster is None or claim.digest != s.digest:
        return rejected(Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one")
    if sets is None or (len(sets[0].members), len(sets[1].members)) != (len(claim.mask_keys), len(claim.blobs)):
        return rejected(Reason.MALFORMED, "a claim names a set with its mask keys, a part of it, and one seed of each")
    if not all(canonical_key(key) for key in claim.mask_keys):
        return rejected(Reason.MALFORMED, "a mask key is not canonical, or of low order")
    if claim.set_digest != sets[0].set_digest:
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    graph = _graph(s)
    if not recoverable(graph, graph.marks(sets[0].members), graph.marks(sets[1].members), s.params.t):
        why = f"those who sent do not hang together, or a dropped user has fewer than {s.params.t} of them around it"
        return rejected(Reason.DISCONNECTED, why)
    return None


def _included(s: Aggregator, claim: MaskedClaim, places: Sequence[int], step: aggregator.Step) -> aggregator.Step:
    """Whose seeds open. If nobody is dropped, S2 is ready for the sum; else the keys of the dropped come first."""
    now, graph = _round(s, claim), _graph(s)
    seeds = opening.open_seeds(s, now, places, claim.blobs)
    inside, counted = (graph.marks(each) for each in (members_of(claim.members, graph.n) or (), list(seeds)))
    ready = graph.connected(counted) and not needed(graph, inside, counted).any()
    held = opening.self_masks(s, now, seeds) if ready else None
    return opening.say_included(s, step, claim.set_digest, tuple(seeds), held, opening.root_of(s, tuple(seeds)))


# --- recovery -----------------------------------------------------------------------------------------------------


def on_help(s: Aggregator, message: HelpBatch) -> aggregator.Step:
    """Put the dropped users' keys together: ready, or their names if some cannot be. Said once per claim."""
    claim, stated = s.claim, s.last(PeersIncluded)
    if s.state in FINAL:
        return s, s.last_words
    if not isinstance(claim, MaskedClaim) or stated is None:
        return s, (rejected(Reason.EARLY, "send the claim first"),)
    said = s.statements[s.statements.index(stated) + 1 :]
    if message.claim_hash == s.claim_hash and (said or s.held is not None):
        return s, tuple(each.signed for each in said)
    helpers = members_of(message.helpers, _graph(s).n)
    if message.claim_hash != s.claim_hash or helpers is None or len(helpers) != len(message.blobs):
        return s, (rejected(Reason.WRONG_DIGEST, "this is no help for the claim that stands"),)
    return _recovered(s, claim, _shares(s, claim, dict(zip(helpers, message.blobs, strict=True)), message.shares))


def _recovered(s: Aggregator, claim: MaskedClaim, shares: Mapping[int, Sequence[KeyShare]]) -> aggregator.Step:
    graph, now, places = _graph(s), _round(s, claim), opening.included(s)
    inside = members_of(claim.members, graph.n) or ()
    public = dict(zip(inside, claim.mask_keys, strict=True))
    lost = np.flatnonzero(needed(graph, graph.marks(inside), graph.marks(places))).tolist()
    keys = {j: _mask_key(s, public[j], shares.get(j, ())) for j in lost}
    missing = [j for j, key in keys.items() if key is None]
    s = replace(s, state=advance(s.state, State.RECOVERING))
    if missing:
        return aggregator.say(s, Unrecoverable(s.params.survey, s.claim_hash, bitmap(missing, graph.n)))
    counted = frozenset(places)
    masks = (
        masks_of(s.sealing, now, j, mask_secrets(s.sealing, key, {i: public[i] for i in graph.of(j) if i in counted}))
        for j, key in keys.items()
        if key is not None
    )
    sent = (members_of(claim.included, graph.n) or (), claim.blobs)
    seeds = {j: seed for j, seed in opening.open_seeds(s, now, *sent).items() if j in counted}
    held = subtract(opening.self_masks(s, now, seeds), sum_vectors(masks, s.params.q, s.params.N), s.params.q)
    return aggregator.say(s, Ready(s.params.survey, s.claim_hash), held=held, handed_over=True)


def _shares(
    s: Aggregator, claim: MaskedClaim, helps: Mapping[int, bytes], sealed: Sequence[bytes]
) -> dict[int, list[KeyShare]]:
    """The shares of each dropped user's key that open, each with the key of the neighbour to whom it was dealt."""
    graph, counted = _graph(s), frozenset(opening.included(s))
    gone = frozenset(members_of(claim.members, graph.n) or ()) - counted
    found, at = {j: list[KeyShare]() for j in gone}, 0
    for helper, blob in sorted(helps.items()):
        wanted = [j for j in graph.of(helper) if j in gone]
        blobs, at = sealed[at : at + len(wanted)], at + len(wanted)
        plain = opening.opened(s, helper, help_info(s.params, helper, s.claim_hash), blob) if helper in counted else b""
        if len(plain) == len(wanted) * KEY_BYTES and len(blobs) == len(wanted):
            keys = (plain[start : start + KEY_BYTES] for start in range(0, len(plain), KEY_BYTES))
            for j, key, share in zip(wanted, keys, blobs, strict=True):
                part = _share(s.sealing.open_with(key, share))
                if part is not None and (part.index, part.threshold) == (1 + graph.of(j).index(helper), s.params.t):
                    found[j].append(part)
    return found


def _share(part: bytes | None) -> KeyShare | None:
    try:
        return KeyShare.from_bytes(part or b"")
    except ShareError:
        return None


def _mask_key(s: Aggregator, public: bytes, shares: Sequence[KeyShare]) -> KeyPair | None:
    """The mask key with this public half, from t shares that open: of an honest dealer any t give it."""
    try:
        own = s.sealing.keypair_of(combine_key(shares[: s.params.t], s.params.t))
    except ShareError:  # too few, not of one dealing, or on no common polynomial
        return None
    return own if own.public == public else None


S2: Mapping[type[Message], aggregator.Handler] = {
    MaskedClaim: on_claim,
    HelpBatch: on_help,
    Total: opening.on_total,
}
