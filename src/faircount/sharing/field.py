"""Vectors over F_q as NumPy arrays of canonical residues 0 .. q-1, in the smallest unsigned type that holds q.

Nothing here needs q to be prime: addition and uniform drawing work modulo any q from 2 to 2^62.

Overflow bounds. Sums are made in the smallest type whose largest value T is at least 4 (q-1): 64 bits do for every q
allowed. One addition of two residues therefore fits, and `fold` adds at most floor(T / (q-1)) residues before it
reduces them, so no sum wraps around, whatever its length.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.validation import integer

Unsigned = np.dtype[np.unsignedinteger[Any]]

LARGEST_MODULUS = 1 << 62
BLOCK_BYTES = 1 << 18
"""Random bytes are drawn and used in blocks of this size, which stay in the processor's cache."""

_TYPES: tuple[Unsigned, ...] = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32), np.dtype(np.uint64))


@lru_cache(maxsize=1024, typed=True)
def dtype_for(q: int) -> Unsigned:
    """The smallest unsigned type that holds q, for q from 2 to 2^62."""
    return np.min_scalar_type(integer("q", q, least=2, most=LARGEST_MODULUS))


@lru_cache(maxsize=1024, typed=True)
def sum_dtype_for(q: int) -> Unsigned:
    """The smallest unsigned type that holds the sum of four residues."""
    return np.min_scalar_type(max(int(q), 4 * (int(q) - 1)))


def _largest(kind: Unsigned) -> int:
    return (1 << 8 * kind.itemsize) - 1


def check(values: ArrayLike, q: int) -> Residues:
    """The values as an array of canonical residues; anything but whole numbers in [0, q) is refused."""
    array, kind = _whole(values), dtype_for(q)
    if array.size and (int(array.max()) >= q or (array.dtype.kind == "i" and int(array.min()) < 0)):
        raise ShareError(f"elements must lie between 0 and {q - 1}: reduce them modulo q = {q} before sharing")
    return array.astype(kind, copy=False)


def from_signed(ints: ArrayLike, q: int) -> Residues:
    """Whole numbers of either sign, modulo q."""
    array, kind = _whole(ints), dtype_for(q)
    wide = np.uint64(q) if array.dtype.kind == "u" else np.int64(q)
    return (array.astype(wide.dtype) % wide).astype(kind)


def to_signed(residues: ArrayLike, q: int, low: int) -> NDArray[np.int64]:
    """The representative of each residue in [low, low + q)."""
    array = check(residues, q)
    start = integer("low", low, least=-(1 << 63), most=(1 << 63) - int(q))
    above = subtract(array, np.full(array.shape, start % int(q), dtype=array.dtype), q)
    return np.asarray(above.astype(np.int64) + np.int64(start))


def add(a: ArrayLike, b: ArrayLike, q: int) -> Residues:
    """a + b modulo q, element by element."""
    left, right = _pair(a, b, q)
    return reduced(left.astype(sum_dtype_for(q), copy=False) + right, q).astype(left.dtype, copy=False)


def subtract(a: ArrayLike, b: ArrayLike, q: int) -> Residues:
    """a - b modulo q, element by element."""
    left, right = _pair(a, b, q)
    to_zero = right.dtype.type(q) - right
    return reduced(left.astype(sum_dtype_for(q), copy=False) + to_zero, q).astype(left.dtype, copy=False)


def sum_rows(matrix: ArrayLike, q: int) -> Residues:
    """The sum along the first axis modulo q, for any number of rows."""
    rows = check(matrix, q)
    if rows.ndim == 0:
        raise ShareError("a matrix with one row per summand is needed, not a single number")
    shape = rows.shape[1:]
    return fold(rows.reshape(1, rows.shape[0], math.prod(shape)), q).reshape(shape)


def fold(cube: Residues, q: int) -> Residues:
    """Sums along the middle axis modulo q of residues known to be canonical: (u, r, w) -> (u, w)."""
    kind = sum_dtype_for(q)
    sums = cube.astype(kind, copy=False)
    if not cube.shape[1]:
        sums = np.zeros((cube.shape[0], 1, cube.shape[2]), dtype=kind)
    while sums.shape[1] > 1:
        sums = reduced(_add_groups(sums, _largest(kind) // (int(q) - 1)), q)
    return sums[:, 0].astype(dtype_for(q))  # a copy even of a single row: the result is the caller's own


def _add_groups(cube: Residues, fit: int) -> Residues:
    """Add up to `fit` rows into one, unreduced. Rows far apart are added, so that the inner loop is long."""
    outer, rows, width = cube.shape
    left = -(-rows // fit)
    each = rows // left
    groups = cube[:, : each * left].reshape(outer, each, left * width)
    sums: Residues = groups.sum(axis=1, dtype=cube.dtype).reshape(outer, left, width)
    sums[:, : rows - each * left] += cube[:, each * left :]  # if any are over, each < fit: one more row fits
    return sums


def reduced(words: Residues, q: int) -> Residues:
    """words mod q."""
    out = np.empty_like(words)
    _reduce(words, q, out, out)
    return out


def _reduce(words: Residues, q: int, spare: Residues, out: Residues) -> None:
    """Write w - floor(w/q) q to `out`: NumPy does this many times faster than the remainder."""
    divisor = words.dtype.type(q)
    np.floor_divide(words, divisor, out=spare)
    np.multiply(spare, divisor, out=spare)
    np.subtract(words, spare, out=out, casting="same_kind")


@lru_cache(maxsize=1024, typed=True)
def word_for(q: int) -> Unsigned:
    """The type of the random words that elements are made from: 2, 4 or 8 bytes for q below 2^16, 2^32, 2^62."""
    return _TYPES[max(1, _TYPES.index(dtype_for(q)))]


@lru_cache(maxsize=1024, typed=True)
def last_accepted(q: int, word: Unsigned) -> np.unsignedinteger[Any]:
    """The largest word accepted, floor(2^bits / q) q - 1: equally many words up to it for each residue."""
    return word.type((_largest(word) + 1) // int(q) * int(q) - 1)


def _frugal_word(q: int) -> Unsigned:
    """The smallest word of which fewer than one in 50 are rejected.

    Finding and replacing a rejected word costs some 40 ns, a word twice as long 0.6 ns (measured).
    """
    kinds = _TYPES[_TYPES.index(word_for(q)) :]
    return next(kind for kind in kinds if kind == _TYPES[-1] or (_largest(kind) + 1) % int(q) * 50 <= _largest(kind))


def uniform(q: int, shape: int | tuple[int, ...], entropy: Entropy) -> Residues:
    """Independent elements, each exactly uniform on F_q if the bytes of `entropy` are."""
    out = np.empty(shape, dtype=dtype_for(q))
    UniformDraws(q, entropy).fill(out.reshape(-1))
    return out


class UniformDraws:
    """Uniform elements of F_q in bulk: `uniform` with working memory that is allocated once.

    A word above `last_accepted` is drawn again in its place. That is for local randomness; parties who expand a
    common key must agree on every element and use `expand`.
    """

    def __init__(self, q: int, entropy: Entropy) -> None:
        self._q, self._entropy = q, entropy
        kind = _frugal_word(q)
        self._last = last_accepted(q, kind)
        size = BLOCK_BYTES // kind.itemsize
        self._words = np.empty(size, dtype=kind)
        self._spare = np.empty(size, dtype=kind)
        self._above = np.empty(size, dtype=np.bool_)

    def fill(self, out: Residues) -> None:
        """Overwrite a vector of the type `dtype_for(q)`."""
        for start in range(0, len(out), self._words.size):
            part = out[start : start + self._words.size]
            words = self._accepted(part.size)
            _reduce(words, self._q, self._spare[: part.size], part)

    def _accepted(self, count: int) -> Residues:
        words, above = self._words[:count], self._above[:count]
        self._entropy.fill(words.view(np.uint8))
        rejected = np.flatnonzero(np.greater(words, self._last, out=above))
        while rejected.size:
            again = np.empty(rejected.size, dtype=words.dtype)
            self._entropy.fill(again.view(np.uint8))
            words[rejected] = again
            rejected = rejected[again > self._last]
        return words


def _whole(values: ArrayLike) -> NDArray[np.integer[Any]]:
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise ShareError("elements must be whole numbers, in rows of equal length") from None
    if array.dtype.kind not in "iu":
        raise ShareError("elements must be whole numbers of at most 64 bits: convert them to an integer array")
    return array


def _pair(a: ArrayLike, b: ArrayLike, q: int) -> tuple[Residues, Residues]:
    left, right = check(a, q), check(b, q)
    if left.shape != right.shape:
        raise ShareError(f"vectors must have the same shape, not {left.shape} and {right.shape}")
    return left, right
