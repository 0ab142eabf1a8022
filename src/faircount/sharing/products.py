"""Exact products modulo q of matrices and of polynomials, for q below 2^32.

Bounds. Two residues below 2^32 multiply without loss in 64 unsigned bits. A sum of products is made in doubles, by the
fast routines for matrices, while width (q-1)^2 stays below 2^53, since every partial sum is then a whole number that a
double holds; beyond, in blocks of as many products as fit in 64 bits. A polynomial is cut into halves of 16 bits: each
sum of products stays below 2^16 2^32 2^15 then, for polynomials of up to 2^15 coefficients.
"""

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing.field import reduced

Words = NDArray[np.uint64]
"""Residues, or sums of a few, as 64-bit words."""

LARGEST_FACTOR = 1 << 32
"""Residues are multiplied modulo primes below this alone."""

_DOUBLES = 1 << 53
_WORDS = (1 << 64) - 1
_ONE_THREAD = 1 << 18  # multiplications up to which OpenBLAS stays in one thread
_HALF = np.uint64(16)
_LONGEST = 1 << 15


def checked_modulus(q: int) -> int:
    """The modulus, if products modulo it are exact here."""
    if not 2 <= q < LARGEST_FACTOR:
        raise ParameterError(f"reports are proven modulo primes below 2^32, not {q}: ask for fewer spare bits")
    return q


def times(a: Residues, b: Residues, q: int) -> Words:
    """a b modulo q, element by element."""
    return np.asarray(reduced(a.astype(np.uint64) * b.astype(np.uint64), q), dtype=np.uint64)


def matrix_product(rows: Residues, matrix: Residues, q: int) -> Words:
    """rows times matrix modulo q, for canonical residues."""
    width, largest = rows.shape[-1], (checked_modulus(q) - 1) ** 2
    if width * largest < _DOUBLES:
        return np.asarray(reduced(_in_doubles(rows, matrix).astype(np.uint64), q), dtype=np.uint64)
    return _in_blocks(rows.astype(np.uint64), matrix.astype(np.uint64), q, _WORDS // largest)


def _in_doubles(rows: Residues, matrix: Residues) -> NDArray[np.float64]:
    """Some rows at a time: the routines for matrices would share out a longer product among threads that wait."""
    right, step = matrix.astype(np.float64), max(1, _ONE_THREAD // max(1, matrix.size))
    if rows.ndim != 2 or len(rows) <= step:
        return np.asarray(rows.astype(np.float64) @ right)
    sums = np.empty((len(rows), matrix.shape[1]))
    for some in (slice(start, start + step) for start in range(0, len(rows), step)):
        np.matmul(rows[some].astype(np.float64), right, out=sums[some])
    return sums


def _in_blocks(rows: Words, matrix: Words, q: int, fit: int) -> Words:
    total = np.zeros((*rows.shape[:-1], matrix.shape[-1]), dtype=np.uint64)
    for start in range(0, rows.shape[-1], fit):
        part = rows[..., start : start + fit] @ matrix[start : start + fit]
        total = reduced(total + reduced(part, q), q)
    return total


def polynomial_product(a: Residues, b: Residues, q: int) -> Words:
    """The product of two polynomials over F_q, coefficients lowest first."""
    if not 0 < max(a.size, b.size) <= _LONGEST:
        raise ShareError(f"polynomials of 1 to {_LONGEST} coefficients are multiplied here: ask about fewer items")
    left, right = a.astype(np.uint64), b.astype(np.uint64)
    high = reduced(np.convolve(left >> _HALF, right), checked_modulus(q))
    low = np.convolve(left & np.uint64((1 << 16) - 1), right)
    return np.asarray(reduced(reduced(low, q) + (high << _HALF), q), dtype=np.uint64)
