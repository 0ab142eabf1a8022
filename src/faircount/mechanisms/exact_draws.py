"""Exact sampling from finite distributions with 128-bit cumulative probabilities.

A distribution is a table of integers c[0] <= c[1] <= ... <= c[-1] = 2^128, and outcome i is drawn
with probability exactly (c[i] - c[i-1]) / 2^128: 128 uniform bits are compared with integers. No
floating-point number is involved, because rounding of a sampler leaks information about the answer
(Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).
The same table and the same bits give the same outcome in every client.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Context
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.validation import check_probability

BITS = 128
ONE = 1 << BITS
_LOW = (1 << 64) - 1

# Decimal arithmetic for computing tables: 80 digits, where 2^-128 needs 39.
PRECISE = Context(prec=80)

# Coins that are flipped at a time: their random words fit into the processor's cache.
_CHUNK = 1 << 17

# Tables with at most this many inner entries are compared one by one instead of by bisection.
_FEW_ENTRIES = 4


def flip_coins(threshold: int, size: int, entropy: Entropy) -> NDArray[np.bool_]:
    """Return `size` independent coins, each true with probability exactly threshold / 2^128."""
    out = np.zeros(size, dtype=np.bool_)
    if threshold == 0:
        return out
    # A coin is true if 128 random bits are below the threshold. The first 16 bits decide, unless
    # they equal the first 16 bits of the threshold (once in 65,536 times): then the next 16 do.
    lead, rest = divmod(threshold, ONE >> 16)
    for start in range(0, size, _CHUNK):
        chunk = out[start : start + _CHUNK]
        drawn = entropy.words(chunk.size, np.uint16)
        np.less(drawn, lead, out=chunk)
        ties = np.flatnonzero(drawn == lead)
        if ties.size:
            chunk[ties] = flip_coins(rest << 16, ties.size, entropy)
    return out


@dataclass(frozen=True)
class DrawTable:
    """Outcomes with their cumulative probabilities as integers over 2^128."""

    values: tuple[int, ...] = field(repr=False)
    cumulative: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.cumulative) or not self.values:
            raise ParameterError("a table needs one cumulative probability per outcome")
        is_ascending = all(weight >= 0 for weight in self.weights)
        if not is_ascending or self.cumulative[-1] != ONE:
            raise ParameterError("cumulative probabilities must not fall and must end at 2^128")

    @classmethod
    def symmetric(cls, sides: Sequence[int]) -> Self:
        """Return the table of a symmetric distribution around 0.

        The outcomes z and -z, for z = 1, 2, ..., have probability sides[z-1] / 2^128 each, and 0
        has the rest.
        """
        weights = [*reversed(sides), ONE - 2 * sum(sides), *sides]
        return cls(tuple(range(-len(sides), len(sides) + 1)), tuple(accumulate(weights)))

    @classmethod
    def coin(cls, p: float) -> Self:
        """Return the table of 1 with probability p and 0 otherwise."""
        # A float of at least 2^-76 is a multiple of 2^-128, so such a p is represented exactly.
        threshold = int(Fraction(check_probability("p", p)) * ONE)
        return cls((1, 0), (threshold, ONE))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Probabilities of the outcomes as integers over 2^128."""
        starts = (0, *self.cumulative[:-1])
        return tuple(end - start for start, end in zip(starts, self.cumulative, strict=True))

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Probabilities rounded to floating point, for accounting and tests."""
        return np.array([weight / ONE for weight in self.weights])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.values)} outcomes)"

    @cached_property
    def _outcomes(self) -> NDArray[np.int64]:
        return np.array(self.values, dtype=np.int64)

    @cached_property
    def _upper_halves(self) -> NDArray[np.uint64]:
        """Upper 64 bits of the cumulative probabilities, without the last one."""
        # An inner entry may be 2^128 itself, which has no 64-bit upper half. The largest one stands
        # in for it; a draw that equals it is a tie, which `_search` decides with all 128 bits.
        inner = self.cumulative[:-1]
        return np.array([min(entry >> 64, _LOW) for entry in inner], dtype=np.uint64)

    @cached_property
    def _likeliest(self) -> tuple[int, np.uint64, np.uint64]:
        """Index of the likeliest outcome; upper halves in [start, start + width) imply it."""
        index = max(range(len(self.weights)), key=self.weights.__getitem__)
        start = (self.cumulative[index - 1] >> 64) + 1 if index else 0
        end = min(self.cumulative[index] >> 64, _LOW)
        return index, np.uint64(start), np.uint64(max(end - start, 0))

    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """Draw `size` independent outcomes with 128 bits of entropy each."""
        # All upper halves come first in the stream, then all lower halves: other clients replay it.
        bits = entropy.words(2 * size, np.uint64)
        return self._outcomes[self._lookup(bits[:size], bits[size:])]

    def _lookup(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Return the index of the outcome for every 128-bit draw, given in two halves."""
        if self._upper_halves.size <= _FEW_ENTRIES:
            return self._search(high, low)
        # The noise of one user is nearly always 0, so only the other draws are searched for. The
        # difference is unsigned: draws below `start` wrap around and count as outside too.
        index, start, width = self._likeliest
        others = np.flatnonzero(high - start >= width)
        found = np.full(high.size, index, dtype=np.intp)
        found[others] = self._search(high[others], low[others])
        return found

    def _search(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Count the inner cumulative probabilities that are at or below every draw."""
        table = self._upper_halves
        if table.size <= _FEW_ENTRIES:
            below = np.zeros(high.size, dtype=np.intp)
            ties = np.zeros(high.size, dtype=bool)
            for entry in table:
                below += high > entry
                ties |= high == entry
        else:
            below = np.searchsorted(table, high, side="left")
            ties = table[np.minimum(below, table.size - 1)] == high
        # Equal upper halves are decided by the lower ones; about len(table) * size / 2^64 of them.
        for index in np.flatnonzero(ties):
            drawn = (int(high[index]) << 64) | int(low[index])
            below[index] = bisect_right(self.cumulative, drawn, hi=table.size)
        return below


def draw_distinct_keys(shape: tuple[int, int], entropy: Entropy) -> NDArray[np.uint64]:
    """Draw random keys in [1, 2^63] that are distinct within every row.

    Rows with a repeated key are drawn again, so that every order of a row is equally likely.
    """
    keys = np.empty(shape, dtype=np.uint64)
    pending = np.arange(shape[0])
    while pending.size:
        # 63 random bits plus 1: the values 0 and 2^64 - 1 stay free for `TSS`.
        fresh = (entropy.words(pending.size * shape[1], np.uint64) >> np.uint64(1)) + np.uint64(1)
        keys[pending] = fresh.reshape(pending.size, shape[1])
        ordered = np.sort(keys[pending], axis=1)
        pending = pending[np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)]
    return keys
