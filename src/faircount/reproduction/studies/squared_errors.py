"""Estimates and squared errors of many surveys: drawn as sums, or by simulating users.

A sweep promises the same bits on every engine. Matrix products round differently with another
number of threads, so none is used between the random numbers and an error.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from faircount.analysis.run import run
from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_distribution import Channel
from faircount.reproduction.studies.error_distribution import expected_error
from faircount.reproduction.studies.study import (
    USER_LEVEL,
    Expected,
    Study,
    counts_at,
    draw_stream,
)
from faircount.reproduction.sweep.sweep import Point


def draw_estimates(
    mechanism: FrequencyMechanism, counts: Ints, how: str, rng: np.random.Generator
) -> Floats:
    """Estimated frequencies, one row for every row of counts, all with as many users."""
    bound = mechanism.bind(int(counts[0].sum()))
    if how == USER_LEVEL:
        return np.array([simulate_survey(bound, row, rng) for row in counts])
    channel = bound.channel(bound.n)
    if channel.independent:
        sums = _draw_sums(channel, counts, rng)
    else:
        sums = np.array([bound.draw(row, rng) for row in counts])
    return (sums - _expected_zero(channel, bound.n)) / (bound.n * (channel.hit - channel.miss))


def _expected_zero(channel: Channel, n: int) -> float:
    """The expected sum of an item that nobody chooses."""
    zero = channel.miss * n
    if channel.noise is None:
        return zero
    # The mean of a noise is a whole or half step of its scale. Rounding to that removes the last
    # bits of a float, which differ between machines.
    distribution = channel.noise
    return zero + round(2 * distribution.mean * distribution.scale) / (2 * distribution.scale)


def simulate_survey(
    mechanism: FrequencyMechanism, counts: Ints, rng: np.random.Generator
) -> Floats:
    """Estimates of one survey in which every user responds and all shares are exchanged.

    They are raw, as in the paper: items are estimated each by itself.
    """
    answers = rng.permutation(np.repeat(np.arange(counts.size), counts))
    labels = mechanism.domain.labels
    # "shares" does the arithmetic of a survey without its messages.
    topology = "shares" if mechanism.makes_shares else None
    responses = [labels[answer] for answer in answers]
    return run(responses, mechanism, topology=topology, entropy=draw_stream(rng)).raw


def _draw_sums(channel: Channel, counts: Ints, rng: np.random.Generator) -> Floats:
    # The order of these draws is part of what a seed means.
    sums = rng.binomial(counts, channel.hit).astype(np.float64)
    if channel.miss:
        others = counts.sum(axis=1, keepdims=True) - counts
        sums += rng.binomial(others, channel.miss)
    if channel.noise is not None:
        sums = sums + channel.noise.draw(counts.shape, rng)
    return sums


def combine_groups(rows: Floats, weights: Floats) -> Floats:
    """sum_g w_g rows_g, as `weighting.combine`, but with the same bits on every machine."""
    column = weights.reshape(-1, *(1,) * (rows.ndim - 1))
    return np.asarray((column * rows).sum(axis=0))


def draw_squared_errors(
    mechanism: FrequencyMechanism,
    user_counts: tuple[int, ...],
    runs: int,
    how: str,
    rng: np.random.Generator,
) -> Floats:
    """Squared errors, summed over the items, of `runs` surveys of the same users.

    They contain the privacy noise alone: the truth is the frequencies of these users.
    """
    counts = np.tile(np.array(user_counts, dtype=np.int64), (runs, 1))
    truth = counts / counts.sum(axis=1)[0]
    differences = draw_estimates(mechanism, counts, how, rng) - truth
    return np.asarray((differences**2).sum(axis=1))


def make_noise_study(mechanism: Callable[[Point], FrequencyMechanism], **description: Any) -> Study:
    """A study with one mechanism at every point, whose distribution is its theory."""

    def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
        how = str(point["how"])
        errors = draw_squared_errors(mechanism(point), counts_at(point), runs, how, rng)
        return {"noise": errors}

    def theory(point: Point) -> dict[str, Expected]:
        return {"noise": expected_error(mechanism(point), counts_at(point))}

    def items(point: Point) -> int:
        return len(counts_at(point))

    return Study(task=task, theory=theory, items=items, **description)
