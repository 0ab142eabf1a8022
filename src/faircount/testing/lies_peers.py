"""Dishonest servers where users mask for each other: what either may sign against the other in `masked` and `explicit`.

A lying S2 wants a sum over few people, two sums, or keys of users whose vectors are in a sum; a lying S1 wants two
results, or a result over few people.
"""

from dataclasses import replace
from typing import Any

from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.masked.messages import HelpBatch, MaskedClaim, Ready, Unrecoverable
from faircount.protocol.topologies.peers.messages import PeersIncluded, Total
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Signed
from faircount.sharing.packing import packed_size
from faircount.testing.lies import said_by_s2, some, what_stands
from faircount.testing.watch import hash_of
from faircount.testing.world import World

Claim = PeersClaim | MaskedClaim


def lies_of_s2(world: World, claim: Claim, who: int, how: int) -> Signed | None:
    """A set that is not the true one, a false word on keys, or another claim; `who` has the users in its bits."""
    claim_hash, n = world.s1.claim_hash, world.s1.n
    words = (
        named(world, claim, who, how),
        Ready(claim.survey, claim_hash),
        Unrecoverable(claim.survey, claim_hash, bitmap(some(range(n), who), n)),
    )
    if how % 4 == 3:
        return _another_claim(world, claim, who, how)
    return said_by_s2(world, words[how % 4], how)


def lies_of_s1(world: World, claim: Claim, who: int, how: int) -> Message:
    """A claim of a later attempt over other users, a sum over a set that does not stand, or help that is none."""
    garbage = HelpBatch(claim.survey, world.s1.claim_hash, bitmap((), world.s1.n), (), ())
    return (_fewer(world, claim, who), nothing(world), garbage)[how % 3]


def nothing(world: World) -> Total:
    """A sum of zeros over a set that does not stand."""
    params = world.setup.params
    sets = [hash_of(each.says) for each in world.s2.statements if isinstance(each.says, PeersIncluded)]
    return Total(params.survey, [bytes(32), *sets[:-1]][-1], bytes(packed_size(params.q, params.N)))


def named(world: World, claim: Claim, who: int, how: int) -> PeersIncluded:
    """The set of those in the bits, or of all but one, as S2 would name it; with a high bit, under another root."""
    s1, sent = world.s1, members_of(claim.included if isinstance(claim, MaskedClaim) else claim.members, world.s1.n)
    places = some(range(s1.n), who) if how >> 8 & 1 else [i for i in sent or () if i != who % s1.n]
    lines = ((s1.roster[i].user, s1.roster[i].public_key) for i in (places if who < 32 else ()))
    stated = PeersIncluded(
        claim.survey, s1.claim_hash, claim.set_digest, bitmap(places, s1.n), merkle_root(roster_leaves(lines))
    )
    world.watch.sets[hash_of(stated)] = stated
    return stated


def _fewer(world: World, claim: Claim, who: int) -> Claim:
    """A claim of the next attempt, over those of this one who are in the bits."""
    n, sent = world.s1.n, claim.included if isinstance(claim, MaskedClaim) else claim.members
    places = members_of(sent, n) or ()
    left = [(j, blob) for j, blob in zip(places, claim.blobs, strict=True) if who >> j & 1]
    wanted = PeerSet(claim.digest, claim.attempt + 1, n, tuple(j for j, _ in left))
    changed: dict[str, Any] = {"attempt": wanted.attempt, "members": wanted.bits, "set_digest": wanted.set_digest}
    blobs = tuple(blob for _, blob in left)
    if isinstance(claim, PeersClaim):
        return replace(claim, **changed, removed=(), blobs=blobs)
    keys = dict(zip(members_of(claim.members, n) or (), claim.mask_keys, strict=True))
    mask_keys = tuple(keys[j] for j in wanted.members)
    return replace(claim, **changed, included=wanted.bits, mask_keys=mask_keys, blobs=blobs)


def _another_claim(world: World, claim: Claim, who: int, how: int) -> Signed | None:
    """A smaller claim, and a set of it."""
    other = _fewer(world, claim, who)
    stated = replace(named(world, claim, who & 31, how), claim_hash=hash_of(other), set_digest=other.set_digest)
    return what_stands(world, other, stated, how)
