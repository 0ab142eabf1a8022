"""Sets of members that are summed: their digest, and whether the set resists collusion.

A sum hides each vector only while the honest members are connected through secrets that they share
with each other. So the graph of members, without the removed pairs, must stay connected when any
phi colluding members are taken out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from faircount.protocol.peers.messages import RemovedPair
from faircount.protocol.wire.digests import bitmap, members_of, set_digest

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PeerSet:
    """The set of one attempt, of a roster of n: members ascending, and pairs left out."""

    digest: bytes
    attempt: int
    n: int
    members: tuple[int, ...]
    removed: Pairs = frozenset()

    @property
    def set_digest(self) -> bytes:
        """The digest that every key of this attempt is bound to."""
        return set_digest(self.digest, self.attempt, self.members, self.n, self.removed)

    @property
    def bits(self) -> bytes:
        """The members as a bitmap."""
        return bitmap(self.members, self.n)

    @property
    def removed_pairs(self) -> tuple[RemovedPair, ...]:
        """The removed pairs, ascending, as they are sent."""
        return tuple(RemovedPair(i, j) for i, j in sorted(self.removed))


def parse_peer_set(
    digest: bytes, attempt: int, n: int, bits: bytes, pairs: Sequence[RemovedPair]
) -> PeerSet | None:
    """The set that a message describes; None unless it is in canonical form.

    Two descriptions of one set would have two digests, and clients would answer both.
    """
    members = members_of(bits, n)
    if members is None or not _are_canonical(pairs, frozenset(members)):
        return None
    return PeerSet(digest, attempt, n, members, frozenset((pair.i, pair.j) for pair in pairs))


def _are_canonical(pairs: Sequence[RemovedPair], members: frozenset[int]) -> bool:
    """Whether these are pairs of members, ascending and without repeats.

    The sequence is still packed and nobody vouches for it yet, so nothing is kept while it is read.
    """
    if len(pairs) > len(members) ** 2 // 2:
        return False
    # check: removed-pair-once - a pair listed twice would be removed twice
    ordered = all((one.i, one.j) < (two.i, two.j) for one, two in pairwise(pairs))
    return (
        ordered
        # check: removed-pair-inside - a pair with an outsider is no edge of this set
        and all(pair.i < pair.j and pair.i in members and pair.j in members for pair in pairs)
    )


def is_robustly_connected(
    members: Sequence[int], removed: Iterable[tuple[int, int]], phi: int
) -> bool:
    """Whether the members stay connected, without the removed pairs, when any phi are taken out."""
    # A graph on n vertices of least degree d has connectivity at least 2d + 2 - n.
    most_removed = max(_count_removed(removed).values(), default=0)
    least_degree = len(members) - 1 - most_removed
    return len(members) > phi + 1 and 2 * least_degree + 2 - len(members) > phi


def drop_until_connected(
    members: Iterable[int], removed: Iterable[tuple[int, int]], phi: int
) -> tuple[tuple[int, ...], Pairs]:
    """Drop members with the most removed pairs until the rest is robustly connected.

    Returns:
        the members left, and the removed pairs among them
    """
    inside = set(members)
    pairs = {(i, j) for i, j in removed if i in inside and j in inside}
    while pairs and not is_robustly_connected(sorted(inside), pairs, phi):
        # Of equals the first member goes, so that everybody who computes this agrees.
        worst = max(_count_removed(pairs).items(), key=lambda item: (item[1], -item[0]))[0]
        inside.discard(worst)
        pairs = {pair for pair in pairs if worst not in pair}
    return tuple(sorted(inside)), frozenset(pairs)


def _count_removed(pairs: Iterable[tuple[int, int]]) -> Counter[int]:
    """How many removed pairs each member is in."""
    counts = Counter[int]()
    for pair in pairs:
        counts.update(pair)
    return counts
