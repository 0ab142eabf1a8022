"""Joint noise as a mechanism: the counts of a whole questionnaire under one guarantee."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses, compose, randomized_response
from faircount.accounting.divergence import LossPair
from faircount.accounting.guarantee import COLLECTOR, Adversary, Relation
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError
from faircount.core.questions import BlockKind, QuestionGroup, Questionnaire
from faircount.core.questions.questionnaire import EPSILON_BITS
from faircount.core.validation import check_epsilon, check_integer, check_positive
from faircount.mechanisms.base import Collected, Mechanism, set_fields
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.joint_noise.balls import Ball, CubeBall, UniformIntegers, ball_of
from faircount.mechanisms.joint_noise.distributions import cell_distribution, sum_distribution
from faircount.mechanisms.joint_noise.losses import informed_share
from faircount.mechanisms.joint_noise.radius import RadiusTable, check_scaled, radius_table
from faircount.mechanisms.sheets import extreme_sheets
from faircount.mechanisms.worst_pair import Marginal, WorstPair

# A number that is alone in its group may have balls of an L-th part of its range at an L-th part of
# epsilon. With many parts that is discrete Laplace noise of the scale range / epsilon. There are at
# most so many parts, each with an epsilon of at least 0.01: more would only make tables longer.
_MAX_PARTS = 128
_PARTS_PER_EPSILON = 100

# Distance of a uniform integer from the ideal one (see `UniformIntegers`).
_DRAW_DISTANCE = 2.0**-129


@dataclass(frozen=True)
class GroupNoise:
    """The noise of one group: its balls, and epsilon per step of the radius.

    group:  the questions and their share of epsilon
    balls:  one per block of their cells, in the order of the group
    scaled: epsilon per step of the radius, in units of 2^-128
    """

    group: QuestionGroup
    balls: tuple[Ball, ...]
    scaled: int

    @classmethod
    def of(cls, questionnaire: Questionnaire, group: QuestionGroup) -> "GroupNoise":
        """Return the noise of a group of questions."""
        blocks = questionnaire.blocks_of(group)
        scaled = group.scaled_epsilon
        # Also where a step of the radius costs a part of it: the page has one rule for all groups.
        check_scaled(scaled)
        if len(blocks) == 1 and blocks[0].kind is BlockKind.NUMBER:
            parts = best_parts(blocks[0].bound, scaled)
            # Any change of the number lies in Ball(parts), so a step may cost a part of epsilon.
            step = -(-blocks[0].bound // parts)
            return cls(group, (CubeBall(1, step),), scaled // parts)
        return cls(group, tuple(map(ball_of, blocks)), scaled)

    @property
    def table(self) -> RadiusTable:
        """The distribution of the radius."""
        return radius_table(self.balls, self.scaled)

    @property
    def distance(self) -> float:
        """Distance of what is drawn from the ideal noise: of the radius, and of all integers."""
        return self.table.distance + _DRAW_DISTANCE * sum(ball.draws for ball in self.balls)

    @property
    def table_delta(self) -> float:
        """What the finite table adds to delta at any epsilon, also of a composition.

        For any event P' <= P + d <= e^epsilon Q + d <= e^epsilon (Q' + d) + d, where P and Q are
        the ideal distributions for two sheets, P' and Q' those that are drawn from, and d is their
        distance.
        """
        return (1 + math.exp(float(self.group.epsilon))) * self.distance

    @property
    def response(self) -> LossPair:
        """What the group loses at worst, as a randomized response that may say nothing."""
        epsilon = float(self.group.epsilon)
        # A loss is -epsilon, 0 or +epsilon only where one step of the radius costs all of epsilon.
        if self.scaled != self.group.scaled_epsilon:
            return randomized_response(epsilon)
        return randomized_response(epsilon, informed_share(self.balls, self.scaled))

    def draw(self, entropy: Entropy) -> list[list[int]]:
        """Draw one radius for all balls of the group, and a point in each of them."""
        source = UniformIntegers(entropy)
        table = self.table
        radius = table.draw(entropy)
        # check: one-radius - a radius for each question loses epsilon for each of them
        return [ball.draw(radius, table.largest, source) for ball in self.balls]


def best_parts(bound: int, scaled: int) -> int:
    """Return into how many parts the range of a number is divided for the least variance.

    The balls of L parts have steps of bound / L, rounded up to s. The variance is close to
    2 (s L / epsilon)^2 (1 + (epsilon / L)^2 / 12). It is compared in whole numbers, so that all
    programs find the same L.
    """
    most = min(_MAX_PARTS, bound, max(1, scaled * _PARTS_PER_EPSILON >> EPSILON_BITS))

    def cost(parts: int) -> int:
        step = -(-bound // parts)
        return step**2 * (12 * (parts << EPSILON_BITS) ** 2 + scaled**2)

    return min(range(1, most + 1), key=cost)


@dataclass(frozen=True, kw_only=True)
class JointNoise(Mechanism):
    """Noise for all cells of a questionnaire at once: pure epsilon for all answers together.

    Whoever adds it sees the answers: on a table that is the process itself. Two servers each add
    the whole noise, because each knows its own; promises then count on one of them.
    """

    name: ClassVar[str] = "joint"
    collected: ClassVar[Collected] = Collected.ANSWERS
    parameter_docs: ClassVar[dict[str, str]] = {
        "questionnaire": "the questions",
        "groups": "which questions share a radius, and their shares of epsilon",
        "epsilon": "privacy loss of all answers together",
        "draws": "how many independent noises are added: 1, or 2 by two servers",
    }

    questionnaire: Questionnaire
    groups: tuple[QuestionGroup, ...]
    epsilon: float
    draws: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(
            self,
            epsilon=check_positive("epsilon", self.epsilon),
            draws=check_integer("draws", self.draws, least=1, most=2),
            groups=tuple(self.groups),
        )
        self.questionnaire.check_size()
        self.questionnaire.check_groups(self.groups, Fraction(self.epsilon))

    @cached_property
    def noises(self) -> tuple[GroupNoise, ...]:
        """The noise of every group."""
        return tuple(GroupNoise.of(self.questionnaire, group) for group in self.groups)

    @cached_property
    def _places(self) -> dict[int, tuple[GroupNoise, int]]:
        """Question -> the noise of its group, and where its first ball is among those."""
        places = {}
        for noise in self.noises:
            place = 0
            for number in noise.group.questions:
                places[number] = (noise, place)
                place += len(self.questionnaire.questions[number].blocks)
        return places

    def check_drawable(self) -> None:
        """Refuse noise that cannot be drawn, before anybody answers and waits for it."""
        for noise in self.noises:
            for ball in noise.balls:
                ball.check_drawable(noise.table.largest)

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question."""
        return self._places[question][0].group

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most: the epsilon of its group."""
        return float(self.group_of(question).epsilon)

    def noise_in(self, included: int) -> "JointNoise":
        """Return the noise of a result, which is the same for any number of people."""
        return self

    def fit(self, question: int, cells: Sequence[float], included: int) -> tuple[float, ...]:
        """Return the cells of a question as they are: their noise adds up to 0 already."""
        return tuple(cells)

    def distribution_of_scores(self, question: int, weights: Sequence[int]) -> None:
        """Return nothing: the cells are not independent, and their distribution is not known."""

    def contrast_variance(self, question: int, weights: Floats) -> float:
        """Return the variance of a weighted sum of the cells of a one-of question.

        Any two cells have the covariance -V / (N - 1), so that only differences of weights count.
        """
        cells = len(weights)
        centred = weights - weights.mean()
        return self.distribution(question).variance * cells / (cells - 1) * float(centred @ centred)

    def distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of the noise in a cell of a question's block."""
        noise, place = self._places[question]
        return cell_distribution(noise.balls, place + block, noise.scaled, self.draws)

    def distribution_of_sum(self, question: int, terms: int) -> NoiseDistribution:
        """Return the distribution of the noise in a sum of cells of a one-of question."""
        noise, place = self._places[question]
        return sum_distribution(noise.balls, place, terms, noise.scaled, self.draws)

    def draw_noise(self, entropy: Entropy) -> Ints:
        """Draw the whole noise once, a number per cell in the order of the questions."""
        noise = np.zeros(self.questionnaire.cells, dtype=np.int64)
        for drawn_by in self.noises:
            points = drawn_by.draw(entropy)
            for number in drawn_by.group.questions:
                blocks = len(self.questionnaire.questions[number].blocks)
                cells: list[int] = []
                for point in points[:blocks]:
                    cells += point
                del points[:blocks]
                noise[self.questionnaire.cell_slices[number]] = cells
        return noise

    def release(self, cells: NDArray[Any], entropy: Entropy) -> Ints:
        """Return the sums of all cells with the noise that is added to them."""
        counted = np.asarray(cells)
        if counted.shape != (self.questionnaire.cells,) or counted.dtype.kind not in "iu":
            raise AnswerError(f"give {self.questionnaire.cells} whole numbers, one per cell")
        noisy = counted.astype(np.int64)
        for _ in range(self.draws):
            noisy = noisy + self.draw_noise(entropy)
        return noisy

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """Return the cells of every user, then the noise in the last rows."""
        noise = [self.draw_noise(entropy) for _ in range(self.draws)]
        return np.vstack([np.asarray(answers, dtype=np.int64), *noise])

    def total(self, responses: Any) -> Ints:
        """Add up all rows."""
        return np.asarray(np.asarray(responses).sum(axis=0))

    def decode(self, total: Any, included: int) -> Ints:
        """Return the sums; those of a one-of question must add up to the number of users."""
        users = check_integer("included", included, least=1)
        sums = np.asarray(total, dtype=np.int64)
        if sums.shape != (self.questionnaire.cells,):
            raise AnswerError(f"sums must be {self.questionnaire.cells} numbers, one per cell")
        pairs = zip(self.questionnaire.questions, self.questionnaire.cell_slices, strict=True)
        for number, (question, where) in enumerate(pairs, 1):
            has_total = question.blocks[0].kind is BlockKind.ONE
            # check: sheet-total - spoiled counts are published
            # The noise of such a question adds up to 0, so nearly every spoiled sum shows.
            if has_total and int(sums[where].sum()) != users:
                raise CorruptSumError(
                    f"the counts of question {number} do not add up to the {users} users"
                )
        return sums

    def draw(self, population: Any, rng: np.random.Generator) -> Ints:
        """Sample noisy cells. For simulations only."""
        return self.release(population, SeededStream(int(rng.integers(1 << 62))))

    def estimate(self, aggregate: Any, included: int) -> Floats:
        """Return the cells per user: shares, and mean numbers of steps."""
        return np.asarray(aggregate, dtype=np.float64) / check_integer(
            "included", included, least=1
        )

    def variance(self, truth: Any, included: int | None = None) -> Floats:
        """Return the variance of every cell of `estimate`; it does not depend on the answers."""
        users = self.n if included is None else check_integer("included", included, least=1)
        spreads: list[float] = []
        for number, question in enumerate(self.questionnaire.questions):
            for place, block in enumerate(question.blocks):
                spreads += [self.distribution(number, place).variance] * block.cells
        return np.array(spreads) / users**2

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return two sheets of one user that differ in every answer.

        The distribution of the first cell is known exactly. Whether the cells together tell more
        than they should is what the audit learns from its runs.
        """
        small = replace(self, users=1, draws=1)
        first, second = (
            np.array([self.questionnaire.cells_from_bits(self.questionnaire.encode(sheet))])
            for sheet in extreme_sheets(self.questionnaire)
        )
        channel = Channel(1.0, noise=small.distribution(0))
        marginal = Marginal.for_added_noise(channel, int(first[0, 0]), int(second[0, 0]))
        return WorstPair(small, first, second, (marginal,), small)

    def adversary_view(
        self, responses: Any, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the published cells; what a server knows besides is its own, independent noise."""
        return self.total(responses)[None]

    @property
    def table_delta(self) -> float:
        """What the finite tables of all groups add to delta at any epsilon."""
        return math.fsum(noise.table_delta for noise in self.noises)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return an upper bound of delta: that of randomized responses, and of the finite tables.

        It is exact up to the tables where all groups consist of cubes and zero sums (`losses.py`).

        It is 0 but for the tables from the whole epsilon on. In the zero-out relation the exact
        total of a one-of question betrays a missing answer, so there is no guarantee.
        """
        if adversary == COLLECTOR or relation is not Relation.REPLACE_ONE:
            return 1.0
        # Exact, because a rounded sum of the shares could exceed epsilon by its last bit.
        spent = sum(group.epsilon for group in self.groups)
        ideal = 0.0
        if Fraction(check_epsilon(epsilon)) < spent:
            ideal = compose([self._responses], epsilon=epsilon)
        return min(1.0, ideal + self.table_delta)

    @property
    def _responses(self) -> tuple[LossPair, ...]:
        return tuple(noise.response for noise in self.noises)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return a randomized response per group: what it loses exactly, or a bound of it."""
        return None if adversary == COLLECTOR else Losses(self._responses, self.table_delta)


def split_epsilon(
    epsilon: float, groups: Sequence[Sequence[int]], shares: Sequence[float] | None = None
) -> tuple[QuestionGroup, ...]:
    """Return groups whose epsilons are in the proportion of the shares, equal by default."""
    weights = [1.0] * len(groups) if shares is None else list(shares)
    if len(weights) != len(groups):
        raise ParameterError("give one share of epsilon per group")
    parts = [Fraction(check_positive("share of epsilon", weight)) for weight in weights]
    whole = sum(parts)
    total = Fraction(check_positive("epsilon", epsilon))
    # Every epsilon is rounded down, so they never add up to more than the total.
    return tuple(
        QuestionGroup.of(total * part / whole, numbers)
        for part, numbers in zip(parts, groups, strict=True)
    )
