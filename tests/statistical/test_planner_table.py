"""How many equal questions have an error of at most 5 points: the planner's table, and runs of it.

Noise is drawn as both servers draw it in a survey, and sums are decoded as the aggregator does.
The questions of a run share a radius, so that only one cell of a run counts: runs are independent.
"""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from faircount.core.entropy import SeededStream
from faircount.core.questions.form import make_form
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.planning.questionnaire import make_plan
from faircount.planning.split_plan import Crowd, make_split_plan
from faircount.sharing.field import from_signed

RUNS = 400

# Of one comparison; there are 24, so that one of 4,000 seeds raises a false alarm.
FALSE_ALARM = 1e-5

# People, answers -> how many questions with at most +-5 points at epsilon 1 for all of them: with
# joint noise by both servers, and with participants' noise, of whom one may collude.
TABLE = {
    (300, 2): (8, 5),
    (300, 5): (3, 2),
    (300, 10): (2, 2),
    (1000, 2): (30, 16),
    (1000, 5): (11, 9),
    (1000, 10): (8, 8),
}


def questions(answers: int, count: int) -> list[dict[str, Any]]:
    if answers == 2:
        return [{"kind": "yes", "text": f"q{number}"} for number in range(count)]
    items = [str(item) for item in range(answers)]
    return [{"kind": "one", "text": f"q{number}", "items": items} for number in range(count)]


def joint_plan(people: int, answers: int, count: int):
    asked = [{**fields, "group": "all"} for fields in questions(answers, count)]
    return make_plan(make_form(asked), people, 1.0, draws=2)


def split_plan(people: int, answers: int, count: int):
    form = make_form(questions(answers, count))
    return make_split_plan(form, people, 1.0, Crowd(people))


def worst(plan) -> float:
    return max(line.half_width for line in plan.lines)


@pytest.mark.parametrize(("people", "answers"), TABLE)
def test_so_many_questions_have_an_error_of_at_most_five_points(people, answers) -> None:
    for plan, count in zip((joint_plan, split_plan), TABLE[people, answers], strict=True):
        assert worst(plan(people, answers, count)) <= 5.0
        assert worst(plan(people, answers, count + 1)) > 5.0


@pytest.mark.parametrize(("people", "answers"), TABLE)
def test_runs_reproduce_the_errors_of_joint_noise(people, answers) -> None:
    plan = joint_plan(people, answers, TABLE[people, answers][0])
    form = plan.form.questionnaire
    mechanism = ServerSheets(
        questionnaire=form, groups=plan.mechanism.groups, epsilon=1.0, users=people
    )
    stream = SeededStream(people + answers)
    truth = np.zeros(form.cells, dtype=np.int64)
    # Everybody gives the first answer; of two answers the second is counted.
    if answers > 2:
        truth[[where.start for where in form.cell_slices]] = people
    errors = []
    for _ in range(RUNS):
        noise = mechanism.server_noise(stream) + mechanism.server_noise(stream)
        total = from_signed(truth + noise, mechanism.modulus)
        published = mechanism.decode(total, people)
        errors.append(abs(int(published[0]) - int(truth[0])) / people * 100)
    judge(np.array(errors), plan.lines[0].half_width, people)


@pytest.mark.parametrize(("people", "answers"), TABLE)
def test_runs_reproduce_the_errors_of_participants_noise(people, answers) -> None:
    plan = split_plan(people, answers, TABLE[people, answers][1])
    mechanism = plan.mechanism
    rng = np.random.default_rng(people + answers)
    nothing = np.zeros(mechanism.N, dtype=np.int64)
    errors = []
    for _ in range(RUNS):
        # Fitted to the people where exactly one answer is given.
        estimate = mechanism.estimate(mechanism.draw(nothing, rng), people)
        known = 1 / answers if answers > 2 else 0.0
        errors.append(abs(float(estimate[0]) - known) * 100)
    judge(np.array(errors), plan.lines[0].half_width, people)


def judge(errors: np.ndarray, half_width: float, people: int) -> None:
    """At least 95% lie within the half-width, and at most 95% below it, as far as runs can tell."""
    slack = 1e-6 / people
    inside = int((errors <= half_width + slack).sum())
    below = int((errors < half_width - slack).sum())
    assert binom.cdf(inside, RUNS, 0.95) > FALSE_ALARM
    assert binom.sf(below - 1, RUNS, 0.95) > FALSE_ALARM
