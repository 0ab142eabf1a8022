"""Dishonest servers in TSS and TSS': what one may sign to deceive the other in `two-stage`.

A dishonest aggregator wants sums over few reporters, two sums, or an election of its own. A
dishonest coordinator wants two results, a result over few reporters, or reporters of its own
making. What a dishonest coordinator may show to clients is in `parties.tamper`.
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
from simulation.dishonest import (
    choose,
    choose_left_out,
    forge_sync_state,
    sign_for_aggregator,
)
from simulation.dishonest_peers import zero_total
from simulation.monitor import hash_of
from simulation.parties import Simulation


def forge_for_aggregator(sim: Simulation, who: int, how: int) -> Signed | None:
    """A false set of helpers, another manifest, another election, or good keys rejected."""
    manifest = sim.s1.manifest
    if isinstance(manifest, TwoStageManifest):
        if how % 3 == 2:
            return _forge_manifest(sim, manifest, who, how)
        return sign_for_aggregator(sim, _accepted_helpers(sim, manifest, who), how)
    held = sim.s2.last(Election)
    if held is not None and isinstance(held.message, Election):
        election = held.message
        if how % 2:
            forged = replace(election, lists=election.lists[::-1])
        else:
            forged = replace(election, keys=election.keys[1:])
        return sign_for_aggregator(sim, forged, how)
    announcement = two_stage_state(sim.s1.state).announcement
    if announcement is None:
        return None
    positions = choose_left_out(who, how, len(announcement.entries))
    rejected = RejectedEntries(announcement.survey, hash_of(announcement), positions)
    return sign_for_aggregator(sim, rejected, how)


def forge_for_coordinator(sim: Simulation, who: int, how: int) -> Message | None:
    """A smaller manifest of a later attempt, a total over another set, or another election."""
    manifest = sim.s1.manifest
    if isinstance(manifest, TwoStageManifest):
        return zero_total(sim) if how % 2 else _make_smaller(sim.s2.state, manifest, who)
    announcement = two_stage_state(sim.s1.state).announcement
    if announcement is None:
        return None
    if how % 2:
        return Announcement(announcement.survey, bytes(32), choose(announcement.entries, who))
    params = sim.setup.params
    return ElectionRequest(params.survey, sim.s1.digest, (who,) * params.N, (bytes(32),) * params.N)


def _accepted_helpers(sim: Simulation, manifest: TwoStageManifest, who: int) -> AcceptedMembers:
    """The helpers in the bits, as if their seeds had been decrypted, over the true reporters.

    With a high bit, under another root.
    """
    true = sim.s2.last(AcceptedMembers)
    root = bytes(32)
    if true is not None and isinstance(true.message, AcceptedMembers) and who < 32:
        root = true.message.root
    members = bitmap(choose(range(sim.s1.n), who), sim.s1.n)
    stated = AcceptedMembers(
        manifest.survey, sim.s1.manifest_hash, manifest.set_digest, members, root
    )
    sim.monitor.sets[hash_of(stated)] = stated
    return stated


def _make_smaller(s2: Aggregator, manifest: TwoStageManifest, who: int) -> TwoStageManifest:
    """The manifest of a later attempt, over those of its reporters that are in the bits."""
    ballot = ballot_of(s2)
    if ballot is None:
        return manifest
    size = len(ballot.eligible)
    left = [i for i in members_of(manifest.members, size) or () if who >> i & 1]
    attempt = manifest.attempt + 1
    smaller = replace(manifest, attempt=attempt, formed=attempt, members=bitmap(left, size))
    return replace(smaller, set_digest=SumScope.of(smaller).digest(ballot))


def _forge_manifest(
    sim: Simulation, manifest: TwoStageManifest, who: int, how: int
) -> Signed | None:
    """A smaller manifest, and a set of helpers for it."""
    other = _make_smaller(sim.s2.state, manifest, who)
    stated = _accepted_helpers(sim, manifest, who & 31)
    stated = replace(stated, manifest_hash=hash_of(other), set_digest=other.set_digest)
    return forge_sync_state(sim, other, stated, how)
