"""The coordinator in every topology: what its storage may do to it."""

from dataclasses import replace
from functools import partial

import pytest
from stored_rows import spoil

from faircount.protocol import (
    EXPLICIT,
    aggregator_step,
    coordinator_step,
    end_phase,
    known_topologies,
)
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import ShareBundle
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.topologies.two_stage.messages import SlotComplaint, SlotSumRequest
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import addressee
from simulation.parties import Simulation


def test_spoiled_numbers_in_the_store_end_no_role(masked, two_stage, stage) -> None:
    play = masked("recovering")
    key = (MaskedSum.tag, play.s1.topology_state.set_digest, 0)
    spoil(play.s1, "uploads", key, replace(play.s1.view.uploads[key], attempt=4_000_000_000))
    play.settle(play.recover())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED  # its vector cannot be added up any more
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    key = (ShareBundle.tag, 0, 1)
    spoil(play.s1, "uploads", key, replace(play.s1.view.uploads[key], index=258))
    play.settle(play.sum_all())
    assert play.counts() == [1] * 6
    play = two_stage("shared", k=2)
    i = play.waiting_for(SlotSumRequest)[0]
    complaint = SlotComplaint(
        play.params.survey, i, play.people[i].member.credential, play.s1.attempt, (0,)
    )
    play.send_to_s1(complaint)
    key = (SlotComplaint.tag, play.s1.attempt, i)
    spoil(play.s1, "uploads", key, replace(complaint, numbers=(99,)))
    play.finish()
    assert play.s1.phase is Phase.PUBLISHED


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_step_that_is_not_written_leaves_no_trace(topology) -> None:
    """A server that crashes before it writes has done nothing, so roles may not write themselves."""
    world = Simulation(topology, 5, 1)
    for _ in range(8):
        for device in world.devices:
            asked = None if device.state is None else world.client.next_message(device)
            if asked is not None:
                untouched(world.s1, partial(coordinator_step, world.s1.state, asked))
        for at in range(5):
            world.visit(at)
        untouched(world.s1, partial(end_phase, world.s1.state))
        world.s1, out = world.s1.make_step(end_phase)
        world.post(out)
        while world.in_transit:
            message = world.in_transit.pop(0)
            if addressee(message) is Party.AGGREGATOR:
                untouched(world.s2, partial(aggregator_step, world.s2.state, message))
            else:
                untouched(world.s1, partial(coordinator_step, world.s1.state, message))
            world.deliver(message)
    assert world.s1.phase is world.s2.phase is Phase.PUBLISHED


def untouched(server, step) -> None:
    before = server.copy()
    assert step(reader=server.rows) == step(reader=server.rows)  # it draws nothing, either
    assert server == before
