"""Prime numbers: the smallest prime above the largest sum is the modulus of the shares."""

import hashlib
from collections.abc import Iterator

from faircount.core.validation import integer

_SMALL = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_PROVEN_BELOW = 1 << 64  # the bases in _SMALL are known to decide every number up to here
_ROUNDS = 64


def is_prime(n: int) -> bool:
    """Whether n is prime (Miller-Rabin): proven below 2^64, wrong with probability below 2^-128 above."""
    if n < 2:
        return False
    if any(n % small == 0 for small in _SMALL):
        return n in _SMALL
    return all(_passes(n, base) for base in _bases(n))


def smallest_prime_above(bound: int) -> int:
    """The smallest prime strictly greater than `bound`."""
    candidate = integer("bound", bound) + 1
    while not is_prime(candidate):
        candidate += 1
    return candidate


def _bases(n: int) -> Iterator[int]:
    """Bases to try. Above 2^64 they depend on n, so that no composite can be prepared for a fixed list."""
    yield from _SMALL
    if n >= _PROVEN_BELOW:
        size = (n.bit_length() + 7) // 8
        for turn in range(_ROUNDS):
            digest = hashlib.shake_256(turn.to_bytes(1, "big") + n.to_bytes(size, "big")).digest(size + 8)
            yield 2 + int.from_bytes(digest, "big") % (n - 3)


def _passes(n: int, base: int) -> bool:
    """One Miller-Rabin round for an odd n: False proves that n is composite."""
    twos = ((n - 1) & -(n - 1)).bit_length() - 1
    power = pow(base, (n - 1) >> twos, n)
    if power in (1, n - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % n
        if power == n - 1:
            return True
    return False
