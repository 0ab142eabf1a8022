"""Dishonest servers in the fault simulation: one sum, one result; planted holes are found."""

import random

import pytest

from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.roles.anchor import MemoryAnchor
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import coordinator, manifests, messages
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.wire.digests import members_of
from simulation.faults import Kind, Op, play
from simulation.world import Trouble

STORY = (Kind.ROUND, Kind.DEADLINE, Kind.CONVERSE) * 5

RECEIPTED = [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CARRY), Op(Kind.CARRY)]
"""Everybody has answered, and the coordinator has its receipt."""

LIARS = [
    Kind.LIE_S1,
    Kind.LIE_S2,
    Kind.RESTORE_S2,
    Kind.RESTORE_S1,
    Kind.CARRY,
    Kind.DROP,
    Kind.REPLAY,
]


def schedule(seed: int) -> list[Op]:
    """The story of a survey with lies and lost memories strewn in."""
    chance, ops = random.Random(seed), list[Op]()  # noqa: S311 - a schedule is no secret
    for kind in (Kind.ROUND, Kind.DEADLINE, Kind.CONVERSE) * 2:
        for _ in range(chance.randrange(3)):
            lie = chance.choice(LIARS)
            back = lie in (Kind.RESTORE_S1, Kind.RESTORE_S2)
            ops.append(
                Op(
                    lie,
                    -chance.randrange(1, 8) if back else chance.randrange(64),
                    chance.randrange(4096),
                )
            )
        ops.append(Op(Kind.CARRY) if kind is Kind.CONVERSE and chance.random() < 0.4 else Op(kind))
    return ops


@pytest.mark.parametrize(
    ("topology", "runs"), [(SERVERS, 150), (MASKED, 60), (EXPLICIT, 60), (TWO_STAGE, 60)], ids=str
)
def test_whatever_a_server_signs_there_is_one_sum_over_enough_people_and_one_result(
    topology, runs
) -> None:
    """Nobody lies in the first phases of a schedule, in some not before the claim: lies reach every phase."""
    found = []
    for seed in range(runs):
        honest = STORY[: max(0, 3 * (seed % (len(topology.phases) + 1)) - 1)]
        ops = [*map(Op, honest), *schedule(seed)]
        found.append(play(topology, ops, 5, seed % 2))
        assert found[-1].problems == (), ops
    assert {each.ending for each in found} == {"published", "aborted"}
    told = {state for each in found for state in each.lies}
    assert told >= {Phase.COUNTING, *topology.phases} - {Phase.UNMASKING}
    assert sum(Phase.COUNTING in each.lies for each in found) >= runs / 10
    assert sum(each.lies != () and each.ending == "published" for each in found) >= runs / 5


HOLES = {
    "The coordinator adds up whatever the aggregator names": (
        [*RECEIPTED, Op(Kind.LIE_S2, 1, 256)],
        (coordinator, "_set_problem", lambda s, rows, stated: None),
    ),
    "an aggregator that was taken back goes on": (
        [*RECEIPTED, Op(Kind.CONVERSE), Op(Kind.RESTORE_S2, 0, 1), Op(Kind.RESTORE_S1, 0, 1), Op(Kind.ROUND, 0, 1),
         Op(Kind.DEADLINE), Op(Kind.CONVERSE)],
        (MemoryAnchor, "advance", lambda anchor, name, before, after: True),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOLES)
def test_a_planted_hole_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ops, hole = HOLES[name]
    assert play(SERVERS, ops, 5).problems == ()
    monkeypatch.setattr(*hole)
    assert play(SERVERS, ops, 5).problems != ()


@pytest.mark.parametrize("lines", [2, 4096])
def test_a_claim_that_names_one_person_many_times_is_found(
    lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The aggregator says that a claim of its own stands before the coordinator has heard a receipt: a sum over it would be one person's."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", lines)
    ops = [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.LIE_S2, 2, 1)]
    assert play(SERVERS, ops, 5, 1).problems == ()
    monkeypatch.setattr(manifests, "is_valid_part", lambda part: True)
    monkeypatch.setattr(manifests, "is_successor", lambda before, part: True)
    assert (
        "The coordinator added up the shares of fewer than the minimum"
        in play(SERVERS, ops, 5, 1).problems
    )


def test_s1_that_singles_out_a_reporter_is_found_where_helpers_do_not_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every helper is shown the shares of one reporter of each item; honest ones refuse, and add up when asked well."""
    told = Op(Kind.VISIT, 0, list(Trouble).index(Trouble.TAMPERED) + len(Trouble) * 7)
    round_, enrolled = Op(Kind.ROUND), [Op(Kind.ROUND), Op(Kind.DEADLINE), Op(Kind.CONVERSE)]
    lies = [Op(Kind.VISIT, i, told.how) for i in range(5)]
    ops = [
        *enrolled,
        *enrolled,
        round_,
        Op(Kind.DEADLINE),
        *lies,
        round_,
        Op(Kind.DEADLINE),
        Op(Kind.CONVERSE),
    ]
    assert play(TWO_STAGE, ops, 5, 1).problems == ()
    monkeypatch.setattr(two_stage_user, "_is_complete", lambda task, ballot, present: True)
    monkeypatch.setattr(
        two_stage_user,
        "_senders",
        lambda task, *_: members_of(task.listed, 5)[: len(task.encrypted_shares)],
    )
    assert play(TWO_STAGE, ops, 5, 1).problems != ()
