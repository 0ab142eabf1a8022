"""The aggregator in the `masked` topology: whose seeds open, the keys of those who are dropped, one
sum.

The coordinator's sum over the included users lacks the masks that dropped users would have
cancelled: the aggregator puts each dropped user's mask key together from t shares, checks it
against the public half in the claim, and adds what that user would have added. Fewer than t
shares of one key say nothing. A share opens with the message key of the neighbour to whom it was
dealt: a lying helper can withhold it, and not change it. If t shares that open do not give the
key, the dealer lied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Bools
from faircount.core.errors import ShareError
from faircount.protocol.peers import opening
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.peers.opening import PeersAggregator
from faircount.protocol.peers.peer_set import PeerSet, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.topologies.masked.graph import Graph, draw_graph
from faircount.protocol.topologies.masked.masks import mask_secrets, masks_of, unmask_info
from faircount.protocol.topologies.masked.messages import (
    MaskedManifest,
    ReadyForTotal,
    UnmaskBatch,
    Unrecoverable,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import KeyPair
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, Rejection, reject
from faircount.protocol.wire.packed_rows import sum_vectors
from faircount.sharing.field import subtract
from faircount.sharing.keys import KEY_BYTES, is_canonical_key
from faircount.sharing.shamir import KeyShare, combine_key


def needed(graph: Graph, inside: Bools, included: Bools) -> Bools:
    """Dropped users who left masks in the sum: in the set, not included, with an included
    neighbour.
    """
    return inside & ~included & (graph.count_neighbours(included) > 0)


def recoverable(graph: Graph, inside: Bools, included: Bools, least: int) -> bool:
    """Whether those included hang together, and every lost mask has `least` included neighbours to
    recover it.
    """
    lost = needed(graph, inside, included)
    return graph.is_connected(included) and bool(
        (graph.count_neighbours(included)[lost] >= least).all()
    )


def _graph(s: Aggregator) -> Graph:
    return draw_graph(s.committed, s.digest, opening.roster_size(s), s.params.k)


def _sets(s: Aggregator, manifest: MaskedManifest) -> tuple[PeerSet, PeerSet] | None:
    """The set of a claim and the part of it that has sent, if it names them in the canonical
    way.
    """
    n = opening.roster_size(s)
    inside = parse_peer_set(s.digest, manifest.attempt, n, manifest.members, ())
    part = parse_peer_set(s.digest, manifest.attempt, n, manifest.included, ())
    if inside is None or part is None or not set(part.members) <= set(inside.members):
        return None
    return inside, part


def _round(s: Aggregator, manifest: MaskedManifest) -> AttemptContext:
    return AttemptContext(s.params, s.digest, manifest.attempt, manifest.set_digest)


class MaskedAggregator(PeersAggregator):
    """The aggregator of `masked`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The claim of an attempt, and help to recover the keys of those who dropped out."""
        return {
            **super().handlers(),
            MaskedManifest: self.on_claim,
            UnmaskBatch: self.on_help,
        }

    def on_claim(
        self, s: Aggregator, rows: StepRows, manifest: MaskedManifest
    ) -> aggregator.Change:
        """Check digest, set, connection, keys, minimum and budget, record the claim and open its
        seeds.
        """
        known = opening.repeated(s, manifest)
        if known is not None:
            return known
        sets = _sets(s, manifest)
        problem = _claim_problem(s, manifest, sets)
        if problem is not None or sets is None:
            return aggregator.refuse_manifest(s, problem)
        places = sets[1].members
        step = opening.admitted(s, rows, manifest, len(places), places)
        return _included(s, manifest, places, step) if step[0].manifest == manifest else step

    def on_help(self, s: Aggregator, rows: StepRows, message: UnmaskBatch) -> aggregator.Change:
        """Put the dropped users' keys together: ready, or their names if some cannot be.

        Said once per claim.
        """
        manifest, stated = s.manifest, s.last(AcceptedMembers)
        if s.phase in FINAL:
            return s, s.newest_statements
        if not isinstance(manifest, MaskedManifest) or stated is None:
            return s, (reject(Reason.EARLY, "send the claim first"),)
        said = s.statements[s.statements.index(stated) + 1 :]
        if message.manifest_hash == s.manifest_hash and (said or s.partial_sum is not None):
            return s, tuple(each.signed for each in said)
        helpers = members_of(message.helpers, _graph(s).n)
        if (
            message.manifest_hash != s.manifest_hash
            or helpers is None
            or len(helpers) != len(message.encrypted_shares)
        ):
            return s, (reject(Reason.WRONG_DIGEST, "this is no help for the claim that stands"),)
        return _recovered(
            s,
            manifest,
            _shares(
                s,
                manifest,
                dict(zip(helpers, message.encrypted_shares, strict=True)),
                message.shares,
            ),
        )


def _claim_problem(
    s: Aggregator, manifest: MaskedManifest, sets: tuple[PeerSet, PeerSet] | None
) -> Rejection | None:
    if s.roster is None or manifest.digest != s.digest:
        return reject(
            Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one"
        )
    if sets is None or (len(sets[0].members), len(sets[1].members)) != (
        len(manifest.mask_keys),
        len(manifest.encrypted_shares),
    ):
        return reject(
            Reason.MALFORMED,
            "a claim names a set with its mask keys, a part of it, and one seed of each",
        )
    # check: manifest-mask-key - a mask made with a low-order key is zero and hides nothing
    if not all(is_canonical_key(key) for key in manifest.mask_keys):
        return reject(Reason.MALFORMED, "a mask key is not canonical, or of low order")
    if manifest.set_digest != sets[0].set_digest:
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    graph = _graph(s)
    if not recoverable(
        graph, graph.marks(sets[0].members), graph.marks(sets[1].members), s.params.t
    ):
        why = (
            f"those who sent do not hang together, or a dropped user has fewer than {s.params.t} "
            "of them around it"
        )
        return reject(Reason.DISCONNECTED, why)
    return None


def _included(
    s: Aggregator, manifest: MaskedManifest, places: Sequence[int], step: aggregator.Change
) -> aggregator.Change:
    """Whose seeds open.

    If nobody is dropped, the aggregator is ready for the sum; else the keys of the dropped come
    first.
    """
    now, graph = _round(s, manifest), _graph(s)
    seeds = opening.open_seeds(s, now, places, manifest.encrypted_shares)
    inside, counted = (
        graph.marks(each) for each in (members_of(manifest.members, graph.n) or (), list(seeds))
    )
    ready = graph.is_connected(counted) and not needed(graph, inside, counted).any()
    held = opening.self_masks(s, now, seeds) if ready else None
    return opening.say_included(
        s, step, manifest.set_digest, tuple(seeds), held, opening.root_of(s, tuple(seeds))
    )


def _recovered(
    s: Aggregator, manifest: MaskedManifest, shares: Mapping[int, Sequence[KeyShare]]
) -> aggregator.Change:
    graph, now, places = _graph(s), _round(s, manifest), opening.included(s)
    inside = members_of(manifest.members, graph.n) or ()
    public = dict(zip(inside, manifest.mask_keys, strict=True))
    lost = np.flatnonzero(needed(graph, graph.marks(inside), graph.marks(places))).tolist()
    keys = {j: _mask_key(s, public[j], shares.get(j, ())) for j in lost}
    missing = [j for j, key in keys.items() if key is None]
    s = replace(s, phase=advance(s.phase, Phase.UNMASKING))
    if missing:
        return aggregator.say(
            s, Unrecoverable(s.params.survey, s.manifest_hash, bitmap(missing, graph.n))
        )
    counted = frozenset(places)
    masks = (
        masks_of(
            s.crypto,
            now,
            j,
            mask_secrets(
                s.crypto, key, {i: public[i] for i in graph.neighbours_of(j) if i in counted}
            ),
        )
        for j, key in keys.items()
        if key is not None
    )
    sent = (members_of(manifest.included, graph.n) or (), manifest.encrypted_shares)
    seeds = {j: seed for j, seed in opening.open_seeds(s, now, *sent).items() if j in counted}
    held = subtract(
        opening.self_masks(s, now, seeds), sum_vectors(masks, s.params.q, s.params.N), s.params.q
    )
    return aggregator.say(
        s, ReadyForTotal(s.params.survey, s.manifest_hash), partial_sum=held, handed_over=True
    )


def _shares(
    s: Aggregator, manifest: MaskedManifest, helps: Mapping[int, bytes], sealed: Sequence[bytes]
) -> dict[int, list[KeyShare]]:
    """The shares of each dropped user's key that open, each with the key of the neighbour to whom
    it was dealt.
    """
    graph, counted = _graph(s), frozenset(opening.included(s))
    gone = frozenset(members_of(manifest.members, graph.n) or ()) - counted
    found, at = {j: list[KeyShare]() for j in gone}, 0
    for helper, encrypted_share in sorted(helps.items()):
        wanted = [j for j in graph.neighbours_of(helper) if j in gone]
        encrypted_shares, at = sealed[at : at + len(wanted)], at + len(wanted)
        plain = (
            opening.opened(
                s, helper, unmask_info(s.params, helper, s.manifest_hash), encrypted_share
            )
            if helper in counted
            else b""
        )
        if len(plain) == len(wanted) * KEY_BYTES and len(encrypted_shares) == len(wanted):
            keys = (plain[start : start + KEY_BYTES] for start in range(0, len(plain), KEY_BYTES))
            for j, key, share in zip(wanted, keys, encrypted_shares, strict=True):
                part = _share(s.crypto.decrypt_with_key(key, share))
                if part is not None and (part.index, part.threshold) == (
                    1 + graph.neighbours_of(j).index(helper),
                    s.params.t,
                ):
                    found[j].append(part)
    return found


def _share(part: bytes | None) -> KeyShare | None:
    try:
        return KeyShare.from_bytes(part or b"")
    except ShareError:
        return None


def _mask_key(s: Aggregator, public: bytes, shares: Sequence[KeyShare]) -> KeyPair | None:
    """The mask key with this public half, from t shares that open: of an honest dealer any t give
    it.
    """
    try:
        own = s.crypto.keypair_from(combine_key(shares[: s.params.t], s.params.t))
    except ShareError:  # too few, not of one dealing, or on no common polynomial
        return None
    # check: recovered-key - dishonest users hand in shares of another key
    return own if own.public == public else None
