"""Random fault schedules of surveys with hidden levels: both tables are right, or nothing is.

Every second participant is at the weakest level. Without noise the first table must count everybody
in the accepted set, and the second one exactly those of them: a report that is drawn again, changed
on the way or counted in one table only would show.
"""

import numpy as np
import pytest

from faircount.accounting.levels import Levels
from faircount.core.entropy import SeededStream
from faircount.core.questions import OneOf, Questionnaire, YesNo
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels
from faircount.protocol import SERVERS
from faircount.protocol.simulator import set_up
from simulation import parties
from simulation.faults import Kind, Op, run_schedule

USERS = 6
SCHEDULES = 60
COURSE = (Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE) * 5


def level_of(sheet) -> int:
    """The first answer is the number of a participant."""
    return sheet[0] % 2


@pytest.fixture
def leveled(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = Levels.of({"strong": 40.0, "weak": 200.0})
    who = OneOf(text="Who?", items=tuple(str(user) for user in range(USERS)))
    mechanism = ServerLevels(
        questionnaire=Questionnaire((who, YesNo(text="Sure?"))),
        groups=split_epsilon(40.0, [[0, 1]]),
        epsilon=200.0,
        levels=levels,
        users=USERS,
    )
    made = set_up(
        mechanism, SERVERS, SeededStream(1), epsilon=200.0, delta=1.0, minimum=3, attempts=3
    )
    report_bits, cells_of = ServerLevels.report_bits, ServerLevels.cells_of
    monkeypatch.setattr(parties, "small_survey", lambda *_: made)
    monkeypatch.setattr(
        ServerLevels,
        "report_bits",
        lambda self, sheet, entropy, level=0: report_bits(self, sheet, entropy, level_of(sheet)),
    )
    monkeypatch.setattr(
        ServerLevels,
        "cells_of",
        lambda self, sheet, level=0: cells_of(self, sheet, level_of(sheet)),
    )


def make_schedule(seed: int) -> list[Op]:
    """What happens when nothing fails, with faults at random places."""
    draw = np.random.default_rng(seed)
    kinds = [kind for kind in Kind if kind not in COURSE]
    schedule = [Op(kind) for kind in COURSE]
    for _ in range(int(draw.integers(1, 6))):
        fault = Op(
            kinds[draw.integers(len(kinds))], int(draw.integers(64)), int(draw.integers(4096))
        )
        schedule.insert(int(draw.integers(len(schedule))), fault)
    return schedule


@pytest.mark.usefixtures("leveled")
def test_both_tables_are_right_under_random_faults() -> None:
    endings = []
    for seed in range(SCHEDULES):
        outcome = run_schedule(SERVERS, make_schedule(seed), USERS, seed)
        assert outcome.problems == (), seed
        endings.append(outcome.ending)
    # Faults end some surveys, and most have a result.
    assert endings.count("published") > SCHEDULES // 4


@pytest.mark.usefixtures("leveled")
def test_somebody_on_the_wrong_side_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The monitor is not blind: if somebody is on the wrong side, the second table is wrong."""
    place = ServerLevels.place_sheet
    monkeypatch.setattr(
        ServerLevels,
        "report_bits",
        lambda self, sheet, entropy, level=0: place(self, sheet, is_inside=True),
    )
    outcome = run_schedule(SERVERS, [Op(kind) for kind in COURSE], USERS)
    assert outcome.problems
