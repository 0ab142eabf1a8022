"""Shamir's scheme for 32-byte keys: any `threshold` of `count` shares give the key.

The key is the constant term of a uniform polynomial of degree threshold - 1 over the smallest prime
field above 2^256; share i is its value at i = 1, 2, ..., count. Fewer than `threshold` shares are
independent of the key.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.validation import check_integer

PRIME = (1 << 256) + 297
SECRET_BYTES = 32
SHARE_BYTES = 45

_MOST = 0xFFFF
_VALUE_BYTES = 33
_DEALING_BYTES = 8
_SHARE = struct.Struct(">HH8s33s")

# Coefficients that are added between two reductions. Points have at most 16 bits, so that a number
# of 256 bits grows to about 512 bits in the meantime.
_STEPS = 16


@dataclass(frozen=True, slots=True)
class KeyShare:
    """One share of a key.

    `dealing` is a random label common to the shares of one `split_key`. It tells apart shares of
    different keys, or of one key split twice, and is independent of the key.
    """

    index: int
    threshold: int
    dealing: bytes
    value: int = field(repr=False)

    def __post_init__(self) -> None:
        in_range = 1 <= self.index <= _MOST and 2 <= self.threshold <= _MOST
        if not in_range or len(self.dealing) != _DEALING_BYTES or not 0 <= self.value < PRIME:
            raise ShareError(
                "a key share has an index from 1 on, a threshold from 2 on "
                "and a value below the prime"
            )

    def to_bytes(self) -> bytes:
        """Encode as u16 index | u16 threshold | 8 bytes dealing | 33 bytes value, big endian."""
        value = self.value.to_bytes(_VALUE_BYTES, "big")
        return _SHARE.pack(self.index, self.threshold, self.dealing, value)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Decode a share; there is one encoding per share."""
        if len(data) != SHARE_BYTES:
            raise ShareError(f"a key share has {SHARE_BYTES} bytes, not {len(data)}")
        index, threshold, dealing, value = _SHARE.unpack(data)
        return cls(index, threshold, dealing, int.from_bytes(value, "big"))


def split_key(secret: bytes, threshold: int, count: int, entropy: Entropy) -> list[KeyShare]:
    """Split a 32-byte key into `count` shares, with indices from 1 on."""
    if len(secret) != SECRET_BYTES:
        raise ShareError(f"a key to share has {SECRET_BYTES} bytes, not {len(secret)}")
    shares = check_integer("count", count, least=2, most=_MOST)
    needed = check_integer("threshold", threshold, least=2, most=shares)
    values = _deal(int.from_bytes(secret, "big"), needed, shares, PRIME, entropy)
    dealing = entropy.bytes(_DEALING_BYTES)
    return [KeyShare(index, needed, dealing, value) for index, value in enumerate(values, start=1)]


def combine_key(shares: Sequence[KeyShare], threshold: int) -> bytes:
    """Return the key from `threshold` or more shares of one dealing.

    Shares beyond the threshold must lie on the same polynomial: a changed share is then noticed
    instead of giving a wrong key.
    """
    if len({share.index for share in shares}) != len(shares):
        raise ShareError("two key shares have the same index: give each holder's share once")
    if len(shares) < check_integer("threshold", threshold, least=2):
        raise ShareError(
            f"{threshold} key shares are needed, but there are {len(shares)}: ask more holders"
        )
    if {(share.threshold, share.dealing) for share in shares} != {(threshold, shares[0].dealing)}:
        raise ShareError(
            "these key shares do not belong together: take those of one dealing and its threshold"
        )
    points = [(share.index, share.value) for share in shares]
    basis = points[:threshold]
    secret = _interpolate(0, basis, PRIME)
    agree = all(_interpolate(index, basis, PRIME) == value for index, value in points[threshold:])
    # The field is a little larger than 2^256, so a constant term may also be no key at all.
    if secret >> 8 * SECRET_BYTES or not agree:
        raise ShareError(
            "these key shares lie on no common polynomial: at least one of them was changed"
        )
    return secret.to_bytes(SECRET_BYTES, "big")


def _deal(secret: int, threshold: int, count: int, prime: int, entropy: Entropy) -> list[int]:
    """Evaluate a uniform polynomial through (0, secret) at 1 .. count."""
    # The leading coefficient may be zero: a polynomial chosen to have the exact degree would tell
    # something about the secret.
    coefficients = [secret, *(_uniform_below(prime, entropy) for _ in range(threshold - 1))]
    highest_first = coefficients[::-1]
    groups = [highest_first[start : start + _STEPS] for start in range(0, threshold, _STEPS)]
    return [_evaluate(groups, index, prime) for index in range(1, count + 1)]


def _evaluate(groups: Sequence[Sequence[int]], point: int, prime: int) -> int:
    """Evaluate a polynomial by Horner's rule, reduced after every group of coefficients."""
    value = 0
    for coefficients in groups:
        for coefficient in coefficients:
            value = value * point + coefficient
        value %= prime
    return value


def _interpolate(at: int, points: Sequence[tuple[int, int]], prime: int) -> int:
    """Return the value at `at` of the polynomial of lowest degree through `points` (Lagrange)."""
    total = 0
    for x, y in points:
        numerator = 1
        denominator = 1
        for other, _ in points:
            if other != x:
                numerator = numerator * (at - other) % prime
                denominator = denominator * (x - other) % prime
        total += y * numerator * pow(denominator, -1, prime)
    return total % prime


def _uniform_below(prime: int, entropy: Entropy) -> int:
    """Draw a uniform number in [0, prime), by rejection from as many bits as prime has."""
    bits = prime.bit_length()
    while True:
        drawn = int.from_bytes(entropy.bytes((bits + 7) // 8), "big") & ((1 << bits) - 1)
        if drawn < prime:
            return drawn
