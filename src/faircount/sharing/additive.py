"""Additive secret sharing over F_q: all shares add up to the secret, all but one are uniform noise.

The first m-1 shares are independent and uniform, the last one is the secret minus their sum (the
paper's additive scheme with m parties). Sums of shares are shares of the sum, which is all that
aggregation needs.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.core.validation import check_integer
from faircount.sharing.field import (
    UniformDraws,
    add,
    check_residues,
    subtract,
    sum_middle_axis,
    sum_rows,
    uniform,
)

# Bytes of shares that `exchange` draws at a time: they are added up while still in the cache.
_TILE_BYTES = 1 << 20
_TILE_USERS = 16


def split(values: ArrayLike, parties: int, q: int, entropy: Entropy) -> Residues:
    """Split `values` into shares, row i for party i.

    With one party the only share is the secret itself.
    """
    secret = check_residues(values, q)
    others = check_integer("parties", parties, least=1) - 1
    drawn = uniform(q, (others, *secret.shape), entropy)
    last = subtract(secret, sum_rows(drawn, q), q)
    return np.concatenate([drawn, last[np.newaxis]])


def combine(shares: ArrayLike, q: int) -> Residues:
    """Return the secret: the sum of all parties' shares, row i from party i."""
    rows = check_residues(shares, q)
    if rows.ndim == 0 or len(rows) == 0:
        raise ShareError("there are no shares to combine: give one row per party")
    return sum_rows(rows, q)


def exchange(
    responses: ArrayLike,
    parties: int,
    q: int,
    entropy: Entropy,
    progress: Callable[[int], None] | None = None,
) -> Residues:
    """Share every user's response among all parties and return the sum that a party forwards.

    Lines 8-10 of Algorithm 2: (n, N) responses give (parties, N) sums, the paper's tau_i. Every one
    of the n x parties x N shares is drawn, added to its receiver's sum and dropped, for a tile of
    some users and parties at a time, so memory does not grow with n x parties. `progress` is called
    with the number of users done.
    """
    rows = check_residues(responses, q)
    if rows.ndim != 2:
        raise ShareError("responses must be a matrix with one row per user")
    others = check_integer("parties", parties, least=1) - 1
    items = rows.shape[1]
    sums = np.zeros((others + 1, items), dtype=rows.dtype)
    tile_users, tile_parties = _tile_shape(len(rows), others, items * rows.itemsize)
    draws = UniformDraws(q, entropy)
    memory = np.empty(tile_users * tile_parties * items, dtype=rows.dtype)
    for users in _slices(len(rows), tile_users):
        # What is left of these users' responses after the shares drawn so far; at the end it is
        # the share of the last party.
        last = rows[users]
        for receivers in _slices(others, tile_parties):
            shape = (len(last), receivers.stop - receivers.start, items)
            flat = memory[: math.prod(shape)]
            draws.fill(flat)
            drawn = flat.reshape(shape)
            # Added up over the users, with parties and items as one long axis.
            stacked = drawn.reshape(1, len(last), math.prod(shape[1:]))
            received = sum_middle_axis(stacked, q).reshape(shape[1:])
            sums[receivers] = add(sums[receivers], received, q)
            last = subtract(last, sum_middle_axis(drawn, q), q)
        sums[-1] = add(sums[-1], sum_rows(last, q), q)
        if progress is not None:
            progress(users.stop)
    return sums


def _tile_shape(users: int, others: int, vector_bytes: int) -> tuple[int, int]:
    """Return how many users and how many parties fit into one tile."""
    vectors = max(1, _TILE_BYTES // max(1, vector_bytes))
    # A few users with as many parties as fit; where parties are few, more users instead.
    parties = max(1, min(others, vectors // _TILE_USERS))
    return max(1, min(users, vectors // parties)), parties


def _slices(total: int, step: int) -> Iterator[slice]:
    for start in range(0, total, step):
        yield slice(start, min(start + step, total))
