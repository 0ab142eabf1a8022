"""The plan of a questionnaire: groups, exact errors, and what to do if targets are not met."""

from typing import Any

import numpy as np
import pytest

from faircount.core.questions.form import make_form
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.planning.questionnaire import half_width, make_plan


def yes(number: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "yes", "text": f"q{number}", **fields}


def one(size: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "one", "text": f"one of {size}", "items": list(map(str, range(size))), **fields}


@pytest.mark.parametrize(
    ("questions", "points"),
    [
        ([yes(0)], 1.3),
        ([yes(number) for number in range(4)], 3.0),
        ([yes(number) for number in range(8)], 5.0),
        ([one(5)], 2.0),
        ([one(5)] * 4, 6.7),
        ([one(10)] * 2, 4.3),
    ],
)
def test_the_errors_of_two_servers_for_300_people_are_those_of_the_design(
    questions: list[dict[str, Any]], points: float
) -> None:
    form = make_form(questions).questionnaire
    groups = split_epsilon(1.0, [range(len(form))])
    servers = JointNoise(questionnaire=form, groups=groups, epsilon=1.0, draws=2)
    assert round(half_width(servers, 0, 300), 1) == points


def test_questions_alike_share_a_group_and_unlike_ones_do_not() -> None:
    alike = make_plan(make_form([yes(number) for number in range(6)]), 300, 1.0)
    assert len(alike.mechanism.groups) == 1
    unlike = make_plan(make_form([one(30, target=3), yes(1, target=3)]), 1000, 0.5)
    assert len(unlike.mechanism.groups) == 2
    assert unlike.is_met
    shares = [float(group.epsilon) for group in unlike.mechanism.groups]
    assert sum(shares) <= 0.5


def test_the_errors_are_exact_at_the_epsilon_that_is_used() -> None:
    plan = make_plan(make_form([one(5, target=50), yes(1)]), 200, 0.7)
    for number, line in enumerate(plan.lines):
        law = plan.mechanism.law(number)
        assert line.half_width == 100 * law.half_width(0.95) / 200
    assert plan.lines[0].is_met
    assert plan.lines[1].target is None


def test_the_least_epsilon_meets_the_targets_and_a_smaller_one_does_not() -> None:
    form = make_form([one(5, target=4), yes(1, target=4)])
    plan = make_plan(form, 300, 1.0)
    least = plan.least_epsilon
    assert least is not None
    assert make_plan(form, 300, least).is_met
    assert not make_plan(form, 300, 0.9 * least).is_met


def test_too_many_questions_are_named() -> None:
    form = make_form([yes(number, target=8) for number in range(6)])
    plan = make_plan(form, 100, 0.5)
    assert not plan.is_met
    assert 0 < len(plan.excess) < 6
    kept = [yes(number, target=8) for number in range(6) if number + 1 not in plan.excess]
    assert make_plan(make_form(kept), 100, 0.5).is_met
    assert plan.advice[0].startswith("too many questions for the errors that are wanted: merge")
    hopeless = make_plan(make_form([yes(0, target=1)]), 100, 0.5)
    assert hopeless.excess == ()
    assert hopeless.advice[0].startswith("no question can be as exact as wanted")


def test_a_table_is_compared_with_its_margins_asked_apart() -> None:
    table = {
        "kind": "table",
        "text": ["r", "c"],
        "rows": ["a", "b"],
        "columns": list(map(str, range(20))),
    }
    (line,) = make_plan(make_form([table]), 1000, 1.0).lines
    assert line.apart is not None
    of_table, apart = line.apart
    # Two margins of unlike size in one group: the table is better, as was computed by hand.
    assert of_table < apart
    assert "keep the table" in make_plan(make_form([table]), 1000, 1.0).advice[0]


@pytest.mark.parametrize("answered", [900, 1000])
def test_the_error_of_a_mean_with_skip_is_that_of_its_interval(answered: int) -> None:
    form = make_form([{"kind": "number", "text": "q", "low": 0, "high": 50, "skip": True}])
    plan = make_plan(form, 1000, 1.0)
    cells = np.array([25 * answered, answered])
    mean = (
        QuestionnaireResult(form.questionnaire, plan.mechanism, cells, 1000)
        .questions[0]
        .estimates[0]
    )
    width = 100 * (mean.high - mean.low) / 2 / 50
    assert 0.6 * plan.lines[0].half_width < width <= plan.lines[0].half_width
    assert "among those who answered are less exact" in plan.advice[-1]
