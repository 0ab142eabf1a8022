"""The distribution of a squared error summed over the items, from the cumulants of the estimates.

An error X with cumulants k2, k3, k4, k6 has a square with

    mean                  k2
    variance              k4 + 2 k2^2
    third central moment  k6 + 12 k4 k2 + 10 k3^2 + 8 k2^3

For independent items these add up. Where errors of different items are correlated, the terms that a
normal distribution would have, 2 k2^2 and 8 k2^3, become traces of powers of the covariance. The
other terms are small there, and are taken item by item.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Floats
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.reproduction.studies.study import Expected


@dataclass(frozen=True)
class Cumulants:
    """Cumulants of orders 2, 3, 4 and 6 of the error of every item."""

    second: Floats
    third: Floats
    fourth: Floats
    sixth: Floats

    def scale_by(self, factor: float) -> "Cumulants":
        """Of the error times a number."""
        return Cumulants(
            self.second * factor**2,
            self.third * factor**3,
            self.fourth * factor**4,
            self.sixth * factor**6,
        )

    def __add__(self, other: "Cumulants") -> "Cumulants":
        """Of the sum of two independent errors."""
        return Cumulants(
            self.second + other.second,
            self.third + other.third,
            self.fourth + other.fourth,
            self.sixth + other.sixth,
        )


def error_cumulants(channel: Channel, counts: Floats, n: int) -> Cumulants:
    """Of every estimated frequency, given how many of the n users choose the item."""
    # Users who choose the item and all others report it independently.
    total = _binomial_cumulants(counts, channel.hit)
    total = total + _binomial_cumulants(n - counts, channel.miss)
    if channel.noise is not None:
        total = total + _noise_cumulants(channel.noise, counts)
    return total.scale_by(1 / (n * (channel.hit - channel.miss)))


def _binomial_cumulants(users: Floats, p: float) -> Cumulants:
    """Of a sum of as many independent Bernoulli draws as there are users."""
    v = p * (1 - p)
    third = v * (1 - 2 * p)
    sixth = v * (1 - 30 * v + 120 * v**2)
    return Cumulants(users * v, users * third, users * v * (1 - 6 * v), users * sixth)


def _noise_cumulants(distribution: NoiseDistribution, counts: Floats) -> Cumulants:
    """Of noise that is added to every item, whatever its count."""
    m2, m3, m4, m6 = _central_moments(distribution)
    # From central moments to cumulants.
    fourth = m4 - 3 * m2**2
    sixth = m6 - 15 * m4 * m2 - 10 * m3**2 + 30 * m2**3
    ones = np.ones_like(counts)
    return Cumulants(ones * m2, ones * m3, ones * fourth, ones * sixth)


# A study asks for the same noise again and again, and it has thousands of values.
@lru_cache(maxsize=64)
def _central_moments(distribution: NoiseDistribution) -> tuple[float, float, float, float]:
    """The second, third, fourth and sixth."""
    deviations = distribution.values - distribution.mean
    m2, m3, m4, m6 = (float((distribution.pmf * deviations**order).sum()) for order in (2, 3, 4, 6))
    return m2, m3, m4, m6


def error_covariance(channel: Channel, counts: Floats, n: int) -> Floats:
    """Covariance of the estimated frequencies."""
    variances = error_cumulants(channel, counts, n).second
    if channel.independent:
        return np.diag(variances)
    # A user who reports exactly one item makes the items depend on each other, as in GRR.
    gap = channel.hit - channel.miss
    share = counts / n
    sums = share[:, None] + share[None, :]
    matrix = -(channel.miss**2 + channel.miss * gap * sums) / (n * gap**2)
    np.fill_diagonal(matrix, variances)
    return np.asarray(matrix)


def squared_error_distribution(
    errors: Cumulants, covariance: Floats | None = None, variance_of_k2: float = 0.0
) -> Expected:
    """Mean, deviation and skewness of the summed squared error.

    covariance: of the errors, where they are not independent
    variance_of_k2: summed variance of the second cumulants themselves, where users are split into
        groups at random
    """
    k2 = errors.second
    k3 = errors.third
    k4 = errors.fourth
    k6 = errors.sixth
    matrix = np.diag(k2) if covariance is None else covariance
    # einsum instead of a matrix product, whose rounding depends on the number of threads.
    squared = np.einsum("ij,jk->ik", matrix, matrix)
    variance = 2 * float(np.trace(squared)) + float(k4.sum()) + 2 * variance_of_k2
    third = 8 * float((squared * matrix).sum()) + float((k6 + 12 * k4 * k2 + 10 * k3**2).sum())
    deviation = variance**0.5
    # The diagonal of the covariance holds k2, so its trace is the mean.
    return Expected(float(np.trace(matrix)), deviation, third / deviation**3)


def expected_error(mechanism: FrequencyMechanism, user_counts: tuple[int, ...]) -> Expected:
    """Distribution of one survey's squared error; exact where items are independent."""
    counts = np.array(user_counts, dtype=np.float64)
    n = int(counts.sum())
    channel = mechanism.bind(n).channel(n)
    covariance = error_covariance(channel, counts, n)
    return squared_error_distribution(error_cumulants(channel, counts, n), covariance)
