"""Estimates from the two tables of a survey with hidden levels.

With n people counted, y1 the published counts of everybody and y2 those of the people who were
counted again, v1 and v2 the variances of a cell and psi the shares of all people:

    base       y1 / n, whatever anybody chose. This is the estimate of every result
    again      m, the number of people in the second table, from its cells of all questions
    if alike   (1 - W) y1 / n + W y2 / m, if people who are counted again answer like everybody

The weights are those of the smallest variance, for every answer by itself:

    a = v1 / n^2,   b = (v2 (1 - 2 psi r) + psi^2 v) / m^2 + psi (1 - psi) (1 / m - 1 / n),
    W = a / (a + b),   error^2 = a b / (a + b)

where v is the variance of m and r the weight in m of the cells of this question. The last term of b
is the luck of who is counted again. All of it comes from y1 and m alone: weights from y2 would
favour what y2 says. Which estimate is shown does not depend on any test.

Those counted again are some of all, which bounds a count without any assumption:

    y2_j - noise <= count_j <= n - (y2 of all other answers) + noise
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from faircount.accounting.guarantee import Guarantee, format_rounded_up
from faircount.accounting.levels import Levels
from faircount.core import plain
from faircount.core.arrays import Floats, Ints
from faircount.core.domain import escape_controls
from faircount.core.entropy import SeededStream
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.homogeneity import SIGNIFICANCE
from faircount.estimation.question_estimates import QuestionEstimates
from faircount.estimation.sheet_estimates import ALIKE_CONDITION, IF_ALIKE, Estimate
from faircount.mechanisms.server_levels import ServerLevels

LEAST_RATIO = 5
"""From eL = 5 e1 on the second table narrows intervals. It is fixed before anybody answers: below
it, looking at both tables would make intervals wider by about 7%."""

BOTH_TABLES = "; narrowed by the table of those counted twice, who are some of all"
"""What is added to the method of intervals that use both tables."""

# Share of the error that the bounds of the first table get; the rest is that of the second one.
_FIRST_SHARE = 0.8

# Simulated surveys of alike people: p-values are multiples of 1/200.
_DRAWS = 199


@dataclass(frozen=True, slots=True)
class CountedAgain:
    """How many people were counted a second time: an estimate, and bounds of it."""

    estimate: float
    variance: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Return plain values for JSON."""
        return {"estimate": self.estimate, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class LeveledTables:
    """The two published tables of a survey, and what follows from both.

    cells:    of both tables, in the order in which they were published
    included: number of people counted
    """

    mechanism: ServerLevels
    cells: Ints
    included: int

    def base(self, question: int) -> Floats:
        """Return the published counts of everybody, one per answer."""
        counts = self.cells[self.mechanism.questionnaire.cell_slices[question]]
        if len(counts) == 1:
            # Of two answers the second is counted.
            counts = np.array([self.included - counts[0], counts[0]])
        return np.asarray(counts, dtype=np.float64)

    def second(self, question: int) -> Floats:
        """Return the published counts of those counted again, one per answer."""
        return np.asarray(self.cells[self.mechanism.second_slices[question]], dtype=np.float64)

    @cached_property
    def _count_weights(self) -> tuple[Floats, float]:
        """The weights of the questions in m, and its variance."""
        variances = []
        for number, where in enumerate(self.mechanism.second_slices):
            cells = where.stop - where.start
            variances.append(cells * self.mechanism.second_distribution(number).variance)
        # Without noise, as at a very large epsilon, all questions say the same.
        precise = 1 / np.maximum(np.array(variances), 1e-12)
        return precise / precise.sum(), float(1 / precise.sum())

    def counted_again(self, confidence: float = 0.95) -> CountedAgain:
        """Return how many people were counted again; everybody has all questions in it or none."""
        shares, variance = self._count_weights
        numbers = range(len(shares))
        totals = np.array([self.second(number).sum() for number in numbers])
        middle = float(shares @ totals)
        reach = _normal_quantile(1 - confidence) * math.sqrt(variance)
        if len(shares) == 1:
            where = self.mechanism.second_slices[0]
            # One question: the exact distribution of the sum of its cells, instead of a normal one.
            distribution = self.mechanism.second_distribution(0, where.stop - where.start)
            reach = distribution.quantiles((1 - confidence) / 2)[1]
        low, high = (min(max(middle + side * reach, 0.0), self.included) for side in (-1, 1))
        return CountedAgain(min(max(middle, 0.0), self.included), variance, low, high)

    @cached_property
    def _people(self) -> float:
        """m as a divisor: at least one person."""
        return max(self.counted_again().estimate, 1.0)

    def _shares(self, question: int) -> Floats:
        """Return psi, from the first table alone."""
        return project_to_simplex(self.base(question) / self.included)

    def _variances(self, question: int) -> tuple[float, Floats]:
        """Return a, and b of every answer."""
        n = self.included
        m = self._people
        psi = self._shares(question)
        again = self.mechanism.second_distribution(question).variance
        shares, of_count = self._count_weights
        noise = again * (1 - 2 * psi * shares[question]) + psi**2 * of_count
        drawn = psi * (1 - psi) * max(1 / m - 1 / n, 0.0)
        return self.mechanism.distribution(question).variance / n**2, noise / m**2 + drawn

    def weights(self, question: int) -> Floats:
        """Return W of every answer."""
        a, b = self._variances(question)
        # Where neither table has noise both say the same, and the first needs no assumption.
        return np.zeros_like(b) if a == 0 else a / (a + b)

    def alike(self, question: int, error: float, covers: str = "users") -> tuple[Estimate, ...]:
        """Return the weighted estimate of every answer to a question, under its condition.

        Its interval misses with about this probability if the condition is true, and much more
        often if it is not.
        """
        n = self.included
        a, _ = self._variances(question)
        weights = self.weights(question)
        estimates = (1 - weights) * self.base(question) / n
        estimates = estimates + weights * self.second(question) / self._people
        psi = self._shares(question)
        drawn = psi * (1 - psi) / n if covers == "population" else 0.0
        # a b / (a + b) = a (1 - W).
        errors = np.sqrt(a * (1 - weights) + drawn)
        reaches = _normal_quantile(error) * errors
        columns = (
            self.mechanism.choices[question].answers,
            estimates.tolist(),
            np.clip(estimates - reaches, 0, 1).tolist(),
            np.clip(estimates + reaches, 0, 1).tolist(),
            errors.tolist(),
            project_to_simplex(estimates).tolist(),
        )
        return tuple(
            Estimate(answer, IF_ALIKE, *numbers) for answer, *numbers in zip(*columns, strict=True)
        )

    @property
    def votes_per_liar(self) -> float:
        """How many votes one person can have in a weighted estimate, as votes of all people."""
        most = 1.0
        for number in range(len(self.mechanism.questionnaire)):
            weight = float(self.weights(number).max())
            # check: liar-votes - a vote in the second table counts among fewer people
            most = max(most, 1 - weight + weight * self.included / self._people)
        return most

    def bound(self, question: int, error: float) -> tuple[Floats, Floats]:
        """Return bounds of the shares of all answers that hold whatever people chose.

        Each misses with at most this probability. If both tables contradict each other, which
        happens only if one of their bounds is wrong, the bounds are those of the first table.
        """
        n = self.included
        base = self.base(question)
        second = self.second(question)
        distribution = self.mechanism.distribution(question)
        rest = (1 - _FIRST_SHARE) * error / 2
        reach = distribution.quantiles(_FIRST_SHARE * error / 2)[1]
        one = self.mechanism.second_distribution(question).quantiles(rest)[1]
        others = self.mechanism.second_distribution(question, len(base) - 1).quantiles(rest)[1]
        low = np.clip(np.maximum(base - reach, second - one), 0, n)
        high = np.clip(np.minimum(base + reach, n - (second.sum() - second) + others), 0, n)
        alone = distribution.quantiles(error / 2)[1]
        # A contradiction is rare and would leave no interval at all.
        is_empty = low > high
        low = np.where(is_empty, np.clip(base - alone, 0, n), low)
        high = np.where(is_empty, np.clip(base + alone, 0, n), high)
        return low / n, high / n

    def narrows(self, covers: str) -> bool:
        """Whether intervals of this kind use both tables; the draw of a population is not in it."""
        return covers == "users" and uses_both_tables(self.mechanism.levels)

    def to_dict(self, weakest: Guarantee, confidence: float = 0.95) -> dict[str, Any]:
        """Return plain values for JSON; the estimates themselves are with their questions.

        weakest: the guarantee of the result, which is that of the weakest level
        """
        offered = []
        for number, guarantee in enumerate(self.mechanism.levels.guarantees(weakest)):
            probability = self.mechanism.levels.probability(number)
            offered.append({**guarantee.to_dict(), "counted_again_with_probability": probability})
        weights = [self.weights(number).tolist() for number in range(len(self.mechanism.choices))]
        return {
            "offered": offered,
            "counted_again": self.counted_again(confidence).to_dict(),
            "condition": ALIKE_CONDITION,
            "weights": weights,
            "votes_per_liar": self.votes_per_liar,
            "intervals_use_both_tables": uses_both_tables(self.mechanism.levels),
            "test": {
                "p_value": self.test.p_value,
                "rejected": self.test.rejected,
                "words": self.test.words,
            },
        }

    def statements(self, weakest: Guarantee, confidence: float) -> list[tuple[str, str]]:
        """Return what a result says about levels, with labels."""
        again = self.counted_again(confidence)
        bounds = f"{plain.format_confidence(confidence)}: {again.low:,.0f} to {again.high:,.0f}"
        counted = f"about {again.estimate:,.0f} of {self.included:,} ({bounds})"
        found = [("counted twice", counted), ("test", self.test.words)]
        for guarantee in self.mechanism.levels.guarantees(weakest):
            answer, both = (
                f"epsilon {format_rounded_up(stated.epsilon, 4)}"
                for stated in (guarantee.answer, guarantee.with_level)
            )
            text = f"{answer} for the answer, {both} for answer and level together"
            found.append((f"level {escape_controls(guarantee.name)}", text))
        return found

    @cached_property
    def test(self) -> "AlikeTest":
        """A test whether those counted again answer like everybody; no estimate depends on it."""
        values = [self._p_value(number) for number in range(len(self.mechanism.questionnaire))]
        # Bonferroni: answers to different questions depend on each other in unknown ways.
        return AlikeTest(min(1.0, len(values) * min(values)))

    def _p_value(self, question: int) -> float:
        """Return the p-value of one question; the distribution of alike people is simulated."""
        n = self.included
        m = round(self._people)
        psi = self._shares(question)
        where = self.mechanism.questionnaire.cell_slices[question]
        distribution = self.mechanism.second_distribution(question)
        # The same published numbers lead to the same p-value.
        stream = SeededStream(question)
        rng = np.random.default_rng(question)
        found = self._statistic(question, self.base(question), self.second(question), psi)
        reached = 0
        for _ in range(_DRAWS):
            # As if everybody answered alike: who is counted again is then a random part of all.
            people = rng.multinomial(n, psi)
            inside = rng.multivariate_hypergeometric(people, min(m, n))
            noise = self.mechanism.base_noise(stream) + self.mechanism.base_noise(stream)
            drawn = noise[where]
            if drawn.size == 1:
                drawn = np.array([-drawn[0], drawn[0]])
            again = inside + distribution.draw(inside.shape, rng)
            reached += self._statistic(question, people + drawn, again, psi) >= found
        # The survey itself counts as one draw, so that no p-value is 0.
        return (1 + reached) / (1 + _DRAWS)

    def _statistic(self, question: int, base: Floats, second: Floats, psi: Floats) -> float:
        """Return how far the shares in the second table are from those of everybody."""
        n = self.included
        people = min(max(float(second.sum()), 1.0), n)
        gaps = second / people - base / n
        gaps = gaps - gaps.mean()
        a = self.mechanism.distribution(question).variance / n**2
        noise = self.mechanism.second_distribution(question).variance / people**2
        spread = noise + a + psi * (1 - psi) * max(1 / people - 1 / n, 0.0)
        return float((gaps**2 / np.maximum(spread, 1e-300)).sum())


@dataclass(frozen=True, slots=True)
class AlikeTest:
    """Outcome of a test whether those counted again answer like everybody."""

    p_value: float

    @property
    def rejected(self) -> bool:
        """Whether they differ by more than chance."""
        return self.p_value <= SIGNIFICANCE

    @property
    def words(self) -> str:
        """The outcome in a sentence."""
        if self.rejected:
            return (
                "Those counted twice answered differently from everybody (p = "
                f"{self.p_value:.3g}): the estimates under that condition are wrong."
            )
        return (
            f"No difference between them and everybody was found (p = {self.p_value:.3g}). This "
            "does not prove that they are alike: with this much noise only large differences show."
        )


def uses_both_tables(levels: Levels) -> bool:
    """Whether intervals without assumptions use the second table, too."""
    # As floats: five times 0.1 is then 0.5, as an owner writes it.
    return levels.most >= LEAST_RATIO * levels.base


def add_levels(
    tables: LeveledTables, question: QuestionEstimates, error: float
) -> QuestionEstimates:
    """Return the estimates of a question with what the second table says about it."""
    number = question.number - 1
    covers = question.coverage.covers
    rows = question.estimates
    if tables.narrows(covers):
        low, high = tables.bound(number, error)
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        narrowed = [
            replace(row, low=least, high=most)
            for row, (least, most) in zip(question.shares, pairs, strict=True)
        ]
        rows = (*narrowed, *rows[len(narrowed) :])
    return replace(question, estimates=rows, alike=tables.alike(number, error, covers))


def _normal_quantile(error: float) -> float:
    """Return how many standard deviations a normal value exceeds with half of this probability."""
    return NormalDist().inv_cdf(1 - error / 2)
