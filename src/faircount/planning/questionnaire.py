"""Plan a questionnaire: how exact every question gets, and what to do where that is not enough."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from faircount.core import plain
from faircount.core.errors import ParameterError
from faircount.core.questions import Question, QuestionGroup, Questionnaire, Table
from faircount.core.questions.choices import ChoiceQuestion, OneOf
from faircount.core.questions.form import Form
from faircount.core.validation import check_integer, check_positive
from faircount.mechanisms.joint_noise.mechanism import JointNoise
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.planning.question_groups import find_groups, half_width, weigh_errors
from faircount.planning.sheet_coins import DELTA, SheetCoins, plan_coins

LONGEST = 40  # characters of a question in a sentence

# With fewer cells that one person can move, coins are not compared: they lose at any epsilon that
# leaves useful estimates.
FEWEST_MOVES = 6

# Epsilons between which the least one is searched.
_LEAST_EPSILON = 0.05
_LARGEST_EPSILON = 20.0


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """What the plan says about one question.

    number:     its place, from 1
    text:       what is asked
    size:       its kind, as in "one of 5"
    group:      the number of its group, from 1
    epsilon:    the share of epsilon of that group
    half_width: 95% half-width of its worst cell, in percentage points; for a mean, in percent of
                the range; with skip, that of shares among all people, and of a mean if all answer
    target:     the half-width that was wanted
    apart:      for a table, the half-widths of a margin of the table, and of the same question
                asked apart in its place
    """

    number: int
    text: str
    size: str
    group: int
    epsilon: float
    half_width: float
    target: float | None
    apart: tuple[float, float] | None = None

    @property
    def is_met(self) -> bool:
        """Whether the error is at most what was wanted."""
        return self.target is None or self.half_width <= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        margins = None
        if self.apart is not None:
            margins = {"of_table": self.apart[0], "asked_apart": self.apart[1]}
        return {
            "number": self.number,
            "text": self.text,
            "size": self.size,
            "group": self.group,
            "epsilon": self.epsilon,
            "half_width": self.half_width,
            "target": self.target,
            "is_met": self.is_met,
            "margins": margins,
        }


def largest_error(question: Question) -> float:
    """The 95% error in percentage points from which on nothing is learned about a question."""
    # An interval that covers half of the range on both sides says nothing at all.
    return 100 / len(question.answers) if isinstance(question, ChoiceQuestion) else 50.0


@dataclass(frozen=True)
class QuestionnairePlan(ABC):
    """Shares of epsilon and errors of a questionnaire.

    form:      the questions with their targets
    mechanism: the noise, with the shares that were found
    users:     number of people who answer
    """

    form: Form
    mechanism: JointNoise | LaplaceSheets
    users: int

    about_errors: ClassVar[str]
    """What a reader of the table must know about errors and shares."""

    @abstractmethod
    def _plan_again(self, form: Form, epsilon: float) -> "QuestionnairePlan":
        """Return the plan for another epsilon, or for fewer of the questions."""

    @abstractmethod
    def _ask_apart(self, number: int, sides: Sequence[Sequence[str]]) -> float:
        """Return the worst half-width, in counts, of two questions in place of a table."""

    @property
    def coins(self) -> SheetCoins | None:
        """Coins on all cells instead of this noise, where they were compared."""
        return None

    @cached_property
    def lines(self) -> tuple[QuestionLine, ...]:
        """One line per question."""
        return tuple(self._line(number) for number in range(len(self.form.questionnaire)))

    def _line(self, number: int) -> QuestionLine:
        question = self.form.questionnaire.questions[number]
        group = self.mechanism.group_of(number)
        apart = None
        if isinstance(question, Table):
            # Only tables: for margins alone two questions may be more exact.
            apart = self._compare_margins(number, question)
        return QuestionLine(
            number + 1,
            question.text,
            question.size,
            self.mechanism.groups.index(group) + 1,
            float(group.epsilon),
            half_width(self.mechanism, number, self.users),
            self.form.targets[number],
            apart,
        )

    def _compare_margins(self, number: int, question: Table) -> tuple[float, float]:
        """Return the worst margin of a table, and of two questions asked in its place."""
        sides = (question.rows, question.columns)
        noise = self.mechanism.noise_in(self.users)
        of_table = max(
            noise.distribution_of_sum(number, len(side)).half_width(0.95) for side in sides
        )
        apart = self._ask_apart(number, sides)
        return 100 * of_table / self.users, 100 * apart / self.users

    @cached_property
    def uninformative(self) -> tuple[QuestionLine, ...]:
        """The questions whose error is so large that nothing is learned about them."""
        pairs = zip(self.lines, self.form.questionnaire.questions, strict=True)
        return tuple(line for line, question in pairs if line.half_width >= largest_error(question))

    @property
    def objection(self) -> str:
        """Why these questions should not be asked so, and what to do; empty if they may be."""
        if not self.uninformative:
            return ""
        listed = ", ".join(
            f"question {line.number} has an error of ±{line.half_width:.0f} points"
            for line in self.uninformative
        )
        return (
            f"with 95% certainty {listed}, from which nothing can be learned; ask more people or "
            "fewer questions, offer fewer answers or allow a larger epsilon"
        )

    @property
    def is_met(self) -> bool:
        """Whether every question is as exact as was wanted."""
        return all(line.is_met for line in self.lines)

    @cached_property
    def least_epsilon(self) -> float | None:
        """The least epsilon found at which all targets are met, up to 1%; None without targets."""
        if not any(self.form.targets):
            return None

        def is_met(step: int) -> bool:
            try:
                return self._plan_again(self.form, _LEAST_EPSILON * 1.01**step).is_met
            # So small a share of epsilon may need tables of noise that are too long.
            except ParameterError:
                return False

        # In steps of 1%: finer ones would cost a plan each and tell nobody more.
        most = math.ceil(math.log(_LARGEST_EPSILON / _LEAST_EPSILON) / math.log(1.01))
        # Bisection needs one step at which the targets are met. Where epsilon 20 does not help no
        # budget does that anybody should spend.
        if not is_met(most):
            return None
        low = -1
        high = most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if is_met(middle) else (middle, high)
        return _LEAST_EPSILON * 1.01**high

    @cached_property
    def excess(self) -> tuple[int, ...]:
        """Numbers of questions to drop or merge, so that the others meet their targets.

        It is empty if all are met, and if not even the last question alone would be.
        """
        dropped: list[int] = []
        plan = self
        kept = list(range(len(self.form.questionnaire)))
        while not plan.is_met and len(kept) > 1:
            # A question that decides whether another one is asked stays as long as that one.
            needed = {_branch_of(question) for question in plan.form.questionnaire.questions}
            free = [line for line in plan.lines if line.number - 1 not in needed]
            # One by one, the one that misses its target by most: a search over all subsets takes
            # too long.
            worst = max(free, key=lambda line: line.half_width / (line.target or math.inf))
            # Numbers of the original form, since the owner knows no other.
            dropped.append(kept.pop(worst.number - 1) + 1)
            plan = self._plan_again(_keep(self.form, kept), self.mechanism.epsilon)
        return tuple(sorted(dropped)) if plan.is_met else ()

    @property
    def advice(self) -> tuple[str, ...]:
        """What to do about targets that are not met, and about tables, in sentences."""
        sentences = []
        if not self.is_met:
            sentence = "no question can be as exact as wanted: ask more people"
            if self.excess:
                named = ", ".join(self._name(number) for number in self.excess)
                sentence = (
                    "too many questions for the errors that are wanted: merge or drop question "
                    f"{named}"
                )
            if self.least_epsilon is not None:
                sentence += f", or allow epsilon {self.least_epsilon:.3g}"
            sentences.append(f"{sentence}.")
        elif self.least_epsilon is not None:
            sentences.append(
                f"all targets are met from epsilon {self.least_epsilon:.3g} on (found by search)."
            )
        if self.coins is not None and self.coins_are_better:
            sentences.append(self._advise_fewer(self.coins))
        for line in self.lines:
            if line.apart is not None:
                of_table, apart = line.apart
                better = "ask apart" if apart < of_table else "keep the table"
                sentences.append(
                    f"question {line.number}: its margins are exact to ±{of_table:.1f} points as a "
                    f"table and ±{apart:.1f} if asked apart: {better}, if margins are what you "
                    "need."
                )
        # How many will skip is unknown before the survey, so no number is given.
        if any(question.skip for question in self.form.questionnaire.questions):
            sentences.append(
                "with skip, shares and means among those who answered are less exact, the more so "
                "the fewer they are."
            )
        return tuple(sentences)

    def _name(self, number: int) -> str:
        """A question by its number and the beginning of its text."""
        text = self.form.questionnaire.questions[number - 1].text
        return f"{number} ({text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'})"

    @property
    def coins_are_better(self) -> bool:
        """Whether coins at delta 1e-6 would have smaller errors, by the measure of the search."""
        if self.coins is None:
            return False
        own = [line.half_width for line in self.lines]
        targets = self.form.targets
        return weigh_errors(self.coins.half_widths, targets) < weigh_errors(own, targets)

    def _advise_fewer(self, coins: SheetCoins) -> str:
        worst = max(self.lines, key=lambda line: line.half_width)
        other = coins.half_widths[worst.number - 1]
        return (
            f"one person can move {coins.moves} counts at once. For so many, coins at delta "
            f"{DELTA:g} would be more exact than joint noise (question {worst.number}: "
            f"±{other:.1f} instead of ±{worst.half_width:.1f}), but no mechanism flips them for "
            "several questions: ask fewer questions, or ask some of them of other people."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        coins = None
        if self.coins is not None:
            coins = {
                "delta": DELTA,
                "moves": self.coins.moves,
                "coins": self.coins.coins,
                "half_widths": list(self.coins.half_widths),
                "better": self.coins_are_better,
            }
        return {
            **plain.JSON_VERSION,
            "title": self.form.questionnaire.title,
            "users": self.users,
            "epsilon": self.mechanism.epsilon,
            "mechanism": self.mechanism.name,
            "noises": getattr(self.mechanism, "draws", 1),
            "guarantee": self.mechanism.stated_guarantees()[0].to_dict(),
            "questions": [line.to_dict() for line in self.lines],
            "is_met": self.is_met,
            "least_epsilon": self.least_epsilon,
            "excess": list(self.excess),
            "coins": coins,
            "advice": list(self.advice),
        }


@dataclass(frozen=True)
class JointPlan(QuestionnairePlan):
    """Questions in groups, each of which has joint noise."""

    mechanism: JointNoise

    about_errors: ClassVar[str] = (
        "Questions of one group share one noise radius; a single answer loses at most the epsilon "
        "of its group."
    )

    def _plan_again(self, form: Form, epsilon: float) -> QuestionnairePlan:
        return make_plan(form, self.users, epsilon, self.mechanism.draws)

    def _ask_apart(self, number: int, sides: Sequence[Sequence[str]]) -> float:
        asked = [OneOf(text="margin", items=tuple(side)) for side in sides]
        group = self.mechanism.group_of(number)
        others = [other for other in group.questions if other != number]
        questions = self.form.questionnaire.questions
        kept = [_without_branch(questions[other]) for other in others]
        replaced = Questionnaire((*kept, *asked))
        # In the table's own group and at its share of epsilon, or the comparison would be with
        # another budget.
        alone = QuestionGroup(group.epsilon, tuple(range(len(replaced))))
        noise = JointNoise(
            questionnaire=replaced,
            groups=(alone,),
            epsilon=self.mechanism.epsilon,
            draws=self.mechanism.draws,
        )
        return max(noise.distribution(len(kept) + side).half_width(0.95) for side in range(2))

    @cached_property
    def coins(self) -> SheetCoins | None:
        """Coins on all cells instead of joint noise; None where they are surely worse."""
        questions = self.form.questionnaire.questions
        if sum(question.moves for question in questions) < FEWEST_MOVES:
            return None
        return plan_coins(questions, self.users, self.mechanism.epsilon, self.mechanism.draws)


def make_plan(form: Form, users: int, epsilon: float, draws: int = 1) -> JointPlan:
    """Plan a questionnaire of which so many people answer, at this epsilon for all answers.

    draws: how many noises are added: 1 to a table, 2 by two servers
    """
    people = check_integer("users", users, least=1)
    loss = check_positive("epsilon", epsilon)
    groups = find_groups(
        form.questionnaire, people, loss, targets=form.targets, named=form.groups, draws=draws
    )
    mechanism = JointNoise(
        questionnaire=form.questionnaire, groups=groups, epsilon=loss, draws=draws, users=people
    )
    return JointPlan(form, mechanism, people)


def _branch_of(question: Question) -> int | None:
    """Return the question on which it depends that this one is asked."""
    return None if question.only_if is None else question.only_if.question


def _without_branch(question: Question) -> Question:
    """Return a question that everybody is asked and that has noise of the same size."""
    if question.only_if is None:
        return question
    if isinstance(question, ChoiceQuestion):
        # Texts do not matter for the noise, and these cannot collide with reserved answers.
        places = range(len(question.answers))
        return OneOf(text=question.text, items=tuple(map(str, places)))
    # "Does not apply" is the same cell as "prefer not to say".
    return replace(question, only_if=None, skip=True)


def _keep(form: Form, numbers: Sequence[int]) -> Form:
    """Return the form with some of its questions only; texts of other languages are left out."""
    questions = []
    for number in numbers:
        question = form.questionnaire.questions[number]
        if question.only_if is not None:
            place = list(numbers).index(question.only_if.question)
            question = replace(question, only_if=replace(question.only_if, question=place))
        questions.append(question)
    return Form(
        replace(form.questionnaire, questions=tuple(questions), translations=()),
        tuple(form.sources[number] for number in numbers),
        tuple(form.targets[number] for number in numbers),
        tuple(form.groups[number] for number in numbers),
    )
