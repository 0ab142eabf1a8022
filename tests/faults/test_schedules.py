"""Random fault schedules over all topologies: the right sum over the declared set, or a clean abort, and nothing else.

FAIRCOUNT_SCHEDULES sets how many are played over all topologies together, 1,000 unless told; FAIRCOUNT_SEED which ones.
"""

import os
from functools import cache
from itertools import chain

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

from faircount.protocol import EXPLICIT, SERVERS, Topology, known_topologies
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import receive as aggregator_receive
from faircount.protocol.roles.aggregator import steps as aggregator_steps
from faircount.protocol.topologies.two_servers import coordinator as servers_coordinator
from faircount.protocol.topologies.two_servers import messages
from simulation.faults import Kind, Op, Outcome, play
from simulation.world import Trouble

TOPOLOGIES = known_topologies()
SCHEDULES = int(os.environ.get("FAIRCOUNT_SCHEDULES", "1000"))
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
PARTS = 1 + SCHEDULES // 5000  # tests that share them, so that a long run shows how far it is
STORY = (Kind.ROUND, Kind.DEADLINE, Kind.CONVERSE) * 5
"""What happens when nothing fails, in every topology; faults are strewn in, and the story may break off."""

Made = tuple[int, int, bool, int, list[Op]]
"""Users, seed, whether with real cryptography, lines of a part of a claim, and a schedule."""

UNHURRIED = settings(
    max_examples=-(-SCHEDULES // (PARTS * len(TOPOLOGIES))),
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=list(HealthCheck),
)
SEARCH = settings(UNHURRIED, max_examples=4000, phases=[Phase.generate], derandomize=True)

WHO, HOW = st.integers(0, 63), st.integers(0, 4095)


def trouble(which: Trouble) -> st.SearchStrategy[list[Op]]:
    """A visit that goes wrong in this way."""
    at = list(Trouble).index(which)
    return st.builds(lambda who, how: [Op(Kind.VISIT, who, at + len(Trouble) * how)], WHO, HOW)


def recipes(away: st.SearchStrategy[int]) -> st.SearchStrategy[list[Op]]:
    """Faults that need each other: memory lost without notice, bodies that come late, users shown something else."""

    def forgotten(back: int, missing: int, later: int) -> list[Op]:
        again = [
            Op(Kind.ROUND, 0, missing),
            Op(Kind.DEADLINE),
            Op(Kind.ROUND, 0, later),
            Op(Kind.DEADLINE),
        ]
        return [Op(Kind.RESTORE_S1, -back, 1), *again, Op(Kind.CONVERSE)]

    def remembered(back: int, missing: int, old: int) -> list[Op]:
        """The same, but the coordinator asks what stands, another set forms, and something from before comes again."""
        again = [
            Op(Kind.ROUND, 0, missing),
            Op(Kind.DEADLINE),
            Op(Kind.REPLAY, -old),
            Op(Kind.ROUND),
            Op(Kind.DEADLINE),
        ]
        return [Op(Kind.RESTORE_S1, -back), Op(Kind.CONVERSE), *again, Op(Kind.CONVERSE)]

    return st.one_of(
        st.builds(forgotten, st.integers(1, 8), away, away),
        st.builds(remembered, st.integers(1, 8), away, st.integers(1, 40)),
        st.builds(lambda back: [Op(Kind.RESTORE_S2, -back), Op(Kind.DROP, -1)], st.integers(1, 8)),
        st.builds(lambda who: [Op(Kind.VISIT, who, 5), Op(Kind.DEADLINE), Op(Kind.MAIL)], WHO),
        trouble(Trouble.CORRUPTED),
        trouble(Trouble.TAMPERED),
    )


STEPS = st.lists(
    st.builds(Op, st.just(Kind.CARRY), st.integers(0, 3), st.integers(0, 63)), max_size=5
)
FEW_KINDS = st.lists(st.sampled_from(Kind), min_size=1, max_size=6)


@cache
def away(users: int) -> st.SearchStrategy[int]:
    """Who stays away from a round, as bits."""
    return st.one_of(st.just(0), st.integers(0, (1 << users) - 1))


@cache  # built once: Hypothesis would spend a quarter of a long run on building it again for each schedule
def faults(users: int) -> st.SearchStrategy[list[list[Op | tuple[int, int, int]]]]:
    """What goes wrong before a step of the story; single faults come as (which of the schedule's kinds, who, how)."""
    single = st.tuples(st.integers(0, 59), WHO, HOW).map(lambda fault: [fault])
    return st.lists(st.one_of(single, single, recipes(away(users))), max_size=3)


@st.composite
def schedules(draw: st.DrawFn) -> Made:
    """A story with faults of a few kinds strewn in: few kinds, often, find more than all kinds, seldom."""
    users = draw(st.integers(3, 7))
    kinds = draw(FEW_KINDS)
    ops: list[Op] = []
    for kind in STORY[: draw(st.integers(0, len(STORY)))]:
        for op in chain.from_iterable(draw(faults(users))):
            ops += [op if isinstance(op, Op) else Op(kinds[op[0] % len(kinds)], *op[1:])]
        if kind is Kind.CONVERSE and draw(st.booleans()):
            ops += draw(STEPS)
        else:
            ops.append(
                Op(kind, 0, draw(away(users)) if kind is Kind.ROUND else draw(st.integers(0, 1)))
            )
    return (
        users,
        draw(st.integers(0, 1)),
        draw(st.integers(0, 9)) == 9,
        draw(st.sampled_from((1, 2, 3, 4096))),
        ops,
    )


def outcome(topology: Topology, made: Made) -> Outcome:
    users, seed, real, lines, ops = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "REPORTS_PER_PART", lines)
        return play(topology, ops, users, seed, real=real)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_no_schedule_makes_anything_happen_that_may_not(topology: Topology, part: int) -> None:
    @seed(
        (SEED * PARTS + part) * len(TOPOLOGIES) + TOPOLOGIES.index(topology)
    )  # nothing is played twice
    @UNHURRIED
    @given(schedules())
    def holds(made: Made) -> None:
        assert outcome(topology, made).problems == ()

    holds()


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
@pytest.mark.parametrize("users", [3, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_without_faults_everybody_is_counted(topology: Topology, users: int, seed: int) -> None:
    assert play(topology, [Op(kind) for kind in STORY], users, seed) == Outcome("published", ())
    assert play(topology, [], users, seed, real=True) == Outcome("published", ())


def test_a_schedule_is_repeatable() -> None:
    ops = [Op(Kind.ROUND, 0, 1), Op(Kind.FLOOD, 3, 999), Op(Kind.DEADLINE), Op(Kind.REPLAY, 5)]
    for topology in TOPOLOGIES:
        assert play(topology, ops) == play(topology, ops)
    assert repr(ops[1]) == "Op(Kind.FLOOD, 3, 999)"  # as it is written in a named case


HOLES = {
    "any claim is admitted": (SERVERS, [aggregator], "repeated", lambda s, manifest: None),
    "every share is added": (
        SERVERS,
        [servers_coordinator],
        "entries_to_add",
        servers_coordinator.iterate_entries,
    ),
    "The aggregator goes on after a restore": (
        EXPLICIT,
        [aggregator_receive],
        "end_restored",
        lambda s, rows: (s, ()),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLES)
def test_random_schedules_find_a_planted_hole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topology, modules, function, hole = HOLES[name]
    for module in modules:
        monkeypatch.setattr(module, function, hole)
    monkeypatch.setattr(
        aggregator_steps, "advance", lambda state, *path: (state, *path)[-1]
    )  # it would stop the hole
    assert find(schedules(), lambda made: outcome(topology, made).problems != (), settings=SEARCH)
