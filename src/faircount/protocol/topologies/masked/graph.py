"""Who masks with whom: a random regular graph that nobody chose, and how many neighbours everybody needs.

Everybody stands on a ring, in the order of tags that nobody knew before the roster was sealed: tag i is the i-th
block of the AES-256-CTR key stream under SHA-256 of S2's revealed value and the roster's digest. Neighbours are the k/2
users on each side; with at most k + 1 users everybody is everybody's. A tag needs the place in the roster only, so a
user finds its neighbours by itself and asks for their lines alone.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats, Marks
from faircount.core.entropy import fill_from, key_stream
from faircount.core.errors import ParameterError
from faircount.core.search import first_whole
from faircount.core.validation import integer, share_of_users
from faircount.protocol.wire.digests import labelled

COLLUDING, DROPOUT = 0.05, 0.30
"""Fractions of the users that a graph is planned for, unless told otherwise."""

COMPLETE_UP_TO = 64
"""Up to this many users everybody is everybody's neighbour: this costs little and bears more than was planned."""

ONE_BY_ONE, MOST_NEIGHBOURS = 500, 10_000
"""Degrees up to the first are tried one by one; nobody shares a key with more users than the second."""

PRIVATE_BITS, RECOVER_BITS = 40, 20
"""A graph falls apart or exposes a key with probability 2^-40 at most, cannot recover a key with 2^-20 at most."""


@dataclass(frozen=True)
class Graph:
    """A ring of n users in which everybody has `degree` neighbours, drawn from its key."""

    key: bytes
    n: int
    degree: int

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The user at each place of the ring."""
        tags = np.empty((self.n, 16), dtype=np.uint8)
        fill_from(key_stream(self.key), tags.reshape(-1))
        words = tags.view(">u8")  # blocks of one key stream differ, so no two tags are equal
        return np.lexsort((words[:, 1], words[:, 0])).astype(np.int64)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """The place of each user."""
        found = np.empty(self.n, dtype=np.int64)
        found[self.order] = np.arange(self.n)
        return found

    def of(self, user: int) -> list[int]:
        """The neighbours of a user, ascending."""
        row: list[int] = np.sort(self.order[(self.place[user] + self._steps) % self.n]).tolist()
        return row

    @cached_property
    def near(self) -> NDArray[np.int64]:
        """Row i: the neighbours of user i, ascending."""
        return np.sort(self.order[(self.place[:, None] + self._steps) % self.n], axis=1)

    @cached_property
    def back(self) -> NDArray[np.int64]:
        """Where user i stands among the neighbours of its a-th neighbour: near[near[i, a], back[i, a]] = i."""
        at = np.empty(self.near.size, dtype=np.int64)
        at[np.argsort(self.near.reshape(-1), kind="stable")] = np.tile(np.arange(self.degree), self.n)
        return at.reshape(self.near.shape)

    @property
    def _steps(self) -> NDArray[np.int64]:
        """Ways along the ring to the neighbours."""
        half = self.degree // 2
        return np.concatenate((np.arange(1, self.degree - half + 1), np.arange(self.n - half, self.n)))

    def marks(self, users: object) -> Marks:
        """The users as marks on the roster."""
        found = np.zeros(self.n, dtype=np.bool_)
        found[np.asarray(users, dtype=np.int64)] = True
        return found

    def count(self, alive: Marks) -> NDArray[np.int64]:
        """How many neighbours of each user are alive: sums over windows of the ring."""
        around, half = alive[self.order].astype(np.int64), self.degree // 2
        if self.degree == self.n - 1:
            return np.asarray(alive.sum() - alive, dtype=np.int64)
        sums = np.cumsum(np.concatenate(([0], around[-half:], around, around[:half])))
        found = np.empty(self.n, dtype=np.int64)
        found[self.order] = sums[2 * half + 1 :] - sums[: -2 * half - 1] - around
        return found

    def largest(self, alive: Marks) -> Marks:
        """The largest connected part of those alive; of equal ones that with the first user.

        Neighbours are at most k/2 steps apart, so the ring falls apart where nobody is alive for longer.
        """
        places = np.flatnonzero(alive[self.order])
        if self.degree == self.n - 1 or not places.size:
            return alive.copy()
        cut = np.diff(places, append=places[0] + self.n) > self.degree // 2
        run: NDArray[np.int64] = np.cumsum(cut) - cut
        if not cut[-1]:  # the last run goes on with the first
            run[run == run[-1]] = 0
        sizes, users = np.bincount(run), self.order[places]
        tied = sizes[run] == sizes.max()
        return self.marks(users[run == run[tied][np.argmin(users[tied])]])

    def connected(self, alive: Marks) -> bool:
        """Whether those alive hang together."""
        return bool(alive.any()) and bool((self.largest(alive) == alive).all())

    def settled(self, alive: Marks, least: int) -> Marks:
        """The largest connected part of those alive in which everybody has `least` neighbours."""
        enough = alive & (self.count(alive) >= least)
        while (enough != alive).any():
            alive, enough = enough, enough & (self.count(enough) >= least)
        return self.largest(enough)


@lru_cache(maxsize=4)
def draw(revealed: bytes, digest: bytes, n: int, k: int) -> Graph:
    """The one graph of a sealed roster of n users, k neighbours each (cached: in memory everybody draws the same)."""
    degree = min(k, n - 1)
    if degree < 1 or (degree < n - 1 and degree % 2):
        raise ParameterError(f"a ring of {n} users needs an even number of neighbours, not {k}")
    return Graph(labelled(b"graph", revealed, digest), n, degree)


def check_degree(n: int, k: int, t: int) -> None:
    """Refuse a degree and a threshold that no graph of up to n users can have."""
    integer("k, the number of neighbours", k, least=2, most=n - 1)
    integer("t, the key shares needed to recover a key", t, least=2, most=k)
    if k % 2 and k != n - 1:
        raise ParameterError(f"k = {k} must be even, or {n - 1} for everybody")


def least_degree(n: int, colluding: float = COLLUDING, dropout: float = DROPOUT, bits: int = PRIVATE_BITS) -> int:
    """The smallest even k with n (n-k-1)/2 C(n-k, B-k) / C(n, B) <= 2^-bits, B = colluding and dropped users.

    This bounds the probability that the others fall apart (Bell et al., SecAgg+). Small n: n - 1, everybody.
    """
    lost = share_of_users("colluding", colluding, n) + share_of_users("dropout", dropout, n)
    return next((k for k in range(2, n - 1, 2) if stays_connected(n, lost, k, bits)), n - 1)


def stays_connected(n: int, lost: int, k: int, bits: int = PRIVATE_BITS + 1) -> bool:
    """Whether the others fall apart with probability 2^-bits at most, if so many users are lost."""
    if k > lost or k >= n - 1:
        return True
    log_ratio = math.lgamma(n - k + 1) - math.lgamma(lost - k + 1) + math.lgamma(lost + 1) - math.lgamma(n + 1)
    return log_ratio + math.log(n * (n - k - 1) / 2) <= -bits * math.log(2)


def plan(n: int, colluding: float = COLLUDING, dropout: float = DROPOUT) -> tuple[int, int]:
    """(k, t): the smallest even degree, and the threshold with which keys are safe and can be recovered.

    With probability 2^-40 the others fall apart or somebody has t colluding neighbours (half for each), with 2^-20
    somebody has fewer than t neighbours left who help: those who collude may lie when they are asked, so they count as
    absent. Small n: everybody is a neighbour.
    """
    bad = share_of_users("colluding", colluding, n)
    lost = min(n - 1, share_of_users("dropout", dropout, n) + bad)
    first = n - 1 if n <= COMPLETE_UP_TO else least_degree(n, colluding, dropout, PRIVATE_BITS + 1)
    for k in _degrees(first, n):
        t = safe_threshold(n, bad, k)
        if t <= k and math.log(n) + _log_below(n - 1, n - 1 - lost, k, t) <= -RECOVER_BITS * math.log(2):
            return k, t
    raise ParameterError(
        f"no graph of {n} users with at most {MOST_NEIGHBOURS:,} neighbours each bears {bad} colluding and {lost} "
        "missing: invite more, or plan for fewer"
    )


def _degrees(first: int, n: int) -> Iterator[int]:
    """Every even degree from the first on, above 500 in steps of a twentieth; the last one is everybody."""
    k = first + first % 2
    while k < min(n - 1, MOST_NEIGHBOURS):
        yield k
        k += 2 if k < ONE_BY_ONE else 2 * (k // 40)
    if n - 1 <= MOST_NEIGHBOURS:
        yield n - 1


def safe_threshold(n: int, bad: int, k: int) -> int:
    """The smallest t that with probability 1 - 2^-41 is above everybody's number of colluding neighbours."""
    limit = -(PRIVATE_BITS + 1) * math.log(2) - math.log(n)
    return first_whole(lambda t: _log_below(n - 1, n - 1 - bad, k, k - t + 1) <= limit, 2, k + 2)


def _log_below(population: int, marked: int, drawn: int, least: int) -> float:
    """log P(X < least) for the number X of marked ones among those drawn without replacement."""
    from scipy.special import logsumexp

    low, high = max(0, drawn - (population - marked)), min(least - 1, drawn, marked)
    if high < low:
        return -math.inf
    x = np.arange(low, high + 1)
    logs = _log_choose(marked, x) + _log_choose(population - marked, drawn - x)
    return float(logsumexp(logs) - _log_choose(population, np.array(drawn)))


def _log_choose(n: int, r: NDArray[np.int64]) -> Floats:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1) - gammaln(r + 1) - gammaln(n - r + 1))
