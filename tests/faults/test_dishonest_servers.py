"""Dishonest servers in the fault simulation: one sum, one result; planted holes are found."""

import random
from dataclasses import replace
from itertools import count

import pytest

from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.roles.anchor import MemoryAnchor
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import aggregator, coordinator, manifests, messages
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.wire.digests import members_of
from simulation.faults import Kind, Op, Outcome, run_schedule
from simulation.parties import Trouble

COURSE = (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 5
"""What happens in a survey in which nothing fails."""

RESERVED = [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CARRY), Op(Kind.CARRY)]
"""Everybody has responded, and the coordinator has its reservation."""

INTERFERENCE = [
    Kind.DISHONEST_COORDINATOR,
    Kind.DISHONEST_AGGREGATOR,
    Kind.RESTORE_S2,
    Kind.RESTORE_S1,
    Kind.CARRY,
    Kind.DROP,
    Kind.REPLAY,
]


def draw_schedule(seed: int) -> list[Op]:
    """The course of a survey with forged messages and rolled-back servers in between."""
    rng = random.Random(seed)  # noqa: S311 - a schedule is no secret
    ops = list[Op]()
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 2:
        for _ in range(rng.randrange(3)):
            fault = rng.choice(INTERFERENCE)
            if fault in (Kind.RESTORE_S1, Kind.RESTORE_S2):
                who = -rng.randrange(1, 8)
            else:
                who = rng.randrange(64)
            ops.append(Op(fault, who, rng.randrange(4096)))
        if kind is Kind.EXCHANGE and rng.random() < 0.4:
            ops.append(Op(Kind.CARRY))
        else:
            ops.append(Op(kind))
    return ops


@pytest.mark.parametrize(
    ("topology", "runs"), [(SERVERS, 150), (MASKED, 60), (EXPLICIT, 60), (TWO_STAGE, 60)], ids=str
)
def test_whatever_a_server_signs_there_is_one_sum_over_enough_people_and_one_result(
    topology, runs
) -> None:
    """Servers are honest in the first phases, in some schedules up to the manifest.

    So forged messages reach every phase.
    """
    outcomes = []
    for seed in range(runs):
        honest_steps = max(0, 3 * (seed % (len(topology.phases) + 1)) - 1)
        ops = [*map(Op, COURSE[:honest_steps]), *draw_schedule(seed)]
        outcomes.append(run_schedule(topology, ops, 5, seed % 2))
        assert outcomes[-1].problems == (), ops
    assert {outcome.ending for outcome in outcomes} == {"published", "aborted"}
    reached = set[Phase]()
    for outcome in outcomes:
        reached.update(outcome.dishonest_phases)
    assert reached >= {Phase.COUNTING, *topology.phases} - {Phase.UNMASKING}
    counting = [o for o in outcomes if Phase.COUNTING in o.dishonest_phases]
    assert len(counting) >= runs / 10
    published = [o for o in outcomes if o.dishonest_phases and o.ending == "published"]
    assert len(published) >= runs / 5


HOLES = {
    "The coordinator adds up whatever the aggregator names": (
        [*RESERVED, Op(Kind.DISHONEST_AGGREGATOR, 1, 256)],
        (coordinator, "_set_problem", lambda s, rows, stated: None),
        1,
    ),
    # Where reports are proven, a set waits for what the aggregator shows about every part. Here it
    # shows that it could decrypt one report, and signs that.
    "The coordinator adds up whatever the proofs confirm": (
        [*RESERVED, Op(Kind.CARRY), Op(Kind.DISHONEST_AGGREGATOR, 1, 256 + 2048 + 2)],
        (coordinator, "_set_problem", lambda s, rows, stated: None),
        0,
    ),
    "an aggregator that was rolled back goes on": (
        [
            *RESERVED,
            Op(Kind.EXCHANGE),
            Op(Kind.RESTORE_S2, 0, 1),
            Op(Kind.RESTORE_S1, 0, 1),
            Op(Kind.ROUND, 0, 1),
            Op(Kind.DEADLINE),
            Op(Kind.EXCHANGE),
        ],
        (MemoryAnchor, "advance", lambda anchor, name, before, after: True),
        0,
    ),
}
"""A schedule, a check without which it must find something, and the seed."""


@pytest.mark.parametrize("name", HOLES)
def test_a_planted_hole_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ops, hole, seed = HOLES[name]
    assert run_schedule(SERVERS, ops, 5, seed).problems == ()
    monkeypatch.setattr(*hole)
    assert run_schedule(SERVERS, ops, 5, seed).problems != ()


def test_an_aggregator_that_contradicts_its_verified_parts_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It shows other verifier shares each time, or names others in its set."""
    ops = [*RESERVED, Op(Kind.CARRY), Op(Kind.RETRY), Op(Kind.EXCHANGE)]
    assert run_schedule(SERVERS, ops, 5) == Outcome("published", ())
    verified_part = aggregator._verified_part
    numbers = count()

    def show_another(s, rows, number):
        true = verified_part(s, rows, number)
        return replace(true, verifier_shares=bytes((next(numbers),)))

    with monkeypatch.context() as patch:
        patch.setattr(aggregator, "_verified_part", show_another)
        problems = run_schedule(SERVERS, ops, 5).problems
    assert "The aggregator said two things about the reports of one part" in problems
    monkeypatch.setattr(aggregator, "hash_of_verified", lambda parts: bytes(32))
    outcome = run_schedule(SERVERS, ops, 5)
    problem = "The aggregator fixed a set over other parts than it had verified"
    assert (outcome.ending, outcome.problems) == ("aborted", (problem,))


@pytest.mark.parametrize("entries", [2, 4096])
def test_a_manifest_that_names_one_person_many_times_is_found(
    entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum over such a manifest would be one person's answer.

    The aggregator claims to have recorded it before the coordinator has received a reservation.
    """
    monkeypatch.setattr(messages, "REPORTS_PER_PART", entries)
    ops = [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.DISHONEST_AGGREGATOR, 2, 1)]
    assert run_schedule(SERVERS, ops, 5, 1).problems == ()
    monkeypatch.setattr(manifests, "is_valid_part", lambda part: True)
    monkeypatch.setattr(manifests, "is_successor", lambda before, part: True)
    problems = run_schedule(SERVERS, ops, 5, 1).problems
    assert "The coordinator added up the shares of fewer than the minimum" in problems


def test_s1_that_singles_out_a_reporter_is_found_where_helpers_do_not_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every helper is shown the shares of one reporter of each item.

    Honest helpers refuse that, and add up when they get an honest request.
    """
    how = list(Trouble).index(Trouble.TAMPERED) + len(Trouble) * 7
    tampered = [Op(Kind.VISIT, i, how) for i in range(5)]
    phase = [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.EXCHANGE)]
    ops = [*phase, *phase, Op(Kind.ROUND), Op(Kind.DEADLINE), *tampered, *phase]
    assert run_schedule(TWO_STAGE, ops, 5, 1).problems == ()
    monkeypatch.setattr(two_stage_user, "_is_complete", lambda task, ballot, present: True)
    monkeypatch.setattr(
        two_stage_user,
        "_senders",
        lambda task, *_: members_of(task.listed, 5)[: len(task.encrypted_shares)],
    )
    assert run_schedule(TWO_STAGE, ops, 5, 1).problems != ()
