"""Local randomizers for the mean of values in [-1, 1]: Duchi and PM, as in the paper's Figure 5.

    Duchi   Duchi, Jordan and Wainwright, JASA 2018
    PM      the piecewise mechanism (Wang et al., ICDE 2019)

Both run on a lattice of K cells, because a report that is a floating-point number leaks through its
last bits. A value x selects a window of w cells that starts at s, where s is (x+1)/2 (K-w) rounded
up or down at random without bias. The report is a cell i drawn by `local.Window`, and stands for
the number

    y = (i - (K-1)/2) / A,      A = excess * w * (K-w) / 2,      E[y | x] = x.

With K = 2 and w = 1 this is exactly Duchi's method (y = +-(e^epsilon+1)/(e^epsilon-1)); as K grows
it converges to PM. The value is rounded before the window is drawn, so privacy does not depend on
the rounding.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair
from faircount.accounting.guarantee import COLLECTOR, Adversary
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError
from faircount.core.validation import check_integer
from faircount.mechanisms.base import set_fields
from faircount.mechanisms.local import Window, WindowMechanism, exp_rounded_down, log_probabilities
from faircount.mechanisms.worst_pair import Marginal, WorstPair

# With this many cells the squares of 2^31 reports add up to less than 2^63.
MAX_CELLS = 1 << 16


@dataclass(frozen=True, slots=True)
class ReportSums:
    """The sum of the reported cells and the sum of their squares; nothing else is used of them."""

    total: int
    squares: int


@dataclass(frozen=True, kw_only=True)
class LocalMean(WindowMechanism):
    """A local randomizer for the mean of one number in [-1, 1] per user."""

    @cached_property
    def steps(self) -> int:
        """K - w, the last possible start of a window."""
        return self.window.cells - self.window.width

    @property
    def report_magnitude(self) -> float | None:
        """B if every report stands for +B or -B, otherwise None."""
        return None

    @property
    def uniform_probability(self) -> float:
        """Probability that a report is uniform over all cells, whatever the value."""
        return float(self.window.other * self.window.cells)

    @cached_property
    def scale(self) -> Fraction:
        """A: how many cells the expected report moves when x moves by 1, exactly."""
        return self.window.excess * self.window.width * self.steps / 2

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """Return one cell per user for values in [-1, 1]."""
        starts = round_at_random(self._check_all_values(answers), self.steps, entropy)
        return self.window.draw(starts, entropy)

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return one user at either end of [-1, 1], whose windows overlap least."""
        upper = np.full(self.window.cells, float(self.window.other))
        lower = upper.copy()
        upper[self.steps :] = float(self.window.own)
        lower[: self.window.width] = float(self.window.own)
        pair = LossPair(log_probabilities(*upper), log_probabilities(*lower))
        single = replace(self, users=1)
        marginals = (Marginal(0, pair),)
        return WorstPair(single, np.array([1.0]), np.array([-1.0]), marginals, self, COLLECTOR)

    def adversary_view(
        self, responses: Ints, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the reported cell."""
        return responses.reshape(copies, 1)

    def total(self, responses: NDArray[Any]) -> ReportSums:
        """Return the sum of the reports and the sum of their squares."""
        cells = self.check_reports(responses)
        return ReportSums(int(cells.sum()), int(cells @ cells))

    def decode(self, total: ReportSums, included: int) -> ReportSums:
        """Return the same sums, or raise if no list of `included` cells has them."""
        n = check_integer("included", included, least=1)
        last = self.window.cells - 1
        # i^2 and i have the same parity, and i <= i^2 <= last * i holds for every cell.
        is_odd = (total.total + total.squares) % 2
        in_range = (
            0 <= total.total <= last * n and total.total <= total.squares <= last * total.total
        )
        if not in_range or is_odd:
            raise CorruptSumError(
                f"no {n} reports from 0 to {last} have these sums: a report was corrupted"
            )
        # Cauchy-Schwarz inequality.
        if total.total**2 > n * total.squares:
            raise CorruptSumError(
                f"the squares are too small for {n} reports with this sum: a report was corrupted"
            )
        return total

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> ReportSums:
        """Sample report sums for a population given as one value per user."""
        position = (self._check_all_values(population) + 1) / 2 * self.steps
        starts = np.floor(position).astype(np.int64)
        # Only `respond` must be exact; a simulation may round with floating-point numbers.
        starts += rng.random(starts.size) < position - starts
        return self.total(self.window.simulate(starts, rng))

    def estimate(self, aggregate: ReportSums, included: int) -> float:
        """Return an unbiased estimate of the mean; noise may move it out of [-1, 1]."""
        n = check_integer("included", included, least=1)
        return (2 * aggregate.total - n * (self.window.cells - 1)) / (2 * n * float(self.scale))

    def report_variance(self, values: NDArray[Any]) -> Floats:
        """Return V(x), the exact variance of y given x, including the random rounding."""
        x = _check_values(values)
        position = (x + 1) / 2 * self.steps
        fraction = position - np.floor(position)
        # E[(s - steps/2)^2] is the square of its mean plus the variance of the rounding.
        start = (x * self.steps / 2) ** 2 + fraction * (1 - fraction)
        fixed, lift = self._moments
        return np.asarray(fixed + lift * start - x**2)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """(c, d) with E[y^2] = c + d * E[(s - steps/2)^2]."""
        K = self.window.cells
        w = self.window.width
        excess = self.window.excess
        # Variances of the uniform distributions over all cells and over a window, times their
        # weights.
        around = self.window.other * K * (K**2 - 1) / 12 + excess * w * (w**2 - 1) / 12
        return float(around / self.scale**2), float(excess * w / self.scale**2)

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """(c0, c1) with V(x) <= c0 + c1 x^2."""
        # The variance of the rounding is replaced by its maximum 1/4, which costs about 1/steps^2.
        fixed, lift = self._moments
        return fixed + lift / 4, lift * self.steps**2 / 4 - 1

    def variance(self, truth: NDArray[Any], included: int | None = None) -> float:
        """Return the variance of `estimate` for users with these values.

        With `included`, for that many users whose values are distributed like these.
        """
        variances = self.report_variance(truth)
        count = self.users or variances.size
        if included is not None:
            count = check_integer("included", included, least=1)
        return float(variances.mean()) / count

    def mean_square(self, aggregate: ReportSums, included: int) -> float:
        """Return an estimate of the mean of x^2, clipped to [0, 1].

        It follows from E[y^2] = c0 + (1 + c1) x^2.
        """
        n = check_integer("included", included, least=1)
        last = self.window.cells - 1
        # 4 sum (i - last/2)^2 as an exact integer.
        centred = 4 * aggregate.squares - 4 * last * aggregate.total + n * last**2
        c0, c1 = self.variance_coefficients
        return min(1.0, max(0.0, (centred / (4 * n * float(self.scale) ** 2) - c0) / (1 + c1)))

    def noise_variance(self, aggregate: ReportSums, included: int) -> float:
        """Estimate the variance of `estimate` from the reports alone, which costs no privacy."""
        c0, c1 = self.variance_coefficients
        return (c0 + c1 * self.mean_square(aggregate, included)) / included

    def _check_all_values(self, values: NDArray[Any]) -> Floats:
        """Return the values, or raise unless they are in [-1, 1] and one per user."""
        numbers = _check_values(values)
        if self.users is not None and numbers.size != self.users:
            raise AnswerError(
                f"{numbers.size} values for {self.users} users: give exactly one value per user"
            )
        return numbers


def _check_values(values: NDArray[Any]) -> Floats:
    """Return the values as floats, or raise unless all lie in [-1, 1]."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iuf":
        raise AnswerError("values must be a non-empty list of numbers, one per user")
    numbers = numbers.astype(np.float64)
    # Negated, so that NaN is refused too.
    outside = np.flatnonzero(~(np.abs(numbers) <= 1))
    if outside.size:
        raise AnswerError(
            f"{outside.size} of {numbers.size} values are not in [-1, 1] (first at position "
            f"{outside[0]}): rescale or clip them by a rule that does not look at the data"
        )
    return numbers


@dataclass(frozen=True, kw_only=True)
class Duchi(LocalMean):
    """Duchi's method: reports 1 and 0 mean +B and -B, B = (e^epsilon + 1) / (e^epsilon - 1).

    >>> result = fc.run([0.5, -0.5, 0.25], fc.Duchi(epsilon=1.0))
    >>> result.guarantee.epsilon
    1.0
    """

    name: ClassVar[str] = "duchi"

    @cached_property
    def window(self) -> Window:
        """Randomized response on the value rounded to one of the two ends."""
        return Window(2, 1, self.epsilon)

    @property
    def report_magnitude(self) -> float:
        """B."""
        return float(1 / self.window.excess)

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """(B^2, -1): exact, V(x) = B^2 - x^2."""
        return float(1 / self.window.excess**2), -1.0

    def mean_square(self, aggregate: ReportSums, included: int) -> float:
        """Return the square of the mean, the smallest possible mean square, clipped to [0, 1].

        It is corrected for noise. Reports of +-B say nothing about the spread of the values, so
        `noise_variance` is an upper estimate here.
        """
        mean = self.estimate(aggregate, included)
        bound = self.variance_coefficients[0]
        return min(1.0, max(0.0, mean**2 - (bound - mean**2) / max(1, included - 1)))

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> ReportSums:
        """Sample report sums, one binomial per distinct value: P(1 | x) = (1 + x / B) / 2."""
        values, users = np.unique(self._check_all_values(population), return_counts=True)
        ones = int(rng.binomial(users, (1 + values * float(self.window.excess)) / 2).sum())
        return ReportSums(ones, ones)


@dataclass(frozen=True, kw_only=True)
class PM(LocalMean):
    """The piecewise mechanism on a grid of `cells` cells.

    As the grid gets finer, V(x) tends to x^2/(z-1) + (z+3)/(3(z-1)^2) with z = e^(epsilon/2).

    >>> result = fc.run([0.5, -0.5, 0.25], fc.PM(epsilon=1.0))
    >>> result.guarantee.epsilon
    1.0
    """

    name: ClassVar[str] = "pm"
    parameter_docs: ClassVar[dict[str, str]] = {
        "cells": "number of points of the grid on which a report lies"
    }
    cells: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, cells=check_integer("cells", self.cells, least=4, most=MAX_CELLS))

    @cached_property
    def window(self) -> Window:
        """The paper's piece [l(x), r(x)] of length C - 1 on [-C, C]."""
        # The piece is a fraction 1/(z+1) of the whole range, and at least one cell.
        width = round(self.cells / (exp_rounded_down(self.epsilon / 2) + 1))
        return Window(self.cells, max(1, width), self.epsilon)


def round_at_random(values: Floats, steps: int, entropy: Entropy) -> Ints:
    """Round (x+1)/2 * steps up or down at random, without bias.

    Unbiased exactly for x truncated to a multiple of 2^-62, because no floating-point number is
    involved after that.
    """
    # u = (x+1)/2 * 2^63, then u * steps / 2^63 in two words of 31 and 32 bits (steps < 2^31).
    u = (values * 2.0**62).astype(np.int64).view(np.uint64) + np.uint64(1 << 62)
    low = (u & np.uint64(0x7FFFFFFF)) * np.uint64(steps)
    high = (u >> np.uint64(31)) * np.uint64(steps) + (low >> np.uint64(31))
    fraction = ((high & np.uint64(0xFFFFFFFF)) << np.uint64(31)) | (low & np.uint64(0x7FFFFFFF))
    # The upper 63 of 64 random bits are compared with the 63-bit fraction.
    up = entropy.words(values.size, np.uint64) >> np.uint64(1) < fraction
    return (high >> np.uint64(32)).astype(np.int64) + up
