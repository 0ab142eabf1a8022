"""Sets of peers over which sums are made: digest, and whether they stay together without colluding users.

A sum over the set hides each part only while the users who share secrets form one connected graph, colluders taken out.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from faircount.protocol.topologies.peers.messages import Edge
from faircount.protocol.wire.digests import bitmap, members_of, set_digest

Pairs = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class PeerSet:
    """One attempt's set of a roster of n users: members ascending, and pairs whose secrets do not count."""

    digest: bytes
    attempt: int
    n: int
    members: tuple[int, ...]
    removed: Pairs = frozenset()

    @property
    def set_digest(self) -> bytes:
        """What every blob of this attempt is sealed under."""
        return set_digest(self.digest, self.attempt, self.members, self.n, self.removed)

    @property
    def bits(self) -> bytes:
        """The members as a bitmap."""
        return bitmap(self.members, self.n)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The removed pairs, ascending."""
        return tuple(Edge(i, j) for i, j in sorted(self.removed))


def peer_set(digest: bytes, attempt: int, n: int, bits: bytes, edges: Sequence[Edge]) -> PeerSet | None:
    """The set that a message describes; None unless it does so in the one canonical way."""
    members = members_of(bits, n)
    if members is None or not _canonical(edges, frozenset(members)):
        return None
    return PeerSet(digest, attempt, n, members, frozenset((each.i, each.j) for each in edges))


def _canonical(edges: Sequence[Edge], inside: frozenset[int]) -> bool:
    """Whether these are pairs of members, each once, ascending; none is kept, since nobody vouches for them yet."""
    if len(edges) > len(inside) ** 2 // 2:
        return False
    ordered = all((one.i, one.j) < (two.i, two.j) for one, two in pairwise(edges))
    return ordered and all(each.i < each.j and each.i in inside and each.j in inside for each in edges)


def holds_together(members: Sequence[int], removed: Iterable[tuple[int, int]], phi: int) -> bool:
    """Whether the complete graph without the removed pairs stays connected when any phi users are taken out.

    A graph on n vertices of least degree d has connectivity at least 2d + 2 - n.
    """
    lost = max(_degrees(removed).values(), default=0)
    return len(members) > phi + 1 and 2 * (len(members) - 1 - lost) + 2 - len(members) > phi


def shrunk(members: Iterable[int], removed: Iterable[tuple[int, int]], phi: int) -> tuple[tuple[int, ...], Pairs]:
    """The members and removed pairs left after dropping those with most removed pairs until it holds together."""
    inside = set(members)
    pairs = {(i, j) for i, j in removed if i in inside and j in inside}
    while pairs and not holds_together(sorted(inside), pairs, phi):
        worst = max(_degrees(pairs).items(), key=lambda item: (item[1], -item[0]))[0]
        inside.discard(worst)
        pairs = {pair for pair in pairs if worst not in pair}
    return tuple(sorted(inside)), frozenset(pairs)


def _degrees(pairs: Iterable[tuple[int, int]]) -> Counter[int]:
    return Counter(each for pair in pairs for each in pair)
