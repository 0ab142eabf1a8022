"""The graph of neighbours: random, regular, chosen by nobody; and how many neighbours it needs.

All members stand on a ring, in the order of tags that nobody could know before the roster was
confirmed: tag i is the i-th block of the AES-256-CTR key stream under a hash of the aggregator's
revealed value and the roster's digest. Neighbours are the k/2 members on each side; with at most
k + 1 members the graph is complete. A tag depends on the place in the roster only, so a client
finds its neighbours by itself and asks for their roster entries alone.

The degree follows Bell et al. (SecAgg+): large enough that, with overwhelming probability, the
honest members who stay are connected, nobody has t colluding neighbours, and every dropped member
has t neighbours left to recover its key.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Bools
from faircount.core.entropy import fill_from, key_stream
from faircount.core.errors import ParameterError
from faircount.core.search import first_integer
from faircount.core.special import log_sum_exp
from faircount.core.validation import check_integer, share_of_users
from faircount.protocol.wire.digests import tagged_hash

COLLUDING = 0.05
"""Fraction of colluding users that a graph is planned for, unless told otherwise."""

DROPOUT = 0.30
"""Fraction of users that may drop out, unless told otherwise."""

COMPLETE_UP_TO = 64
"""Up to this many users the graph is complete: that costs little and tolerates more."""

ONE_BY_ONE = 500
"""Degrees up to this are tried one by one."""

MAX_NEIGHBOURS = 10_000
"""Nobody shares a key with more users than this."""

PRIVATE_BITS = 40
"""A graph falls apart or exposes a key with probability 2^-40 at most."""

RECOVER_BITS = 20
"""A graph cannot recover a key with probability 2^-20 at most."""

NEGLIGIBLE_LOG = 60.0
"""10,000 probabilities, each e^60 times smaller than another, change no float when added to it."""


@dataclass(frozen=True)
class Graph:
    """A ring of n members in which everybody has `degree` neighbours, drawn from its key."""

    key: bytes
    n: int
    degree: int

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The member at each position of the ring."""
        tags = np.empty((self.n, 16), dtype=np.uint8)
        fill_from(key_stream(self.key), tags.reshape(-1))
        # Blocks of one key stream differ, so no two tags are equal.
        words = tags.view(">u8")
        return np.lexsort((words[:, 1], words[:, 0])).astype(np.int64)

    @cached_property
    def ring_position(self) -> NDArray[np.int64]:
        """The position of each member on the ring."""
        found = np.empty(self.n, dtype=np.int64)
        found[self.order] = np.arange(self.n)
        return found

    def neighbours_of(self, member: int) -> list[int]:
        """The neighbours of a member, ascending."""
        # One row only: a client of a large survey must not build the table of all neighbours.
        around = (self.ring_position[member] + self._steps) % self.n
        found: list[int] = np.sort(self.order[around]).tolist()
        return found

    @cached_property
    def neighbours(self) -> NDArray[np.int64]:
        """Row i: the neighbours of member i, ascending."""
        return np.sort(self.order[(self.ring_position[:, None] + self._steps) % self.n], axis=1)

    @cached_property
    def reverse_index(self) -> NDArray[np.int64]:
        """The index of member i among the neighbours of its a-th neighbour.

        neighbours[neighbours[i, a], reverse_index[i, a]] = i.
        """
        index = np.empty(self.neighbours.size, dtype=np.int64)
        # A stable sort lists, for each member, its mentions in the order of the rows.
        mentions = np.argsort(self.neighbours.reshape(-1), kind="stable")
        index[mentions] = np.tile(np.arange(self.degree), self.n)
        return index.reshape(self.neighbours.shape)

    @property
    def _steps(self) -> NDArray[np.int64]:
        """Steps along the ring to the neighbours."""
        half = self.degree // 2
        return np.concatenate(
            (np.arange(1, self.degree - half + 1), np.arange(self.n - half, self.n))
        )

    def marks(self, members: object) -> Bools:
        """The members as a boolean array over the roster."""
        found = np.zeros(self.n, dtype=np.bool_)
        found[np.asarray(members, dtype=np.int64)] = True
        return found

    def count_neighbours(self, alive: Bools) -> NDArray[np.int64]:
        """How many neighbours of each member are alive, as sums over windows of the ring."""
        if self.degree == self.n - 1:
            return np.asarray(alive.sum() - alive, dtype=np.int64)
        # The ring is closed by repeating half a window at both ends, then each count is the
        # difference of two prefix sums, without the member itself.
        half = self.degree // 2
        around = alive[self.order].astype(np.int64)
        sums = np.cumsum(np.concatenate(([0], around[-half:], around, around[:half])))
        found = np.empty(self.n, dtype=np.int64)
        found[self.order] = sums[2 * half + 1 :] - sums[: -2 * half - 1] - around
        return found

    def largest_component(self, alive: Bools) -> Bools:
        """The largest connected component of those alive; of equal ones that with the first member.

        Neighbours are at most k/2 steps apart, so the ring is cut where a longer gap has nobody.
        """
        places = np.flatnonzero(alive[self.order])
        if self.degree == self.n - 1 or not places.size:
            return alive.copy()
        is_cut = np.diff(places, append=places[0] + self.n) > self.degree // 2
        run: NDArray[np.int64] = np.cumsum(is_cut) - is_cut
        # Without a cut at the end the last run continues with the first.
        if not is_cut[-1]:
            run[run == run[-1]] = 0
        sizes = np.bincount(run)
        members = self.order[places]
        # Of equal runs the one with the smallest member, so that both servers choose the same.
        tied = sizes[run] == sizes.max()
        return self.marks(members[run == run[tied][np.argmin(members[tied])]])

    def is_connected(self, alive: Bools) -> bool:
        """Whether those alive are connected."""
        return bool(alive.any()) and bool((self.largest_component(alive) == alive).all())

    def stable_component(self, alive: Bools, least: int) -> Bools:
        """The largest connected component in which everybody has `least` neighbours alive."""
        enough = alive & (self.count_neighbours(alive) >= least)
        # Whoever is removed may leave a neighbour with too few: repeat until nobody is.
        while (enough != alive).any():
            alive = enough
            enough = alive & (self.count_neighbours(alive) >= least)
        return self.largest_component(enough)


@lru_cache(maxsize=4)
def draw_graph(revealed: bytes, digest: bytes, n: int, k: int) -> Graph:
    """The one graph of a confirmed roster of n members, k neighbours each.

    Cached for simulations, in which all clients draw the same graph.
    """
    # Half of the neighbours stand on each side of the ring, so only a complete graph may be odd.
    degree = min(k, n - 1)
    if degree < 1 or (degree < n - 1 and degree % 2):
        raise ParameterError(
            f"a ring of {n} participants needs an even number of neighbours, not {k}"
        )
    return Graph(tagged_hash(b"graph", revealed, digest), n, degree)


# --- how many neighbours --------------------------------------------------------------------------


def check_degree(n: int, k: int, t: int) -> None:
    """Refuse a degree and a threshold that no graph of up to n users can have."""
    check_integer("k, the number of neighbours", k, least=2, most=n - 1)
    check_integer("t, the key shares needed to recover a key", t, least=2, most=k)
    if k % 2 and k != n - 1:
        raise ParameterError(f"k = {k} must be even, or {n - 1} for everybody")


def least_degree(
    n: int, colluding: float = COLLUDING, dropout: float = DROPOUT, bits: int = PRIVATE_BITS
) -> int:
    """The smallest even k with n (n-k-1)/2 C(n-k, B-k) / C(n, B) <= 2^-bits, or n - 1 if none.

    B is the number of colluding and dropped users. The left side bounds the probability that the
    others are not connected (Bell et al., SecAgg+).
    """
    lost = share_of_users("colluding", colluding, n) + share_of_users("dropout", dropout, n)
    return next((k for k in range(2, n - 1, 2) if stays_connected(n, lost, k, bits)), n - 1)


def stays_connected(n: int, lost: int, k: int, bits: int = PRIVATE_BITS + 1) -> bool:
    """Whether the others fall apart with probability 2^-bits at most if so many users are lost."""
    if k > lost or k >= n - 1:
        return True
    # Logarithms, because the binomial coefficients overflow a float from about a thousand users on.
    log_ratio = (
        math.lgamma(n - k + 1)
        - math.lgamma(lost - k + 1)
        + math.lgamma(lost + 1)
        - math.lgamma(n + 1)
    )
    return log_ratio + math.log(n * (n - k - 1) / 2) <= -bits * math.log(2)


def plan_graph(n: int, colluding: float = COLLUDING, dropout: float = DROPOUT) -> tuple[int, int]:
    """(k, t): the smallest even degree, and a threshold at which keys are safe and recoverable.

    With probability 2^-40 the others fall apart or somebody has t colluding neighbours (half of it
    for each), and with 2^-20 somebody has fewer than t neighbours left who unmask. Colluding users
    may withhold their unmask shares, so they count as absent there. Small n: a complete graph.

    Raises:
        ParameterError: no graph tolerates so many colluding and missing users
    """
    # Colluding users count against recovery too, so `lost` includes them.
    bad = share_of_users("colluding", colluding, n)
    lost = min(n - 1, share_of_users("dropout", dropout, n) + bad)
    first = n - 1 if n <= COMPLETE_UP_TO else least_degree(n, colluding, dropout, PRIVATE_BITS + 1)
    limit = -RECOVER_BITS * math.log(2)
    for k in _degrees(first, n):
        t = safe_threshold(n, bad, k)
        if t <= k and math.log(n) + _log_below(n - 1, n - 1 - lost, k, t) <= limit:
            return k, t
    raise ParameterError(
        f"no graph of {n} participants with at most {MAX_NEIGHBOURS:,} neighbours each tolerates "
        f"{bad} colluding and {lost} missing: invite more, or plan for fewer"
    )


def _degrees(first: int, n: int) -> Iterator[int]:
    """Even degrees from the first on, above 500 in steps of a twentieth; then n - 1."""
    k = first + first % 2
    # Large degrees in steps: one by one the search would take seconds and save nobody a byte.
    while k < min(n - 1, MAX_NEIGHBOURS):
        yield k
        k += 2 if k < ONE_BY_ONE else 2 * (k // 40)
    if n - 1 <= MAX_NEIGHBOURS:
        yield n - 1


def safe_threshold(n: int, bad: int, k: int) -> int:
    """The smallest t above everybody's number of colluding neighbours, except with 2^-41."""
    # A union bound over the n users, half of the failure probability 2^-40.
    limit = -(PRIVATE_BITS + 1) * math.log(2) - math.log(n)
    return first_integer(lambda t: _log_below(n - 1, n - 1 - bad, k, k - t + 1) <= limit, 2, k + 2)


def _log_below(population: int, marked: int, drawn: int, least: int) -> float:
    """log P(X < least) for the number X of marked ones among those drawn without replacement."""
    low = max(0, drawn - (population - marked))
    high = min(least - 1, drawn, marked)
    if high < low:
        return -math.inf
    # In logarithms: the probabilities go down to 2^-60, and binomial coefficients overflow.
    logs = list[float]()
    for x in range(high, low - 1, -1):
        logs.append(_log_choose(marked, x) + _log_choose(population - marked, drawn - x))
        # The probabilities have one peak. Once they are this much smaller than the first, they only
        # decrease, and the sum is that of all.
        if logs[-1] < logs[0] - NEGLIGIBLE_LOG:
            break
    return log_sum_exp(logs) - _log_choose(population, drawn)


def _log_choose(n: int, r: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1)
