"""Dishonest servers in `masked` and `explicit`: what one may sign to deceive the other.

A dishonest aggregator wants a sum over few people, two sums, or the mask keys of members whose
vectors are in a sum. A dishonest coordinator wants two results, or a result over few people.
"""

from dataclasses import replace
from typing import Any

from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.peers.peer_set import PeerSet
from faircount.protocol.topologies.explicit.messages import ExplicitManifest
from faircount.protocol.topologies.masked.messages import (
    MaskedManifest,
    ReadyForTotal,
    UnmaskBatch,
    Unrecoverable,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import Signed
from faircount.sharing.packing import packed_size
from simulation.dishonest import choose, forge_sync_state, sign_for_aggregator
from simulation.monitor import hash_of
from simulation.parties import Simulation

PeersManifest = ExplicitManifest | MaskedManifest


def forge_for_aggregator(
    sim: Simulation, manifest: PeersManifest, who: int, how: int
) -> Signed | None:
    """A false set, a false statement about mask keys, or another manifest.

    `who` has members in its bits.
    """
    if how % 4 == 3:
        return _forge_manifest(sim, manifest, who, how)
    n = sim.s1.n
    members = bitmap(choose(range(n), who), n)
    statements = (
        accepted_members(sim, manifest, who, how),
        ReadyForTotal(manifest.survey, sim.s1.manifest_hash),
        Unrecoverable(manifest.survey, sim.s1.manifest_hash, members),
    )
    return sign_for_aggregator(sim, statements[how % 4], how)


def forge_for_coordinator(sim: Simulation, manifest: PeersManifest, who: int, how: int) -> Message:
    """A smaller manifest of a later attempt, a total over another set, or no unmask shares."""
    empty = UnmaskBatch(manifest.survey, sim.s1.manifest_hash, bitmap((), sim.s1.n), (), ())
    return (_make_smaller(sim, manifest, who), zero_total(sim), empty)[how % 3]


def zero_total(sim: Simulation) -> AggregateTotal:
    """Zeros as the total over a set that is not the accepted one."""
    params = sim.setup.params
    messages = [statement.message for statement in sim.s2.statements]
    sets = [hash_of(message) for message in messages if isinstance(message, AcceptedMembers)]
    # An earlier set if there is one, else a hash of nothing.
    other = [bytes(32), *sets[:-1]][-1]
    return AggregateTotal(params.survey, other, bytes(packed_size(params.q, params.N)))


def _senders(manifest: PeersManifest) -> bytes:
    """The members that sent a sum, as a bitmap."""
    return manifest.senders if isinstance(manifest, MaskedManifest) else manifest.members


def accepted_members(
    sim: Simulation, manifest: PeersManifest, who: int, how: int
) -> AcceptedMembers:
    """The members in the bits, or all but one, as if the aggregator had accepted them.

    With a high bit, under the root of another set.
    """
    s1 = sim.s1
    senders = members_of(_senders(manifest), s1.n) or ()
    if how >> 8 & 1:
        places = choose(range(s1.n), who)
    else:
        places = tuple(i for i in senders if i != who % s1.n)
    named = [s1.roster[i] for i in places] if who < 32 else []
    stated = AcceptedMembers(
        manifest.survey,
        s1.manifest_hash,
        manifest.set_digest,
        bitmap(places, s1.n),
        merkle_root(entry_leaves((entry.user, entry.public_key) for entry in named)),
    )
    sim.monitor.sets[hash_of(stated)] = stated
    return stated


def _make_smaller(sim: Simulation, manifest: PeersManifest, who: int) -> PeersManifest:
    """A manifest of the next attempt, over those of this one that are in the bits."""
    n = sim.s1.n
    senders = members_of(_senders(manifest), n) or ()
    seeds = dict(zip(senders, manifest.encrypted_shares, strict=True))
    members = tuple(j for j in senders if who >> j & 1)
    encrypted_shares = tuple(seeds[j] for j in members)
    wanted = PeerSet(manifest.digest, manifest.attempt + 1, n, members)
    changed: dict[str, Any] = {
        "attempt": wanted.attempt,
        "members": wanted.bits,
        "set_digest": wanted.set_digest,
        "encrypted_shares": encrypted_shares,
    }
    if isinstance(manifest, ExplicitManifest):
        return replace(manifest, **changed, removed=())
    inside = members_of(manifest.members, n) or ()
    keys = dict(zip(inside, manifest.mask_keys, strict=True))
    mask_keys = tuple(keys[j] for j in members)
    return replace(manifest, **changed, senders=wanted.bits, mask_keys=mask_keys)


def _forge_manifest(sim: Simulation, manifest: PeersManifest, who: int, how: int) -> Signed | None:
    """A smaller manifest, and a set for it."""
    other = _make_smaller(sim, manifest, who)
    stated = accepted_members(sim, manifest, who & 31, how)
    stated = replace(stated, manifest_hash=hash_of(other), set_digest=other.set_digest)
    return forge_sync_state(sim, other, stated, how)
