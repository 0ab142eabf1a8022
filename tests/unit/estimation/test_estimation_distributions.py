"""The windowed distributions against SciPy's and against plain convolution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from faircount.estimation.distributions import (
    binomial_below,
    binomial_rows,
    bracket_fractions,
    first_integers,
    hypergeometric_rows,
    noisy_below,
    two_coins_below,
)
from faircount.mechanisms.count_distribution import NoiseDistribution


def dense(rows, row, size):
    """A row as a full probability vector over 0..size."""
    full = np.zeros(size + 1)
    inside = rows.start[row] + np.arange(rows.pmf.shape[1])
    keep = inside <= size
    full[inside[keep]] = rows.pmf[row][keep]
    return full


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([0.0, 1.0]) | st.floats(1e-6, 1)),
        min_size=1,
        max_size=6,
    )
)
def test_binomial_rows_are_scipys(cases):
    trials, p = np.array([m for m, _ in cases]), np.array([q for _, q in cases])
    rows = binomial_rows(trials, p)
    for i, (m, q) in enumerate(cases):
        np.testing.assert_allclose(dense(rows, i, m), binom.pmf(np.arange(m + 1), m, q), atol=1e-12)


@settings(deadline=None)
@given(
    st.integers(1, 600).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    )
)
def test_hypergeometric_rows_are_scipys(case):
    n, holders, drawn = case
    rows = hypergeometric_rows(n, np.array([holders]), np.array([drawn]))
    np.testing.assert_allclose(
        dense(rows, 0, n), hypergeom.pmf(np.arange(n + 1), n, holders, drawn), atol=1e-12
    )


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(-3, 503), st.floats(0.001, 0.999))
def test_binomial_below_is_scipys_cdf(trials, point, p):
    found = binomial_below(np.array([point]), np.array([trials]), p)
    assert found[0] == pytest.approx(binom.cdf(point, trials, p), abs=1e-12)


@pytest.mark.parametrize("holders", [0, 1, 37, 150])
def test_two_coins_is_a_convolution(holders):
    n, hit, miss = 150, 0.5, 0.27
    own = binom.pmf(np.arange(holders + 1), holders, hit)
    distribution = np.convolve(own, binom.pmf(np.arange(n - holders + 1), n - holders, miss))
    points = np.arange(-1, n + 2)
    found = two_coins_below(points, np.full(points.size, holders), n, hit, miss)
    np.testing.assert_allclose(
        found, np.concatenate(([0], np.cumsum(distribution), [1])), atol=1e-12
    )


@pytest.mark.parametrize("scale", [1, 4])
def test_noisy_below_is_a_convolution(scale):
    noise = NoiseDistribution(-3, np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.05, 0.05]), scale)
    counted = np.zeros(40 * scale + 1)
    counted[::scale] = binom.pmf(np.arange(41), 40, 0.3)
    distribution = np.convolve(counted, noise.pmf)
    points = np.arange(-3, distribution.size - 3)
    found = noisy_below(points, np.full(points.size, 40), np.full(points.size, 0.3), noise)
    np.testing.assert_allclose(found, np.cumsum(distribution), atol=1e-12)


def test_acceptability_is_a_p_value():
    distribution = binomial_rows(np.array([23]), np.array([0.37]))
    points = np.arange(24)
    one = [
        binomial_rows(np.array([23]), np.array([0.37])).acceptability(np.array([x]))[0]
        for x in points
    ]
    for level in (0.01, 0.05, 0.2, 0.9):
        assert distribution.pmf[0][np.array(one) <= level].sum() <= level + 1e-12
    assert max(one) == pytest.approx(1)


@settings(deadline=None)
@given(st.lists(st.integers(0, 101), min_size=1, max_size=8))
def test_first_integer_finds_the_turning_point(turning):
    turn = np.array(turning)
    np.testing.assert_array_equal(first_integers(lambda at: at >= turn, turn.size, 100), turn)


def test_bracket_encloses_the_turning_point():
    turn = np.array([0.0, 0.3, 0.999999, 2.0])
    low, high = bracket_fractions(lambda at: at >= turn, 4)
    assert np.all(low <= np.minimum(turn, 1))
    assert np.all(high >= np.minimum(turn, 1))
    assert np.all(high - low < 2e-9)
