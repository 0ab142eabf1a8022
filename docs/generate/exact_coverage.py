"""How often an interval really holds, and how wide it is, computed by enumerating every sum that
can be opened.

Nothing is simulated: the distribution of one item's sum is known for every mechanism. It is computed here by
plain convolution, independently of the inversions in estimation that it checks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats
from faircount.core.validation import check_integer
from faircount.estimation.intervals import contains, interval, normal_quantile
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution

_NEGLIGIBLE = 1e-13  # sums less likely than this are left out of the enumeration


@dataclass(frozen=True, slots=True)
class Performance:
    """Probability that the interval holds and its expected width, beside an oracle's.

    The oracle knows the variance at the truth and uses estimate +- z standard deviations, cut to
    [0, 1] likewise.
    """

    truth: float
    coverage: float
    width: float
    oracle_coverage: float
    oracle_width: float


def sum_distribution(
    channel: Channel, included: int, truth: float, covers: str = "users"
) -> NoiseDistribution:
    """Distribution of one item's revealed sum, for `truth` the users' own frequency or that of their
    population.
    """
    if covers == "population":
        distribution = _binomial(included, channel.miss + (channel.hit - channel.miss) * truth)
    else:
        holders = round(truth * included)
        distribution = _plus(
            _binomial(holders, channel.hit), _binomial(included - holders, channel.miss)
        )
    return distribution if channel.noise is None else _plus(distribution, channel.noise)


def performance(
    channel: Channel,
    included: int,
    truths: ArrayLike,
    *,
    confidence: float = 0.95,
    covers: str = "users",
) -> list[Performance]:
    """Exact coverage and expected width of `interval` for each true frequency of an item."""
    n, values = check_integer("included", included, least=1), _possible(truths, included, covers)
    distributions = [sum_distribution(channel, n, float(value), covers) for value in values]
    sums = np.unique(np.concatenate([distribution.values for distribution in distributions]))
    made = interval(sums, channel, n, confidence=confidence, covers=covers)
    drawn = (covers == "population") * values * (1 - values) / n
    half = normal_quantile(0.5 + confidence / 2) * np.sqrt(channel.variance(values, n) + drawn)
    at = [np.searchsorted(sums, distribution.values) for distribution in distributions]
    return [
        measured(
            t,
            distribution.pmf,
            made.low[i],
            made.high[i],
            channel.estimate(distribution.values, n),
            h,
        )
        for t, distribution, i, h in zip(values, distributions, at, half, strict=True)
    ]


def ratio_performance(
    included: int, drawn: int, truths: ArrayLike, *, confidence: float = 0.95, covers: str = "users"
) -> list[Performance]:
    """The same for the ratio estimator of a sampling mechanism, given that `drawn` of the users
    were sampled.
    """
    from scipy.stats import binom, hypergeom

    n, size, values = (
        included,
        check_integer("drawn", drawn, least=1, most=included),
        _possible(truths, included, covers),
    )
    counts = np.arange(size + 1)
    made = interval(
        np.stack([counts, size - counts], axis=1),
        Channel(0.5),
        n,
        confidence=confidence,
        covers=covers,
        estimator="ratio",
    )
    users = covers == "users"
    pmfs = [
        hypergeom.pmf(counts, n, round(t * n), size) if users else binom.pmf(counts, size, t)
        for t in values
    ]
    spread = values * (1 - values) / size * ((n - size) / max(n - 1, 1) if users else 1)
    half = normal_quantile(0.5 + confidence / 2) * np.sqrt(spread)
    return [
        measured(t, pmf, made.low[:, 0], made.high[:, 0], counts / size, h)
        for t, pmf, h in zip(values, pmfs, half, strict=True)
    ]


def _possible(truths: ArrayLike, included: int, covers: str) -> Floats:
    """True frequencies; those of given users are multiples of 1/n."""
    values = np.asarray(truths, dtype=np.float64)
    return np.rint(values * included) / included if covers == "users" else values


def measured(
    truth: float, pmf: Floats, low: Floats, high: Floats, center: Floats, half: float
) -> Performance:
    """Average over the sums that can be revealed; the oracle's interval is center +- half."""
    oracle_low, oracle_high = np.clip(center - half, 0, 1), np.clip(center + half, 0, 1)
    return Performance(
        float(truth),
        float(pmf @ contains(low, high, truth)),
        float(pmf @ (high - low)),
        float(pmf @ contains(oracle_low, oracle_high, truth)),
        float(pmf @ (oracle_high - oracle_low)),
    )


def _binomial(trials: int, p: float) -> NoiseDistribution:
    from scipy.stats import binom

    return _trimmed(NoiseDistribution(0, binom.pmf(np.arange(trials + 1), trials, p)))


def _plus(counted: NoiseDistribution, other: NoiseDistribution) -> NoiseDistribution:
    """Sum of a whole-number distribution and one that may live on a finer lattice."""
    fine = np.zeros((counted.pmf.size - 1) * other.scale + 1)
    fine[:: other.scale] = counted.pmf
    return _trimmed(
        NoiseDistribution(
            counted.low * other.scale + other.low, np.convolve(fine, other.pmf), other.scale
        )
    )


def _trimmed(distribution: NoiseDistribution) -> NoiseDistribution:
    """Without the far tails; what stays is scaled back to one."""
    kept = np.flatnonzero(distribution.pmf > _NEGLIGIBLE)
    pmf = distribution.pmf[kept[0] : kept[-1] + 1]
    return NoiseDistribution(distribution.low + int(kept[0]), pmf / pmf.sum(), distribution.scale)
