"""Intervals of groups put together hold as often as they say, for the frequencies of all users.

60 random splits of the same users, 4 items each: 240 intervals. The number of misses of 240 independent intervals that
hold with probability 0.95 is 32 or more with probability 5e-7 (the misses of one split are nearly independent).
The intervals themselves are checked by enumeration (tests/unit/estimation/test_weighted_intervals.py); here the weights
and the choice between them, which the data make, are part of the run.
"""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import faircount as fc
from faircount.analysis.groups import GroupedHistogram, combine_groups
from faircount.analysis.histogram import Histogram
from faircount.mechanisms.base import FrequencyMechanism

HELD = np.array([400, 300, 150, 50])
SPLITS, MOST_MISSES = 60, 32
ALMOST_SURE = 1e-6

MECHANISMS: dict[str, Callable[[float, int], FrequencyMechanism]] = {
    "laplace": lambda epsilon, items: fc.Laplace(items=items, epsilon=epsilon),
    "decoys": lambda epsilon, items: fc.Decoys(items=items, epsilon=epsilon, delta=1e-5),
    "dpds": lambda epsilon, items: fc.DPDS(items=items, p=1 - np.exp(-epsilon)),
    "oue": lambda epsilon, items: fc.OUE(items=items, epsilon=epsilon),
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
    ("name", "weights"),
    [*((each, "total") for each in ("laplace", "decoys", "dpds", "oue")), ("laplace", "uwa")],
)
def test_intervals_of_groups_hold(name: str, weights: str) -> None:
    rng, misses, short = np.random.default_rng(12), 0, 0
    truth = HELD / HELD.sum()
    for _ in range(SPLITS):
        parts = zip(("a", "b", "c"), (0.3, 1.0, 2.0), split(rng), strict=True)
        result = combine_groups(
            {g: drawn(MECHANISMS[name](eps, 4), held, rng) for g, eps, held in parts}, weights
        )
        found = result.interval()
        misses += int((~found.contains(truth)).sum())
        half = found.width / 4  # planted error: intervals of half the width
        short += int((np.abs(result.estimates - truth) > half).sum())
    assert misses < MOST_MISSES
    assert short > MOST_MISSES


def misses(
    run: Callable[[np.random.Generator], GroupedHistogram], truth: NDArray[np.float64], runs: int
) -> NDArray[np.int64]:
    """Misses of every item, and last those of a simultaneous interval of any item."""
    rng, count = np.random.default_rng(8), np.zeros(truth.size + 1, dtype=np.int64)
    for _ in range(runs):
        result = run(rng)
        count[:-1] += ~result.interval().contains(truth)
        count[-1] += not result.interval(simultaneous=True).contains(truth).all()
    return count


@pytest.mark.slow
def test_the_example_with_a_rare_item_holds_item_by_item_and_at_once() -> None:
    """x 300, y 88, z 12 in each of two levels: 0.93, 0.93, 0.55 before, and 0.52 at once."""
    held, runs = np.array([300, 88, 12]), 60

    def run(rng: np.random.Generator) -> GroupedHistogram:
        made = {
            name: drawn(MECHANISMS["dpds"](eps, 3), held, rng)
            for name, eps in (("a", 0.5), ("b", 0.6))
        }
        return combine_groups(made, "total")

    assert misses(run, held / 400, runs).max() <= binom.isf(ALMOST_SURE, runs, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["total", "uwa"])
@pytest.mark.parametrize("name", ["dpds", "laplace", "oue"])
def test_tiny_groups_single_holders_and_levels_far_apart(name: str, weights: str) -> None:
    """Two items with a large and a tiny group: the fall-back and the estimated spread weigh most here."""
    held, runs = np.array([119, 1]), 40

    def run(rng: np.random.Generator) -> GroupedHistogram:
        few = rng.multivariate_hypergeometric(held, 8)
        parts = {"few": (2.0, few), "many": (0.2, held - few)}
        made = {
            g: drawn(MECHANISMS[name](epsilon, 2), own, rng) for g, (epsilon, own) in parts.items()
        }
        return combine_groups(made, weights)

    assert misses(run, held / 120, runs).max() <= binom.isf(ALMOST_SURE, runs, 0.05)
