import itertools

import numpy as np
import pytest

from faircount.core.errors import ParameterError
from faircount.sharing.extension_field import (
    ExtensionField,
    _is_field,
    extension_field,
    smallest_degree,
)

TINY = [(2, 2), (2, 3), (3, 2), (3, 3), (5, 2), (5, 3), (7, 2), (7, 3), (11, 2)]


def elements(q, k):
    return np.array(list(itertools.product(range(q), repeat=k)), dtype=np.uint64)


def divides(low, high, q):
    """Whether one monic polynomial divides another: lists of coefficients, lowest first."""
    rest = list(high)
    while len(rest) >= len(low):
        top = rest[-1]
        for i, coefficient in enumerate(reversed(low)):
            rest[-1 - i] = (rest[-1 - i] - top * coefficient) % q
        rest.pop()
    return not any(rest)


def irreducible(polynomial, q):
    smaller = (
        (*low, 1)
        for size in range(1, len(polynomial) // 2 + 1)
        for low in itertools.product(range(q), repeat=size)
    )
    return not any(divides(factor, polynomial, q) for factor in smaller)


@pytest.mark.parametrize(
    ("q", "k"), [(2, 3), (3, 2), (3, 5), (5, 2), (5, 3), (7, 3), (7, 5), (11, 5), (13, 3)]
)
def test_every_modulus_is_judged_as_trial_division_does(q, k):
    """Exhaustive over (a, b), except for a = 0 where k does not divide q - 1.

    Every Y^k + b has a root then, and no such modulus is tried.
    """
    for a, b in itertools.product(range(0 if (q - 1) % k == 0 else 1, q), range(1, q)):
        ring = ExtensionField(q, k, a, b)
        assert _is_field(ring) == irreducible(ring.modulus, q), (a, b)


@pytest.mark.parametrize(("q", "k"), [(3, 2), (5, 3), (7, 3), (7, 2), (11, 5), (31, 2)])
def test_the_modulus_is_the_first_one(q, k):
    first = (0, 1) if (q - 1) % k == 0 else (1, q)
    wanted = next(
        (b, a)
        for a, b in itertools.product(range(*first), range(1, q))
        if irreducible((b, a, *[0] * (k - 2), 1), q)
    )
    assert extension_field(q, k).modulus[:2] == wanted


@pytest.mark.parametrize(("q", "k"), TINY)
def test_nonzero_elements_are_a_group_and_products_are_those_of_polynomials(q, k):
    field, every = extension_field(q, k), elements(q, k)
    table = field.multiply(every[:, np.newaxis], every[np.newaxis])
    codes = table @ (q ** np.arange(k, dtype=np.uint64))
    ones = (table == field.element(1)).all(axis=2)
    assert (ones[1:].sum(axis=1) == 1).all()  # every element but 0 has exactly one inverse
    assert not ones[0].any()
    assert (codes == codes.T).all()
    y = field.element(0, 1)
    assert not (field.powers(y, k + 1)[k] - _negated_low(field)).any()


def _negated_low(field):
    return np.array([-coefficient % field.q for coefficient in field.modulus[:-1]], dtype=np.uint64)


@pytest.mark.parametrize("q", [997, 10211, 999_983, (1 << 31) - 1, (1 << 32) - 5])
@pytest.mark.parametrize("k", [2, 3, 5, 7])
def test_products_of_the_largest_coefficients_are_exact(q, k):
    field = extension_field(q, k)
    x = np.full((1, k), q - 1, dtype=np.uint64)
    whole = [0] * (2 * k - 1)
    for i, j in itertools.product(range(k), range(k)):
        whole[i + j] += (q - 1) ** 2
    for degree in range(2 * k - 2, k - 1, -1):
        whole[degree - k] -= field.b * whole[degree]
        whole[degree - k + 1] -= field.a * whole[degree]
    wanted = [coefficient % q for coefficient in whole[:k]]
    assert field.multiply(x, x)[0].tolist() == wanted
    assert (x @ np.zeros((k, k), np.uint64)).sum() == 0
    by_matrix = [
        sum(int(a) * int(b) for a, b in zip(x[0], row, strict=True)) % q
        for row in field.multiplication_matrix(x[0]).T
    ]
    assert by_matrix == wanted


def power(field, x, exponent: int):
    """x to a positive power, by squaring and multiplying."""
    result = x
    for bit in bin(exponent)[3:]:
        result = field.multiply(result, result)
        if bit == "1":
            result = field.multiply(result, x)
    return result


def test_powers_are_repeated_products():
    field = extension_field(997, 7)
    x = field.element(299, 137, 742, 121, 412, 216, 962)
    powers = field.powers(x, 12)
    assert all((powers[i] == power(field, x, i)).all() for i in range(1, 12))
    assert (power(field, x, 997**7) == x).all()  # Fermat


@pytest.mark.parametrize(("q", "k"), [(2, 5), (3, 7), (7, 13)])
def test_where_no_modulus_has_this_form_it_is_said(q, k):
    with pytest.raises(ParameterError, match="irreducible"):
        extension_field(q, k)


@pytest.mark.parametrize(("q", "k"), [(15, 3), (7, 4), (1 << 32, 3)])
def test_only_primes_make_a_field(q, k):
    with pytest.raises(ParameterError):
        extension_field(q, k)


@pytest.mark.parametrize(
    ("q", "bits", "users", "degree"),
    [
        (997, 6, 100, 7),
        (1009, 5, 1000, 7),
        (101, 15, 90, 11),
        (10211, 35, 10_000, 5),
        (1_000_003, 35, 10**6, 5),
    ],
)
def test_the_degree_is_the_smallest_prime_that_is_enough(q, bits, users, degree):
    def enough(k):
        return users * 2 * (bits + k - 1) * 2**40 <= q**k - q

    assert smallest_degree(q, 2 * (bits - 1), users << 40) == degree
    assert enough(degree)
    assert not any(enough(k) for k in (2, 3, 5, 7, 11) if k < degree)


def test_a_degree_without_a_modulus_is_passed_over():
    assert smallest_degree(2, 0, 1) == 3  # 2k / (2^k - 2) is at most 1
    assert smallest_degree(2, 0, 3) == 7  # 5 would be enough, and has no modulus
