"""Estimators: unbiasedness and variance by enumerating small releases, known answers for larger ones."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from faircount.core.errors import AnswerError, ParameterError
from faircount.estimation.estimators import (
    expected_mse,
    horvitz_thompson,
    mean_inverse,
    mse_per_item,
    mse_summed,
    ratio,
    ratio_variance,
)
from faircount.mechanisms.count_law import Channel, NoiseLaw

P = 1 - np.exp(-0.5)


def releases(held, p):
    """Every release of a sampling mechanism with its probability."""
    for sums in itertools.product(*(range(each + 1) for each in held)):
        yield np.array(sums), float(np.prod(binom.pmf(sums, held, p)))


@pytest.mark.parametrize("p", [0.2, 0.7, 1.0])
def test_horvitz_thompson_is_unbiased(p):
    held = np.array([0, 2, 3, 5])
    psi, channel = held / held.sum(), Channel(p)
    found = [(mass, horvitz_thompson(sums, channel, 10)) for sums, mass in releases(held, p)]
    np.testing.assert_allclose(sum(mass * each for mass, each in found), psi, atol=1e-12)
    variance = sum(mass * (each - psi) ** 2 for mass, each in found)
    np.testing.assert_allclose(variance.sum(), expected_mse(channel, psi, 10).summed, atol=1e-12)


@pytest.mark.parametrize("p", [0.05, 0.4, 0.9])
def test_ratio_is_unbiased_given_that_anybody_was_sampled(p):
    held = np.array([1, 2, 5])
    psi, some = held / held.sum(), 1 - (1 - p) ** 8
    found = [(mass / some, ratio(sums, Channel(p))) for sums, mass in releases(held, p) if sums.sum()]
    np.testing.assert_allclose(sum(mass * each for mass, each in found), psi, atol=1e-12)
    variance = sum(mass * (each - psi) ** 2 for mass, each in found)
    np.testing.assert_allclose(variance, ratio_variance(psi, 8, p), atol=1e-12)
    np.testing.assert_allclose(variance.sum(), expected_mse(Channel(p), psi, 8, estimator="ratio").summed, atol=1e-12)


def test_ratio_halves_the_error_of_two_items():
    """Known answer of the design: 1.54e-3 -> 7.7e-4 at n = 1000, N = 2."""
    both = [expected_mse(Channel(P), [0.5, 0.5], 1000, estimator=each).summed for each in ("ht", "ratio")]
    assert both == pytest.approx([1.54e-3, 7.7e-4], rel=0.005)


@settings(deadline=None)
@given(st.integers(1, 300), st.floats(0.01, 1))
def test_mean_inverse_is_the_sum(n, p):
    size = np.arange(1, n + 1)
    weight = binom.pmf(size, n, p)
    assert mean_inverse(n, p) == pytest.approx((weight / size).sum() / weight.sum(), rel=1e-9)


def test_ratio_variance_of_everybody_and_of_one():
    assert ratio_variance([0.3, 0.7], 50, 1.0) == pytest.approx([0, 0], abs=1e-15)
    assert ratio_variance([0.0, 1.0], 1, 0.5).tolist() == [0, 0]


def test_population_error_adds_the_draw_of_users():
    psi = np.array([0.2, 0.3, 0.5])
    draw = (psi * (1 - psi)).sum() / 400
    for channel in (Channel(0.4), Channel(1.0, noise=NoiseLaw(-1, np.full(3, 1 / 3))), Channel(0.5, 0.27)):
        own, all_ = (expected_mse(channel, psi, 400, against=each).summed for each in ("users", "population"))
        assert all_ - own == pytest.approx(draw)
    # given S, the sampled users are S draws from the population
    ratio_error = expected_mse(Channel(0.4), psi, 400, estimator="ratio", against="population")
    assert ratio_error.summed == pytest.approx((psi * (1 - psi)).sum() * mean_inverse(400, 0.4))
    assert ratio_error.per_item == pytest.approx(ratio_error.summed / 3)


def test_theory_of_the_paper():
    """DPDS: summed (1 - p) / (p n), whatever the data."""
    for psi in ([1.0, 0, 0], [0.2, 0.3, 0.5]):
        assert expected_mse(Channel(P), psi, 1000).summed == pytest.approx((1 - P) / (P * 1000))


def test_measured_errors_both_ways():
    truth, runs = [0.5, 0.5], [[0.6, 0.4], [0.5, 0.5]]
    assert mse_summed(runs, truth) == pytest.approx(0.01)
    assert mse_per_item(runs, truth) == pytest.approx(0.005)


def test_refusals():
    with pytest.raises(AnswerError, match="nobody was sampled"):
        ratio([0, 0])
    with pytest.raises(AnswerError, match="sampling mechanisms"):
        ratio([-1, 2])
    for channel in (Channel(1.0, noise=NoiseLaw(0, np.ones(1))), Channel(0.5, 0.2)):
        with pytest.raises(ParameterError, match="sampling mechanisms"):
            ratio([1, 2], channel)
        with pytest.raises(ParameterError):
            expected_mse(channel, [0.5, 0.5], 10, estimator="ratio")
    with pytest.raises(AnswerError):
        horvitz_thompson([np.inf], Channel(0.5), 10)
    with pytest.raises(ParameterError):
        expected_mse(Channel(0.5), [0.5, 0.5], 10, against="nobody")
