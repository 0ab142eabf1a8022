"""Local randomizers for a mean of values in [-1, 1]: Duchi et al. (2018) and PM (Wang et al. 2019), as in Fig. 5.

Both on a lattice of K cells, because a report that is a floating-point number leaks through its last bits. The value x
goes to a window of w cells starting at s, s = (x+1)/2 (K-w) rounded up or down at random with that mean; the report i
is a cell (see `local.Window`), and stands for the number

    y = (i - (K-1)/2) / A,      A = excess * w * (K-w) / 2,      E[y | x] = x

With K = 2, w = 1 this is Duchi's method to the letter (y = +-(e^epsilon+1)/(e^epsilon-1)); as K grows it becomes PM.
The rounding comes before the window, so privacy does not depend on it.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import LossPair
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError
from faircount.core.validation import integer
from faircount.mechanisms.base import keep
from faircount.mechanisms.local import Window, WindowMechanism, exp_below, logs
from faircount.mechanisms.worst_pair import Part, WorstPair

MOST_CELLS = 1 << 16  # squares of 2^31 reports still add up below 2^63


@dataclass(frozen=True, slots=True)
class ReportSums:
    """All that is used of the reports: the sum of the cells and of their squares."""

    total: int
    squares: int


@dataclass(frozen=True, kw_only=True)
class LocalMean(WindowMechanism):
    """A local randomizer for the mean of one number per user, each in [-1, 1]."""

    @cached_property
    def steps(self) -> int:
        """K - w: a window starts at 0..steps."""
        return self.window.cells - self.window.width

    @property
    def report_magnitude(self) -> float | None:
        """B where every report stands for +B or -B, else None."""
        return None

    @property
    def uninformed(self) -> float:
        """Probability that a report is uniform over all cells, whatever the value."""
        return float(self.window.other * self.window.cells)

    @cached_property
    def scale(self) -> Fraction:
        """A: cells by which the mean report moves when x moves by 1, exactly."""
        return self.window.excess * self.window.width * self.steps / 2

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Ints:
        """One cell for each user's value in [-1, 1]."""
        return self.window.draw(round_randomly(self._checked(answers), self.steps, entropy), entropy)

    def worst_pair(self, epsilon: float, *, reader: bool = False) -> WorstPair:
        """One user at either end, whose windows overlap least."""
        cells, width, steps = self.window.cells, self.window.width, self.steps
        far, near = np.full(cells, float(self.window.other)), np.full(cells, float(self.window.other))
        far[steps:] = near[:width] = float(self.window.own)
        law = Part(0, LossPair(logs(*far), logs(*near)))
        return WorstPair(replace(self, users=1), np.array([1.0]), np.array([-1.0]), (law,), self)

    def seen(self, responses: Ints, copies: int, insiders: int) -> Ints:
        """The reported cell."""
        return responses.reshape(copies, 1)

    def total(self, responses: NDArray[Any]) -> ReportSums:
        """Sum of the reports and of their squares."""
        cells = self.reported_cells(responses)
        return ReportSums(int(cells.sum()), int(cells @ cells))

    def decode(self, total: ReportSums, included: int) -> ReportSums:
        """The same sums, checked: some list of `included` cells must have them."""
        n = integer("included", included, least=1)
        last, odd = self.window.cells - 1, (total.total + total.squares) % 2
        if not 0 <= total.total <= last * n or not total.total <= total.squares <= last * total.total or odd:
            raise CorruptSumError(f"no {n} reports from 0 to {last} have these sums: a report was corrupted")
        if total.total**2 > n * total.squares:
            raise CorruptSumError(f"the squares are too small for {n} reports with this sum: a report was corrupted")
        return total

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> ReportSums:
        """Report sums for a population of values, one per user, from a floating-point generator."""
        position = (self._checked(population) + 1) / 2 * self.steps
        starts = np.floor(position).astype(np.int64)
        starts += rng.random(starts.size) < position - starts
        return self.total(self.window.simulate(starts, rng))

    def estimate(self, aggregate: ReportSums, included: int) -> float:
        """Unbiased estimate of the mean of the included users' values; noise may carry it out of [-1, 1]."""
        n = integer("included", included, least=1)
        return (2 * aggregate.total - n * (self.window.cells - 1)) / (2 * n * float(self.scale))

    def report_variance(self, values: NDArray[Any]) -> Floats:
        """V(x): variance of a user's y given its value, rounding included, exactly."""
        x = self._numbers(values)
        position = (x + 1) / 2 * self.steps
        fraction = position - np.floor(position)
        fixed, lift = self._moments
        return np.asarray(fixed + lift * ((x * self.steps / 2) ** 2 + fraction * (1 - fraction)) - x**2)

    @cached_property
    def _moments(self) -> tuple[float, float]:
        """E[y^2] = first + second * E[(s - steps/2)^2]."""
        K, w, excess = self.window.cells, self.window.width, self.window.excess
        around = self.window.other * K * (K**2 - 1) / 12 + excess * w * (w**2 - 1) / 12
        return float(around / self.scale**2), float(excess * w / self.scale**2)

    @property
    def variance_coefficients(self) -> tuple[float, float]:
        """(c0, c1) with V(x) <= c0 + c1 x^2, in which the rounding stands at its most, 1/4: short by 1/steps^2."""
        fixed, lift = self._moments
        return fixed + lift / 4, lift * self.steps**2 / 4 - 1

    def variance(self, truth: NDArray[Any], included: int | None = None) -> float:
        """Variance of `estimate` for users with these values (or, included given, for so many like them)."""
        each = self.report_variance(truth)
        count = (self.users or each.size) if included is None else integer("included", included, least=1)
        return float(each.mean()) / count

    def mean_square(self, aggregate: ReportSums, included: int) -> float:
        """Estimate of the mean of x^2 from the reports, cut to [0, 1]: E[y^2] = c0 + (1 + c1) x^2."""
        n, last = integer("included", included, least=1), self.window.cells - 1
        centred = 4 * aggregate.squares - 4 * last * aggregate.total + n * last**2  # 4 sum (i - last/2)^2, exactly
        c0, c1 = self.variance_coefficients
        return min(1.0, max(0.0, (centred / (4 * n * float(self.scale) ** 2) - c0) / (1 + c1)))

    def noise_variance(self, aggregate: ReportSums, included: int) -> float:
        """Estimate of the variance of `estimate` from the reports alone: costs no privacy."""
        c0, c1 = self.variance_coefficients
        return (c0 + c1 * self.mean_square(aggregate, included)) / included

    def _numbers(self, values: NDArray[Any]) -> Floats:
        numbers = np.asarray(values)
        if numbers.ndim != 1 or numbers.size == 0 or numbers.dtype.kind not in "iuf":
            raise AnswerError("values must be a non-empty list of numbers, one per user")
        numbers = numbers.astype(np.float64)
        bad = np.flatnonzero(~(np.abs(numbers) <= 1))  # NaN is bad too
        if bad.size:
            raise AnswerError(
                f"{bad.size} of {numbers.size} values are not in [-1, 1] (first at position {bad[0]}): "
                "rescale or clip them by a rule that does not look at the data"
            )
        return numbers

    def _checked(self, values: NDArray[Any]) -> Floats:
        numbers = self._numbers(values)
        if self.users is not None and numbers.size != self.users:
            raise AnswerError(f"{numbers.size} values for {self.users} users: give exactly one value per user")
        return numbers


@dataclass(frozen=True, kw_only=True)
class Duchi(LocalMean):
    """Duchi's method: a report is 1 or 0, which stand for +-B, B = (e^epsilon + 1) / (e^epsilon - 1)."""

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
        """Square of the mean (corrected for noise, cut to [0, 1]), the least that the mean square can be.

        Reports of +-B say nothing about the spread of the values, so `noise_variance` is an upper estimate here.
        """
        mean, (bound, _) = self.estimate(aggregate, included), self.variance_coefficients
        return min(1.0, max(0.0, mean**2 - (bound - mean**2) / max(1, included - 1)))

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> ReportSums:
        """Report sums, one binomial for each distinct value: P(1 | x) = (1 + x / B) / 2."""
        values, users = np.unique(self._checked(population), return_counts=True)
        ones = int(rng.binomial(users, (1 + values * float(self.window.excess)) / 2).sum())
        return ReportSums(ones, ones)


@dataclass(frozen=True, kw_only=True)
class PM(LocalMean):
    """The piecewise mechanism on `cells` cells: V(x) tends to x^2/(z-1) + (z+3)/(3(z-1)^2), z = e^(epsilon/2)."""

    name: ClassVar[str] = "pm"
    means: ClassVar[dict[str, str]] = {"cells": "points of the grid on which a report lies"}
    cells: int = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, cells=integer("cells", self.cells, least=4, most=MOST_CELLS))

    @cached_property
    def window(self) -> Window:
        """The paper's piece [l(x), r(x)] of length C - 1 on [-C, C]: a share 1/(z+1) of the cells, at least one."""
        width = round(self.cells / (exp_below(self.epsilon / 2) + 1))
        return Window(self.cells, max(1, width), self.epsilon)


def round_randomly(values: Floats, steps: int, entropy: Entropy) -> Ints:
    """(x+1)/2 * steps rounded up or down at random, with exactly that mean for x cut to a multiple of 2^-62.

    In integers throughout: u = (x+1)/2 * 2^63, then u * steps / 2^63 in two words (steps below 2^31).
    """
    u = (values * 2.0**62).astype(np.int64).view(np.uint64) + np.uint64(1 << 62)
    low = (u & np.uint64(0x7FFFFFFF)) * np.uint64(steps)
    high = (u >> np.uint64(31)) * np.uint64(steps) + (low >> np.uint64(31))
    fraction = ((high & np.uint64(0xFFFFFFFF)) << np.uint64(31)) | (low & np.uint64(0x7FFFFFFF))
    up = entropy.words(values.size, np.uint64) >> np.uint64(1) < fraction
    return (high >> np.uint64(32)).astype(np.int64) + up
