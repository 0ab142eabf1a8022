import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.core.errors import ParameterError, ShareError
from faircount.sharing import products
from faircount.sharing.products import matrix_product, multiply_elements, polynomial_product

NEAR_LIMITS = [2, 3, 997, (1 << 26) - 5, (1 << 31) - 1, (1 << 32) - 5]
"""Primes on both sides of every bound: doubles, blocks of several products, blocks of one."""


def largest(q, *shape):
    return np.full(shape, q - 1, dtype=np.uint64)


def in_python(rows, matrix, q):
    return [
        [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) % q for column in matrix.T]
        for row in rows
    ]


@pytest.mark.parametrize("q", NEAR_LIMITS)
@pytest.mark.parametrize("width", [1, 2, 5, 90, 700])
def test_a_matrix_product_of_the_largest_residues_is_exact(q, width):
    rows, matrix = largest(q, 3, width), largest(q, width, 2)
    rows[1, ::2] = 0
    assert matrix_product(rows, matrix, q).tolist() == in_python(rows, matrix, q)


def test_doubles_alone_would_be_wrong_just_above_their_bound():
    """The planted error: without the bound the product of these would be rounded."""
    q, width = (1 << 26) - 5, 5
    rows, matrix = largest(q, 1, width), largest(q, width, 1)
    rows[0, 0] = matrix[0, 0] = 1
    assert width * (q - 1) ** 2 >= products._EXACT_IN_DOUBLES
    rounded = int((rows.astype(float) @ matrix.astype(float))[0, 0]) % q
    assert [[rounded]] != in_python(rows, matrix, q) == matrix_product(rows, matrix, q).tolist()


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(NEAR_LIMITS), st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1)
)
def test_a_product_of_polynomials_is_exact(q, left, right, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, q, left, dtype=np.uint64), rng.integers(0, q, right, dtype=np.uint64)
    wanted = [0] * (left + right - 1)
    for i, x in enumerate(a.tolist()):
        for j, y in enumerate(b.tolist()):
            wanted[i + j] = (wanted[i + j] + x * y) % q
    assert polynomial_product(a, b, q).tolist() == wanted


@pytest.mark.parametrize("q", NEAR_LIMITS)
def test_long_polynomials_of_the_largest_coefficients_do_not_overflow(q):
    size = 3000
    found = polynomial_product(largest(q, size), largest(q, size), q)
    assert found.tolist() == [
        min(i + 1, 2 * size - 1 - i) % q for i in range(2 * size - 1)
    ]  # (q-1)^2 = 1


def test_times_keeps_the_largest_product():
    q = (1 << 32) - 5
    assert multiply_elements(largest(q, 2), largest(q, 2), q).tolist() == [1, 1]


@pytest.mark.parametrize("q", [0, 1, 1 << 32, 1 << 40])
def test_a_modulus_with_products_beyond_64_bits_is_refused(q):
    with pytest.raises(ParameterError, match="below 2\\^32"):
        matrix_product(np.ones((1, 1), np.uint64), np.ones((1, 1), np.uint64), q)


def test_polynomials_beyond_the_bound_are_refused():
    with pytest.raises(ShareError, match="32768 coefficients"):
        polynomial_product(np.ones((1 << 15) + 1, np.uint64), np.ones(1, np.uint64), 97)


def test_many_rows_and_no_columns_are_products_too():
    """Rows beyond what is multiplied at a time, and the empty sum."""
    rows, matrix = (
        np.arange(5000 * 9, dtype=np.uint64).reshape(5000, 9) % 97,
        np.arange(9 * 40).reshape(9, 40) % 97,
    )
    assert len(rows) * matrix.size > products._SINGLE_THREAD_PRODUCTS
    assert np.array_equal(
        matrix_product(rows, matrix.astype(np.uint64), 97), rows @ matrix.astype(np.uint64) % 97
    )
    assert matrix_product(np.zeros(0, np.uint64), np.zeros((0, 3), np.uint64), 97).tolist() == [
        0,
        0,
        0,
    ]
