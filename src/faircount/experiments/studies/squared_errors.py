"""Many runs at once: estimates drawn from the law of the opened sum, or made by users who act one by one.

A sweep promises the same bits on every engine. Matrix products round differently with another number of threads, so
none is used on the way from the random numbers to an error.
"""

import math

import numpy as np
from numpy.typing import NDArray

from faircount.analysis.run import run
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import SeededStream
from faircount.experiments.studies.study import ACTING, Expected
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_law import Channel, NoiseLaw


def estimates(mechanism: FrequencyMechanism, counts: Ints, how: str, rng: np.random.Generator) -> Floats:
    """Estimated frequencies, one row for each row of counts; all rows have the same number of users."""
    bound = mechanism.bind(int(counts[0].sum()))
    if how == ACTING:
        return np.array([acted(bound, row, rng) for row in counts])
    channel = bound.channel(bound.n)
    sums = _sums(channel, counts, rng) if channel.independent else np.array([bound.draw(row, rng) for row in counts])
    return (sums - _offset(channel, bound.n)) / (bound.n * (channel.hit - channel.miss))


def _offset(channel: Channel, n: int) -> float:
    """What an item that nobody holds is expected to sum up to. The mean of a noise is a whole or half step, exactly."""
    law = channel.noise
    return channel.miss * n + (round(2 * law.mean * law.scale) / (2 * law.scale) if law else 0.0)


def acted(mechanism: FrequencyMechanism, counts: Ints, rng: np.random.Generator) -> Floats:
    """Estimates of one survey in which every user responds, shares are made, exchanged and opened."""
    answers = rng.permutation(np.repeat(np.arange(counts.size), counts))
    labels = mechanism.domain.labels
    entropy = SeededStream(int(rng.integers(2**63)))
    topology = "shares" if mechanism.makes_shares else None
    return run([labels[each] for each in answers], mechanism, topology=topology, entropy=entropy).estimates


def _sums(channel: Channel, counts: Ints, rng: np.random.Generator) -> NDArray[np.float64]:
    sums = rng.binomial(counts, channel.hit).astype(np.float64)
    if channel.miss:
        sums += rng.binomial(counts.sum(axis=1, keepdims=True) - counts, channel.miss)
    return sums if channel.noise is None else sums + _noise(channel.noise, counts.shape, rng)


def _noise(law: NoiseLaw, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """By inversion of the law's own table."""
    return law.values[np.searchsorted(np.cumsum(law.pmf[:-1]), rng.random(shape), side="right")]


def blend(rows: Floats, w: Floats) -> Floats:
    """sum_g w_g rows_g: `weighting.combine`, bit for bit the same everywhere."""
    return np.asarray((w.reshape(-1, *(1,) * (rows.ndim - 1)) * rows).sum(axis=0))


def squared_errors(
    mechanism: FrequencyMechanism, held: tuple[int, ...], runs: int, how: str, rng: np.random.Generator
) -> Floats:
    """Squared error, summed over the items, of each of `runs` surveys of the same users: privacy noise alone."""
    counts = np.tile(np.array(held, dtype=np.int64), (runs, 1))
    return np.asarray(((estimates(mechanism, counts, how, rng) - counts / counts.sum(axis=1)[0]) ** 2).sum(axis=1))


def expected_error(mechanism: FrequencyMechanism, held: tuple[int, ...]) -> Expected:
    """Theory of `squared_errors`: mean and standard deviation exactly, where items are independent."""
    counts = np.array(held, dtype=np.float64)
    n = int(counts.sum())
    channel = mechanism.bind(n).channel(n)
    second, fourth = cumulants(channel, counts, n)
    return summed(second, fourth) if channel.independent else Expected(float(second.sum()))


def summed(second: Floats, fourth: Floats, moved: float = 0.0) -> Expected:
    """Law of a sum of independent squared errors from their cumulants; the skewness is that of normal errors.

    `moved` is the variance of the second cumulants themselves, where the users' split is random.
    """
    deviation = math.sqrt(float((fourth + 2 * second**2).sum()) + 2 * moved)
    return Expected(float(second.sum()), deviation, float(8 * (second**3).sum()) / deviation**3)


def cumulants(channel: Channel, counts: Floats, n: int) -> tuple[Floats, Floats]:
    """Second and fourth cumulant of each estimated frequency: a squared error has variance k4 + 2 k2^2."""
    second, fourth = (np.zeros_like(counts), np.zeros_like(counts))
    for users, coin in ((counts, channel.hit), (n - counts, channel.miss)):
        spread = coin * (1 - coin)
        second += users * spread
        fourth += users * spread * (1 - 6 * spread)
    if channel.noise is not None:
        law = channel.noise
        second += law.variance
        fourth += law.pmf @ (law.values - law.mean) ** 4 - 3 * law.variance**2
    scale = n * (channel.hit - channel.miss)
    return second / scale**2, fourth / scale**4
