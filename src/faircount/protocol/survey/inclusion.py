"""Was I counted? The path from a user's entry to the root that S2 signed with the result."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import (
    InclusionProof,
    Levels,
    leaf,
    merkle_root,
    proves,
    roster_leaves,
    tree,
    way_up,
)
from faircount.protocol.wire.messages import Inclusion, Published, Signed
from faircount.protocol.wire.packed_rows import in_parts
from faircount.protocol.wire.signing import unwrap

Entry = tuple[bytes, bytes]
"""(user id, public key) under which a result names a user."""

Entries = Callable[[range], Iterable[Entry]]
"""Gives those whom a result counts at some places of its order."""

BLOCK = 64
"""Entries of which only the root is kept: the hashes inside of a block are made again for whoever asks."""


def inclusion(published: Signed, entries: Entries, size: int, place: int) -> Inclusion:
    """The result with the path from the entry at this place among the `size` that it counts."""
    first = place - place % BLOCK
    inside = tree(roster_leaves(entries(range(first, min(first + BLOCK, size))), first))
    above = _above(_Counted(published.payload, entries, size))
    path = (*way_up(inside, place - first), *way_up(above, place // BLOCK))
    return Inclusion(published, place, size, path)


@dataclass(frozen=True)
class _Counted:
    """Whom a result counts, known by the result."""

    result: bytes
    entries: Entries = field(compare=False)
    size: int = field(compare=False)


@lru_cache(maxsize=16)
def _above(counted: _Counted) -> Levels:
    """The published tree above its blocks: made once, asked for by everybody."""
    leaves = roster_leaves(counted.entries(range(counted.size)))
    return tree(merkle_root(block) for block in in_parts(leaves, BLOCK))


def counts_in(params: SurveyParameters, answer: Inclusion, user: bytes, public_key: bytes) -> bool:
    """Whether S2's signed result counts the entry with this user id and key."""
    published = unwrap(params.keys.s2, Party.S2, answer.published)
    if not isinstance(published, Published) or published.survey != params.survey:
        return False
    proof = InclusionProof(answer.index, answer.size, answer.path)
    return answer.size == published.included and proves(proof, leaf(answer.index, user, public_key), published.root)
