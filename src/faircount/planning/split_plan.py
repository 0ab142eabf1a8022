"""Plan a questionnaire whose noise the participants draw: how epsilon is split over the questions.

The error of a question falls like 1 / share, so only the shares are to be found. With wanted errors
every question gets what it needs in proportion. Without any, the sum of the squared errors is least
if shares are in the proportion of the errors to the power 2/3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from faircount.core.errors import ParameterError
from faircount.core.questions import BlockKind, OneOf, Question, QuestionGroup, Questionnaire
from faircount.core.questions.form import Form
from faircount.core.validation import check_integer, check_positive
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.split_noise import SplitNoise
from faircount.planning.question_groups import half_width, is_ratio, weigh_errors
from faircount.planning.questionnaire import QuestionnairePlan

# How often shares are adapted to the exact errors; more changes nothing any more.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Crowd:
    """Who draws the noise.

    invited:  how many people are invited
    insiders: how many of them may collude
    dropouts: how many of them may be missing
    """

    invited: int
    insiders: int = 1
    dropouts: int = 0


@dataclass(frozen=True)
class SplitPlan(QuestionnairePlan):
    """Every question has noise of its own, for its share of epsilon."""

    mechanism: LaplaceSheets

    about_errors: ClassVar[str] = (
        "Every question has noise of its own, which the participants draw; a single answer loses "
        "at most its share of epsilon."
    )

    @property
    def _crowd(self) -> Crowd:
        made = self.mechanism
        return Crowd(made.n, made.insiders, made.dropouts)

    def _plan_again(self, form: Form, epsilon: float) -> QuestionnairePlan:
        return make_split_plan(form, self.users, epsilon, self._crowd)

    def _ask_apart(self, number: int, sides: Sequence[Sequence[str]]) -> float:
        asked = Questionnaire(tuple(OneOf(text="margin", items=tuple(side)) for side in sides))
        # Both of them share what the table has.
        share = self.mechanism.group_of(number).epsilon / 2
        groups = tuple(QuestionGroup.of(share, [side]) for side in range(2))
        noise = SplitNoise(asked, groups, self.users / self.mechanism.h)
        return max(noise.distribution(side).half_width(0.95) for side in range(2))


def make_split_plan(form: Form, users: int, epsilon: float, crowd: Crowd) -> SplitPlan:
    """Plan a questionnaire of which so many people answer, at this epsilon for all answers."""
    people = check_integer("users", users, least=1, most=crowd.invited)
    loss = check_positive("epsilon", epsilon)
    if any(form.groups):
        raise ParameterError(
            "a group names questions that share their noise, and participants draw the noise of "
            "every question by itself: leave group out of all questions"
        )
    shares = _first_shares(form)
    best: tuple[float, SplitPlan] | None = None
    # Errors are whole counts, so that what is best in proportion may miss a target by one.
    for _ in range(_ROUNDS):
        plan = SplitPlan(form, _make_mechanism(form, loss, shares, crowd), people)
        errors = [half_width(plan.mechanism, number, people) for number in range(len(shares))]
        cost = weigh_errors(errors, form.targets)
        if best is None or cost < best[0]:
            best = (cost, plan)
        if not any(form.targets):
            break
        pairs = zip(shares, errors, form.targets, strict=True)
        shares = [_adapt(share, error, target) for share, error, target in pairs]
    assert best is not None  # noqa: S101 - there is at least one round
    return best[1]


def _adapt(share: float, error: float, target: float | None) -> float:
    """Return more for a question that misses its target, and less for one that has too much."""
    return share if target is None else share * max(error / target, 0.1)


def _make_mechanism(
    form: Form, epsilon: float, shares: Sequence[float], crowd: Crowd
) -> LaplaceSheets:
    return LaplaceSheets(
        questionnaire=form.questionnaire,
        groups=split_epsilon(epsilon, [[number] for number in range(len(shares))], shares),
        epsilon=epsilon,
        users=crowd.invited,
        insiders=crowd.insiders,
        dropouts=crowd.dropouts,
    )


def _first_shares(form: Form) -> list[float]:
    """Return shares of epsilon from the scales of the noise; they are adapted later."""
    scales = [_scale(question) for question in form.questionnaire.questions]
    if not any(form.targets):
        # Minimizing the sum of squared errors, each of which falls like 1 / share, leads to this
        # power.
        return [scale ** (2 / 3) for scale in scales]
    # A question without a target must not take epsilon from those that have one.
    largest = max(target or 0.0 for target in form.targets)
    pairs = zip(scales, form.targets, strict=True)
    return [scale / (target or largest) for scale, target in pairs]


def _scale(question: Question) -> float:
    """Return how large the error of a question is, as a share of its range, if epsilon is 1."""
    block = question.blocks[0]
    if is_ratio(question):
        # A mean with skip errs by both of its sums.
        return question.moves * 2.0
    if block.kind is BlockKind.ONE:
        # Fitted to the number of people.
        return question.moves * math.sqrt(1 - 1 / block.cells)
    return float(question.moves)
