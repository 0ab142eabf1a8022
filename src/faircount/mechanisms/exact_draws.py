"""Exact drawing from a finite distribution with 128-bit cumulative probabilities.

Outcome i is drawn with probability (c[i] - c[i-1]) / 2^128 exactly, c the integers of the table: a draw of 128
uniform bits is compared with integers, and no floating-point number takes part (Mironov 2012 shows what goes wrong
otherwise). The same table gives the same outcome for the same bits in every client.
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
from faircount.core.validation import probability

BITS = 128
ONE = 1 << BITS
_LOW = (1 << 64) - 1

PRECISE = Context(prec=80)
"""Decimal arithmetic for making tables: 80 digits, where 2^-128 needs 39."""

_CHUNK = 1 << 17  # coins at a time: their words stay in the cache


def flips(heads: int, size: int, entropy: Entropy) -> NDArray[np.bool_]:
    """`size` independent coins, each true with probability heads / 2^128 exactly.

    The law of comparing 128 bits with `heads`, without drawing them all: 16 bits decide, unless they equal the leading
    16 of `heads` (once in 65,536 times); then the next 16 do.
    """
    out = np.zeros(size, dtype=np.bool_)
    if heads == 0:
        return out
    lead, rest = divmod(heads, ONE >> 16)
    for start in range(0, size, _CHUNK):
        part = out[start : start + _CHUNK]
        drawn = entropy.words(part.size, np.uint16)
        np.less(drawn, lead, out=part)
        ties = np.flatnonzero(drawn == lead)
        if ties.size:
            part[ties] = flips(rest << 16, ties.size, entropy)
    return out


@dataclass(frozen=True)
class DrawTable:
    """Outcomes with cumulative probabilities c[0] <= c[1] <= ... <= c[-1] = 2^128."""

    values: tuple[int, ...] = field(repr=False)
    cumulative: tuple[int, ...] = field(repr=False)

    def __post_init__(self) -> None:
        steps = zip((0, *self.cumulative), self.cumulative, strict=False)
        if len(self.values) != len(self.cumulative) or not self.values:
            raise ParameterError("a table needs one cumulative probability per outcome")
        if any(after < before for before, after in steps) or self.cumulative[-1] != ONE:
            raise ParameterError("cumulative probabilities must not fall and must end at 2^128")

    @classmethod
    def symmetric(cls, sides: Sequence[int]) -> Self:
        """+z and -z with probability sides[z-1] / 2^128 each, for z = 1, 2, ..., and 0 with what is left."""
        weights = [*reversed(sides), ONE - 2 * sum(sides), *sides]
        return cls(tuple(range(-len(sides), len(sides) + 1)), tuple(accumulate(weights)))

    @classmethod
    def coin(cls, p: float) -> Self:
        """1 with probability p (a float above 2^-76 is a multiple of 2^-128, so p itself is exact), 0 otherwise."""
        heads = int(Fraction(probability("p", p)) * ONE)
        return cls((1, 0), (heads, ONE))

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Probabilities as integers over 2^128."""
        return tuple(b - a for a, b in zip((0, *self.cumulative), self.cumulative, strict=False))

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
    def _halves(self) -> NDArray[np.uint64]:
        """Upper halves of the inner cumulative probabilities; 2^128 itself has none and counts as the last one."""
        return np.array([min(c >> 64, _LOW) for c in self.cumulative[:-1]], dtype=np.uint64)

    @cached_property
    def _likeliest(self) -> tuple[int, np.uint64, np.uint64]:
        """The likeliest outcome's position and the upper halves [start, start + width) that mean it for sure."""
        at = max(range(len(self.weights)), key=self.weights.__getitem__)
        start = (self.cumulative[at - 1] >> 64) + 1 if at else 0
        end = min(self.cumulative[at] >> 64, _LOW)
        return at, np.uint64(start), np.uint64(max(end - start, 0))

    def draw(self, size: int, entropy: Entropy) -> NDArray[np.int64]:
        """`size` independent outcomes, 128 bits of entropy each."""
        bits = entropy.words(2 * size, np.uint64)
        return self._outcomes[self._lookup(bits[:size], bits[size:])]

    def _lookup(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
        """Number of inner cumulative probabilities at or below each 128-bit draw."""
        if self._halves.size <= 4:
            return self._search(high, low)
        at, start, width = self._likeliest  # a user's noise is nearly always 0: search for the few others only
        others = np.flatnonzero(high - start >= width)
        found = np.full(high.size, at, dtype=np.intp)
        found[others] = self._search(high[others], low[others])
        return found

    def _search(self, high: NDArray[np.uint64], low: NDArray[np.uint64]) -> NDArray[np.intp]:
        table = self._halves
        if table.size <= 4:
            below = np.zeros(high.size, dtype=np.intp)
            ties = np.zeros(high.size, dtype=bool)
            for entry in table:
                below += high > entry
                ties |= high == entry
        else:
            below = np.searchsorted(table, high, side="left")
            ties = table[np.minimum(below, table.size - 1)] == high
        for each in np.flatnonzero(ties):  # about len(table) * size / 2^64 of them
            drawn = (int(high[each]) << 64) | int(low[each])
            below[each] = bisect_right(self.cumulative, drawn, hi=table.size)
        return below


def distinct_keys(shape: tuple[int, int], entropy: Entropy) -> NDArray[np.uint64]:
    """Random keys in [1, 2^63], distinct within every row: given that, each order of a row is equally likely."""
    keys = np.empty(shape, dtype=np.uint64)
    todo = np.arange(shape[0])
    while todo.size:
        fresh = (entropy.words(todo.size * shape[1], np.uint64) >> np.uint64(1)) + np.uint64(1)
        keys[todo] = fresh.reshape(todo.size, shape[1])
        ordered = np.sort(keys[todo], axis=1)
        todo = todo[np.any(ordered[:, 1:] == ordered[:, :-1], axis=1)]
    return keys
