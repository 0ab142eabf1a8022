"""Additive secret sharing over F_q: all shares together are the secret, all but one are uniform noise.

The first m-1 shares are independent and uniform, the last is the secret minus their sum (the paper's definition of an
additive scheme with m parties). Sums of shares are shares of the sum, which is all that aggregation needs.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.validation import integer
from faircount.sharing.field import UniformDraws, add, check, fold, subtract, sum_rows, uniform

_TILE_BYTES = 1 << 20  # shares held at a time by `exchange`: they are added up while still in the cache
_TILE_USERS = 16


def split(values: ArrayLike, parties: int, q: int, entropy: Entropy) -> Residues:
    """Shares of `values`, row i for party i. With one party the only share is the secret itself."""
    secret = check(values, q)
    drawn = uniform(q, (integer("parties", parties, least=1) - 1, *secret.shape), entropy)
    last = subtract(secret, sum_rows(drawn, q), q)
    return np.concatenate([drawn, last[np.newaxis]])


def combine(shares: ArrayLike, q: int) -> Residues:
    """The secret: the sum of all parties' shares, row i from party i."""
    shared = check(shares, q)
    if shared.ndim == 0 or len(shared) == 0:
        raise ShareError("there are no shares to combine: give one row per party")
    return sum_rows(shared, q)


def exchange(
    responses: ArrayLike,
    parties: int,
    q: int,
    entropy: Entropy,
    progress: Callable[[int], None] | None = None,
) -> Residues:
    """What each party sends on after every user shared its row of `responses` with all of them: the paper's tau_i.

    Alg. 2, lines 8-10: (n, N) responses give (parties, N) sums. Every one of the n x parties x N shares is drawn, added
    to its receiver's sum and forgotten, a tile of some users and parties at a time, so memory does not grow with
    n x parties. `progress` is told how many users are done.
    """
    rows = check(responses, q)
    if rows.ndim != 2:
        raise ShareError("responses must be a matrix with one row per user")
    others, items = integer("parties", parties, least=1) - 1, rows.shape[1]
    sums = np.zeros((others + 1, items), dtype=rows.dtype)
    deep, wide = _tile(len(rows), others, items * rows.itemsize)
    draws, tile = UniformDraws(q, entropy), np.empty(deep * wide * items, dtype=rows.dtype)
    for users in _slices(len(rows), deep):
        last = rows[users]
        for some in _slices(others, wide):
            shape = len(last), some.stop - some.start, items
            flat = tile[: math.prod(shape)]
            draws.fill(flat)
            drawn = flat.reshape(shape)
            sums[some] = add(sums[some], _received(drawn, q), q)
            last = subtract(last, fold(drawn, q), q)
        sums[-1] = add(sums[-1], sum_rows(last, q), q)
        if progress is not None:
            progress(users.stop)
    return sums


def _received(drawn: Residues, q: int) -> Residues:
    """Sums over the users of a tile (users, parties, items)."""
    users, parties, items = drawn.shape
    return fold(drawn.reshape(1, users, parties * items), q).reshape(parties, items)


def _tile(users: int, others: int, vector_bytes: int) -> tuple[int, int]:
    """Users and parties to treat at once: a few users, as many parties as fit, then more users if parties are few."""
    vectors = max(1, _TILE_BYTES // max(1, vector_bytes))
    wide = max(1, min(others, vectors // _TILE_USERS))
    return max(1, min(users, vectors // wide)), wide


def _slices(total: int, step: int) -> Iterator[slice]:
    for start in range(0, total, step):
        yield slice(start, min(start + step, total))
