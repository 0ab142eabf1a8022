"""Exact products of matrices and polynomials modulo q, for q below 2^32.

Bounds. Two residues below 2^32 multiply without loss in 64 unsigned bits. A matrix product is
computed in doubles, by the fast BLAS routines, while width (q-1)^2 stays below 2^53: every partial
sum is then an integer that a double holds exactly. Beyond, it is computed in blocks of as many
products as fit into 64 bits. For a product of polynomials one factor is cut into halves of 16 bits:
a sum of products then stays below 2^16 2^32 2^15 for polynomials of up to 2^15 coefficients.
"""

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.core.errors import ParameterError, ShareError
from faircount.sharing.field import reduce_mod

Words = NDArray[np.uint64]
"""Residues, or sums of a few, as 64-bit words."""

LARGEST_FACTOR = 1 << 32
"""Exclusive bound of the moduli for which products are available."""

_EXACT_IN_DOUBLES = 1 << 53
_LARGEST_WORD = (1 << 64) - 1
_HALF_BITS = np.uint64(16)
_MAX_COEFFICIENTS = 1 << 15

# OpenBLAS distributes larger products among threads. For products of this size the threads wait
# for one another longer than they compute.
_SINGLE_THREAD_PRODUCTS = 1 << 18


def check_modulus(q: int) -> int:
    """Return the modulus if products modulo it are exact here."""
    if not 2 <= q < LARGEST_FACTOR:
        raise ParameterError(
            f"reports are proven modulo primes below 2^32, not {q}: ask for fewer spare bits"
        )
    return q


def multiply_elements(a: Residues, b: Residues, q: int) -> Words:
    """Return a b modulo q, element by element."""
    return np.asarray(reduce_mod(a.astype(np.uint64) * b.astype(np.uint64), q), dtype=np.uint64)


def matrix_product(rows: Residues, matrix: Residues, q: int) -> Words:
    """Return rows times matrix modulo q, for canonical residues."""
    width = rows.shape[-1]
    largest = (check_modulus(q) - 1) ** 2
    if width * largest < _EXACT_IN_DOUBLES:
        sums = _multiply_doubles(rows, matrix).astype(np.uint64)
        return np.asarray(reduce_mod(sums, q), dtype=np.uint64)
    fit = _LARGEST_WORD // largest
    return _multiply_blocks(rows.astype(np.uint64), matrix.astype(np.uint64), q, fit)


def _multiply_doubles(rows: Residues, matrix: Residues) -> NDArray[np.float64]:
    """Multiply some rows at a time, few enough for BLAS to stay in one thread."""
    right = matrix.astype(np.float64)
    step = max(1, _SINGLE_THREAD_PRODUCTS // max(1, matrix.size))
    if rows.ndim != 2 or len(rows) <= step:
        return np.asarray(rows.astype(np.float64) @ right)
    sums = np.empty((len(rows), matrix.shape[1]))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        np.matmul(rows[block].astype(np.float64), right, out=sums[block])
    return sums


def _multiply_blocks(rows: Words, matrix: Words, q: int, fit: int) -> Words:
    """Multiply in 64-bit words, adding `fit` products before each reduction."""
    total = np.zeros((*rows.shape[:-1], matrix.shape[-1]), dtype=np.uint64)
    for start in range(0, rows.shape[-1], fit):
        block = rows[..., start : start + fit] @ matrix[start : start + fit]
        total = reduce_mod(total + reduce_mod(block, q), q)
    return total


def polynomial_product(a: Residues, b: Residues, q: int) -> Words:
    """Return the product of two polynomials over F_q, coefficients lowest first."""
    if not 0 < max(a.size, b.size) <= _MAX_COEFFICIENTS:
        raise ShareError(
            f"polynomials of 1 to {_MAX_COEFFICIENTS} coefficients are multiplied here: "
            "ask about fewer items"
        )
    left = a.astype(np.uint64)
    right = b.astype(np.uint64)
    high = reduce_mod(np.convolve(left >> _HALF_BITS, right), check_modulus(q))
    low = np.convolve(left & np.uint64((1 << 16) - 1), right)
    # A residue below 2^32, shifted by 16 bits, and another residue: below 2^49.
    return np.asarray(reduce_mod(reduce_mod(low, q) + (high << _HALF_BITS), q), dtype=np.uint64)
