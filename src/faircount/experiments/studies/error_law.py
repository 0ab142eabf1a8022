"""The law of a squared error that is summed over the items, from the cumulants of each estimated frequency.

An error X with cumulants k2, k3, k4, k6 has a square with mean k2, variance k4 + 2 k2^2 and third central moment
k6 + 12 k4 k2 + 10 k3^2 + 8 k2^3. For independent items these add up. Where errors of different items are correlated,
the terms that a normal law would have, 2 k2^2 and 8 k2^3, become traces of powers of the covariance; the others are
small there and are taken item by item.
"""

from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats
from faircount.experiments.studies.study import Expected
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_law import Channel, NoiseLaw


@dataclass(frozen=True)
class Cumulants:
    """Cumulants of every item's error: of orders 2, 3, 4 and 6."""

    second: Floats
    third: Floats
    fourth: Floats
    sixth: Floats

    def scaled(self, factor: float) -> "Cumulants":
        """Of the error times a number."""
        second, fourth = self.second * factor**2, self.fourth * factor**4
        return Cumulants(second, self.third * factor**3, fourth, self.sixth * factor**6)

    def __add__(self, other: "Cumulants") -> "Cumulants":
        """Of the sum of two independent errors."""
        second, third = self.second + other.second, self.third + other.third
        return Cumulants(second, third, self.fourth + other.fourth, self.sixth + other.sixth)


def cumulants(channel: Channel, counts: Floats, n: int) -> Cumulants:
    """Of each estimated frequency, given how many of the n users hold the item."""
    total = _coins(counts, channel.hit) + _coins(n - counts, channel.miss)
    if channel.noise is not None:
        total = total + _of_noise(channel.noise, counts)
    return total.scaled(1 / (n * (channel.hit - channel.miss)))


def _coins(users: Floats, chance: float) -> Cumulants:
    """Of the number of heads among so many coins."""
    v = chance * (1 - chance)
    third, sixth = v * (1 - 2 * chance), v * (1 - 30 * v + 120 * v**2)
    return Cumulants(users * v, users * third, users * v * (1 - 6 * v), users * sixth)


def _of_noise(law: NoiseLaw, counts: Floats) -> Cumulants:
    """Of a noise that every item gets, whoever holds it."""
    m2, m3, m4, m6 = (float((law.pmf * (law.values - law.mean) ** order).sum()) for order in (2, 3, 4, 6))
    sixth = m6 - 15 * m4 * m2 - 10 * m3**2 + 30 * m2**3
    every = np.ones_like(counts)
    return Cumulants(every * m2, every * m3, every * (m4 - 3 * m2**2), every * sixth)


def covariance(channel: Channel, counts: Floats, n: int) -> Floats:
    """Of the estimated frequencies; a user who reports one item and no other makes them depend on each other."""
    own = cumulants(channel, counts, n).second
    if channel.independent:
        return np.diag(own)
    gap, share = channel.hit - channel.miss, counts / n
    off = -(channel.miss**2 + channel.miss * gap * (share[:, None] + share[None, :])) / (n * gap**2)
    np.fill_diagonal(off, own)
    return np.asarray(off)


def law(errors: Cumulants, spread: Floats | None = None, moved: float = 0.0) -> Expected:
    """Mean, deviation and skewness of the summed squared error.

    `spread` is the covariance of the errors where they are not independent. `moved` is the variance of the second
    cumulants themselves, where the users' split into groups is random.
    """
    k2, k3, k4, k6 = errors.second, errors.third, errors.fourth, errors.sixth
    matrix = np.diag(k2) if spread is None else spread
    squared = np.einsum("ij,jk->ik", matrix, matrix)
    variance = 2 * float(np.trace(squared)) + float(k4.sum()) + 2 * moved
    third = 8 * float((squared * matrix).sum()) + float((k6 + 12 * k4 * k2 + 10 * k3**2).sum())
    deviation = variance**0.5
    return Expected(float(np.trace(matrix)), deviation, third / deviation**3)


def expected_error(mechanism: FrequencyMechanism, holders: tuple[int, ...]) -> Expected:
    """Law of the squared error of one survey of these users: exact where items are independent."""
    counts = np.array(holders, dtype=np.float64)
    n = int(counts.sum())
    channel = mechanism.bind(n).channel(n)
    return law(cumulants(channel, counts, n), covariance(channel, counts, n))
