import itertools

import numpy as np
import pytest

from faircount.core.errors import ParameterError
from faircount.sharing.extension_field import extension_field
from faircount.sharing.interpolation import (
    divide_by_vanishing,
    lagrange_basis,
    lagrange_basis_at,
    vanishing_polynomial,
)
from faircount.sharing.products import polynomial_product

SIZES = [
    (2, 1),
    (2, 2),
    (3, 3),
    (5, 2),
    (7, 7),
    (101, 15),
    ((1 << 31) - 1, 40),
    ((1 << 32) - 5, 35),
]


def value(polynomial, x, q):
    return sum(int(c) * pow(x, i, q) for i, c in enumerate(polynomial)) % q


@pytest.mark.parametrize(("q", "count"), SIZES)
def test_basis_polynomials_are_one_at_their_point_and_zero_at_the_others(q, count):
    found = lagrange_basis(q, count)
    values = [[value(row, x, q) for x in range(count)] for row in found]
    assert values == np.eye(count, dtype=int).tolist()
    assert [value(vanishing_polynomial(q, count), x, q) for x in range(count)] == [0] * count
    assert vanishing_polynomial(q, count)[-1] == 1


@pytest.mark.parametrize(("q", "count"), SIZES)
def test_dividing_by_the_vanishing_polynomial(q, count):
    rng = np.random.default_rng(count)
    factor = rng.integers(0, q, count + 5, dtype=np.uint64)
    product = polynomial_product(factor, vanishing_polynomial(q, count), q)
    assert divide_by_vanishing(product, q, count).tolist() == factor.tolist()
    product[:count] = (product[:count] + np.uint64(1)) % np.uint64(q)  # a remainder changes nothing
    assert divide_by_vanishing(product, q, count).tolist() == factor.tolist()


@pytest.mark.parametrize(
    ("q", "k", "count"), [(3, 2, 3), (5, 3, 4), (101, 11, 15), ((1 << 31) - 1, 2, 9)]
)
def test_values_at_a_point_are_those_of_the_coefficients(q, k, count):
    field = extension_field(q, k)
    r = np.random.default_rng(k).integers(0, q, k, dtype=np.uint64)
    powers = field.powers(r, count + 1)
    values, z = lagrange_basis_at(field, r, count)

    def at_r(polynomial):
        return [
            sum(int(c) * int(p[i]) for c, p in zip(polynomial, powers, strict=False)) % q
            for i in range(k)
        ]

    assert values.tolist() == [at_r(row) for row in lagrange_basis(q, count)]
    assert z.tolist() == at_r(vanishing_polynomial(q, count))


def test_at_every_point_of_a_tiny_field():
    field = extension_field(3, 2)
    for r in itertools.product(range(3), repeat=2):
        values, z = lagrange_basis_at(field, np.array(r, dtype=np.uint64), 2)
        assert (values.sum(axis=0) % 3 == [1, 0]).all()  # the basis adds up to 1
        assert z.any() == (r[1] != 0 or r[0] == 2)


def test_more_values_than_points_are_refused():
    with pytest.raises(ParameterError, match="larger modulus"):
        vanishing_polynomial(5, 6)
