"""Clopper-Pearson: exact bounds of a binomial probability."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from faircount.core.binomial import clopper_pearson


@settings(deadline=None)
@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_bounds_solve_their_equations(case: tuple[int, int]) -> None:
    x, n = case
    (low,), (high,) = clopper_pearson(np.array([x]), np.array([n]), 0.025)
    if x:
        assert binom.sf(x - 1, n, low) == pytest.approx(0.025, rel=1e-6)
    if x < n:
        assert binom.cdf(x, n, high) == pytest.approx(0.025, rel=1e-6)
    assert (low == 0) == (x == 0)
    assert (high == 1) == (x == n)


def test_bounds_at_the_ends_have_a_closed_form() -> None:
    low, high = clopper_pearson([0, 10], 10, 0.025)
    assert low[0] == 0
    assert high[1] == 1
    assert high[0] == pytest.approx(1 - 0.025 ** (1 / 10))
    assert low[1] == pytest.approx(0.025 ** (1 / 10))


def test_without_trials_nothing_is_known() -> None:
    low, high = clopper_pearson([0], [0], 0.01)
    assert (low[0], high[0]) == (0, 1)
