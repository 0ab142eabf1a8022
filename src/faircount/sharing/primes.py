"""Prime numbers: the smallest prime above the largest possible sum is the modulus of the shares."""

import hashlib
from collections.abc import Iterator

from faircount.core.validation import check_integer

_SMALL = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)

# Miller-Rabin with the bases in _SMALL is known to decide every number below 2^64 (Sorenson and
# Webster 2015); above, as many bases as make an error less likely than 2^-128 are added.
_PROVEN_BELOW = 1 << 64
_ROUNDS = 64


def is_prime(n: int) -> bool:
    """Return whether n is prime: proven below 2^64, wrong with probability below 2^-128 above."""
    if n < 2:
        return False
    if any(n % small == 0 for small in _SMALL):
        return n in _SMALL
    return all(_passes_miller_rabin(n, base) for base in _bases(n))


def smallest_prime_above(bound: int) -> int:
    """Return the smallest prime strictly greater than `bound`."""
    candidate = check_integer("bound", bound) + 1
    while not is_prime(candidate):
        candidate += 1
    return candidate


def _bases(n: int) -> Iterator[int]:
    yield from _SMALL
    if n >= _PROVEN_BELOW:
        # Hashed from n, so that the test is repeatable and yet nobody can construct a composite
        # that passes for a list of bases known beforehand.
        size = (n.bit_length() + 7) // 8
        for turn in range(_ROUNDS):
            data = turn.to_bytes(1, "big") + n.to_bytes(size, "big")
            digest = hashlib.shake_256(data).digest(size + 8)
            yield 2 + int.from_bytes(digest, "big") % (n - 3)


def _passes_miller_rabin(n: int, base: int) -> bool:
    """Run one round for an odd n: False proves that n is composite."""
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    power = pow(base, (n - 1) >> twos, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False
