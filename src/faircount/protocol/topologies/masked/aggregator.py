"""The aggregator in the `masked` topology: it recovers the mask keys of dropped members.

    MaskedManifest  -> decrypt the seeds of those who sent a sum, and state who is accepted
    UnmaskBatch     -> combine the mask keys of dropped members from t key shares each:
                       ReadyForTotal, or Unrecoverable with those whose key cannot be combined
    AggregateTotal  -> subtract all masks and publish

The total over the accepted members lacks the pairwise masks that dropped members would have
cancelled. For each of them the aggregator combines the mask key from t shares, compares it with the
public mask key in the manifest, and computes what the member would have added.

Fewer than t shares of a key reveal nothing. A key share is decrypted with the message key of the
neighbour to whom it was dealt, so a dishonest neighbour can withhold a share but cannot change it.
If t shares that decrypt do not give the key, the dealer was dishonest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ShareError
from faircount.protocol.peers import unmasking
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.peers.peer_set import PeerSet, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.peers.unmasking import PeersAggregator
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


def find_uncancelled(graph: Graph, inside: Bools, accepted: Bools) -> Bools:
    """The dropped members whose masks remain in the sum.

    They are in the set and not accepted, and have an accepted neighbour.
    """
    return inside & ~accepted & (graph.count_neighbours(accepted) > 0)


def is_recoverable(graph: Graph, inside: Bools, accepted: Bools, least: int) -> bool:
    """Whether the accepted are connected, and can recover the key of every uncancelled mask.

    For that, its owner needs at least `least` accepted neighbours.
    """
    uncancelled = find_uncancelled(graph, inside, accepted)
    helpers = graph.count_neighbours(accepted)[uncancelled]
    return graph.is_connected(accepted) and bool((helpers >= least).all())


def _graph(s: Aggregator) -> Graph:
    return draw_graph(s.committed_value, s.digest, unmasking.roster_size(s), s.params.k)


def _context(s: Aggregator, manifest: MaskedManifest) -> AttemptContext:
    return AttemptContext(s.params, s.digest, manifest.attempt, manifest.set_digest)


class MaskedAggregator(PeersAggregator):
    """The aggregator of `masked`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The manifest of an attempt, and the unmask shares for it."""
        return {
            **super().handlers(),
            MaskedManifest: self.on_manifest,
            UnmaskBatch: self.on_unmask_batch,
        }

    def on_manifest(
        self, s: Aggregator, rows: StepRows, manifest: MaskedManifest
    ) -> aggregator.Change:
        """Check and record the manifest, reserve the budget, and decrypt the seeds."""
        answer = unmasking.answer_known_manifest(s, manifest)
        if answer is not None:
            return answer
        sets = _parse_sets(s, manifest)
        problem = _manifest_problem(s, manifest, sets)
        if problem is not None or sets is None:
            return aggregator.refuse_manifest(s, problem)
        _, senders = sets
        places = senders.members
        recorded = unmasking.record_attempt(s, rows, manifest, len(places), places)
        if recorded[0].manifest != manifest:
            return recorded
        return _accept_members(s, manifest, places, recorded)

    def on_unmask_batch(
        self, s: Aggregator, rows: StepRows, message: UnmaskBatch
    ) -> aggregator.Change:
        """Combine the keys of the dropped members: ready, or who cannot be recovered.

        Stated once per manifest; a repeated batch gets the same statement.
        """
        manifest = s.manifest
        accepted = s.last(AcceptedMembers)
        if s.phase in FINAL:
            return s, s.newest_statements
        if not isinstance(manifest, MaskedManifest) or accepted is None:
            return s, (reject(Reason.EARLY, "send the manifest first"),)
        if message.manifest_hash != s.manifest_hash:
            return s, (reject(Reason.WRONG_DIGEST, "these unmask shares are for another manifest"),)
        # A second batch with other shares must not change what was stated after the first.
        later = s.statements[s.statements.index(accepted) + 1 :]
        if later or s.partial_sum is not None:
            return s, tuple(statement.signed for statement in later)
        helpers = members_of(message.helpers, unmasking.roster_size(s))
        if helpers is None or len(helpers) != len(message.encrypted_shares):
            problem = "one encrypted message is needed for each member that helps to unmask"
            return s, (reject(Reason.WRONG_DIGEST, problem),)
        encrypted_keys = dict(zip(helpers, message.encrypted_shares, strict=True))
        key_shares = _decrypt_key_shares(s, manifest, encrypted_keys, message.shares)
        return _recover_keys(s, manifest, key_shares)


# --- the manifest ---------------------------------------------------------------------------------


def _parse_sets(s: Aggregator, manifest: MaskedManifest) -> tuple[PeerSet, PeerSet] | None:
    """The set of a manifest and those of it who sent a sum; None unless in canonical form."""
    n = unmasking.roster_size(s)
    inside = parse_peer_set(s.digest, manifest.attempt, n, manifest.members, ())
    senders = parse_peer_set(s.digest, manifest.attempt, n, manifest.senders, ())
    if inside is None or senders is None or not set(senders.members) <= set(inside.members):
        return None
    return inside, senders


def _manifest_problem(
    s: Aggregator, manifest: MaskedManifest, sets: tuple[PeerSet, PeerSet] | None
) -> Rejection | None:
    if s.roster is None or manifest.digest != s.digest:
        return reject(
            Reason.WRONG_DIGEST, "the manifest was made for another roster than the confirmed one"
        )
    if (
        sets is None
        or len(sets[0].members) != len(manifest.mask_keys)
        or len(sets[1].members) != len(manifest.encrypted_shares)
    ):
        return reject(
            Reason.MALFORMED,
            "a manifest names a set with its mask keys, who of it sent a sum, and their seeds",
        )
    # check: manifest-mask-key - a mask made with a low-order key is zero and hides nothing
    if not all(is_canonical_key(key) for key in manifest.mask_keys):
        return reject(Reason.MALFORMED, "a mask key is not canonical, or of low order")
    inside, senders = sets
    if manifest.set_digest != inside.set_digest:
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    # In two components the masks of each would cancel by themselves: two sums instead of one.
    graph = _graph(s)
    is_inside = graph.marks(inside.members)
    has_sent = graph.marks(senders.members)
    if not is_recoverable(graph, is_inside, has_sent, s.params.t):
        why = (
            "the members that sent a sum are not connected, or a dropped member has fewer than "
            f"{s.params.t} of them as neighbours"
        )
        return reject(Reason.DISCONNECTED, why)
    return None


def _accept_members(
    s: Aggregator, manifest: MaskedManifest, places: Sequence[int], recorded: aggregator.Change
) -> aggregator.Change:
    """Accept the members whose seeds can be decrypted.

    If nobody's mask is left uncancelled, the aggregator is ready for the total.
    """
    context = _context(s, manifest)
    graph = _graph(s)
    # The seed of a malicious client may be garbage: the client is dropped, and the others go on.
    seeds = unmasking.decrypt_seeds(s, context, places, manifest.encrypted_shares)
    accepted = tuple(seeds)
    is_inside = graph.marks(members_of(manifest.members, graph.n) or ())
    is_accepted = graph.marks(accepted)
    partial_sum = None
    if (
        graph.is_connected(is_accepted)
        and not find_uncancelled(graph, is_inside, is_accepted).any()
    ):
        partial_sum = unmasking.sum_self_masks(s, context, seeds)
    root = unmasking.inclusion_root(s, accepted)
    return unmasking.state_accepted(s, recorded, manifest.set_digest, accepted, partial_sum, root)


# --- recovery -------------------------------------------------------------------------------------


def _decrypt_key_shares(
    s: Aggregator,
    manifest: MaskedManifest,
    encrypted_keys: Mapping[int, bytes],
    encrypted_shares: Sequence[bytes],
) -> dict[int, list[KeyShare]]:
    """The shares of each dropped member's mask key that can be decrypted.

    Args:
        s: the aggregator
        manifest: of the current attempt
        encrypted_keys: from each helping member, the message keys for its dropped neighbours
        encrypted_shares: the key shares, by helping member and dropped neighbour, ascending
    """
    graph = _graph(s)
    accepted = frozenset(unmasking.accepted_places(s))
    dropped = frozenset(members_of(manifest.members, graph.n) or ()) - accepted
    found = {dealer: list[KeyShare]() for dealer in dropped}
    start = 0
    for helper, encrypted in sorted(encrypted_keys.items()):
        dealers = [j for j in graph.neighbours_of(helper) if j in dropped]
        shares = encrypted_shares[start : start + len(dealers)]
        start += len(dealers)
        # Whoever is not accepted has no say, but its shares keep their places in the list.
        if helper not in accepted:
            continue
        info = unmask_info(s.params, helper, s.manifest_hash)
        keys = _split_keys(unmasking.decrypt_from_member(s, helper, info, encrypted))
        if len(keys) != len(dealers) or len(shares) != len(dealers):
            continue
        for dealer, key, share in zip(dealers, keys, shares, strict=True):
            # A share at another place or of another threshold would spoil the interpolation.
            index = 1 + graph.neighbours_of(dealer).index(helper)
            key_share = _parse_key_share(s.crypto.decrypt_with_key(key, share))
            if key_share is None or (key_share.index, key_share.threshold) != (index, s.params.t):
                continue
            found[dealer].append(key_share)
    return found


def _split_keys(plaintext: bytes) -> list[bytes]:
    """The message keys in a plaintext; none if it does not consist of whole keys."""
    if len(plaintext) % KEY_BYTES:
        return []
    return [plaintext[at : at + KEY_BYTES] for at in range(0, len(plaintext), KEY_BYTES)]


def _parse_key_share(plaintext: bytes | None) -> KeyShare | None:
    try:
        return KeyShare.from_bytes(plaintext or b"")
    except ShareError:
        return None


def _recover_keys(
    s: Aggregator, manifest: MaskedManifest, key_shares: Mapping[int, Sequence[KeyShare]]
) -> aggregator.Change:
    """Combine the keys of all uncancelled masks, and state whether that worked."""
    graph = _graph(s)
    inside = members_of(manifest.members, graph.n) or ()
    mask_keys = dict(zip(inside, manifest.mask_keys, strict=True))
    is_accepted = graph.marks(unmasking.accepted_places(s))
    uncancelled = np.flatnonzero(find_uncancelled(graph, graph.marks(inside), is_accepted))
    keys = {}
    missing = []
    for place in uncancelled.tolist():
        key = _combine_mask_key(s, mask_keys[place], key_shares.get(place, ()))
        if key is None:
            missing.append(place)
        else:
            keys[place] = key
    s = replace(s, phase=advance(s.phase, Phase.UNMASKING))
    if missing:
        names = bitmap(missing, graph.n)
        return aggregator.sign_statement(s, Unrecoverable(s.params.survey, s.manifest_hash, names))
    # From now on the total may arrive, so an abort is charged to the budget.
    partial_sum = _sum_remaining_masks(s, manifest, mask_keys, keys)
    ready = ReadyForTotal(s.params.survey, s.manifest_hash)
    return aggregator.sign_statement(s, ready, partial_sum=partial_sum, has_answer_data=True)


def _combine_mask_key(s: Aggregator, public: bytes, shares: Sequence[KeyShare]) -> KeyPair | None:
    """The mask key with this public half; any t shares of an honest dealer give it."""
    try:
        key = s.crypto.keypair_from(combine_key(shares[: s.params.t], s.params.t))
    except ShareError:
        # Too few shares, shares of two dealings, or shares on no common polynomial.
        return None
    # check: recovered-key - dishonest users hand in shares of another key
    return key if key.public == public else None


def _sum_remaining_masks(
    s: Aggregator,
    manifest: MaskedManifest,
    mask_keys: Mapping[int, bytes],
    dropped_keys: Mapping[int, KeyPair],
) -> Residues:
    """What the total will carry beside the answers.

    These are the accepted members' own masks, and the pairwise masks that the dropped members did
    not cancel.
    """
    context = _context(s, manifest)
    graph = _graph(s)
    accepted = frozenset(unmasking.accepted_places(s))

    def expand_dropped() -> Iterator[Residues]:
        for place, key in dropped_keys.items():
            neighbours = [j for j in graph.neighbours_of(place) if j in accepted]
            secrets = mask_secrets(s.crypto, key, {j: mask_keys[j] for j in neighbours})
            yield masks_of(s.crypto, context, place, secrets)

    # Seeds are decrypted again instead of stored: the manifest is in the state anyway.
    senders = members_of(manifest.senders, graph.n) or ()
    seeds = unmasking.decrypt_seeds(s, context, senders, manifest.encrypted_shares)
    accepted_seeds = {place: seed for place, seed in seeds.items() if place in accepted}
    self_masks = unmasking.sum_self_masks(s, context, accepted_seeds)
    pairwise = sum_vectors(expand_dropped(), s.params.q, s.params.N)
    return subtract(self_masks, pairwise, s.params.q)
