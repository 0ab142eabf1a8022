"""The distribution of an item's opened sum, in one form for all frequency mechanisms.

With Pi_j holders of item j among n users, the sum of the item is

    s_j = Bin(Pi_j, hit) + Bin(n - Pi_j, miss) + noise

    sampling            hit = p, miss = 0, no noise
    noise mechanisms    hit = 1, miss = 0, noise of the mechanism
    local randomizers   hit > miss > 0, no noise

The estimate, its variance and its intervals follow from these numbers, so they are implemented
here once.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import binomial_window
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.validation import check_real

# The 97.5% quantile of the standard normal distribution.
Z95 = 1.959963984540054

# A sum with a larger standard deviation is treated as normal; the coverage of a 95% interval is
# then off by at most 0.1%.
NORMAL_FROM = 100.0

# Points of a binomial distribution below this probability are dropped.
_NEGLIGIBLE = 1e-16


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """A discrete distribution with the support (low, low + 1, ...) / scale, in counts.

    low: smallest support point, in steps of 1 / scale
    pmf: probabilities of the support points, ascending
    scale: number of steps per count
    """

    low: int
    pmf: Floats
    scale: int = 1

    def __post_init__(self) -> None:
        is_vector = np.ndim(self.pmf) == 1
        # Written so that a NaN fails: every comparison with NaN is false.
        if not is_vector or not np.all(self.pmf >= 0) or not abs(float(self.pmf.sum()) - 1) <= 1e-9:
            raise ParameterError("a noise law needs non-negative probabilities that sum to 1")

    @cached_property
    def values(self) -> Floats:
        """The support, ascending."""
        return (self.low + np.arange(self.pmf.size, dtype=np.float64)) / self.scale

    @cached_property
    def mean(self) -> float:
        """Expected value, in counts."""
        # Not a matrix product: the rounding of those depends on the number of threads.
        return float((self.pmf * self.values).sum())

    @cached_property
    def variance(self) -> float:
        """Variance, in squared counts."""
        return float((self.pmf * (self.values - self.mean) ** 2).sum())

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Sample by inverting the cumulative distribution. For simulations only."""
        # The last probability is left out, so that rounding of the sum cannot lead past the end.
        cumulative = np.cumsum(self.pmf[:-1])
        return self.values[np.searchsorted(cumulative, rng.random(shape), side="right")]

    def quantiles(self, tail: float) -> tuple[float, float]:
        """Return the narrowest support points with at most `tail` probability beyond each."""
        below = np.cumsum(self.pmf)
        above = np.cumsum(self.pmf[::-1])
        low = int(np.searchsorted(below, tail, side="right"))
        high = self.pmf.size - 1 - int(np.searchsorted(above, tail, side="right"))
        return float(self.values[low]), float(self.values[max(low, high)])

    def half_width(self, coverage: float) -> float:
        """Return the smallest distance from the mean that covers this much probability."""
        distance = np.abs(self.values - self.mean)
        order = np.argsort(distance, kind="stable")
        # The small term makes up for cumulative sums that fall short of 1 by rounding.
        inside = np.cumsum(self.pmf[order]) + 1e-15
        index = min(int(np.searchsorted(inside, coverage)), order.size - 1)
        # Distances are multiples of half a step; rounding removes the error of the mean.
        return round(float(distance[order][index]), 12)


def _binomial_law(trials: int, p: float) -> NoiseLaw:
    """Return Bin(trials, p) without the points of negligible probability."""
    if p == 0:
        return NoiseLaw(0, np.ones(1))
    low, logs = binomial_window(trials, p)
    kept = np.flatnonzero(logs > math.log(_NEGLIGIBLE))
    return NoiseLaw(low + int(kept[0]), np.exp(logs[kept[0] : kept[-1] + 1]))


@dataclass(frozen=True)
class Channel:
    """The distribution of one item's sum given its number of holders.

    hit: probability that a holder is counted
    miss: probability that a user with another item is counted
    noise: noise that is added to the sum, if any
    independent: whether the sums of different items are independent given the answers
    """

    hit: float
    miss: float = 0.0
    noise: NoiseLaw | None = None
    independent: bool = True

    def __post_init__(self) -> None:
        if not 0 <= check_real("miss", self.miss) < check_real("hit", self.hit) <= 1:
            raise ParameterError(
                "a channel needs 0 <= miss < hit <= 1: "
                "otherwise the sum says nothing about the number of holders"
            )

    def estimate(self, sums: NDArray[np.generic], included: int) -> Floats:
        """Return unbiased frequencies among `included` users."""
        offset = self.miss * included + (self.noise.mean if self.noise else 0.0)
        return (np.asarray(sums, dtype=np.float64) - offset) / (included * (self.hit - self.miss))

    def variance(self, frequencies: Floats, included: int) -> Floats:
        """Return the variance of `estimate` per item given the answers."""
        holders = included * np.asarray(frequencies, dtype=np.float64)
        others = included - holders
        spread = holders * self.hit * (1 - self.hit) + others * self.miss * (1 - self.miss)
        spread = spread + (self.noise.variance if self.noise else 0.0)
        return np.asarray(spread / (included * (self.hit - self.miss)) ** 2)

    def expected_errors(self, items: int, included: int) -> tuple[float, float]:
        """Return the standard error and the 95% half-width for an item of average frequency."""
        error = math.sqrt(float(self.variance(np.full(items, 1 / items), included).mean()))
        step = 1 / (included * (self.hit - self.miss))
        if self.noise is None and error > NORMAL_FROM * step:
            return error, Z95 * error
        # The average number of holders may be fractional: cover the integers on both sides of it.
        around = {included // items, -(-included // items)}
        widest = max(self.law(holders, included).half_width(0.95) for holders in around)
        return error, step * widest

    def law(self, holders: int, included: int) -> NoiseLaw:
        """Return the random part of the sum of an item with this many holders."""
        # With added noise every holder is counted and nobody else, so only the noise is random.
        if self.noise is not None:
            return self.noise
        own = _binomial_law(holders, self.hit)
        others = _binomial_law(included - holders, self.miss)
        return NoiseLaw(own.low + others.low, np.convolve(own.pmf, others.pmf))


def normal_errors(variance: float, included: int) -> tuple[float, float]:
    """Return the same two errors for normal noise with this variance of a count."""
    error = math.sqrt(variance) / included
    return error, Z95 * error
