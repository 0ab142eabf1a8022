"""Vectors over F_q: NumPy arrays of canonical residues 0 .. q-1, in the smallest type that holds q.

Nothing here needs q to be prime: addition and uniform drawing work modulo any q from 2 to 2^62.

Overflow bounds. Sums are computed in the smallest unsigned type whose largest value T is at least
4 (q-1); 64 bits suffice for every q allowed. One addition of two residues therefore fits, and
`sum_middle_axis` adds at most floor(T / (q-1)) residues before it reduces them, so no sum wraps
around, whatever its length.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.validation import check_integer

Unsigned = np.dtype[np.unsignedinteger[Any]]

LARGEST_MODULUS = 1 << 62
BLOCK_BYTES = 1 << 18
"""Random bytes are drawn and used in blocks of this size, which stay in the processor's cache."""

_TYPES: tuple[Unsigned, ...] = (
    np.dtype(np.uint8),
    np.dtype(np.uint16),
    np.dtype(np.uint32),
    np.dtype(np.uint64),
)

# A larger word costs time for every element, a rejected word for itself alone. Finding and
# replacing a rejected word takes some 40 ns, a word twice as long 0.6 ns more (measured), so the
# larger word pays off once more than about one word in 50 would be rejected.
_WORDS_PER_REJECTION = 50

# A remainder takes some 2 ns longer than a division, a call of NumPy 500 ns (measured): of few
# words it is faster to take the remainders in one call than to divide, multiply and subtract.
_FEW = 256


@lru_cache(maxsize=1024, typed=True)
def dtype_for(q: int) -> Unsigned:
    """Return the smallest unsigned type that holds q, for q from 2 to 2^62."""
    return np.min_scalar_type(check_integer("q", q, least=2, most=LARGEST_MODULUS))


@lru_cache(maxsize=1024, typed=True)
def sum_dtype_for(q: int) -> Unsigned:
    """Return the smallest unsigned type that holds q and the sum of four residues."""
    # q may be a NumPy scalar, whose arithmetic would wrap around in its own type.
    return np.min_scalar_type(max(int(q), 4 * (int(q) - 1)))


def _largest(dtype: Unsigned) -> int:
    return (1 << 8 * dtype.itemsize) - 1


def check_residues(values: ArrayLike, q: int) -> Residues:
    """Return the values as an array of canonical residues; they must be integers in [0, q)."""
    array = _check_integers(values)
    dtype = dtype_for(q)
    is_signed = array.dtype.kind == "i"
    if array.size and (int(array.max()) >= q or (is_signed and int(array.min()) < 0)):
        raise ShareError(
            f"elements must lie between 0 and {q - 1}: reduce them modulo q = {q} before sharing"
        )
    return array.astype(dtype, copy=False)


def from_signed(ints: ArrayLike, q: int) -> Residues:
    """Reduce integers of either sign modulo q."""
    array = _check_integers(ints)
    dtype = dtype_for(q)
    # Unsigned input stays unsigned: values above 2^63 would turn negative as signed ones.
    wide: NDArray[Any] = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64)
    # Reducing is right for signed words, too: `floor(w / q) q` may wrap around below -2^63, and
    # the difference to w wraps back.
    return reduce_mod(wide, q).astype(dtype)


def to_signed(residues: ArrayLike, q: int, low: int) -> NDArray[np.int64]:
    """Return the representative in [low, low + q) of every residue."""
    array = check_residues(residues, q)
    # The bound on `low` keeps its largest representative, low + q - 1, below 2^63.
    start = check_integer("low", low, least=-(1 << 63), most=(1 << 63) - int(q))
    above = subtract(array, np.full(array.shape, start % int(q), dtype=array.dtype), q)
    return np.asarray(above.astype(np.int64) + np.int64(start))


def add(a: ArrayLike, b: ArrayLike, q: int) -> Residues:
    """Return a + b modulo q, element by element."""
    left, right = _check_pair(a, b, q)
    sums = left.astype(sum_dtype_for(q), copy=False) + right
    return reduce_mod(sums, q).astype(left.dtype, copy=False)


def subtract(a: ArrayLike, b: ArrayLike, q: int) -> Residues:
    """Return a - b modulo q, element by element."""
    left, right = _check_pair(a, b, q)
    # Unsigned numbers have no negative differences, so q - b is added instead.
    negated = right.dtype.type(q) - right
    sums = left.astype(sum_dtype_for(q), copy=False) + negated
    return reduce_mod(sums, q).astype(left.dtype, copy=False)


def sum_rows(matrix: ArrayLike, q: int) -> Residues:
    """Return the sum along the first axis modulo q, for any number of rows."""
    rows = check_residues(matrix, q)
    if rows.ndim == 0:
        raise ShareError("a matrix with one row per summand is needed, not a single number")
    shape = rows.shape[1:]
    cube = rows.reshape(1, rows.shape[0], math.prod(shape))
    return sum_middle_axis(cube, q).reshape(shape)


def sum_middle_axis(cube: Residues, q: int) -> Residues:
    """Add up residues that are known to be canonical: (u, r, w) -> (u, w), modulo q."""
    dtype = sum_dtype_for(q)
    sums = cube.astype(dtype, copy=False)
    if not cube.shape[1]:
        sums = np.zeros((cube.shape[0], 1, cube.shape[2]), dtype=dtype)
    while sums.shape[1] > 1:
        sums = reduce_mod(_add_groups(sums, _largest(dtype) // (int(q) - 1)), q)
    # `astype` copies even a single row, so the result never shares memory with the input.
    return sums[:, 0].astype(dtype_for(q))


def _add_groups(cube: Residues, fit: int) -> Residues:
    """Add groups of up to `fit` rows into one row, without reducing them.

    Row i of the result adds rows i, i + groups, i + 2 groups, ...: distant rows, so that NumPy's
    inner loop is long.
    """
    outer, rows, width = cube.shape
    groups = -(-rows // fit)
    group_size = rows // groups
    regular = group_size * groups
    stacked = cube[:, :regular].reshape(outer, group_size, groups * width)
    sums: Residues = stacked.sum(axis=1, dtype=cube.dtype).reshape(outer, groups, width)
    # If rows are left over, then group_size < fit, and one more row per group still fits.
    sums[:, : rows - regular] += cube[:, regular:]
    return sums


def reduce_mod(words: Residues, q: int) -> Residues:
    """Return words modulo q."""
    if words.size <= _FEW:
        remainders: Residues = words % words.dtype.type(q)
        return remainders
    out = np.empty_like(words)
    _reduce_into(words, q, out, out)
    return out


def _reduce_into(words: Residues, q: int, spare: Residues, out: Residues) -> None:
    """Write words modulo q to `out`, with `spare` as working memory."""
    # w - floor(w / q) q: NumPy divides by a constant many times faster than it takes remainders.
    divisor = words.dtype.type(q)
    np.floor_divide(words, divisor, out=spare)
    np.multiply(spare, divisor, out=spare)
    np.subtract(words, spare, out=out, casting="same_kind")


@lru_cache(maxsize=1024, typed=True)
def word_for(q: int) -> Unsigned:
    """Return the type of the random words of the protocol's key expansion.

    2, 4 or 8 bytes for q below 2^16, 2^32 and 2^62.
    """
    return _TYPES[max(1, _TYPES.index(dtype_for(q)))]


@lru_cache(maxsize=1024, typed=True)
def last_accepted(q: int, word: Unsigned) -> np.unsignedinteger[Any]:
    """Return the largest accepted word, floor(2^bits / q) q - 1.

    Every residue is hit by equally many words up to it.
    """
    return word.type((_largest(word) + 1) // int(q) * int(q) - 1)


def _frugal_word(q: int) -> Unsigned:
    """Return the smallest word of which few enough are rejected."""
    for word in _TYPES[_TYPES.index(word_for(q)) : -1]:
        rejected = (_largest(word) + 1) % int(q)
        if rejected * _WORDS_PER_REJECTION <= _largest(word):
            return word
    return _TYPES[-1]


def uniform(q: int, shape: int | tuple[int, ...], entropy: Entropy) -> Residues:
    """Draw independent elements, exactly uniform on F_q if the bytes of `entropy` are uniform."""
    out = np.empty(shape, dtype=dtype_for(q))
    UniformDraws(q, entropy).fill(out.reshape(-1))
    return out


class UniformDraws:
    """Uniform elements of F_q in bulk: `uniform` with working memory that is allocated once.

    A word above `last_accepted` is drawn again in its place. That is for local randomness; parties
    who expand a common key must agree on every element and use `expand`.
    """

    def __init__(self, q: int, entropy: Entropy) -> None:
        self._q = q
        self._entropy = entropy
        word = _frugal_word(q)
        self._last = last_accepted(q, word)
        size = BLOCK_BYTES // word.itemsize
        self._words = np.empty(size, dtype=word)
        self._spare = np.empty(size, dtype=word)
        self._above = np.empty(size, dtype=np.bool_)

    def fill(self, out: Residues) -> None:
        """Overwrite a vector of the type `dtype_for(q)`."""
        for start in range(0, len(out), self._words.size):
            block = out[start : start + self._words.size]
            words = self._draw_words(block.size)
            _reduce_into(words, self._q, self._spare[: block.size], block)

    def _draw_words(self, count: int) -> Residues:
        """Draw words that are uniform up to the last accepted one."""
        words = self._words[:count]
        self._entropy.fill(words.view(np.uint8))
        rejected = np.flatnonzero(np.greater(words, self._last, out=self._above[:count]))
        while rejected.size:
            redrawn = np.empty(rejected.size, dtype=words.dtype)
            self._entropy.fill(redrawn.view(np.uint8))
            words[rejected] = redrawn
            rejected = rejected[redrawn > self._last]
        return words


def _check_integers(values: ArrayLike) -> NDArray[np.integer[Any]]:
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise ShareError("elements must be whole numbers, in rows of equal length") from None
    # Floats are refused even where they are whole: above 2^53 they may have been rounded already.
    if array.dtype.kind not in "iu":
        raise ShareError(
            "elements must be whole numbers of at most 64 bits: convert them to an integer array"
        )
    return array


def _check_pair(a: ArrayLike, b: ArrayLike, q: int) -> tuple[Residues, Residues]:
    left = check_residues(a, q)
    right = check_residues(b, q)
    # Without this check NumPy would repeat the shorter vector instead of refusing it.
    if left.shape != right.shape:
        raise ShareError(f"vectors must have the same shape, not {left.shape} and {right.shape}")
    return left, right
