"""The distribution of a weighted sum against plain convolution: no smaller tail, hardly a larger one."""

from collections.abc import Callable
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

from faircount.core.arrays import Floats
from faircount.estimation import weighted_distribution
from faircount.estimation.weighted_distribution import Distributions, WeightedGroup, WeightedSum
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution

NOISE = NoiseDistribution(
    -3, np.array([0.1, 0.05, 0.2, 0.3, 0.2, 0.05, 0.1]), 2
)  # on multiples of 1/2

CASES = {
    "sampling": (WeightedGroup(0.2, Channel(0.3), 7), WeightedGroup(0.8, Channel(0.7), 11)),
    "local": (
        WeightedGroup(0.35, Channel(0.5, 0.3), 7),
        WeightedGroup(0.65, Channel(0.6, 0.1), 11),
    ),
    "noise": (
        WeightedGroup(0.4, Channel(1.0, noise=NOISE), 7),
        WeightedGroup(0.6, Channel(0.5, noise=NOISE), 5),
    ),
    "certain": (WeightedGroup(0.7, Channel(1.0), 4), WeightedGroup(0.3, Channel(0.999), 9)),
    "three": (
        WeightedGroup(0.5, Channel(0.9), 2),
        WeightedGroup(0.2, Channel(0.4), 5),
        WeightedGroup(0.3, Channel(0.6, 0.2), 6),
    ),
}

Distribution = tuple[Floats, Floats]


def group_distribution(part: WeightedGroup, hits: Floats, misses: Floats) -> Distribution:
    """Values and probabilities of a group's contribution, from the distributions of both coins."""
    counted = np.convolve(hits, misses)
    values = np.arange(counted.size, dtype=np.float64)
    noise = part.channel.noise
    if noise is not None:
        values = (values[:, None] + noise.values - noise.mean).ravel()
        counted = np.outer(counted, noise.pmf).ravel()
    return part.step * (values - part.channel.miss * part.users), counted


def coins(trials: int, p: float) -> Floats:
    return np.asarray(binom.pmf(np.arange(trials + 1), trials, p))


def given(parts: tuple[WeightedGroup, ...], split: tuple[int, ...]) -> Distribution:
    """Distribution of the sum for given holders."""
    values, weight = np.zeros(1), np.ones(1)
    for part, held in zip(parts, split, strict=True):
        more, chance = group_distribution(
            part, coins(held, part.channel.hit), coins(part.users - held, part.channel.miss)
        )
        values, weight = (values[:, None] + more).ravel(), np.outer(weight, chance).ravel()
    return values, weight


def mixture(
    parts: tuple[WeightedGroup, ...], chance: Callable[[tuple[int, ...]], float]
) -> Distribution:
    distributions = [
        (given(parts, split), chance(split))
        for split in product(*(range(group.users + 1) for group in parts))
    ]
    kept = [(values, c * weight) for (values, weight), c in distributions if c > 0]
    return np.concatenate([values for values, _ in kept]), np.concatenate(
        [weight for _, weight in kept]
    )


def random_split(parts: tuple[WeightedGroup, ...], holders: int) -> Distribution:
    users = sum(part.users for part in parts)
    return mixture(
        parts,
        lambda split: (
            (sum(split) == holders)
            * float(np.prod([comb(part.users, k) for part, k in zip(parts, split, strict=True)]))
            / comb(users, holders)
        ),
    )


def population(parts: tuple[WeightedGroup, ...], shares: Floats) -> Distribution:
    return mixture(
        parts,
        lambda split: float(
            np.prod(
                [
                    binom.pmf(k, part.users, q)
                    for part, k, q in zip(parts, split, shares, strict=True)
                ]
            )
        ),
    )


def check(distributions: Distributions, truth: Distribution) -> None:
    """At every tenth value of the sum: between the tail and that of a point a little nearer."""
    values, weight = truth
    near = 2 * weighted_distribution._REACH * distributions.length / weighted_distribution._CELLS
    for point in np.unique(values.round(9))[::10]:
        below, above = weight[values <= point + 1e-9].sum(), weight[values >= point - 1e-9].sum()
        wider_below, wider_above = (
            weight[values <= point + near].sum(),
            weight[values >= point - near].sum(),
        )
        assert below - 1e-6 <= distributions.below(point)[0] <= wider_below / 0.99 + 0.011
        assert above - 1e-6 <= distributions.above(point)[0] <= wider_above / 0.99 + 0.011


@pytest.mark.parametrize("name", CASES)
def test_given_holders(name: str) -> None:
    parts = CASES[name]
    total, sizes = WeightedSum(parts), [part.users for part in parts]
    for split in (
        tuple(0 for _ in sizes),
        (1, *(0 for _ in sizes[1:])),
        tuple(n // 2 for n in sizes),
        tuple(sizes),
    ):
        check(total.given_splits(np.array([split])), given(parts, split))


@pytest.mark.parametrize("name", CASES)
def test_a_random_set_of_holders(name: str) -> None:
    parts = CASES[name]
    total = WeightedSum(parts)
    for holders in sorted(
        {0, 1, 2, total.users // 2, total.users // 2 + 1, total.users - 1, total.users}
    ):
        values, weight = random_split(parts, holders)
        check(total.random_split(holders), (values, weight))
        mean = float(values @ weight)
        assert mean == pytest.approx(holders / total.users)
        spread = float(
            (values - mean) ** 2 @ weight
        )  # a random set varies n / (n - 1) times as much as a random draw
        assert total.variance(holders) <= spread * (1 + 1e-9)
        assert spread <= total.variance(holders) * total.users / (total.users - 1) + 1e-12


@pytest.mark.parametrize("name", CASES)
def test_users_from_a_population(name: str) -> None:
    parts = CASES[name]
    for shares in (np.full(len(parts), 0.3), np.linspace(0, 1, len(parts))):
        check(WeightedSum(parts).population(shares), population(parts, shares))


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Holders that are drawn one by one, not as a set of fixed size, have another distribution."""
    monkeypatch.setattr(weighted_distribution, "EXACT_SPLIT_USERS", 0)
    parts = CASES["sampling"]
    with pytest.raises(AssertionError):
        check(WeightedSum(parts).random_split(1), random_split(parts, 1))


def test_for_many_users_both_ways_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (WeightedGroup(0.2, Channel(0.3), 2000), WeightedGroup(0.8, Channel(0.7), 3000))
    exact = WeightedSum(parts).random_split(800)
    monkeypatch.setattr(weighted_distribution, "EXACT_SPLIT_USERS", 0)
    near, spread = WeightedSum(parts).random_split(800), WeightedSum(parts).variance(800) ** 0.5
    for z in (-3, -2, -1, 0, 1, 2, 3):
        assert near.below(0.16 + z * spread)[0] == pytest.approx(
            exact.below(0.16 + z * spread)[0], abs=1e-3
        )
