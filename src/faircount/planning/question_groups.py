"""Find which questions share their noise, and how to divide epsilon between their groups.

Questions in one group share a radius, which is better than to split epsilon as long as they are
alike. A question with many answers makes the radius of its group large, so that questions of unlike
size are better apart. Which groups to make, and how to divide epsilon between them, is found by a
search over a rule of thumb: the standard deviation of a cell grows like sqrt((D + 1) (D + 2)) with
the sum D of the dimensions in its group. What is printed is computed from the exact distributions
at the epsilon that is used. The groups are the best that the search found, which is not always the
best.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Question, QuestionGroup, Questionnaire
from faircount.core.questions.sums import SumQuestion
from faircount.mechanisms.count_distribution import Z95
from faircount.mechanisms.joint_noise.balls import ball_of
from faircount.mechanisms.joint_noise.distributions import cell_distribution
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.mechanisms.sheets import CountsSheets

_ONE = 1 << 128

# Divisions of epsilon that the search computes exactly.
_MAX_TRIED = 8


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
        alone = math.sqrt(cell_distribution((ball,), 0, _ONE).variance) / block.reach
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
    """Return the candidate with the smallest errors by the exact distributions."""
    epsilon, users, targets, draws = terms
    best: tuple[float, tuple[QuestionGroup, ...]] | None = None
    # Each candidate once, in a fixed order: the same questions always get the same groups.
    waiting = list(dict.fromkeys(candidates))
    tried: set[tuple[QuestionGroup, ...]] = set()
    reason = ""
    while waiting and len(tried) < _MAX_TRIED:
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
        total = noise.distribution(number).half_width(0.975) / question.blocks[0].bound
        answered = noise.distribution(number, 1).half_width(0.975)
        return 100 * (total + answered) / users
    widest = 0.0
    for place, block in enumerate(question.blocks):
        widest = max(widest, noise.distribution(number, place).half_width(0.95) / block.reach)
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
