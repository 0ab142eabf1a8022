"""F_{q^k} for primes q and k: rows of k residues, the coefficients of a polynomial in Y, lowest first.

They multiply modulo Y^k + b with the smallest b that makes it irreducible where k divides q - 1, and elsewhere modulo
the first irreducible Y^k + a Y + b, ordered by (a, b), with a from 1. For a few tiny q and k there is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError
from faircount.sharing.field import reduced
from faircount.sharing.primes import is_prime
from faircount.sharing.products import Words, checked_modulus, matrix_product


@dataclass(frozen=True, slots=True)
class ExtensionField:
    """Polynomials over F_q modulo Y^k + a Y + b. `extension_field` finds a and b that make it a field."""

    q: int
    k: int
    a: int
    b: int

    @property
    def modulus(self) -> tuple[int, ...]:
        """The k + 1 coefficients of the modulus, lowest first."""
        return (self.b, self.a, *(0 for _ in range(self.k - 2)), 1) if self.k > 1 else (self.b, 1)

    def element(self, *coefficients: int) -> Words:
        """An element from its lowest coefficients."""
        found = np.zeros(self.k, dtype=np.uint64)
        found[: len(coefficients)] = [each % self.q for each in coefficients]
        return found

    def multiply(self, x: Residues, y: Residues) -> Words:
        """Products of elements, row by row; one row stands for as many as the other has."""
        left, right = x.astype(np.uint64), y.astype(np.uint64)
        shape = np.broadcast_shapes(left.shape, right.shape)
        whole = np.zeros((*shape[:-1], 2 * self.k - 1), dtype=np.uint64)
        for i in range(self.k):
            whole[..., i : i + self.k] += reduced(left[..., i : i + 1] * right, self.q)
        return self._folded(reduced(whole, self.q))

    def _folded(self, whole: Words) -> Words:
        """A polynomial of degree up to 2k - 2, with Y^k replaced by -a Y - b."""
        low, high = whole[..., : self.k].copy(), whole[..., self.k :]
        low[..., :-1] += reduced(high * np.uint64(self.q - self.b), self.q)
        if self.a:
            low[..., 1:] += reduced(high * np.uint64(self.q - self.a), self.q)
        return np.asarray(reduced(low, self.q), dtype=np.uint64)

    def power(self, x: Residues, exponent: int) -> Words:
        """x to a positive power."""
        found = x.astype(np.uint64)
        for bit in bin(exponent)[3:]:
            found = self.multiply(found, found)
            if bit == "1":
                found = self.multiply(found, x)
        return found

    def powers(self, x: Residues, count: int) -> Words:
        """1, x, x^2, ..., one row each."""
        found = np.empty((count, self.k), dtype=np.uint64)
        found[:1] = self.element(1)
        for i in range(1, count):
            found[i] = self.multiply(found[i - 1], x)
        return found

    def multiplied_by(self, x: Residues) -> Words:
        """The k x k matrix M with y M = x y, for constant x."""
        return self.multiply(np.eye(self.k, dtype=np.uint64), x)


@lru_cache(maxsize=64)
def extension_field(q: int, k: int) -> ExtensionField:
    """The field with q^k elements, with the modulus that everybody finds; refused where there is none of that form."""
    if not is_prime(checked_modulus(q)) or not is_prime(k):
        raise ParameterError(f"an extension field is made for primes q and k, not {q} and {k}")
    found = next((each for each in _candidates(q, k) if _is_field(each)), None)
    if found is None:
        raise ParameterError(f"no Y^{k} + aY + b is irreducible modulo {q}: choose another degree")
    return found


def _candidates(q: int, k: int) -> Iterator[ExtensionField]:
    binomial = (q - 1) % k == 0
    return (ExtensionField(q, k, a, b) for a in (range(1) if binomial else range(1, q)) for b in range(1, q))


def _is_field(ring: ExtensionField) -> bool:
    """Whether the modulus is irreducible.

    For Y^k + b with k | q - 1: whether -b is no k-th power. For others: if Y^(q^k) = Y, then the modulus has no factor
    twice, and all of them have degree 1 or k; if besides Y^q is not Y, then not all have degree 1.
    """
    q, k = ring.q, ring.k
    if not ring.a:
        return pow(-ring.b, (q - 1) // k, q) != 1
    y = ring.element(0, 1)
    first = ring.power(y, q)
    if np.array_equal(first, y):
        return False
    frobenius, found = ring.powers(first, k), first  # x -> x^q is linear: coefficients times the powers of Y^q
    for _ in range(k - 1):
        found = matrix_product(found, frobenius, q)
    return bool(np.array_equal(found, y))


def smallest_degree(q: int, roots: int, failures: int) -> int:
    """The smallest prime k for which a polynomial of degree `roots` + 2k vanishes at one of so few points outside F_q.

    `failures`: (roots + 2k) / (q^k - q) is at most 1 / failures, and the field of degree k has a modulus.
    """
    k = 2
    while (q**k - q) < (roots + 2 * k) * failures or not _exists(q, k):
        k = next(each for each in range(k + 1, 2 * k + 1) if is_prime(each))
    return k


def _exists(q: int, k: int) -> bool:
    try:
        extension_field(q, k)
    except ParameterError:
        return False
    return True
