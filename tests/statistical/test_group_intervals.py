"""Intervals of groups put together hold as often as they say, for the frequencies of all users.

150 random splits of the same users, 4 items each: 600 intervals. The number of misses of 600 independent intervals that
hold with probability 0.95 is 61 or more with probability 1e-6 (the misses of one split are nearly independent).
"""

import numpy as np
import pytest

import faircount as fc
from faircount.analysis.groups import combined
from faircount.analysis.histogram import Histogram
from faircount.mechanisms.base import FrequencyMechanism

HELD = np.array([400, 300, 150, 50])
SPLITS, MOST_MISSES = 150, 61

MECHANISMS = {
    "laplace": lambda epsilon: fc.Laplace(items=4, epsilon=epsilon),
    "decoys": lambda epsilon: fc.Decoys(items=4, epsilon=epsilon, delta=1e-5),
    "dpds": lambda epsilon: fc.DPDS(items=4, p=1 - np.exp(-epsilon)),
    "oue": lambda epsilon: fc.OUE(items=4, epsilon=epsilon),
}


def split(rng: np.random.Generator) -> list[np.ndarray]:  # type: ignore[type-arg]
    """Three groups of 300, of users drawn at random."""
    first = rng.multivariate_hypergeometric(HELD, 300)
    second = rng.multivariate_hypergeometric(HELD - first, 300)
    return [first, second, HELD - first - second]


def drawn(mechanism: FrequencyMechanism, held: np.ndarray, rng: np.random.Generator) -> Histogram:  # type: ignore[type-arg]
    bound = mechanism.bind(int(held.sum()))
    return Histogram(bound, bound.draw(held, rng), bound.n)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "weights"), [*((each, "total") for each in ("laplace", "decoys", "dpds", "oue")), ("laplace", "uwa")]
)
def test_intervals_of_groups_hold(name: str, weights: str) -> None:
    rng, misses, short = np.random.default_rng(12), 0, 0
    truth = HELD / HELD.sum()
    for _ in range(SPLITS):
        parts = zip(("a", "b", "c"), (0.3, 1.0, 2.0), split(rng), strict=True)
        result = combined({g: drawn(MECHANISMS[name](eps), held, rng) for g, eps, held in parts}, weights)
        found = result.interval()
        misses += int((~found.contains(truth)).sum())
        half = found.width / 4  # planted error: intervals of half the width
        short += int((np.abs(result.estimates - truth) > half).sum())
    assert misses < MOST_MISSES
    assert short > MOST_MISSES
