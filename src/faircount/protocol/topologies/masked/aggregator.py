"""S2 in the `masked` topology: one claim, one batch, one call for key shares, one sum.

Once all blobs have opened, S2 keeps their sum alone. It lacks the masks that the dropped users would have cancelled: S2
puts each dropped user's mask key together from t shares, checks it against the public half in the claim, and adds
what that user would have added. Fewer than t shares of one key say nothing, and the sum stays hidden under its masks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.core.errors import ShareError
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.masked.graph import Graph, draw
from faircount.protocol.topologies.masked.masks import Round, help_info, masks_of
from faircount.protocol.topologies.masked.messages import HelpBatch, MaskedClaim, Recovery
from faircount.protocol.topologies.peers.opening import entry, open_sums, opened, root_of, without_bad
from faircount.protocol.topologies.peers.peer_set import PeerSet, peer_set
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import members_of
from faircount.protocol.wire.messages import BadBlobs, Batch, Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.sealing import KeyPair
from faircount.sharing.field import add
from faircount.sharing.keys import canonical_key
from faircount.sharing.shamir import SHARE_BYTES, KeyShare, combine_key


def needed(graph: Graph, inside: Marks, included: Marks) -> Marks:
    """Dropped users who left masks in the sum: in the set, not included, with an included neighbour."""
    return inside & ~included & (graph.count(included) > 0)


def _graph(s: Aggregator) -> Graph:
    n = 0 if s.roster is None else len(s.roster.entries)
    return draw(s.committed, s.digest, n, s.params.k)


def _sets(s: Aggregator, claim: MaskedClaim) -> tuple[PeerSet, PeerSet] | None:
    """The set of a claim and the included part of it, if it names them in the canonical way."""
    n = 0 if s.roster is None else len(s.roster.entries)
    inside = peer_set(s.digest, claim.attempt, n, claim.members, ())
    part = peer_set(s.digest, claim.attempt, n, claim.included, ())
    if inside is None or part is None or not set(part.members) <= set(inside.members):
        return None
    return inside, part


def _round(s: Aggregator, claim: MaskedClaim) -> Round:
    return Round(s.params, s.digest, claim.attempt, claim.set_digest)


# --- claim --------------------------------------------------------------------------------------------------------


def on_claim(s: Aggregator, claim: MaskedClaim) -> aggregator.Step:
    """Check digest, set, attempt, connection, keys, minimum and budget, and record the claim for good."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    problem = _claim_problem(s, claim) or _further_problem(s, claim) or _part_problem(s, claim)
    if problem is not None:
        return aggregator.refuse_claim(s, problem)
    places = members_of(claim.included, _graph(s).n) or ()
    path = () if s.state is State.SUBMITTING else (State.SUBMITTING,)
    return aggregator.admit(s, claim, [entry(s, j)[0] for j in places], places, path)


def _claim_problem(s: Aggregator, claim: MaskedClaim) -> Rejected | None:
    if s.roster is None or claim.digest != s.digest:
        return rejected(Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one")
    sets = _sets(s, claim)
    if sets is None or (len(sets[0].members), len(sets[1].members)) != (len(claim.mask_keys), len(claim.blob_hashes)):
        return rejected(Reason.MALFORMED, "a claim names a set with its mask keys, a part of it, and one blob of each")
    if not all(canonical_key(key) for key in claim.mask_keys):
        return rejected(Reason.MALFORMED, "a mask key is not canonical")
    if claim.set_digest != sets[0].set_digest:
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    if not 1 <= claim.attempt <= s.params.attempts:
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    return None


def _part_problem(s: Aggregator, claim: MaskedClaim) -> Rejected | None:
    """A part that hangs together gives S2 its sum and no smaller one; every lost mask must be recoverable."""
    graph = _graph(s)
    inside, part = (graph.marks(members_of(bits, graph.n)) for bits in (claim.members, claim.included))
    if not graph.connected(part):
        return rejected(Reason.DISCONNECTED, "those included do not hang together: drop all but the largest part")
    if (graph.count(part)[needed(graph, inside, part)] < s.params.t).any():
        return rejected(Reason.TOO_FEW, f"a dropped user has fewer than {s.params.t} included neighbours")
    return None


def _further_problem(s: Aggregator, claim: MaskedClaim) -> Rejected | None:
    """A further claim drops those whose blobs did not open and changes nothing else.

    Whoever else was dropped would have its vector at S2, from the first batch, and soon its mask key.
    """
    if not isinstance(s.claim, MaskedClaim):
        return None
    before, after = _hashes(s, s.claim), _hashes(s, claim)
    same = replace(claim, included=s.claim.included, blob_hashes=s.claim.blob_hashes) == s.claim
    left = without_bad(s, tuple(before))
    if not same or tuple(after) != left or any(before[j] != each for j, each in after.items()):
        return rejected(Reason.CONFLICT, "a further claim is the first one without the bad blobs")
    return None


def _hashes(s: Aggregator, claim: MaskedClaim) -> dict[int, bytes]:
    sets = _sets(s, claim)
    return dict(zip(sets[1].members, claim.blob_hashes, strict=True)) if sets else {}


# --- batch --------------------------------------------------------------------------------------------------------


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob before adding any. All open: keep the sum, and ask once for the key shares of the dropped."""
    again, claim = _said(s, batch), s.claim
    if again is not None:
        return s, again
    hashes = claim.blob_hashes if isinstance(claim, MaskedClaim) else ()
    problem = aggregator.batch_problem(s, batch, hashes)
    sets = _sets(s, claim) if isinstance(claim, MaskedClaim) else None
    if problem is not None or sets is None or not isinstance(claim, MaskedClaim):
        return s, (problem or rejected(Reason.EARLY, "claim a batch before sending it"),)
    s = replace(s, handed_over=True)
    now, places = _round(s, claim), sets[1].members
    sums, closed = open_sums(s, places, (now.sum_info(j) for j in places), batch.blobs)
    if closed:
        return aggregator.refuse_blobs(s, closed, [entry(s, j)[0] for j in places])
    total, graph = sum_packed(sums, s.params.q, s.params.N), _graph(s)
    if not needed(graph, graph.marks(sets[0].members), graph.marks(places)).any():
        return _publish(replace(s, state=advance(s.state, State.OPENED)), total, places)
    stated = Recovery(s.params.survey, s.claim_hash, claim.set_digest, claim.included)
    return aggregator.say(s, stated, held=total, state=advance(s.state, State.RECOVERING))


def _said(s: Aggregator, batch: Batch) -> tuple[Message, ...] | None:
    """What S2 has answered to this batch before."""
    bad, asked = s.last(BadBlobs), s.last(Recovery)
    if s.state in FINAL:
        return s.last_words
    if batch.claim_hash == s.claim_hash and asked is not None:
        return (asked.signed,)
    if batch.claim_hash == s.claim_hash and bad is not None and s.state is State.SUBMITTING:
        return (bad.signed,)
    return None


def _publish(s: Aggregator, total: Residues, places: Sequence[int]) -> aggregator.Step:
    return aggregator.publish(s, total, len(places), places, root_of(s, places))


# --- recovery -----------------------------------------------------------------------------------------------------


def on_help(s: Aggregator, message: HelpBatch) -> aggregator.Step:
    """Recover the dropped users' masks and publish; if a key cannot be put together, the survey ends."""
    claim = s.claim
    if s.state in FINAL:
        return s, s.last_words
    if s.state is not State.RECOVERING or s.held is None or not isinstance(claim, MaskedClaim):
        return s, (rejected(Reason.EARLY, "send the claim and its blobs first"),)
    helpers = members_of(message.helpers, _graph(s).n)
    if message.claim_hash != s.claim_hash or helpers is None or len(helpers) != len(message.blobs):
        return s, (rejected(Reason.WRONG_DIGEST, "this is no help for the claim that stands"),)
    missing = _missing_masks(s, claim, dict(zip(helpers, message.blobs, strict=True)))
    if missing is None:
        return aggregator.abort(s, "the masks of a dropped user could not be recovered", spent=True)
    places, opened = members_of(claim.included, _graph(s).n) or (), replace(s, state=advance(s.state, State.OPENED))
    return _publish(opened, add(s.held, missing, s.params.q), places)


def _missing_masks(s: Aggregator, claim: MaskedClaim, blobs: Mapping[int, bytes]) -> Residues | None:
    """What the dropped users would have added, or None if a key is lost."""
    graph, now, total = _graph(s), _round(s, claim), sum_packed((), s.params.q, s.params.N)
    inside = members_of(claim.members, graph.n) or ()
    included = frozenset(members_of(claim.included, graph.n) or ())
    keys = dict(zip(inside, claim.mask_keys, strict=True))
    parts = _parts(s, frozenset(inside) - included, {j: blob for j, blob in blobs.items() if j in included})
    for gone in np.flatnonzero(needed(graph, graph.marks(inside), graph.marks(list(included)))).tolist():
        own = _mask_key(s, keys[gone], parts[gone])
        if own is None:
            return None
        others = {j: keys[j] for j in graph.of(gone) if j in included}
        total = add(total, masks_of(s.sealing, now, gone, own, others), s.params.q)
    return total


def _parts(s: Aggregator, gone: frozenset[int], blobs: Mapping[int, bytes]) -> dict[int, list[KeyShare]]:
    """The shares of each dropped user's key that arrived, each from the neighbour to whom it was dealt."""
    graph, found = _graph(s), {j: list[KeyShare]() for j in gone}
    for helper, blob in sorted(blobs.items()):
        plain = opened(s, helper, help_info(s.params, helper, s.claim_hash), blob)
        wanted = [j for j in graph.of(helper) if j in gone]
        if len(plain) == len(wanted) * SHARE_BYTES:
            for at, j in enumerate(wanted):
                part = _share(plain[at * SHARE_BYTES : (at + 1) * SHARE_BYTES])
                if part is not None and part.index == 1 + graph.of(j).index(helper):
                    found[j].append(part)
    return found


def _share(part: bytes) -> KeyShare | None:
    try:
        return KeyShare.from_bytes(part)
    except ShareError:
        return None


def _mask_key(s: Aggregator, public: bytes, shares: Sequence[KeyShare]) -> KeyPair | None:
    """The mask key with this public half, from any t shares in a row, cyclically: one wrong share spoils not all."""
    t, around = s.params.t, [*shares, *shares]
    for start in range(len(shares)):
        try:
            own = s.sealing.keypair_of(combine_key(around[start : start + t], t))
        except ShareError:  # too few, not of one dealing, or on no common polynomial
            continue
        if own.public == public:
            return own
    return None


S2: Mapping[type[Message], aggregator.Handler] = {MaskedClaim: on_claim, Batch: on_batch, HelpBatch: on_help}
