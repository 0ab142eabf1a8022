"""Inclusion proofs: a participant checks that the signed result counts their response.

The aggregator signs, with the result, the root of a Merkle tree over the accepted entries. The
coordinator gives each participant the path from their entry to that root. It keeps the tree only
above blocks of 64 entries, and recomputes the hashes inside a block for whoever asks: the whole
tree of a large survey would take more memory than the counts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import (
    Levels,
    MerkleProof,
    audit_path,
    build_tree,
    entry_leaves,
    leaf,
    merkle_root,
    verify_proof,
)
from faircount.protocol.wire.messages import InclusionProof, Published, Signed
from faircount.protocol.wire.packed_rows import split_into_batches
from faircount.protocol.wire.signing import verify_message

Entry = tuple[bytes, bytes]
"""(user id, public key) of a participant in a result."""

Entries = Callable[[range], Iterable[Entry]]
"""Returns the accepted entries at some positions of their order."""

BLOCK = 64
"""Entries of a block. A power of two, so that a block is a full subtree."""


def prove_inclusion(
    published: Signed, entries: Entries, size: int, position: int
) -> InclusionProof:
    """The result with the path from the entry at this position among the `size` accepted ones."""
    # Two paths in a row: inside the block, then from the block's root to the root of the tree.
    first = position - position % BLOCK
    block = entries(range(first, min(first + BLOCK, size)))
    inside = build_tree(entry_leaves(block, first))
    above = _tree_above_blocks(_Accepted(published.payload, entries, size))
    path = (*audit_path(inside, position - first), *audit_path(above, position // BLOCK))
    return InclusionProof(published, position, size, path)


@dataclass(frozen=True)
class _Accepted:
    """The accepted entries of a result; the result is the key of the cache."""

    result: bytes
    entries: Entries = field(compare=False)
    size: int = field(compare=False)


@lru_cache(maxsize=16)
def _tree_above_blocks(accepted: _Accepted) -> Levels:
    """The tree whose leaves are the roots of the blocks; every participant's proof needs it."""
    leaves = entry_leaves(accepted.entries(range(accepted.size)))
    return build_tree(merkle_root(block) for block in split_into_batches(leaves, BLOCK))


def verify_inclusion(
    params: SurveyParameters, answer: InclusionProof, user: bytes, public_key: bytes
) -> bool:
    """Whether the aggregator's signed result counts the entry with this user id and key."""
    published = verify_message(params.keys.aggregator, Party.AGGREGATOR, answer.published)
    # A result of another survey by the same aggregator has a valid signature, too.
    if not isinstance(published, Published) or published.survey != params.survey:
        return False
    proof = MerkleProof(answer.index, answer.size, answer.path)
    return (
        # check: inclusion-size - a path for another tree size can prove what is no entry
        answer.size == published.included
        and verify_proof(proof, leaf(answer.index, user, public_key), published.root)
    )
