"""Random fault schedules over all topologies: the right sum over the accepted set, or an abort.

FAIRCOUNT_SCHEDULES sets how many are run over all topologies together (default 200; `make faults` runs 100,000), and
FAIRCOUNT_SEED which ones.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

import pytest
from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis import strategies as st

from faircount.protocol import EXPLICIT, SERVERS, Topology, known_topologies
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import receive as aggregator_receive
from faircount.protocol.roles.aggregator import steps as aggregator_steps
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.coordinator import steps as coordinator_steps
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.topologies.two_servers import coordinator as servers_coordinator
from faircount.protocol.topologies.two_servers import messages, part_reports
from simulation.faults import Kind, Op, Outcome, run_schedule
from simulation.parties import Trouble

TOPOLOGIES = known_topologies()
SCHEDULES = int(os.environ.get("FAIRCOUNT_SCHEDULES", "200"))
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
# Tests that share the schedules, so that a long run shows how far it is.
PARTS = 1 + SCHEDULES // 5000
COURSE = (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 5
"""What happens when nothing fails; a schedule adds faults, and may break off."""


@dataclass(frozen=True)
class Case:
    """A survey and a schedule for it."""

    users: int
    seed: int
    real: bool  # with real cryptography
    part_size: int  # reports per part of a manifest
    ops: list[Op]


UNHURRIED = settings(
    max_examples=-(-SCHEDULES // (PARTS * len(TOPOLOGIES))),
    deadline=None,
    derandomize=False,
    database=None,
    suppress_health_check=list(HealthCheck),
)
SEARCH = settings(UNHURRIED, max_examples=4000, phases=[Phase.generate], derandomize=True)

WHO = st.integers(0, 63)
HOW = st.integers(0, 4095)


def trouble(which: Trouble) -> st.SearchStrategy[list[Op]]:
    """A visit that goes wrong in this way."""
    at = list(Trouble).index(which)
    return st.builds(lambda who, how: [Op(Kind.VISIT, who, at + len(Trouble) * how)], WHO, HOW)


@cache
def away(users: int) -> st.SearchStrategy[int]:
    """Who stays away from a round, as bits."""
    return st.one_of(st.just(0), st.integers(0, (1 << users) - 1))


def combined_faults(users: int) -> st.SearchStrategy[list[Op]]:
    """Faults that need each other: rollbacks without notice, late messages, tampered requests."""

    def roll_back(back: int, missing: int, later: int) -> list[Op]:
        """The coordinator is rolled back without notice, and collects again."""
        return [
            Op(Kind.RESTORE_S1, -back, 1),
            Op(Kind.ROUND, 0, missing),
            Op(Kind.DEADLINE),
            Op(Kind.ROUND, 0, later),
            Op(Kind.DEADLINE),
            Op(Kind.EXCHANGE),
        ]

    def restore(back: int, missing: int, old: int) -> list[Op]:
        """The coordinator resynchronizes, another set forms, and an old message arrives again."""
        return [
            Op(Kind.RESTORE_S1, -back),
            Op(Kind.EXCHANGE),
            Op(Kind.ROUND, 0, missing),
            Op(Kind.DEADLINE),
            Op(Kind.REPLAY, -old),
            Op(Kind.ROUND),
            Op(Kind.DEADLINE),
            Op(Kind.EXCHANGE),
        ]

    def lose_late_report(late: int, carried: int, is_told: bool) -> list[Op]:
        """The aggregator has some parts of a manifest when the coordinator loses a late report.

        One round leaves no backup between two reports, so this takes two. The next manifest may
        begin like the one whose parts are recorded, and go on otherwise.
        """
        return [
            Op(Kind.ROUND, 0, 1 << late),
            Op(Kind.ROUND),
            Op(Kind.DEADLINE),
            *(Op(Kind.CARRY),) * carried,
            Op(Kind.RESTORE_S1, -(carried + 3), int(not is_told)),
            Op(Kind.DEADLINE),
            Op(Kind.EXCHANGE),
        ]

    return st.one_of(
        st.builds(roll_back, st.integers(1, 8), away(users), away(users)),
        st.builds(lose_late_report, st.integers(0, users - 1), st.integers(1, 9), st.booleans()),
        st.builds(restore, st.integers(1, 8), away(users), st.integers(1, 40)),
        st.builds(lambda back: [Op(Kind.RESTORE_S2, -back), Op(Kind.DROP, -1)], st.integers(1, 8)),
        st.builds(lambda who: [Op(Kind.VISIT, who, 5), Op(Kind.DEADLINE), Op(Kind.MAIL)], WHO),
        st.builds(lambda who, how: [Op(Kind.ROUND), Op(Kind.OWNER, who, how)], WHO, HOW),
        trouble(Trouble.CORRUPTED),
        trouble(Trouble.TAMPERED),
    )


STEPS = st.lists(
    st.builds(Op, st.just(Kind.CARRY), st.integers(0, 3), st.integers(0, 63)), max_size=5
)
FEW_KINDS = st.lists(st.sampled_from(Kind), min_size=1, max_size=6)


# Cached: Hypothesis would spend a quarter of a long run on building it again for every schedule.
@cache
def faults(users: int) -> st.SearchStrategy[list[list[Op | tuple[int, int, int]]]]:
    """What goes wrong before a step of the course.

    A single fault is (which of the schedule's kinds, who, how).
    """
    single = st.tuples(st.integers(0, 59), WHO, HOW).map(lambda fault: [fault])
    return st.lists(st.one_of(single, single, combined_faults(users)), max_size=3)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """The course of a survey with faults of a few kinds: they find more than seldom faults of all."""
    users = draw(st.integers(3, 7))
    kinds = draw(FEW_KINDS)
    ops: list[Op] = []
    for kind in COURSE[: draw(st.integers(0, len(COURSE)))]:
        for op in chain.from_iterable(draw(faults(users))):
            if not isinstance(op, Op):
                which, who, how = op
                op = Op(kinds[which % len(kinds)], who, how)
            ops.append(op)
        if kind is Kind.EXCHANGE and draw(st.booleans()):
            ops += draw(STEPS)
        elif kind is Kind.ROUND:
            ops.append(Op(kind, 0, draw(away(users))))
        else:
            ops.append(Op(kind, 0, draw(st.integers(0, 1))))
    seed = draw(st.integers(0, 1))
    is_real = draw(st.integers(0, 9)) == 9
    part_size = draw(st.sampled_from((1, 2, 3, 4096)))
    return Case(users, seed, is_real, part_size, ops)


def run_case(topology: Topology, case: Case) -> Outcome:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "REPORTS_PER_PART", case.part_size)
        return run_schedule(topology, case.ops, case.users, case.seed, real=case.real)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
def test_no_schedule_makes_anything_happen_that_must_not(topology: Topology, part: int) -> None:
    # Every test has a seed of its own, so that no schedule is run twice.
    own_seed = (SEED * PARTS + part) * len(TOPOLOGIES) + TOPOLOGIES.index(topology)

    @seed(own_seed)
    @UNHURRIED
    @given(cases())
    def check(case: Case) -> None:
        assert run_case(topology, case).problems == ()

    check()


@pytest.mark.parametrize("topology", TOPOLOGIES, ids=str)
@pytest.mark.parametrize("users", [3, 8])
@pytest.mark.parametrize("seed", [0, 1])
def test_without_faults_everybody_is_counted(topology: Topology, users: int, seed: int) -> None:
    assert run_schedule(topology, [Op(kind) for kind in COURSE], users, seed) == Outcome(
        "published", ()
    )
    assert run_schedule(topology, [], users, seed, real=True) == Outcome("published", ())


def test_a_schedule_is_repeatable() -> None:
    ops = [Op(Kind.ROUND, 0, 1), Op(Kind.FLOOD, 3, 999), Op(Kind.DEADLINE), Op(Kind.REPLAY, 5)]
    for topology in TOPOLOGIES:
        assert run_schedule(topology, ops) == run_schedule(topology, ops)
    # A failing schedule can be copied from the output into a named case.
    assert repr(ops[1]) == "Op(Kind.FLOOD, 3, 999)"


def shares_of_everybody(
    s: Coordinator, rows: StepRows, accepted: messages.AcceptedReports
) -> Iterator[bytes]:
    """The shares of all reports, not only of the accepted ones; a lost one still ends the sum."""
    for number in part_reports.part_numbers(s):
        yield from part_reports.shares_of_part(s, rows, number)


HOLES = {
    "any manifest is recorded": (
        SERVERS,
        [aggregator],
        "answer_known_manifest",
        lambda s, manifest: None,
    ),
    "every share is added": (
        SERVERS,
        [servers_coordinator],
        "shares_to_add",
        shares_of_everybody,
    ),
    "Whoever has the invitation may withdraw": (
        SERVERS,
        [coordinator_steps],
        "recognize_device",
        lambda s, rows, message: user_id(message.access),
    ),
    "The aggregator goes on after a restore": (
        EXPLICIT,
        [aggregator_receive],
        "abort_as_restored",
        lambda s, rows: (s, ()),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLES)
def test_random_schedules_find_a_planted_hole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topology, modules, function, hole = HOLES[name]
    for module in modules:
        monkeypatch.setattr(module, function, hole)
    # The table of phases would stop the hole before the monitor sees it.
    monkeypatch.setattr(aggregator_steps, "advance", lambda state, *path: (state, *path)[-1])
    assert find(cases(), lambda case: run_case(topology, case).problems != (), settings=SEARCH)
