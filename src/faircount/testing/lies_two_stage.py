"""Dishonest servers in TSS and TSS': what either may sign against the other in `two-stage`.

A lying S2 wants sums over few reporters, two sums, or an election of its own; a lying S1 wants two results, a result
over few reporters, or reporters of its own making. What S1 may show to users is in `world.tampered`.
"""

from dataclasses import replace

from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.topologies.peers.messages import PeersIncluded
from faircount.protocol.topologies.two_stage.aggregator import ballot_of
from faircount.protocol.topologies.two_stage.calls import Called
from faircount.protocol.topologies.two_stage.messages import Announcement, Election, ElectionRequest, TwoStageClaim
from faircount.protocol.topologies.two_stage.relay import rounds
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.testing.lies import left_out, said_by_s2, some, what_stands
from faircount.testing.lies_peers import nothing
from faircount.testing.watch import hash_of
from faircount.testing.world import World


def lies_of_s2(world: World, who: int, how: int) -> Signed | None:
    """A false set of helpers, another claim, another election, or good keys called bad."""
    claim, held = world.s1.claim, world.s2.last(Election)
    first = rounds(world.s1).announcement
    if isinstance(claim, TwoStageClaim):
        another = how % 3 == 2
        return _another_claim(world, claim, who, how) if another else said_by_s2(world, _set(world, claim, who), how)
    if held is not None and isinstance(held.says, Election):
        said = held.says
        other = replace(said, lists=said.lists[::-1]) if how % 2 else replace(said, keys=said.keys[1:])
        return said_by_s2(world, other, how)
    if first is None:
        return None
    return said_by_s2(world, BadEntries(first.survey, hash_of(first), left_out(who, how, len(first.entries))), how)


def lies_of_s1(world: World, who: int, how: int) -> Message | None:
    """A claim of a later attempt over fewer reporters, a sum over a set that does not stand, or another election."""
    claim, params, first = world.s1.claim, world.setup.params, rounds(world.s1).announcement
    if isinstance(claim, TwoStageClaim):
        return nothing(world) if how % 2 else _fewer(world.s2, claim, who)
    if first is None:
        return None
    if how % 2:
        return Announcement(first.survey, bytes(32), some(first.entries, who))
    return ElectionRequest(params.survey, world.s1.digest, (who,) * params.N, (bytes(32),) * params.N)


def _set(world: World, claim: TwoStageClaim, who: int) -> PeersIncluded:
    """Helpers whose seeds are said to open, over the true reporters; with a high bit, under another root."""
    true = world.s2.last(PeersIncluded)
    root = true.says.root if true is not None and isinstance(true.says, PeersIncluded) and who < 32 else bytes(32)
    named = bitmap(some(range(world.s1.n), who), world.s1.n)
    stated = PeersIncluded(claim.survey, world.s1.claim_hash, claim.set_digest, named, root)
    world.watch.sets[hash_of(stated)] = stated
    return stated


def _fewer(s2: Aggregator, claim: TwoStageClaim, who: int) -> TwoStageClaim:
    """The claim of a later attempt, over those of its reporters who are in the bits."""
    ballot = ballot_of(s2)
    if ballot is None:
        return claim
    size = len(ballot.eligible)
    left = bitmap((i for i in members_of(claim.members, size) or () if who >> i & 1), size)
    smaller = replace(claim, attempt=claim.attempt + 1, formed=claim.attempt + 1, members=left)
    return replace(smaller, set_digest=Called.by(smaller).digest(ballot))


def _another_claim(world: World, claim: TwoStageClaim, who: int, how: int) -> Signed | None:
    """A smaller claim, and a set of helpers for it."""
    other = _fewer(world.s2, claim, who)
    stated = replace(_set(world, claim, who & 31), claim_hash=hash_of(other), set_digest=other.set_digest)
    return what_stands(world, other, stated, how)
