import pytest

from faircount.core.errors import ParameterError
from faircount.sharing.primes import _SMALL, _passes_miller_rabin, is_prime, smallest_prime_above

# The smallest composite that passes Miller-Rabin for the first twelve primes: only further bases
# find it out.
LIAR = 399165290221 * 798330580441


def sieve(limit):
    flags = [False, False] + [True] * (limit - 2)
    for n in range(2, limit):
        if flags[n]:
            flags[n * n :: n] = [False] * len(flags[n * n :: n])
    return flags


def test_agrees_with_a_sieve():
    assert [is_prime(n) for n in range(30_000)] == sieve(30_000)


@pytest.mark.parametrize(
    "n", [2**61 - 1, 2**64 - 59, 2**64 + 13, 2**89 - 1, 2**127 - 1, 2**521 - 1, 2**256 + 297]
)
def test_known_primes(n):
    assert is_prime(n)


@pytest.mark.parametrize(
    "n",
    [
        *(-7, 0, 1, 561, 41041, 825265, 2**67 - 1, 2**257 - 1),
        *(
            3215031751,
            3474749660383,
            341550071728321,
            3825123056546413051,
        ),  # fool the first 4, 6, 7 and 9 primes
        (2**61 - 1) ** 2,
        (2**89 - 1) * (2**107 - 1),
    ],
)
def test_known_composites(n):
    assert not is_prime(n)


def test_a_composite_made_for_the_fixed_bases_is_caught():
    assert all(_passes_miller_rabin(LIAR, base) for base in _SMALL)
    assert not is_prime(LIAR)


@pytest.mark.parametrize(
    ("bound", "prime"),
    [
        (0, 2),
        (1, 2),
        (2, 3),
        (3, 5),
        (1000, 1009),
        (5000, 5003),
        (1009, 1013),
        (100_000, 100_003),
        (2**16, 65537),
    ],
)
def test_smallest_prime_above(bound, prime):
    assert smallest_prime_above(bound) == prime


@pytest.mark.parametrize("bound", [-1, 2.0, True, "7"])
def test_the_bound_is_a_whole_number(bound):
    with pytest.raises(ParameterError, match="bound"):
        smallest_prime_above(bound)
