"""The distribution of an item's sum: 95% errors must hold 95% of the time, exactly and in draws."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import faircount as fc
from faircount.mechanisms.count_distribution import (
    NORMAL_FROM,
    Channel,
    NoiseDistribution,
    fit_noise,
)

MECHANISMS = [
    fc.GRR(items=2, users=28, epsilon=5.0),
    fc.GRR(items=5, users=73, epsilon=2.0),
    fc.OUE(items=4, users=40, epsilon=3.0),
    fc.DPDS(items=3, users=31, p=0.4, floor=5),
    fc.Laplace(items=3, users=50, epsilon=1.0),
    fc.Decoys(items=3, users=51, coins=75),
]


def inside(distribution: Channel, holders: int, users: int, half: float) -> float:
    """P(|estimate - truth| <= half), summed over all outcomes of the holders and the others."""
    ours = np.arange(holders + 1)[:, None]
    others = np.arange(users - holders + 1)
    chance = stats.binom.pmf(ours, holders, distribution.hit) * stats.binom.pmf(
        others, users - holders, distribution.miss
    )
    estimate = (
        (ours + others - users * distribution.miss) / (distribution.hit - distribution.miss) / users
    )
    return float(chance[np.abs(estimate - holders / users) <= half + 1e-12].sum())


@pytest.mark.parametrize("mechanism", MECHANISMS[:4], ids=str)
def test_half_widths_hold_and_no_smaller_ones_do(mechanism: Any) -> None:
    users = mechanism.n
    distribution = mechanism.channel(mechanism.n)
    half = mechanism.expected_errors(users)[1]
    # The average number of holders may be fractional.
    around = (users // mechanism.N, -(-users // mechanism.N))
    assert min(inside(distribution, holders, users, half) for holders in around) >= 0.95
    assert min(inside(distribution, holders, users, half * (1 - 1e-6)) for holders in around) < 0.95


def test_a_normal_distribution_would_hold_less_often_than_it_says() -> None:
    """28 users, two items, epsilon 5: 1.96 standard errors hold in 83.6% of the cases."""
    mechanism = MECHANISMS[0]
    error, half = mechanism.expected_errors(28)
    assert inside(mechanism.channel(28), 14, 28, 1.96 * error) == pytest.approx(0.836, abs=5e-4)
    assert inside(mechanism.channel(28), 14, 28, half) > 0.95


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_draws_are_as_often_inside_as_stated(mechanism: Any) -> None:
    """4,000 draws, with a margin of five deviations: a false alarm once in 3 million times.

    An interval of six tenths of the half-width fails the test.
    """
    users = mechanism.n
    runs = 4_000
    counts = np.full(mechanism.N, users // mechanism.N)
    # The remainder goes to the first items.
    counts[: users - int(counts.sum())] += 1
    rng = np.random.default_rng(7)
    half = mechanism.expected_errors(users)[1] + 1e-12
    drawn = [mechanism.estimate(mechanism.draw(counts, rng), users)[0] for _ in range(runs)]
    off = np.abs(np.array(drawn) - counts[0] / users)
    least = 0.95 - 5 * math.sqrt(0.05 * 0.95 / runs)
    assert (off <= half).mean() >= least
    assert (off <= 0.6 * half).mean() < least


def test_wide_sums_are_taken_for_normal_and_that_makes_no_difference() -> None:
    distribution = Channel(0.75, 0.25)
    # The standard deviation is just above the limit.
    users = 4 * math.ceil(4 * NORMAL_FROM**2 / 3)
    error, half = distribution.expected_errors(4, users)
    assert half == pytest.approx(1.96 * error, rel=1e-4)
    exact = distribution.distribution(users // 4, users)
    off = np.abs(exact.values - exact.mean) / users / 0.5
    assert exact.pmf[off <= half].sum() == pytest.approx(0.95, abs=1e-3)


@pytest.mark.parametrize(
    "mechanism",
    [
        fc.Laplace(items=2, epsilon=1.0),
        fc.Laplace(items=40, epsilon=0.1),
        fc.Decoys(items=3, epsilon=1.0, delta=1e-3),
        fc.DPDG(items=3, epsilon=1.0, delta=1e-3),
        fc.ServerLaplace(items=3, epsilon=1.0),
    ],
    ids=str,
)
def test_rounding_leaves_nothing_of_a_count_of_zero(mechanism: Any) -> None:
    channel = mechanism.bind(1000).channel(1000)
    coins = channel.noise.mean if channel.noise.low == 0 else 0.0
    assert channel.estimate(np.array([coins]), 1000).tolist() == [0.0]
    fitted = channel.fitted_to_total(mechanism.N)
    if fitted is not channel:
        assert fitted.noise.mean == 0.0
        assert fitted.estimate(np.array([0, 1000]), 1000).tolist() == [0.0, 1.0]


def test_the_mean_of_lopsided_noise_is_that_of_its_points() -> None:
    distribution = NoiseDistribution(3, np.array([0.5, 0.25, 0.25]), scale=2)
    assert distribution.mean == pytest.approx((3 * 0.5 + 4 * 0.25 + 5 * 0.25) / 2, abs=1e-15)
    assert fit_noise(distribution, 3).mean == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ((1,), True),
        ((1, 2, 2, 1), True),
        ((3, 2, 1), True),
        ((2, 1, 2), False),
        ((1, 2, 1, 2), False),
    ],
)
def test_one_peak_is_told_from_several(weights: tuple[int, ...], expected: bool) -> None:
    pmf = np.array(weights) / sum(weights)
    assert NoiseDistribution(0, pmf).has_one_peak is expected
