"""Plan a questionnaire: which questions share their noise, and how exact each of them gets.

Questions in one group share a radius, which is better than to split epsilon as long as they are
alike. A question with many answers makes the radius of its group large, so that questions of unlike
size are better apart. Which groups to make, and how to divide epsilon between them, is found by a
search over a rule of thumb: the standard deviation of a cell grows like sqrt((D + 1) (D + 2)) with
the sum D of the dimensions in its group. What is printed is computed from the exact laws at the
epsilon that is used. The groups are the best that the search found, which is not always the best.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from faircount.core import plain
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Question, QuestionGroup, Questionnaire, Table
from faircount.core.questions.choices import ChoiceQuestion, OneOf
from faircount.core.questions.form import Form
from faircount.core.questions.sums import SumQuestion
from faircount.core.validation import check_integer, check_positive
from faircount.mechanisms.count_law import Z95
from faircount.mechanisms.joint_noise.balls import ball_of
from faircount.mechanisms.joint_noise.laws import cell_law
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.sheets import CountsSheets
from faircount.planning.sheet_coins import DELTA, SheetCoins, plan_coins

_ONE = 1 << 128

# Divisions of epsilon that the search computes exactly.
_MOST_TRIED = 8

LONGEST = 40  # characters of a question in a sentence

# With fewer cells that one person can move, coins are not compared: they lose at any epsilon that
# leaves useful estimates.
FEWEST_MOVES = 6

# Epsilons between which the least one is searched.
_LEAST_EPSILON = 0.05
_LARGEST_EPSILON = 20.0


@dataclass(frozen=True, slots=True)
class _Need:
    """How a question behaves in a group, by the rule of thumb.

    dimension: what it adds to that of its group
    factor:    half-width as a share of its range, per sqrt((D + 1) (D + 2)) / epsilon
    target:    the half-width that is wanted, as a share
    """

    dimension: int
    factor: float
    target: float | None


def _need_of(question: Question, users: int, target: float | None) -> _Need:
    dimension = 0
    factors = []
    for block in question.blocks:
        ball = ball_of(block)
        d = ball.dimension
        dimension += d
        # At epsilon 1 and without other questions: the rule of thumb then scales it to any group.
        alone = math.sqrt(cell_law((ball,), 0, _ONE).variance) / block.reach
        factors.append(Z95 * alone / math.sqrt((d + 1) * (d + 2)) / users)
    # A ratio errs by the sum of both errors; of other questions the worst cell decides.
    factor = sum(factors) if is_ratio(question) else max(factors)
    return _Need(dimension, factor, None if target is None else target / 100)


def is_ratio(question: Question) -> bool:
    """Whether the mean of a question is a sum divided by the number of those who answered."""
    return isinstance(question, SumQuestion) and question.may_be_missing


def find_groups(
    questionnaire: Questionnaire,
    users: int,
    epsilon: float,
    *,
    targets: Sequence[float | None] = (),
    named: Sequence[str | None] = (),
    draws: int = 1,
) -> tuple[QuestionGroup, ...]:
    """Return groups and their shares of epsilon, as good as the search finds them.

    targets: wanted half-widths in percentage points
    named:   names of groups; questions with the same name are kept together, as named
    draws:   how many noises are added: 1, or 2 by two servers
    """
    wanted = [*targets] or [None] * len(questionnaire)
    needs = [
        _need_of(question, users, target)
        for question, target in zip(questionnaire.questions, wanted, strict=True)
    ]
    if any(target is not None for target in wanted):
        # A question without a target must not take epsilon from those that have one.
        largest = max(need.target or 0.0 for need in needs)
        needs = [replace(need, target=need.target or largest) for need in needs]
    # Names are the owner's decision, and only shares of epsilon are left to choose.
    if any(named):
        by_name: dict[str | None, list[int]] = {}
        for number, name in enumerate(named):
            by_name.setdefault(name, []).append(number)
        return _divide(epsilon, list(by_name.values()), needs)
    candidates = [
        # Beside what the rule of thumb finds, everything together and everything apart: the rule is
        # wrong by some percent, and one of these two is often the best.
        _search_partition(needs),
        [list(range(len(needs)))],
        [[number] for number in range(len(needs))],
    ]
    return _best_exact(
        questionnaire,
        [_divide(epsilon, groups, needs) for groups in candidates],
        (epsilon, users, wanted, draws),
    )


def _best_exact(
    questionnaire: Questionnaire,
    candidates: Sequence[tuple[QuestionGroup, ...]],
    terms: tuple[float, int, Sequence[float | None], int],
) -> tuple[QuestionGroup, ...]:
    """Return the candidate with the smallest errors by the exact laws."""
    epsilon, users, targets, draws = terms
    best: tuple[float, tuple[QuestionGroup, ...]] | None = None
    # Each candidate once, in a fixed order: the same questions always get the same groups.
    waiting = list(dict.fromkeys(candidates))
    tried: set[tuple[QuestionGroup, ...]] = set()
    reason = ""
    while waiting and len(tried) < _MOST_TRIED:
        groups = waiting.pop(0)
        tried.add(groups)
        try:
            mechanism = JointNoise(
                questionnaire=questionnaire, groups=groups, epsilon=epsilon, draws=draws
            )
            cost = _cost(mechanism, users, targets)
        # A group may be refused at its share of epsilon, for example because its tables would not
        # fit into memory; another division may do. If none does the owner reads the first reason.
        except ParameterError as problem:
            reason = reason or str(problem)
            continue
        if best is None or cost < best[0]:
            best = (cost, groups)
            # Its shares may be better still; the loop ends where they are not.
            waiting += [
                better for better in _adjust(mechanism, users, targets) if better not in tried
            ]
    if best is None:
        raise RefusedError(
            f"these questions cannot be asked together at epsilon {epsilon:g}: {reason}"
        )
    return best[1]


def _adjust(
    mechanism: JointNoise, users: int, targets: Sequence[float | None]
) -> list[tuple[QuestionGroup, ...]]:
    """Return the groups with shares that follow how far each is from its targets."""
    if len(mechanism.groups) == 1 or not any(targets):
        return []
    shares = []
    for group in mechanism.groups:
        ratios = [
            half_width(mechanism, number, users) / target
            for number in group.questions
            if (target := targets[number]) is not None
        ]
        # A group without a target keeps its share; at a large epsilon there may be no error at all.
        change = max(ratios) if ratios else 1.0
        # Errors fall like 1 / epsilon, so a group that misses its target by a factor needs that
        # much more. The bound keeps a group that has far too much from losing all of it at once.
        shares.append(float(group.epsilon) * max(change, 0.1))
    numbers = [group.questions for group in mechanism.groups]
    return [split_epsilon(mechanism.epsilon, numbers, shares)]


def _cost(mechanism: JointNoise, users: int, targets: Sequence[float | None]) -> float:
    """Return the largest error compared with its target; without targets the mean square."""
    numbers = range(len(mechanism.questionnaire))
    return weigh_errors([half_width(mechanism, number, users) for number in numbers], targets)


def weigh_errors(errors: Sequence[float], targets: Sequence[float | None]) -> float:
    """Return the largest error compared with its target; without targets the mean square."""
    ratios = [error / target for error, target in zip(errors, targets, strict=True) if target]
    # With targets the worst one counts: meeting all others by far does not help it.
    return max(ratios) if ratios else sum(error**2 for error in errors)


def half_width(mechanism: CountsSheets, number: int, users: int) -> float:
    """Return the exact 95% half-width of a question's worst cell, in percent of its range.

    The mean of a number with skip is a ratio of two sums, each of which has half of the error. Its
    half-width is that of a mean at its upper end, if everybody answers.
    """
    question = mechanism.questionnaire.questions[number]
    noise = mechanism.noise_in(users)
    if is_ratio(question):
        total = noise.law(number).half_width(0.975) / question.blocks[0].bound
        answered = noise.law(number, 1).half_width(0.975)
        return 100 * (total + answered) / users
    widest = 0.0
    for place, block in enumerate(question.blocks):
        widest = max(widest, noise.law(number, place).half_width(0.95) / block.reach)
    return 100 * widest / users


def _weight(group: Sequence[int], needs: Sequence[_Need]) -> float:
    """Return the epsilon a group needs for its targets, or its weight in the division."""
    dimension = sum(needs[number].dimension for number in group)
    scale = math.sqrt((dimension + 1) * (dimension + 2))
    targets = [needs[number].target for number in group]
    if targets[0] is not None:
        return max(scale * needs[number].factor / (needs[number].target or 1.0) for number in group)
    # Minimizing the sum of squares divides epsilon in proportion to the cube root.
    return math.cbrt(sum((scale * needs[number].factor) ** 2 for number in group))


def _divide(
    epsilon: float, groups: Sequence[Sequence[int]], needs: Sequence[_Need]
) -> tuple[QuestionGroup, ...]:
    return split_epsilon(epsilon, groups, [_weight(group, needs) for group in groups])


def _search_partition(needs: Sequence[_Need]) -> list[list[int]]:
    """Return the best partition into runs of questions that are sorted by size."""
    # Only runs in this order are tried, because alike questions belong together: there are as many
    # as the square of the questions, and far more partitions than anybody could try.
    order = sorted(range(len(needs)), key=lambda n: (needs[n].dimension, needs[n].target or 0.0, n))
    # best[j]: the least total of the first j questions in this order, and where its last run begins
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(order) + 1):
        totals = [
            (best[start][0] + _weight(order[start:end], needs), start) for start in range(end)
        ]
        best.append(min(totals))
    groups: list[list[int]] = []
    end = len(order)
    while end:
        start = best[end][1]
        groups.insert(0, sorted(order[start:end]))
        end = start
    return groups


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
        of_table = max(noise.law_of_sum(number, len(side)).half_width(0.95) for side in sides)
        apart = self._ask_apart(number, sides)
        return 100 * of_table / self.users, 100 * apart / self.users

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
            worst = max(free, key=lambda line: line.half_width / (line.target or math.inf))
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
        return max(noise.law(len(kept) + side).half_width(0.95) for side in range(2))

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
