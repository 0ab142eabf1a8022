"""Projection onto the simplex: the properties that define it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from faircount.core.errors import AnswerError
from faircount.estimation.consistency import project_to_simplex

vectors = arrays(np.float64, st.integers(1, 30), elements=st.floats(-5, 5))


def simplex_points(size, seed):
    return np.random.default_rng(seed).dirichlet(np.ones(size), size=20)


@given(vectors)
def test_result_is_a_distribution(x):
    found = project_to_simplex(x)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)


@given(vectors, st.integers(0, 1000))
def test_it_is_the_nearest_distribution(x, seed):
    """The obtuse angle: (x - P(x)) . (y - P(x)) <= 0 for every y of the simplex."""
    found = project_to_simplex(x)
    corners = np.eye(x.size)
    for y in (*corners, *simplex_points(x.size, seed)):
        assert (x - found) @ (y - found) <= 1e-9


@given(vectors, st.floats(-3, 3))
def test_a_shift_of_all_changes_nothing(x, shift):
    np.testing.assert_allclose(project_to_simplex(x + shift), project_to_simplex(x), atol=1e-12)


@given(vectors)
def test_distributions_stay_and_order_stays(x):
    found = project_to_simplex(x)
    np.testing.assert_allclose(project_to_simplex(found), found, atol=1e-12)
    order = np.argsort(x, kind="stable")
    assert np.all(np.diff(found[order]) >= -1e-12)


@given(vectors, st.integers(0, 1000))
def test_it_never_moves_away_from_the_truth(x, seed):
    found = project_to_simplex(x)
    for truth in simplex_points(x.size, seed):
        assert np.linalg.norm(found - truth) <= np.linalg.norm(x - truth) + 1e-12


@given(vectors)
def test_it_is_norm_sub(x):
    """Set negative ones to zero and spread the excess, until nothing is negative."""
    kept = np.ones(x.size, dtype=bool)
    while True:
        moved = np.where(kept, x - (x[kept].sum() - 1) / kept.sum(), 0.0)
        if not np.any(moved < 0):
            break
        kept &= moved >= 0
    np.testing.assert_allclose(project_to_simplex(x), moved, atol=1e-9)


def test_rows_by_hand():
    rows = project_to_simplex([[0.6, 0.6, -0.2], [1e9, 0.0, 0.0], [-1.0, -1.0, -1.0]])
    np.testing.assert_allclose(rows, [[0.5, 0.5, 0], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]], atol=1e-12)


def test_nothing_and_nonsense_are_refused():
    for bad in ([], [np.nan, 1], 0.5):
        with pytest.raises(AnswerError):
            project_to_simplex(bad)
