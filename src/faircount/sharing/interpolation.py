"""Polynomials through values at the points 0, 1, ..., M - 1 of F_q, with q at least M. Coefficients come lowest first.

Matrices for a modulus and a number of points are found once and kept.
"""

from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError
from faircount.sharing.extension_field import ExtensionField
from faircount.sharing.field import reduced
from faircount.sharing.products import Words, polynomial_product, times


@lru_cache(maxsize=16)
def vanishing(q: int, count: int) -> Words:
    """Z = X (X - 1) ... (X - M + 1), M + 1 coefficients."""
    if not 1 <= count <= q:
        raise ParameterError(f"{count} values need {count} points, and the field has {q}: choose a larger modulus")
    found = np.ones(1, dtype=np.uint64)
    for point in range(count):
        found = polynomial_product(found, np.array([(q - point) % q, 1], dtype=np.uint64), q)
    return found


@lru_cache(maxsize=16)
def basis(q: int, count: int) -> Words:
    """Row i: the polynomial of degree M - 1 that is 1 at the point i and 0 at the others."""
    z, points = vanishing(q, count), np.arange(count, dtype=np.uint64)
    found = np.empty((count, count), dtype=np.uint64)
    found[:, -1] = 1
    for j in range(count - 1, 0, -1):  # Z / (X - i) for every i, from the highest coefficient down
        found[:, j - 1] = reduced(reduced(points * found[:, j], q) + z[j], q)
    return times(found, _reciprocals(q, count)[:, np.newaxis], q)


@lru_cache(maxsize=16)
def _reciprocals(q: int, count: int) -> Words:
    """1 / Z'(i) for every point; Z'(i), the product of all i - j, is i! (M-1-i)! (-1)^(M-1-i)."""
    factorials = [1]
    for each in range(1, count):
        factorials.append(factorials[-1] * each % q)
    ends = zip(factorials, reversed(factorials), strict=True)
    slopes = [left * right * (-1) ** (count - 1 - i) for i, (left, right) in enumerate(ends)]
    return np.array([pow(each, -1, q) for each in slopes], dtype=np.uint64)


@lru_cache(maxsize=16)
def _reversed_reciprocal(q: int, count: int, size: int) -> Words:
    """The first `size` coefficients of the power series 1 / (X^M Z(1/X)); dividing by Z is multiplying by it."""
    z = vanishing(q, count)[::-1]
    found = np.zeros(size, dtype=np.uint64)
    found[0] = 1
    for t in range(1, size):
        used = min(t, count)
        parts = times(z[1 : used + 1], found[t - used : t][::-1], q)
        found[t] = -int(parts.sum()) % q  # fewer than 2^32 residues below 2^32
    return found


def quotient(dividend: Residues, q: int, count: int) -> Words:
    """The polynomial divided by Z, without the remainder."""
    size = dividend.size - count
    series = _reversed_reciprocal(q, count, size)
    return polynomial_product(dividend[::-1][:size], series, q)[:size][::-1]


def basis_at(field: ExtensionField, r: Residues, count: int) -> tuple[Words, Words]:
    """The values at r of the basis polynomials, one row each, and the value of Z."""
    below = _products(field, [_from_point(field, r, i) for i in range(count)])
    above = _products(field, [_from_point(field, r, i) for i in reversed(range(count))])
    others = field.multiply(np.array(below[:-1]), np.array(above[-2::-1]))  # all factors of Z(r) but one
    return times(others, _reciprocals(field.q, count)[:, np.newaxis], field.q), below[-1]


def _from_point(field: ExtensionField, r: Residues, point: int) -> Words:
    shifted = r.astype(np.uint64)
    shifted[0] = (int(shifted[0]) - point) % field.q
    return shifted


def _products(field: ExtensionField, factors: list[Words]) -> list[Words]:
    """1, then the products of the first one, two, ... factors."""
    found = [field.element(1)]
    for each in factors:
        found.append(field.multiply(found[-1], each))
    return found
