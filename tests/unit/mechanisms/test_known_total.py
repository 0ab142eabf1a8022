"""Counts that are fitted to the known number of people: distributions, coverage and accuracy, enumerated."""

from itertools import product

import numpy as np
import pytest

import faircount as fc
from faircount.estimation.intervals import interval
from faircount.estimation.result import Result
from faircount.estimation.weighted_distribution import WeightedGroup
from faircount.estimation.weighted_intervals import weighted_interval
from faircount.mechanisms.count_distribution import (
    FINEST_FIT,
    Channel,
    NoiseDistribution,
    fit_noise,
)
from faircount.mechanisms.decoys import coin_noise
from faircount.mechanisms.laplace import laplace_noise
from faircount.planning.plan import compare_mechanisms

UNEVEN = NoiseDistribution(-1, np.array([0.2, 0.5, 0.05, 0.25]))
HALVES = NoiseDistribution(-2, np.array([0.1, 0.2, 0.4, 0.1, 0.2]), scale=2)


def every_noise(distribution: NoiseDistribution, items: int) -> tuple[np.ndarray, np.ndarray]:
    """All vectors of independent noise, one per row, and their probabilities."""
    vectors = np.array(list(product(distribution.values, repeat=items)))
    weights = np.array([np.prod(row) for row in product(distribution.pmf, repeat=items)])
    return vectors, weights


@pytest.mark.parametrize(
    "distribution", [UNEVEN, HALVES, coin_noise(3)], ids=["uneven", "halves", "coins"]
)
@pytest.mark.parametrize("items", [2, 3, 5])
def test_the_fitted_distribution_is_that_of_all_noise_vectors(
    distribution: NoiseDistribution, items: int
) -> None:
    vectors, weights = every_noise(distribution, items)
    errors = vectors[:, 0] - vectors.mean(axis=1)
    fitted = fit_noise(distribution, items)
    steps = np.rint(errors * fitted.scale).astype(int) - fitted.low
    exact = np.bincount(steps, weights, minlength=fitted.pmf.size)
    assert fitted.pmf == pytest.approx(exact, abs=1e-15)
    assert fitted.mean == pytest.approx(0, abs=1e-12)
    assert fitted.variance == pytest.approx(distribution.variance * (1 - 1 / items), rel=1e-12)


def test_long_distributions_are_transformed_with_the_same_result() -> None:
    """By Fourier transforms, against the sum over the own noise of the tail of the others."""
    distribution = laplace_noise(0.02, 1.3)
    fitted = fit_noise(distribution, 30)
    others = laplace_noise(0.02, 29 * 1.3)
    above = np.append(np.cumsum(others.pmf[::-1])[::-1], 0.0)
    for step in (-20_000, -3_000, 0, 1, 12_345):
        least = np.clip(
            29 * (distribution.low + np.arange(distribution.pmf.size)) - step - others.low,
            0,
            others.pmf.size,
        )
        exact = float((distribution.pmf * above[least]).sum())
        assert fitted.pmf[: step - fitted.low + 1].sum() == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("distribution", "counts"),
    [
        (coin_noise(6), (2, 7)),
        (UNEVEN, (0, 4, 1)),
        (HALVES, (5, 0, 3)),
        (coin_noise(3), (1, 2, 0, 6)),
    ],
    ids=["two", "uneven", "halves", "four"],
)
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_every_interval_covers_by_enumeration(
    distribution: NoiseDistribution, counts: tuple, confidence: float
) -> None:
    """All outcomes of a survey: the probability that the interval holds the true count."""
    truth = np.array(counts)
    vectors, weights = every_noise(distribution, truth.size)
    made = interval(
        truth + vectors,
        Channel(1.0, noise=distribution),
        int(truth.sum()),
        confidence=confidence,
        known_total=True,
    )
    covered = made.contains(truth / truth.sum())
    assert (weights @ covered >= confidence - 1e-12).all()
    # Intervals that covered much more than they say would be too wide; noise is coarse here.
    least, most = fit_noise(distribution, truth.size).quantiles((1 - confidence) / 2)
    errors = vectors - vectors.mean(axis=1, keepdims=True)
    inside = (errors >= least - 1e-9) & (errors <= most + 1e-9)
    # An interval is also cut to [0, n], where its end may be the truth.
    assert (weights @ covered >= weights @ inside - 1e-12).all()
    inner = (truth > distribution.values.max() * 2 + 1) & (
        truth < truth.sum() - distribution.values.max() * 2 - 1
    )
    assert (weights @ covered)[inner] == pytest.approx((weights @ inside)[inner])


@pytest.mark.parametrize("covers", ["users", "population"])
def test_fitted_intervals_are_narrower_on_average(covers: str) -> None:
    rng = np.random.default_rng(4)
    mechanism = fc.Decoys(items=5, users=300, epsilon=1.0, delta=1e-6)
    widths = []
    for _ in range(40):
        made = Result(mechanism, mechanism.draw(np.array([100, 80, 60, 40, 20]), rng), 300)
        bounds = made.interval(covers=covers)
        assert "uses the known total of 300 users" in bounds.method
        raw = made.interval(covers=covers, raw=True)
        assert "total" not in raw.method
        widths.append((bounds.width.mean(), raw.width.mean()))
    fitted, raw = np.mean(widths, axis=0)
    assert fitted < (0.92 if covers == "users" else 0.999) * raw


def test_groups_are_fitted_each_to_its_own_total() -> None:
    """100 runs with three items: above 36 misses of 300 would be a false alarm once in a million."""
    rng = np.random.default_rng(6)
    counts = np.array([[30, 20, 10], [5, 15, 20]])
    channels = [Channel(1.0, noise=coin_noise(coins)) for coins in (40, 12)]
    parts = [
        WeightedGroup(share, channel.fitted_to_total(3), users)
        for share, channel, users in zip((0.6, 0.4), channels, (60, 40), strict=True)
    ]
    raw_parts = [
        WeightedGroup(part.weight, channel, part.users)
        for part, channel in zip(parts, channels, strict=True)
    ]
    truth = counts.sum(axis=0) / 100
    covered = 0
    widths = []
    for _ in range(100):
        sums = counts + rng.binomial([[40], [12]], 0.5, (2, 3))
        pairs = zip(sums, channels, (60, 40), strict=True)
        fitted = [channel.fit(row, users) for row, channel, users in pairs]
        made = weighted_interval(fitted, parts)
        covered += int(made.contains(truth).sum())
        widths.append((made.width.mean(), weighted_interval(sums, raw_parts).width.mean()))
    assert 300 - covered <= 36
    narrow, wide = np.mean(widths, axis=0)
    assert narrow < 0.88 * wide


def test_estimates_add_up_and_raw_ones_stay() -> None:
    mechanism = fc.ServerLaplace(items=4, users=100, epsilon=1.0)
    made = Result(mechanism, np.array([44, 31, -2, 30]), 100)
    assert made.estimates.sum() == pytest.approx(1, abs=1e-12)
    assert made.raw == pytest.approx([0.44, 0.31, -0.02, 0.3])
    assert made.estimates == pytest.approx(made.raw - 0.03 / 4)
    assert made.to_dict()["raw"] == made.raw.tolist()
    ratio = mechanism.variance(np.full(4, 0.25)) / mechanism.variance(np.full(4, 0.25), raw=True)
    assert ratio == pytest.approx(np.full(4, 3 / 4))
    assert made.standard_errors == pytest.approx(
        np.sqrt(mechanism.variance(np.full(4, 0.25), 100)), rel=1e-12
    )


@pytest.mark.parametrize(
    "mechanism",
    [
        fc.DPDS(items=4, users=100, p=0.5, floor=10),
        fc.TSSPrime(items=4, users=100, p=0.5, alpha=0.5, gamma=1.0, phi=1),
        fc.OUE(items=4, users=100, epsilon=1.0),
        fc.GRR(items=4, users=100, epsilon=1.0),
        fc.Laplace(items=2, users=100, epsilon=1.0),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_sums_whose_total_is_random_or_exact_are_left_alone(mechanism) -> None:
    """Sampled totals are random, and local reports have a variance that depends on the answers."""
    channel = mechanism.channel(100)
    assert not channel.fits_total(mechanism.N)
    assert channel.fitted_to_total(mechanism.N) is channel
    sums = np.array([40, 30, 10, 9])[: mechanism.N]
    assert np.array_equal(mechanism.estimate(sums, 100), mechanism.estimate(sums, 100, raw=True))
    bounds = interval(sums, channel, 100, known_total=True)
    assert np.array_equal(bounds.low, interval(sums, channel, 100).low)


def test_distributions_that_would_be_too_long_are_left_alone() -> None:
    noise = laplace_noise(0.01, 1)
    most = int(FINEST_FIT / noise.variance**0.5)
    channel = Channel(1.0, noise=noise)
    assert channel.fits_total(most)
    assert not channel.fits_total(most + 1)


def test_an_unproven_forged_vote_is_spread_over_all_items() -> None:
    """A client that forges 30 votes moves its item by less, and all others down."""
    mechanism = fc.Decoys(items=3, users=100, epsilon=1.0, delta=1e-6)
    honest = mechanism.draw(np.array([50, 30, 20]), np.random.default_rng(1))
    forged = honest + np.array([30, 0, 0])
    moved = mechanism.estimate(forged, 100) - mechanism.estimate(honest, 100)
    assert moved == pytest.approx([0.2, -0.1, -0.1])
    raw = mechanism.estimate(forged, 100, raw=True) - mechanism.estimate(honest, 100, raw=True)
    assert raw == pytest.approx([0.3, 0, 0])


def needed(items: int, name: str, **known: object) -> int:
    made = compare_mechanisms(1000, items, 1.0, 1e-6, target_error=0.02, **known)
    return next(option.users_needed for option in made.options if option.name == name)


@pytest.mark.parametrize(
    ("items", "name", "before", "now"),
    [
        (2, "laplace", 300, 150),
        (5, "laplace", 300, 260),
        (12, "laplace", 300, 284),
        (2, "server-laplace", 400, 275),
        (5, "server-laplace", 400, 360),
        (2, "decoys", 575, 425),
        (5, "decoys", 575, 530),
    ],
)
def test_fewer_users_reach_the_same_error(items: int, name: str, before: int, now: int) -> None:
    """Users for +-2% at 95%, epsilon 1: without the total, from the noise itself, and with it."""
    assert needed(items, name) == now
    assert raw_half_width(items, name, before) <= 0.02 < raw_half_width(items, name, before - 1)


def raw_half_width(items: int, name: str, users: int) -> float:
    """The 95% half-width of independent noise on every item, each estimated by itself."""
    made = compare_mechanisms(users, items, 1.0, 1e-6)
    mechanism = next(option.mechanism for option in made.options if option.name == name)
    noise = mechanism.channel(users).noise
    # Two items share one draw, and used to have one each.
    if (items, name) == (2, "laplace"):
        noise = laplace_noise(1.0, users / mechanism.h)
    return noise.half_width(0.95) / users
