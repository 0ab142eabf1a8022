"""Dishonest servers where users mask for each other: what either may sign against the other in `masked` and `explicit`.

A lying aggregator wants a sum over few people, two sums, or keys of users whose vectors are in a sum; a lying coordinator wants two
results, or a result over few people.
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
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Signed
from faircount.sharing.packing import packed_size
from simulation.lies import said_by_s2, some, what_stands
from simulation.watch import hash_of
from simulation.world import World

Claim = ExplicitManifest | MaskedManifest


def lies_of_s2(world: World, manifest: Claim, who: int, how: int) -> Signed | None:
    """A set that is not the true one, a false word on keys, or another claim; `who` has the users in its bits."""
    manifest_hash, n = world.s1.manifest_hash, world.s1.n
    words = (
        named(world, manifest, who, how),
        ReadyForTotal(manifest.survey, manifest_hash),
        Unrecoverable(manifest.survey, manifest_hash, bitmap(some(range(n), who), n)),
    )
    if how % 4 == 3:
        return _another_claim(world, manifest, who, how)
    return said_by_s2(world, words[how % 4], how)


def lies_of_s1(world: World, manifest: Claim, who: int, how: int) -> Message:
    """A claim of a later attempt over other users, a sum over a set that does not stand, or help that is none."""
    garbage = UnmaskBatch(manifest.survey, world.s1.manifest_hash, bitmap((), world.s1.n), (), ())
    return (_fewer(world, manifest, who), nothing(world), garbage)[how % 3]


def nothing(world: World) -> AggregateTotal:
    """A sum of zeros over a set that does not stand."""
    params = world.setup.params
    sets = [
        hash_of(each.message)
        for each in world.s2.statements
        if isinstance(each.message, AcceptedMembers)
    ]
    return AggregateTotal(
        params.survey, [bytes(32), *sets[:-1]][-1], bytes(packed_size(params.q, params.N))
    )


def named(world: World, manifest: Claim, who: int, how: int) -> AcceptedMembers:
    """The set of those in the bits, or of all but one, as the aggregator would name it; with a high bit, under another root."""
    s1, sent = (
        world.s1,
        members_of(
            manifest.included if isinstance(manifest, MaskedManifest) else manifest.members,
            world.s1.n,
        ),
    )
    places = some(range(s1.n), who) if how >> 8 & 1 else [i for i in sent or () if i != who % s1.n]
    lines = ((s1.roster[i].user, s1.roster[i].public_key) for i in (places if who < 32 else ()))
    stated = AcceptedMembers(
        manifest.survey,
        s1.manifest_hash,
        manifest.set_digest,
        bitmap(places, s1.n),
        merkle_root(roster_leaves(lines)),
    )
    world.watch.sets[hash_of(stated)] = stated
    return stated


def _fewer(world: World, manifest: Claim, who: int) -> Claim:
    """A claim of the next attempt, over those of this one who are in the bits."""
    n, sent = (
        world.s1.n,
        manifest.included if isinstance(manifest, MaskedManifest) else manifest.members,
    )
    places = members_of(sent, n) or ()
    left = [
        (j, encrypted_share)
        for j, encrypted_share in zip(places, manifest.encrypted_shares, strict=True)
        if who >> j & 1
    ]
    wanted = PeerSet(manifest.digest, manifest.attempt + 1, n, tuple(j for j, _ in left))
    changed: dict[str, Any] = {
        "attempt": wanted.attempt,
        "members": wanted.bits,
        "set_digest": wanted.set_digest,
    }
    encrypted_shares = tuple(encrypted_share for _, encrypted_share in left)
    if isinstance(manifest, ExplicitManifest):
        return replace(manifest, **changed, removed=(), encrypted_shares=encrypted_shares)
    keys = dict(zip(members_of(manifest.members, n) or (), manifest.mask_keys, strict=True))
    mask_keys = tuple(keys[j] for j in wanted.members)
    return replace(
        manifest,
        **changed,
        included=wanted.bits,
        mask_keys=mask_keys,
        encrypted_shares=encrypted_shares,
    )


def _another_claim(world: World, manifest: Claim, who: int, how: int) -> Signed | None:
    """A smaller claim, and a set of it."""
    other = _fewer(world, manifest, who)
    stated = replace(
        named(world, manifest, who & 31, how),
        manifest_hash=hash_of(other),
        set_digest=other.set_digest,
    )
    return what_stands(world, other, stated, how)
