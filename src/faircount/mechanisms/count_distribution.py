"""The distribution of an item's revealed sum, in one form for all frequency mechanisms.

With Pi_j holders of item j among n users, the sum of the item is

    s_j = Bin(Pi_j, hit) + Bin(n - Pi_j, miss) + noise

    sampling            hit = p, miss = 0, no noise
    noise mechanisms    hit = 1, miss = 0, noise of the mechanism
    local randomizers   hit > miss > 0, no noise

The estimate, its variance and its intervals follow from these numbers, so they are implemented
here once.

How many people were counted is public, and every one of them has one vote. Where all items have
independent noise, the sums are therefore fitted to this total: the noise e_j of item j becomes
e_j - mean(e), whose variance is smaller by a factor 1 - 1/N. Its distribution is exact: in units of
1/N it is (N - 1) e_j minus the noise of all other items, a combination of integers.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

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

# Sums are fitted to the known total if the noise has at most this many fitted steps, of 1/N of its
# own, per standard deviation. Its distribution would not fit into memory otherwise; the total then
# says next to nothing, because there are many items or because the steps of the noise are very
# fine.
FINEST_FIT = 50_000.0

# Probability that is cut off from each tail before distributions are convolved.
_CUT_TAIL = 1e-18

# Products of lengths up to which distributions are convolved term by term.
_TERM_BY_TERM = 10**7


@dataclass(frozen=True, eq=False)
class NoiseDistribution:
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
            raise ParameterError(
                "a distribution of noise needs non-negative probabilities that sum to 1"
            )

    @cached_property
    def values(self) -> Floats:
        """The support, ascending."""
        return (self.low + np.arange(self.pmf.size, dtype=np.float64)) / self.scale

    @cached_property
    def mean(self) -> float:
        """Expected value, in counts; for symmetric noise exactly the middle of the support."""
        middle = self.low + (self.pmf.size - 1) / 2
        # Opposite points are taken together, so that no rounding is left where they cancel. Not a
        # matrix product: the rounding of those depends on the number of threads.
        steps = self.low - middle + np.arange(self.pmf.size)
        return (middle + float(((self.pmf - self.pmf[::-1]) * steps).sum()) / 2) / self.scale

    @cached_property
    def variance(self) -> float:
        """Variance, in squared counts."""
        return float((self.pmf * (self.values - self.mean) ** 2).sum())

    @cached_property
    def has_one_peak(self) -> bool:
        """Whether the probabilities rise up to one point, and fall from there on."""
        changes = np.diff(self.pmf)
        peak = int(np.argmax(self.pmf))
        return bool(np.all(changes[:peak] >= 0) and np.all(changes[peak:] <= 0))

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


def fits_total(items: int, deviation: float) -> bool:
    """Whether noise with this standard deviation, in steps, is fitted to the known total."""
    return items * deviation <= FINEST_FIT


@lru_cache(maxsize=64)
def fit_noise(noise: NoiseDistribution, items: int, terms: int = 1) -> NoiseDistribution:
    """Return the distribution of the fitted noise in a sum of so many items, by default in one.

    The noise e is independent in all items, and what is fitted has e_j - mean(e) in item j.
    """
    if terms == items:
        return NoiseDistribution(0, np.ones(1))
    distribution = _cut_tails(noise.low, _even_out(noise.pmf))
    # In steps of 1 / (items * scale): (items - terms) times the noise inside the sum, minus `terms`
    # times the noise outside. Common factors only make the steps finer than they are.
    common = math.gcd(items, terms)
    inside = _stretch(_sum_of(distribution, terms), (items - terms) // common)
    low, others = _stretch(_sum_of(distribution, items - terms), terms // common)
    pmf = _convolve(inside[1], others[::-1])
    start = inside[0] - (low + others.size - 1)
    return NoiseDistribution(start, pmf / pmf.sum(), noise.scale * items // common)


@lru_cache(maxsize=64)
def weigh_noise(noise: NoiseDistribution, weights: tuple[int, ...]) -> NoiseDistribution:
    """Return the distribution of a sum of independent symmetric noise, each times an integer."""
    distribution = _cut_tails(noise.low, _even_out(noise.pmf))
    total: _Distribution = (0, np.ones(1))
    # The noise is symmetric, so that only the sizes of the weights matter.
    for weight in map(abs, filter(None, weights)):
        low, pmf = _stretch(distribution, weight)
        total = _cut_tails(total[0] + low, _convolve(pmf, total[1]))
    return NoiseDistribution(total[0], total[1] / total[1].sum(), noise.scale)


def sum_of_draws(noise: NoiseDistribution, draws: int) -> NoiseDistribution:
    """Return the distribution of the sum of so many independent draws."""
    low, pmf = _sum_of((noise.low, noise.pmf), draws)
    return NoiseDistribution(low, pmf / pmf.sum(), noise.scale)


def sum_of_distributions(distributions: Sequence[NoiseDistribution]) -> NoiseDistribution:
    """Return the distribution of the sum of independent draws, one from each distribution."""
    # Fitted noise has finer steps than noise that adds up to 0 by itself.
    scale = math.lcm(*(distribution.scale for distribution in distributions))
    low = 0
    pmf = np.ones(1)
    for distribution in distributions:
        start, spaced = _stretch((distribution.low, distribution.pmf), scale // distribution.scale)
        low, pmf = _cut_tails(low + start, _convolve(spaced, pmf))
    return NoiseDistribution(low, pmf / pmf.sum(), scale)


# A distribution as its smallest value and the probabilities from there on.
_Distribution = tuple[int, Floats]


def _stretch(distribution: _Distribution, factor: int) -> _Distribution:
    """Return the distribution of a multiple of the noise."""
    low, pmf = distribution
    spaced = np.zeros(factor * (pmf.size - 1) + 1)
    spaced[::factor] = pmf
    return factor * low, spaced


def _even_out(pmf: Floats) -> Floats:
    """Return the mean of the probabilities and their mirror image if only rounding parts them."""
    if not np.allclose(pmf, pmf[::-1], rtol=1e-9, atol=0):
        return pmf
    return np.asarray((pmf + pmf[::-1]) / 2)


def _is_symmetric(pmf: Floats) -> bool:
    return np.array_equal(pmf, pmf[::-1])


def _cut_tails(low: int, pmf: Floats) -> _Distribution:
    below = np.cumsum(pmf)
    above = np.cumsum(pmf[::-1])
    first = int(np.searchsorted(below, _CUT_TAIL, side="right"))
    last = pmf.size - int(np.searchsorted(above, _CUT_TAIL, side="right"))
    return low + first, pmf[first:last]


def _sum_of(distribution: _Distribution, terms: int) -> _Distribution:
    """Return the distribution of the sum of independent terms, by repeated squaring."""
    total: _Distribution = (0, np.ones(1))
    while terms:
        if terms & 1:
            total = _cut_tails(total[0] + distribution[0], _convolve(total[1], distribution[1]))
        terms >>= 1
        if terms:
            distribution = _cut_tails(
                2 * distribution[0], _convolve(distribution[1], distribution[1])
            )
    return total


def _convolve(spaced: Floats, other: Floats) -> Floats:
    """Return the convolution, which is exactly symmetric if both distributions are."""
    pmf = _convolve_rounded(spaced, other)
    if _is_symmetric(spaced) and _is_symmetric(other):
        return np.asarray((pmf + pmf[::-1]) / 2)
    return pmf


def _convolve_rounded(spaced: Floats, other: Floats) -> Floats:
    """Return the convolution; term by term, which is exact in the tails, unless that is slow."""
    size = spaced.size + other.size - 1
    terms = np.flatnonzero(spaced)
    if terms.size * other.size <= _TERM_BY_TERM:
        pmf = np.zeros(size)
        product = np.empty(other.size)
        for term, weight in zip(terms.tolist(), spaced[terms].tolist(), strict=True):
            np.multiply(other, weight, out=product)
            pmf[term : term + other.size] += product
        return pmf
    length = 1 << (size - 1).bit_length()
    transformed = np.fft.rfft(spaced, length) * np.fft.rfft(other, length)
    # Rounding errors of the transform may be negative.
    return np.maximum(np.fft.irfft(transformed, length)[:size], 0.0)


def _binomial_distribution(trials: int, p: float) -> NoiseDistribution:
    """Return Bin(trials, p) without the points of negligible probability."""
    if p == 0:
        return NoiseDistribution(0, np.ones(1))
    low, logs = binomial_window(trials, p)
    kept = np.flatnonzero(logs > math.log(_NEGLIGIBLE))
    return NoiseDistribution(low + int(kept[0]), np.exp(logs[kept[0] : kept[-1] + 1]))


@dataclass(frozen=True)
class Channel:
    """The distribution of one item's sum given its number of holders.

    hit: probability that a holder is counted (the true positive rate)
    miss: probability that a user with another item is counted (the false positive rate)
    noise: noise that is added to the sum, if any
    independent: whether the sums of different items are independent given the answers
    """

    hit: float
    miss: float = 0.0
    noise: NoiseDistribution | None = None
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

    def fits_total(self, items: int) -> bool:
        """Whether the sums of so many items are fitted to the known number of counted people.

        They are if every holder is counted, nobody else is, and all items have independent noise.
        With sampling the total of the sums is itself random, and local reports have another
        variance for every item.
        """
        adds_noise = self.hit == 1 and self.miss == 0 and self.independent
        if self.noise is None or not adds_noise:
            return False
        return fits_total(items, self.noise.scale * math.sqrt(self.noise.variance))

    def fitted_to_total(self, items: int) -> "Channel":
        """Return the channel of sums that `fit` returns for so many items."""
        if self.noise is None or not self.fits_total(items):
            return self
        return Channel(1.0, noise=fit_noise(self.noise, items), independent=False)

    def fit(self, sums: NDArray[np.generic], included: int) -> Floats:
        """Return sums, along the last axis, that add up to the number of counted people.

        Where they are not fitted, they are returned as they are.
        """
        values = np.asarray(sums, dtype=np.float64)
        items = values.shape[-1]
        if not self.fits_total(items):
            return values
        # The mean of the noise is the same in all items, so it is subtracted with the excess.
        excess = values.sum(axis=-1, keepdims=True) - included
        return np.asarray(values - excess / items)

    def expected_errors(self, items: int, included: int) -> tuple[float, float]:
        """Return the standard error and the 95% half-width for an item of average frequency."""
        error = math.sqrt(float(self.variance(np.full(items, 1 / items), included).mean()))
        step = 1 / (included * (self.hit - self.miss))
        if self.noise is None and error > NORMAL_FROM * step:
            return error, Z95 * error
        # The average number of holders may be fractional: cover the integers on both sides of it.
        around = {included // items, -(-included // items)}
        widest = max(self.distribution(holders, included).half_width(0.95) for holders in around)
        return error, step * widest

    def distribution(self, holders: int, included: int) -> NoiseDistribution:
        """Return the random part of the sum of an item with this many holders."""
        # With added noise every holder is counted and nobody else, so only the noise is random.
        if self.noise is not None:
            return self.noise
        own = _binomial_distribution(holders, self.hit)
        others = _binomial_distribution(included - holders, self.miss)
        return NoiseDistribution(own.low + others.low, np.convolve(own.pmf, others.pmf))


def normal_errors(
    variance: float, items: int, included: int, scale: int = 1
) -> tuple[float, float]:
    """Return the same two errors for normal noise with this variance of a count.

    It is drawn in steps of 1 / scale.
    """
    if fits_total(items, scale * math.sqrt(variance)):
        variance = variance * (1 - 1 / items)
    error = math.sqrt(variance) / included
    return error, Z95 * error
