"""Polynomials over F_q through given values at the points 0, 1, ..., M - 1, with q at least M.

Validity proofs encode a report as such values. Coefficients come lowest first. Z denotes the
polynomial X (X - 1) ... (X - M + 1), which vanishes at all the points. What depends only on the
modulus and the number of points is computed once and cached.
"""

from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError
from faircount.sharing.extension_field import ExtensionField
from faircount.sharing.field import reduce_mod
from faircount.sharing.products import Words, multiply_elements, polynomial_product


@lru_cache(maxsize=16)
def vanishing_polynomial(q: int, count: int) -> Words:
    """Return the M + 1 coefficients of Z."""
    if not 1 <= count <= q:
        raise ParameterError(
            f"{count} values need {count} points, and the field has {q}: choose a larger modulus"
        )
    z = np.ones(1, dtype=np.uint64)
    for point in range(count):
        z = polynomial_product(z, np.array([(q - point) % q, 1], dtype=np.uint64), q)
    return z


@lru_cache(maxsize=16)
def lagrange_basis(q: int, count: int) -> Words:
    """Return M polynomials of degree M - 1; row i is 1 at the point i and 0 at the other points."""
    z = vanishing_polynomial(q, count)
    points = np.arange(count, dtype=np.uint64)
    rows = np.empty((count, count), dtype=np.uint64)
    # Synthetic division Z / (X - i) for all i at once, from the highest coefficient down.
    rows[:, -1] = 1
    for j in range(count - 1, 0, -1):
        rows[:, j - 1] = reduce_mod(reduce_mod(points * rows[:, j], q) + z[j], q)
    return multiply_elements(rows, _inverse_derivatives(q, count)[:, np.newaxis], q)


@lru_cache(maxsize=16)
def _inverse_derivatives(q: int, count: int) -> Words:
    """Return 1 / Z'(i) for every point i."""
    # Z'(i) is the product of all i - j, which is i! (M-1-i)! (-1)^(M-1-i).
    factorials = [1]
    for factor in range(1, count):
        factorials.append(factorials[-1] * factor % q)
    inverses = []
    for i in range(count):
        derivative = factorials[i] * factorials[count - 1 - i] * (-1) ** (count - 1 - i)
        inverses.append(pow(derivative, -1, q))
    return np.array(inverses, dtype=np.uint64)


@lru_cache(maxsize=16)
def _inverse_of_reversed_z(q: int, count: int, size: int) -> Words:
    """Return the first `size` coefficients of the power series 1 / (X^M Z(1/X))."""
    z = vanishing_polynomial(q, count)[::-1]
    series = np.zeros(size, dtype=np.uint64)
    series[0] = 1
    for t in range(1, size):
        used = min(t, count)
        terms = multiply_elements(z[1 : used + 1], series[t - used : t][::-1], q)
        # Fewer than 2^32 residues below 2^32: the sum fits into 64 bits.
        series[t] = -int(terms.sum()) % q
    return series


def divide_by_vanishing(dividend: Residues, q: int, count: int) -> Words:
    """Return the quotient of a polynomial and Z, without the remainder."""
    # The quotient of the reversed polynomials, as power series, is the reversed quotient. A
    # product with a cached series replaces a division that takes one pass per coefficient.
    size = dividend.size - count
    series = _inverse_of_reversed_z(q, count, size)
    return polynomial_product(dividend[::-1][:size], series, q)[:size][::-1]


def lagrange_basis_at(field: ExtensionField, r: Residues, count: int) -> tuple[Words, Words]:
    """Return the values at r of the basis polynomials, one row per polynomial, and of Z."""
    distances = [_subtract_point(field, r, point) for point in range(count)]
    below = _running_products(field, distances)
    above = _running_products(field, distances[::-1])
    # Basis polynomial i needs all factors of Z(r) but the i-th: the product of those before it and
    # of those after it. No division by r - i, so r may even be one of the points.
    others = field.multiply(np.array(below[:-1]), np.array(above[-2::-1]))
    inverses = _inverse_derivatives(field.q, count)[:, np.newaxis]
    return multiply_elements(others, inverses, field.q), below[-1]


def _subtract_point(field: ExtensionField, r: Residues, point: int) -> Words:
    difference = r.astype(np.uint64)
    difference[0] = (int(difference[0]) - point) % field.q
    return difference


def _running_products(field: ExtensionField, factors: list[Words]) -> list[Words]:
    """Return 1, then the products of the first one, two, ... factors."""
    products = [field.element(1)]
    for factor in factors:
        products.append(field.multiply(products[-1], factor))
    return products
