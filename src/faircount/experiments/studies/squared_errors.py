"""Many runs at once: estimates drawn from the law of the opened sum, or made by users who act one by one.

A sweep promises the same bits on every engine. Matrix products round differently with another number of threads, so
none is used on the way from the random numbers to an error.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.analysis.run import run
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import SeededStream
from faircount.experiments.studies.error_law import expected_error
from faircount.experiments.studies.study import ACTING, Expected, Study, people
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_law import Channel
from faircount.sweep.sweep import Point


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
    return sums if channel.noise is None else sums + channel.noise.draw(counts.shape, rng)


def blend(rows: Floats, w: Floats) -> Floats:
    """sum_g w_g rows_g: `weighting.combine`, bit for bit the same everywhere."""
    return np.asarray((w.reshape(-1, *(1,) * (rows.ndim - 1)) * rows).sum(axis=0))


def squared_errors(
    mechanism: FrequencyMechanism, holders: tuple[int, ...], runs: int, how: str, rng: np.random.Generator
) -> Floats:
    """Squared error, summed over the items, of each of `runs` surveys of the same users: privacy noise alone."""
    counts = np.tile(np.array(holders, dtype=np.int64), (runs, 1))
    return np.asarray(((estimates(mechanism, counts, how, rng) - counts / counts.sum(axis=1)[0]) ** 2).sum(axis=1))


def noise_study(mechanism: Callable[[Point], FrequencyMechanism], **said: Any) -> Study:
    """A study of one mechanism at every point: squared errors of its runs, beside the law of its own channel."""

    def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
        return {"noise": squared_errors(mechanism(point), people(point), runs, str(point["how"]), rng)}

    def theory(point: Point) -> dict[str, Expected]:
        return {"noise": expected_error(mechanism(point), people(point))}

    return Study(task=task, theory=theory, items=lambda point: len(people(point)), **said)
