"""Dishonest servers in TSS and TSS': what either may sign against the other in `two-stage`.

A lying aggregator wants sums over few reporters, two sums, or an election of its own; a lying coordinator wants two results, a result
over few reporters, or reporters of its own making. What the coordinator may show to users is in `world.tampered`.
"""

from dataclasses import replace

from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.topologies.two_stage.aggregator import ballot_of
from faircount.protocol.topologies.two_stage.messages import (
    Announcement,
    Election,
    ElectionRequest,
    TwoStageManifest,
)
from faircount.protocol.topologies.two_stage.relay import two_stage_state
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.roster_messages import RejectedEntries
from simulation.lies import left_out, said_by_s2, some, what_stands
from simulation.lies_peers import nothing
from simulation.watch import hash_of
from simulation.world import World


def lies_of_s2(world: World, who: int, how: int) -> Signed | None:
    """A false set of helpers, another claim, another election, or good keys called bad."""
    manifest, held = world.s1.manifest, world.s2.last(Election)
    first = two_stage_state(world.s1.state).announcement
    if isinstance(manifest, TwoStageManifest):
        another = how % 3 == 2
        return (
            _another_claim(world, manifest, who, how)
            if another
            else said_by_s2(world, _set(world, manifest, who), how)
        )
    if held is not None and isinstance(held.message, Election):
        said = held.message
        other = (
            replace(said, lists=said.lists[::-1]) if how % 2 else replace(said, keys=said.keys[1:])
        )
        return said_by_s2(world, other, how)
    if first is None:
        return None
    return said_by_s2(
        world,
        RejectedEntries(first.survey, hash_of(first), left_out(who, how, len(first.entries))),
        how,
    )


def lies_of_s1(world: World, who: int, how: int) -> Message | None:
    """A claim of a later attempt over fewer reporters, a sum over a set that does not stand, or another election."""
    manifest, params, first = (
        world.s1.manifest,
        world.setup.params,
        two_stage_state(world.s1.state).announcement,
    )
    if isinstance(manifest, TwoStageManifest):
        return nothing(world) if how % 2 else _fewer(world.s2.state, manifest, who)
    if first is None:
        return None
    if how % 2:
        return Announcement(first.survey, bytes(32), some(first.entries, who))
    return ElectionRequest(
        params.survey, world.s1.digest, (who,) * params.N, (bytes(32),) * params.N
    )


def _set(world: World, manifest: TwoStageManifest, who: int) -> AcceptedMembers:
    """Helpers whose seeds are said to open, over the true reporters; with a high bit, under another root."""
    true = world.s2.last(AcceptedMembers)
    root = (
        true.message.root
        if true is not None and isinstance(true.message, AcceptedMembers) and who < 32
        else bytes(32)
    )
    named = bitmap(some(range(world.s1.n), who), world.s1.n)
    stated = AcceptedMembers(
        manifest.survey, world.s1.manifest_hash, manifest.set_digest, named, root
    )
    world.watch.sets[hash_of(stated)] = stated
    return stated


def _fewer(s2: Aggregator, manifest: TwoStageManifest, who: int) -> TwoStageManifest:
    """The claim of a later attempt, over those of its reporters who are in the bits."""
    ballot = ballot_of(s2)
    if ballot is None:
        return manifest
    size = len(ballot.eligible)
    left = bitmap((i for i in members_of(manifest.members, size) or () if who >> i & 1), size)
    smaller = replace(
        manifest, attempt=manifest.attempt + 1, formed=manifest.attempt + 1, members=left
    )
    return replace(smaller, set_digest=SumScope.of(smaller).digest(ballot))


def _another_claim(world: World, manifest: TwoStageManifest, who: int, how: int) -> Signed | None:
    """A smaller claim, and a set of helpers for it."""
    other = _fewer(world.s2.state, manifest, who)
    stated = replace(
        _set(world, manifest, who & 31), manifest_hash=hash_of(other), set_digest=other.set_digest
    )
    return what_stands(world, other, stated, how)
