"""The field with q^k elements for primes q and k.

An element is a row of k residues: the coefficients of a polynomial in Y, lowest first. Elements
multiply modulo Y^k + b with the smallest b that makes it irreducible where k divides q - 1, and
elsewhere modulo the first irreducible Y^k + a Y + b, ordered by (a, b), with a from 1. For a few
tiny q and k there is none. All parties find the same modulus without agreeing on it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError
from faircount.sharing.field import reduce_mod
from faircount.sharing.primes import is_prime
from faircount.sharing.products import Words, check_modulus


@dataclass(frozen=True, slots=True)
class ExtensionField:
    """Polynomials over F_q modulo Y^k + a Y + b; `extension_field` finds an irreducible modulus."""

    q: int
    k: int
    a: int
    b: int

    @property
    def modulus(self) -> tuple[int, ...]:
        """The k + 1 coefficients of the modulus, lowest first."""
        if self.k == 1:
            return (self.b, 1)
        return (self.b, self.a, *([0] * (self.k - 2)), 1)

    def element(self, *coefficients: int) -> Words:
        """Return an element, given its lowest coefficients."""
        element = np.zeros(self.k, dtype=np.uint64)
        element[: len(coefficients)] = [coefficient % self.q for coefficient in coefficients]
        return element

    def multiply(self, x: Residues, y: Residues) -> Words:
        """Multiply elements row by row; a single row is multiplied with every row of the other."""
        left = x.astype(np.uint64)
        right = y.astype(np.uint64)
        shape = np.broadcast_shapes(left.shape, right.shape)
        product = np.zeros((*shape[:-1], 2 * self.k - 1), dtype=np.uint64)
        # Products of residues below 2^32 fit into 64 bits, but not their sums: they are reduced
        # before they are added, and at most k residues then meet in one coefficient.
        for i in range(self.k):
            product[..., i : i + self.k] += reduce_mod(left[..., i : i + 1] * right, self.q)
        product = reduce_mod(product, self.q)

        # Y^k = -a Y - b: coefficient k + i goes down to the coefficients i and i + 1.
        low = product[..., : self.k].copy()
        high = product[..., self.k :]
        low[..., :-1] += reduce_mod(high * np.uint64(self.q - self.b), self.q)
        if self.a:
            low[..., 1:] += reduce_mod(high * np.uint64(self.q - self.a), self.q)
        return np.asarray(reduce_mod(low, self.q), dtype=np.uint64)

    def powers(self, x: Residues, count: int) -> Words:
        """Return 1, x, x^2, ..., one row per power."""
        rows = np.empty((count, self.k), dtype=np.uint64)
        rows[:1] = self.element(1)
        for i in range(1, count):
            rows[i] = self.multiply(rows[i - 1], x)
        return rows

    def multiplication_matrix(self, x: Residues) -> Words:
        """Return the k x k matrix M with y M = x y."""
        return self.multiply(np.eye(self.k, dtype=np.uint64), x)


@lru_cache(maxsize=64)
def extension_field(q: int, k: int) -> ExtensionField:
    """Return the field with q^k elements; refused where no modulus of this form is irreducible."""
    if not is_prime(check_modulus(q)) or not is_prime(k):
        raise ParameterError(f"an extension field is made for primes q and k, not {q} and {k}")
    for candidate in _candidates(q, k):
        if _is_field(candidate):
            return candidate
    raise ParameterError(f"no Y^{k} + aY + b is irreducible modulo {q}: choose another degree")


def _candidates(q: int, k: int) -> Iterator[ExtensionField]:
    # Y^k + b can be irreducible only if k divides q - 1: otherwise everything in F_q is a k-th
    # power, and the binomial has a root.
    linear_coefficients = range(1) if (q - 1) % k == 0 else range(1, q)
    for a in linear_coefficients:
        for b in range(1, q):
            yield ExtensionField(q, k, a, b)


def _is_field(ring: ExtensionField) -> bool:
    """Return whether the modulus is irreducible.

    Y^k + b with k | q - 1 is irreducible if -b is no k-th power. For the others: if Y^(q^k) = Y,
    then the modulus has no repeated factor and all its factors have degree 1 or k; if besides Y^q
    is not Y, then not all have degree 1.
    """
    q = ring.q
    k = ring.k
    if not ring.a:
        return pow(-ring.b, (q - 1) // k, q) != 1
    y = [0, 1] + [0] * (k - 2)
    first = y
    # The leading 1 of the exponent is the Y to begin with; `bin` puts "0b" before it.
    for bit in bin(q)[3:]:
        first = _multiply_one(ring, first, first)
        if bit == "1":
            first = _multiply_one(ring, first, y)
    if first == y:
        return False
    # The Frobenius map x -> x^q is linear over F_q: the coefficients of x times the powers of Y^q.
    # Applying it k - 1 times is much faster than raising to the power q^(k-1).
    powers = [[1] + [0] * (k - 1)]
    for _ in range(k - 1):
        powers.append(_multiply_one(ring, powers[-1], first))
    image = first
    for _ in range(k - 1):
        image = [sum(image[i] * powers[i][j] for i in range(k)) % q for j in range(k)]
    return image == y


def _multiply_one(ring: ExtensionField, x: list[int], y: list[int]) -> list[int]:
    """Multiply two elements; for single small ones Python's integers are faster than arrays."""
    k = ring.k
    product = [0] * (2 * k - 1)
    for i, left in enumerate(x):
        for j, right in enumerate(y):
            product[i + j] += left * right
    # Y^k = -a Y - b, from the highest coefficient down.
    for i in range(2 * k - 2, k - 1, -1):
        product[i - k] -= ring.b * product[i]
        product[i - k + 1] -= ring.a * product[i]
    return [coefficient % ring.q for coefficient in product[:k]]


def smallest_degree(q: int, roots: int, failures: int) -> int:
    """Return the smallest prime k for which a proof over F_(q^k) is sound enough.

    A non-zero polynomial of degree `roots` + 2k vanishes at a random point outside F_q with
    probability (roots + 2k) / (q^k - q) at most; this must not exceed 1 / failures.
    """
    k = 2
    while (q**k - q) < (roots + 2 * k) * failures or not _has_modulus(q, k):
        k += 1
        while not is_prime(k):
            k += 1
    return k


def _has_modulus(q: int, k: int) -> bool:
    try:
        extension_field(q, k)
    except ParameterError:
        return False
    return True
