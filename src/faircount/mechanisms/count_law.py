"""How an item's opened sum comes about, for every frequency mechanism alike.

    s_j = Bin(Pi_j, hit) + Bin(n - Pi_j, miss) + noise

Sampling: hit = p, miss = 0, no noise. Noise mechanisms: hit = 1, miss = 0. Local ones: two coins, no noise. Estimate,
variance and intervals follow from these few numbers, so they are written once.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.divergence import binomial_window
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.validation import real

Z95 = 1.959963984540054

NORMAL_FROM = 100.0
"""Sums with a larger standard deviation are taken for normal: 95% are then 95% to 0.1%."""

_NEGLIGIBLE = 1e-16


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """A discrete law on (low, low + 1, ...) / scale, in counts."""

    low: int
    pmf: Floats
    scale: int = 1

    def __post_init__(self) -> None:
        if np.ndim(self.pmf) != 1 or not np.all(self.pmf >= 0) or not abs(float(self.pmf.sum()) - 1) <= 1e-9:
            raise ParameterError("a noise law needs non-negative probabilities that sum to 1")

    @cached_property
    def values(self) -> Floats:
        """The support, ascending."""
        return (self.low + np.arange(self.pmf.size, dtype=np.float64)) / self.scale

    @cached_property
    def mean(self) -> float:
        """Expected value, in counts."""
        return float((self.pmf * self.values).sum())  # not a matrix product: those round by the number of threads

    @cached_property
    def variance(self) -> float:
        """Variance, in squared counts."""
        return float((self.pmf * (self.values - self.mean) ** 2).sum())

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """By inversion of the law's own table. Simulations only."""
        return self.values[np.searchsorted(np.cumsum(self.pmf[:-1]), rng.random(shape), side="right")]

    def quantiles(self, tail: float) -> tuple[float, float]:
        """The narrowest support points with at most `tail` probability strictly outside on each side."""
        below, above = np.cumsum(self.pmf), np.cumsum(self.pmf[::-1])
        low = int(np.searchsorted(below, tail, side="right"))
        high = self.pmf.size - 1 - int(np.searchsorted(above, tail, side="right"))
        return float(self.values[low]), float(self.values[max(low, high)])

    def half_width(self, share: float) -> float:
        """The smallest distance from the mean within which at least this share of the outcomes lies."""
        distance = np.abs(self.values - self.mean)
        order = np.argsort(distance, kind="stable")
        inside = np.cumsum(self.pmf[order]) + 1e-15  # of sums that are 1 but for rounding
        found = float(distance[order][min(int(np.searchsorted(inside, share)), order.size - 1)])
        return round(found, 12)  # a half coin is a half coin, whatever the mean was rounded to


def _coins(trials: int, p: float) -> NoiseLaw:
    """Bin(trials, p) without the points that nobody will ever see."""
    if p == 0:
        return NoiseLaw(0, np.ones(1))
    low, logs = binomial_window(trials, p)
    seen = np.flatnonzero(logs > math.log(_NEGLIGIBLE))
    return NoiseLaw(low + int(seen[0]), np.exp(logs[seen[0] : seen[-1] + 1]))


@dataclass(frozen=True)
class Channel:
    """The law of one item's sum given its number of holders."""

    hit: float
    miss: float = 0.0
    noise: NoiseLaw | None = None
    independent: bool = True  # whether the sums of different items are independent given the answers

    def __post_init__(self) -> None:
        if not 0 <= real("miss", self.miss) < real("hit", self.hit) <= 1:
            raise ParameterError("a channel needs 0 <= miss < hit <= 1: else a holder would count no more than another")

    def estimate(self, sums: NDArray[np.generic], included: int) -> Floats:
        """Unbiased frequencies among `included` users."""
        offset = self.miss * included + (self.noise.mean if self.noise else 0.0)
        return (np.asarray(sums, dtype=np.float64) - offset) / (included * (self.hit - self.miss))

    def variance(self, frequencies: Floats, included: int) -> Floats:
        """Variance of `estimate`, per item, given the answers: privacy noise alone."""
        holders = included * np.asarray(frequencies, dtype=np.float64)
        spread = holders * self.hit * (1 - self.hit) + (included - holders) * self.miss * (1 - self.miss)
        spread = spread + (self.noise.variance if self.noise else 0.0)
        return np.asarray(spread / (included * (self.hit - self.miss)) ** 2)

    def expected_errors(self, items: int, included: int) -> tuple[float, float]:
        """Standard error and 95% half-width of the frequency of an item that is as frequent as the average one.

        Where the average is no whole number of holders, the half-width holds with one more and with one less.
        """
        error = math.sqrt(float(self.variance(np.full(items, 1 / items), included).mean()))
        step = 1 / (included * (self.hit - self.miss))
        if self.noise is None and error > NORMAL_FROM * step:
            return error, Z95 * error
        around = {included // items, -(-included // items)}
        return error, step * max(self.law(holders, included).half_width(0.95) for holders in around)

    def law(self, holders: int, included: int) -> NoiseLaw:
        """What is random in the sum of an item with so many holders."""
        if self.noise is not None:  # every holder is counted, nobody else
            return self.noise
        held, others = _coins(holders, self.hit), _coins(included - holders, self.miss)
        return NoiseLaw(held.low + others.low, np.convolve(held.pmf, others.pmf))


def normal_errors(variance: float, included: int) -> tuple[float, float]:
    """The same for normal noise with this variance of a count."""
    error = math.sqrt(variance) / included
    return error, Z95 * error
