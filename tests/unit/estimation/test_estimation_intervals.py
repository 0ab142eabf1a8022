"""Intervals against brute force: every distribution is enumerated, so nothing here is left to chance."""

import numpy as np
import pytest
from exact_coverage import performance, ratio_performance, sum_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

import faircount as fc
from faircount.core.errors import AnswerError, ParameterError
from faircount.estimation import intervals
from faircount.estimation.intervals import (
    error_per_item,
    interval,
)
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution


def geometric(reach=200):
    pmf = np.exp(-0.5) ** np.abs(np.arange(-reach, reach + 1))
    return NoiseDistribution(-reach, pmf / pmf.sum())


def fine(scale=4, sd=3.0):
    edge = int(10 * sd * scale)
    pmf = np.exp(-((np.arange(-edge, edge + 1) / scale / sd) ** 2) / 2)
    return NoiseDistribution(-edge, pmf / pmf.sum(), scale)


COINS = NoiseDistribution(0, binom.pmf(np.arange(41), 40, 0.5))
CHANNELS = {
    "sampling": Channel(0.4),
    "certain": Channel(1.0),
    "rare": Channel(0.03),
    "laplace": Channel(1.0, noise=geometric()),
    "decoys": Channel(1.0, noise=COINS),
    "fixed point": Channel(1.0, noise=fine()),
    "sampled decoys": Channel(0.5, noise=COINS),
    "grr": Channel(0.3, 0.06, independent=False),
    "oue": Channel(0.5, 0.27),
}


def distribution_table(channel, n):
    """Probability of every sum (columns) for every number of holders (rows)."""
    distributions = [sum_distribution(channel, n, holders / n) for holders in range(n + 1)]
    sums = np.unique(np.concatenate([distribution.values for distribution in distributions]))
    table = np.zeros((n + 1, sums.size))
    for holders, distribution in enumerate(distributions):
        table[holders, np.searchsorted(sums, distribution.values)] = distribution.pmf
    return sums, table


def hull(accepted):
    """First and last accepted row of each column; where none is, the column is left out."""
    some = accepted.any(axis=0)
    return some, accepted.argmax(axis=0), accepted.shape[0] - 1 - accepted[::-1].argmax(axis=0)


def equal_tailed(table, error):
    below = np.cumsum(table, axis=1)
    return (below > error / 2) & (1 - below + table > error / 2)


def blaker(table, error):
    below = np.cumsum(table, axis=1)
    tail = np.minimum(below, 1 - below + table)
    accepted = np.empty(table.shape, dtype=bool)
    for row, tails in enumerate(tail):
        values = np.array([table[row][tails <= own + 1e-13].sum() for own in tails])
        accepted[row] = values > error
    return accepted


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_users_interval_is_the_inverted_distribution(name, confidence):
    channel, n = CHANNELS[name], 37
    sums, table = distribution_table(channel, n)
    sampling = channel.noise is None and not channel.miss
    accepted = (blaker if sampling else equal_tailed)(table, 1 - confidence)
    some, low, high = hull(accepted)
    found = interval(sums, channel, n, confidence=confidence)
    likely = some & (table.max(axis=0) > 1e-9)  # sums that can happen
    np.testing.assert_allclose(found.low[likely] * n, low[likely], atol=1e-9)
    np.testing.assert_allclose(found.high[likely] * n, high[likely], atol=1e-9)


@pytest.mark.parametrize("drawn", [0, 1, 12, 37])
def test_ratio_interval_is_the_inverted_hypergeometric(drawn):
    n, counts = 37, np.arange(drawn + 1)
    table = hypergeom.pmf(counts, n, np.arange(n + 1)[:, None], drawn)
    _, low, high = hull(blaker(table, 0.05))
    found = interval(np.stack([counts, drawn - counts], axis=1), Channel(0.5), n, estimator="ratio")
    np.testing.assert_allclose(found.low[:, 0] * n, low, atol=1e-9)
    np.testing.assert_allclose(found.high[:, 0] * n, high, atol=1e-9)


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("n", [1, 2, 50, 300])
def test_users_coverage_for_every_number_of_holders(name, n):
    found = performance(CHANNELS[name], n, np.arange(n + 1) / n)
    assert min(made.coverage for made in found) >= 0.95 - 1e-9


@pytest.mark.parametrize("name", CHANNELS)
def test_population_coverage_on_a_grid(name):
    grid = np.concatenate((np.linspace(0, 0.1, 30), np.linspace(0.1, 1, 40)))
    found = performance(CHANNELS[name], 50, grid, covers="population")
    assert min(made.coverage for made in found) >= 0.95 - 1e-9


@pytest.mark.parametrize("covers", ["users", "population"])
def test_ratio_coverage_given_the_number_sampled(covers):
    for drawn in (1, 7, 25, 50):
        found = ratio_performance(50, drawn, np.arange(51) / 50, covers=covers)
        assert min(made.coverage for made in found) >= 0.95 - 1e-9


def test_a_wrong_coin_would_be_noticed():
    """Planted error: intervals for p = 0.42 from sums sampled with 0.393 cover below 94%."""
    n, truth = 5000, 0.25
    distribution = sum_distribution(Channel(0.393), n, truth)
    wrong = interval(distribution.values, Channel(0.42), n)
    assert distribution.pmf @ wrong.contains(truth) < 0.7


def test_ratio_is_narrower_than_horvitz_thompson():
    """Known answer for an item of half the users, n = 1000, p = 1 - e^-0.5.

    The interval is about 79 instead of 112 users wide.
    """
    p = 1 - np.exp(-0.5)
    (ht,), (ratio,) = (
        performance(Channel(p), 1000, [0.5]),
        ratio_performance(1000, round(1000 * p), [0.5]),
    )
    assert 105 < ht.width * 1000 <= 112
    assert 75 < ratio.width * 1000 <= 79


@pytest.mark.parametrize("covers", ["users", "population"])
def test_beyond_the_range_is_the_boundary_point(covers):
    found = interval([-60, 0, 160], CHANNELS["laplace"], 100, covers=covers)
    np.testing.assert_allclose([found.low[0], found.high[0]], 0, atol=1e-8)
    np.testing.assert_allclose([found.low[2], found.high[2]], 1, atol=1e-8)
    assert found.low[1] == 0
    assert 0 < found.high[1] < 0.2


def test_nobody_sampled_says_nothing():
    for covers in ("users", "population"):
        found = interval([0, 0, 0], Channel(0.2), 40, estimator="ratio", covers=covers)
        assert found.low.tolist() == [0, 0, 0]
        assert found.high.tolist() == [1, 1, 1]


def test_sidak_holds_for_all_items_at_once():
    """Items are independent given the answers, so joint coverage is a product."""
    channel, held = Channel(0.4), np.array([3, 10, 25, 62])
    n, joint = held.sum(), 1.0
    for holders in held:
        distribution = sum_distribution(channel, n, holders / n)
        rows = np.tile(distribution.values[:, None], (1, held.size))
        made = interval(rows, channel, n, simultaneous=True)
        joint *= distribution.pmf @ made.contains(holders / n)[:, 0]
    assert 0.95 <= joint < 1
    assert "Sidak over 4 items" in made.method


def test_bonferroni_where_items_depend():
    grr, n = CHANNELS["grr"], 100
    made = interval([20] * 5, grr, n, simultaneous=True)
    single = interval([20] * 5, grr, n, confidence=0.99)
    np.testing.assert_array_equal(made.low, single.low)
    assert "Bonferroni over 5 items" in made.method
    for other in (
        interval([20] * 5, Channel(0.4), 250, simultaneous=True, covers="population"),
        interval([20] * 5, Channel(0.4), 250, simultaneous=True, estimator="ratio"),
    ):
        assert "Bonferroni" in other.method


@settings(deadline=None)
@given(st.floats(0.001, 0.5), st.integers(1, 500))
def test_shares_of_the_error(error, items):
    sidak, bonferroni = (
        error_per_item(error, items, True, independent) for independent in (True, False)
    )
    assert (1 - sidak) ** items == pytest.approx(1 - error, rel=1e-9)
    assert bonferroni <= sidak * (1 + 1e-9)
    assert error_per_item(error, items, False, True) == error


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 60), st.floats(0.5, 0.97))
def test_intervals_are_nested(count, confidence):
    for name, channel in CHANNELS.items():
        for covers in ("users", "population"):
            inner, outer = (
                interval([count], channel, 60, confidence=wanted, covers=covers)
                for wanted in (confidence, confidence + 0.02)
            )
            assert outer.low[0] <= inner.low[0] + 1e-8, name
            assert outer.high[0] >= inner.high[0] - 1e-8, name


def test_shape_of_many_releases_is_kept():
    sums = np.arange(24).reshape(2, 3, 4)
    found = interval(sums, Channel(0.4), 500)
    assert found.low.shape == found.high.shape == (2, 3, 4)
    np.testing.assert_array_equal(found.low[1, 2], interval(sums[1, 2], Channel(0.4), 500).low)
    ratio = interval(sums, Channel(0.4), 500, estimator="ratio")
    np.testing.assert_array_equal(
        ratio.high[1, 2], interval(sums[1, 2], Channel(0.4), 500, estimator="ratio").high
    )


def test_chunks_do_not_change_the_answer(monkeypatch):
    sums = np.arange(60)
    whole = [interval(sums, channel, 60) for channel in CHANNELS.values()]
    monkeypatch.setattr(intervals, "_CELLS", 1)
    for channel, expected in zip(CHANNELS.values(), whole, strict=True):
        np.testing.assert_array_equal(interval(sums, channel, 60).low, expected.low)


@pytest.mark.parametrize(
    ("hit", "miss"), [(0.5, 0.2689), (0.5, 0.000335), (0.0027, 0.001), (0.97, 0.0024)]
)
def test_score_interval_of_many_users_covers(hit, miss):
    n = intervals.EXACT_LOCAL_USERS + 1
    truths = [0, 10 / n, 100 / n, 1 / 12, 0.3, 0.9]
    found = performance(Channel(hit, miss), n, truths)
    assert min(made.coverage for made in found) >= 0.95
    assert "approximate" in interval([n // 3], Channel(hit, miss), n).method
    assert max(made.width / made.oracle_width for made in found) < 1.2


def test_score_and_exact_intervals_agree_at_the_change(monkeypatch):
    sums, channel, n = np.arange(26_000, 50_000, 3000), Channel(0.5, 0.2689), 100_000
    exact = interval(sums, channel, n)
    monkeypatch.setattr(intervals, "EXACT_LOCAL_USERS", 10)
    score = interval(sums, channel, n)
    np.testing.assert_allclose(score.low, exact.low, atol=3 / n)
    np.testing.assert_allclose(score.high, exact.high, atol=3 / n)


def test_what_cannot_be_used_is_refused():
    laplace = CHANNELS["laplace"]
    for bad in ({"covers": "everyone"}, {"estimator": "mean"}, {"confidence": 1.0}):
        with pytest.raises(ParameterError):
            interval([1, 2], Channel(0.4), 10, **bad)
    for channel in (laplace, CHANNELS["oue"]):
        with pytest.raises(ParameterError, match="sampling mechanisms"):
            interval([1, 2], channel, 10, estimator="ratio")
    for sums in ([], [np.nan], [0.5], [-1], [11]):
        with pytest.raises(AnswerError):
            interval(sums, Channel(0.4), 10)
    with pytest.raises(AnswerError, match="add up"):
        interval([6, 6], Channel(0.4), 10, estimator="ratio")
    with pytest.raises(ParameterError, match="not available"):
        interval([3], Channel(0.5, 0.2, noise=geometric()), 10)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95])
def test_intervals_are_not_turned_inside_out(confidence: float) -> None:
    """Where noise is far below 1/2, there may be no whole number that explains a sum."""
    made = fc.DPDG(items=3, users=3, epsilon=30.0, delta=1e-3, share="printed")
    distribution = made.noise(3)
    for holders in (0, 1, 3):
        bounds = intervals.interval(
            distribution.values + holders, made.channel(3), 3, confidence=confidence
        )
        assert np.all(bounds.low <= bounds.high)
        assert distribution.pmf @ bounds.contains(holders / 3) >= confidence
