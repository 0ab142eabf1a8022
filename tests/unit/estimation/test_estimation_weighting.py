"""Weights of groups: the paper's Table II, known answers and simulated errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from faircount.core.errors import ParameterError
from faircount.estimation import weighting
from faircount.estimation.weighting import (
    combine,
    expected_error,
    group_variance,
    owa,
    sigma_squared,
    total_variance,
    uwa,
    vwa,
)
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution

SIZES = [250] * 4
SPREAD = 1 - 1 / 30
TABLE_II = {
    "s1": ([0.1, 0.4, 0.7, 1.0], [0.0316, 0.1477, 0.3045, 0.5162]),
    "s2": ([0.1, 0.1, 0.8, 1.0], [0.0333, 0.0333, 0.3885, 0.5448]),
    "s3": ([0.1, 0.1, 0.1, 1.0], [0.0517, 0.0517, 0.0517, 0.8449]),
    "s4": ([0.1, 0.8, 0.7, 1.0], [0.0259, 0.3017, 0.2495, 0.4229]),
}
NOISE_ALONE = {"s1": 1.20e-3, "s2": 1.27e-3, "s3": 1.97e-3, "s4": 0.98e-3}

groups = st.lists(st.tuples(st.integers(1, 5000), st.floats(0.01, 100)), min_size=1, max_size=8)
split = lambda cases: ([n for n, _ in cases], [v for _, v in cases])  # noqa: E731 - one line, used in every property


def variances(setting):
    return 1 / np.expm1(TABLE_II[setting][0])


@pytest.mark.parametrize("setting", TABLE_II)
def test_table_two(setting):
    v, printed = variances(setting), TABLE_II[setting][1]
    np.testing.assert_allclose(vwa(SIZES, v), printed, atol=5.1e-5)
    np.testing.assert_allclose(owa(SIZES, v), printed, atol=5.1e-5)
    error = expected_error(vwa(SIZES, v), SIZES, v)
    assert error == pytest.approx(NOISE_ALONE[setting], abs=0.006e-3)
    assert error == pytest.approx(1 / (250 / v).sum())


@pytest.mark.parametrize(
    ("setting", "against", "by_vwa", "by_total"),
    [
        ("s1", "population", 1.71e-3, 1.55e-3),
        ("s3", "population", 3.79e-3, 3.32e-3),
        ("s1", "distribution", 2.68e-3, 2.52e-3),
        ("s3", "distribution", 4.76e-3, 4.29e-3),
    ],
)
def test_known_errors(setting, against, by_vwa, by_total):
    v = variances(setting)
    weights = vwa(SIZES, v), total_variance(SIZES, v, SPREAD)
    found = [expected_error(w, SIZES, v, SPREAD, against=against) for w in weights]
    assert found == pytest.approx([by_vwa, by_total], abs=0.006e-3)


@settings(deadline=None, max_examples=50)
@given(groups)
def test_the_optimizer_finds_the_closed_form(cases):
    n, v = split(cases)
    np.testing.assert_allclose(owa(n, v), vwa(n, v), atol=1e-6)


def test_the_optimizer_finds_it_where_groups_differ_by_many_powers_of_ten():
    rng = np.random.default_rng(8)
    for _ in range(200):
        size = rng.integers(1, 9)
        n = np.ceil(10 ** rng.uniform(0, 6, size))
        v = 10 ** rng.uniform(-5, 5, size)
        np.testing.assert_allclose(owa(n, v), vwa(n, v), atol=1e-6)


@given(groups, st.floats(0, 1), st.integers(0, 10_000))
def test_each_weighting_is_best_at_what_it_promises(cases, sigma2, seed):
    n, v = split(cases)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(n)))
    assert expected_error(vwa(n, v), n, v) <= expected_error(other, n, v) * (1 + 1e-9)
    best = total_variance(n, v, sigma2)
    for against in ("population", "distribution"):
        found, theirs = (expected_error(w, n, v, sigma2, against=against) for w in (best, other))
        assert found <= theirs + 1e-12
    for weights in (uwa(n), vwa(n, v), best):
        assert weights.sum() == pytest.approx(1)


@given(groups)
def test_limits_of_the_total_variance(cases):
    n, v = split(cases)
    np.testing.assert_allclose(total_variance(n, v, 0.0), vwa(n, v))
    np.testing.assert_allclose(total_variance(n, v, 1e12), uwa(n), rtol=1e-6)


def test_spread_of_one_tends_to_pooling():
    p = np.array([0.1, 0.3, 0.6])
    np.testing.assert_allclose(
        total_variance([10, 20, 30], (1 - p) / p, 1.0), uwa([10, 20, 30] * p)
    )


def test_group_variance_of_every_family():
    noise = NoiseDistribution(-1, np.array([0.25, 0.5, 0.25]))
    assert group_variance(Channel(0.4), 30, 250) == pytest.approx(0.6 / 0.4)
    assert group_variance(Channel(1.0, noise=noise), 30, 250) == pytest.approx(30 * 0.5 / 250)
    for channel in (
        Channel(0.5, 0.27),
        Channel(0.3, 0.1, independent=False),
        Channel(0.5, noise=noise),
    ):
        for psi in (np.full(4, 0.25), np.array([0.9, 0.1, 0, 0])):
            assert group_variance(channel, 4, 60) == pytest.approx(
                60 * channel.variance(psi, 60).sum()
            )


def test_combine_frequencies_and_means():
    np.testing.assert_allclose(combine([[1, 0], [0, 1]], [0.25, 0.75]), [0.25, 0.75])
    assert float(combine([1.0, -1.0], [0.25, 0.75])) == pytest.approx(-0.5)


def simulate(v, rng, runs=4000):
    """Released estimates of uniform data over 30 items (DPDS), and the true frequencies."""
    held = rng.multinomial(250, np.full(30, 1 / 30), size=(runs, 4))
    p = (1 / (1 + v))[:, None]
    return rng.binomial(held, p) / (250 * p), held.sum(axis=1) / 1000


@pytest.mark.parametrize("setting", ["s1", "s3"])
def test_expected_error_is_what_happens(setting):
    """False alarm 1e-6 (two-sided); planted error: the paper's noise-only theory is rejected."""
    v, rng = variances(setting), np.random.default_rng(11)
    released, population = simulate(v, rng)
    weights, limit = total_variance(SIZES, v, SPREAD), norm.isf(5e-7)
    errors = ((np.moveaxis(released, 1, 0) * weights[:, None, None]).sum(axis=0) - population) ** 2
    measured, se = errors.sum(axis=1).mean(), errors.sum(axis=1).std() / np.sqrt(len(errors))
    theory = expected_error(weights, SIZES, v, SPREAD, against="population")
    assert abs(measured - theory) < limit * se
    assert abs(measured - expected_error(weights, SIZES, v)) > limit * se


def test_spread_is_estimated_without_bias():
    """False alarm 1e-6; planted error: without the correction for noise the estimate is off."""
    v, rng, psi = variances("s1"), np.random.default_rng(12), 1 / np.arange(1, 31)
    psi /= psi.sum()
    held = rng.multinomial(250, psi, size=(2000, 4))
    p = (1 / (1 + v))[:, None]
    released = rng.binomial(held, p) / (250 * p)
    found = np.array([sigma_squared(estimates, SIZES, v) for estimates in released])
    truth, limit = 1 - psi @ psi, norm.isf(5e-7)
    assert abs(found.mean() - truth) < limit * found.std() / np.sqrt(found.size)
    w = vwa(SIZES, v + 1)
    naive = np.array([1 - combine(estimates, w) @ combine(estimates, w) for estimates in released])
    assert abs(naive.mean() - truth) > limit * naive.std() / np.sqrt(naive.size)


def test_spread_stays_in_its_range():
    v = np.array([1.0, 2.0])
    assert sigma_squared([[5.0, -4.0], [5.0, -4.0]], [10, 10], v) == 0
    assert sigma_squared([[0.0, 0.0], [0.0, 0.0]], [10, 10], v) == 0.5
    assert sigma_squared([[1.0, 0.0]], [1], [1.0]) == 0.5


def test_nonsense_is_refused():
    for call in (
        lambda: uwa([]),
        lambda: vwa([1, 2], [1.0]),
        lambda: vwa([1, 2], [1.0, 0.0]),
        lambda: total_variance([1], [1.0], -1.0),
        lambda: combine([[1, 0], [0, 1]], [0.5, 0.6]),
        lambda: combine([[1, 0]], [0.5, 0.5]),
        lambda: expected_error([1.0], [1], [1.0], against="nothing"),
        lambda: sigma_squared([0.1, 0.2], [1, 1], [1.0, 1.0]),
    ):
        with pytest.raises(ParameterError):
            call()


@pytest.mark.parametrize(
    "variances", [[1.0, 1e3, 1e6], [1e-6, 1e6, 1.0], [1.0, 1e10, 5.0], [9.5, 2.0, 0.6]]
)
def test_the_optimizer_finds_the_weights_for_any_ratio_of_variances(variances: list[float]) -> None:
    sizes = [1, 7, 1000]
    assert weighting.owa(sizes, variances) == pytest.approx(
        weighting.vwa(sizes, variances), abs=1e-6
    )
