"""The plan of a questionnaire: groups, exact errors, and what to do if targets are not met."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from faircount.core.entropy import SeededStream
from faircount.core.questions import AnyOf, MostOf, Number, OneOf, Question, Questionnaire, YesNo
from faircount.core.questions.form import make_form
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.planning.questionnaire import make_plan
from faircount.planning.sheet_coins import plan_coins


def yes(number: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "yes", "text": f"q{number}", **fields}


def one(size: int, **fields: Any) -> dict[str, Any]:
    return {"kind": "one", "text": f"one of {size}", "items": list(map(str, range(size))), **fields}


# 95% half-widths in points among 300 people, both servers, epsilon 1 for all questions together.
DESIGN = {
    2: {1: 1.3, 2: 2.0, 4: 3.0, 6: 4.0, 8: 5.0, 10: 6.0},
    5: {1: 2.0, 2: 3.7, 4: 6.7, 6: 9.3, 8: 12.3, 10: 15.3},
    10: {1: 2.3, 2: 4.3, 4: 8.3, 6: 12.7, 8: 16.7, 10: 20.7},
}


@pytest.mark.parametrize("size", DESIGN)
@pytest.mark.parametrize("count", DESIGN[2])
def test_the_errors_of_two_servers_for_300_people_are_those_of_the_design(
    size: int, count: int
) -> None:
    plan = make_plan(make_form([one(size)] * count), 300, 1.0, draws=2)
    assert len(plan.mechanism.groups) == 1
    assert [round(line.half_width, 1) for line in plan.lines] == [DESIGN[size][count]] * count


RUNS = 1500

# One run of a planned error in 10^7 may look wrong: 20 of them give a false alarm below 10^-5.
FALSE_ALARM = 1e-7

MIXED = [
    one(3, skip=True),
    {"kind": "any", "text": "any", "items": ["a", "b", "c"]},
    {"kind": "most", "text": "most", "items": ["a", "b", "c", "d"], "most": 2},
    {"kind": "number", "text": "number", "low": 0, "high": 20},
    {"kind": "scale", "text": "scale", "items": ["1", "2", "3", "4"], "open": "mean"},
    {"kind": "table", "text": ["r", "c"], "rows": ["a", "b"], "columns": ["x", "y"]},
]


@pytest.mark.parametrize(
    "questions",
    [[one(2)] * 8, [one(5)] * 4, [one(10)] * 2, [yes(0), one(12)], MIXED],
    ids=["8 yes/no", "4 of five", "2 of ten", "unlike", "mixed"],
)
def test_runs_reproduce_the_errors_of_the_plan(questions: list[dict[str, Any]]) -> None:
    """Noise is drawn as both servers draw it: at least 95% lie within the half-width, and fewer
    within the next smaller one, as far as so many runs can tell.
    """
    plan = make_plan(make_form(questions), 300, 1.0, draws=2)
    slices = plan.form.questionnaire.cell_slices
    stream = SeededStream(24)
    nothing = np.zeros(plan.form.questionnaire.cells, dtype=np.int64)
    drawn = np.array([plan.mechanism.release(nothing, stream) for _ in range(RUNS)])
    for number, line in enumerate(plan.lines):
        block = plan.form.questionnaire.questions[number].blocks[0]
        reach = block.reach
        # One cell of each question: the cells of a question are not independent.
        noise = np.abs(drawn[:, slices[number].start])
        most = round(line.half_width * 300 / 100 * reach)
        assert binom.cdf(int((noise <= most).sum()), RUNS, 0.95) > FALSE_ALARM
        assert binom.sf(int((noise < most).sum()) - 1, RUNS, 0.95) > FALSE_ALARM


def test_planted_the_noise_of_one_server_is_not_that_of_the_plan() -> None:
    plan = make_plan(make_form([one(5)] * 4), 300, 1.0, draws=2)
    stream = SeededStream(24)
    noise = np.array([plan.mechanism.draw_noise(stream)[0] for _ in range(RUNS)])
    most = round(plan.lines[0].half_width * 3)
    assert binom.sf(int((np.abs(noise) < most).sum()) - 1, RUNS, 0.95) < FALSE_ALARM


@pytest.mark.parametrize(
    ("questions", "better"), [([one(5)] * 10, False), ([one(5)] * 12, True), ([yes(1)] * 20, False)]
)
def test_many_questions_are_compared_with_coins(
    questions: list[dict[str, Any]], better: bool
) -> None:
    plan = make_plan(make_form(questions), 300, 1.0, draws=2)
    assert plan.coins_are_better == better
    document = plan.to_dict()["coins"]
    assert document["better"] == better
    said = any("coins at delta 1e-06 would be more exact" in line for line in plan.advice)
    assert said == better


def test_coins_keep_the_budget_for_all_cells_that_one_person_moves() -> None:
    """Known answers: the standard deviation of a count with 10 and 20 questions of five answers."""
    for count, deviation in ((10, 26.7), (20, 37.8)):
        form = make_form([one(5)] * count).questionnaire
        planned = plan_coins(form.questions, 300, 1.0, 2)
        assert planned is not None
        assert planned.moves == 2 * count
        assert round(math.sqrt(planned.coins / 2), 1) == deviation
    moves = {
        "yes": YesNo(text="q"),
        "any": AnyOf(text="q", items=("a", "b", "c"), skip=True),
        "most": MostOf(text="q", items=("a", "b", "c", "d", "e"), most=2),
        "few": MostOf(text="q", items=("a", "b", "c"), most=2, skip=True),
        "number": Number(text="q", low=0, high=9),
    }
    counted = {name: question.moves for name, question in moves.items()}
    assert counted == {"yes": 1, "any": 4, "most": 4, "few": 3, "number": 1}


@pytest.mark.parametrize("name", ["any", "most", "few", "one", "number"])
def test_no_pair_of_sheets_moves_more_cells_than_are_counted(name: str) -> None:
    questions: dict[str, Question] = {
        "any": AnyOf(text="q", items=("a", "b", "c"), skip=True),
        "most": MostOf(text="q", items=("a", "b", "c", "d", "e"), most=2),
        "few": MostOf(text="q", items=("a", "b", "c"), most=2, skip=True),
        "one": OneOf(text="q", items=("a", "b", "c"), skip=True),
        "number": Number(text="q", low=0, high=3, skip=True),
    }
    question = questions[name]
    form = Questionnaire((question,))
    valid = filter(form.is_valid, product(range(2), repeat=question.bits))
    cells = [np.array(form.cells_from_bits(bits)) for bits in valid]
    moved = max(int((one != other).sum()) for one, other in product(cells, repeat=2))
    assert moved == question.moves


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
        distribution = plan.mechanism.distribution(number)
        assert line.half_width == 100 * distribution.half_width(0.95) / 200
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
