"""Digests by which two parties know that they mean the same parameters, roster and set of reports.

Every digest is SHA-256 over a label, a zero byte and fixed-width big-endian fields; labels keep a
hash that was made for one purpose from being valid for another. Rosters and accepted reports are
Merkle trees as in RFC 6962: leaf = H(0x00 | content), node = H(0x01 | left | right), and an odd
last node moves up unchanged. A client can therefore check that it was counted with a logarithmic
number of hashes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from faircount.core.arrays import Bools
from faircount.core.validation import check_integer

LABEL = b"faircount/1"


def params_digest(published: bytes) -> bytes:
    """Digest of the published parameter bytes."""
    return tagged_hash(b"params", published)


def tagged_hash(purpose: bytes, *parts: bytes) -> bytes:
    """SHA-256 of "faircount/1/<purpose>", a zero byte and the parts.

    The parts are joined without separators: the caller makes their lengths fixed or encodes them.
    """
    return sha256(b"".join((LABEL, b"/", purpose, b"\0", *parts))).digest()


def leaf(index: int, user: bytes, public_key: bytes) -> bytes:
    """Leaf hash of one entry of a roster or of the accepted reports."""
    # The first byte tells leaves from inner nodes: without it an inner node could be presented as
    # an entry. The index keeps one entry from being proven at two positions.
    return sha256(b"\0" + index.to_bytes(4, "big") + user + public_key).digest()


def entry_leaves(entries: Iterable[tuple[bytes, bytes]], first: int = 0) -> Iterator[bytes]:
    """Leaf hashes of entries (user id, public key) of a roster or of accepted reports, in order.

    first: position of the first of these entries
    """
    return (leaf(index, user, key) for index, (user, key) in enumerate(entries, first))


@dataclass(frozen=True, slots=True)
class MerkleFrontier:
    """A Merkle tree to which leaves are appended, in logarithmic space.

    `count` is the number of leaves, `roots` are those of its full subtrees, the largest first.
    """

    count: int = 0
    roots: tuple[bytes, ...] = ()

    def append(self, leaves: Iterable[bytes]) -> "MerkleFrontier":
        """The tree with these leaves after the others."""
        count = self.count
        roots = list(self.roots)
        for node in leaves:
            count += 1
            # As in a binary counter: each trailing zero of the new count is a carry, which merges
            # the last full subtree with the node to one of twice its size.
            for _ in range((count & -count).bit_length() - 1):
                node = _join(roots.pop(), node)
            roots.append(node)
        return MerkleFrontier(count, tuple(roots))

    @property
    def root(self) -> bytes:
        """The root of the whole tree; of an empty one it is the hash of nothing."""
        if not self.roots:
            return sha256(b"").digest()
        # From the smallest subtree to the largest: the incomplete right edge of RFC 6962.
        *others, node = self.roots
        for larger in reversed(others):
            node = _join(larger, node)
        return node


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    """Root over leaf hashes, which are not kept in memory."""
    return MerkleFrontier().append(leaves).root


def roster_digest(parameters: bytes, n: int, root: bytes) -> bytes:
    """Digest of a roster: params_digest, number of entries and Merkle root."""
    # The root does not determine the number of entries, which thresholds are compared with.
    return tagged_hash(b"roster", parameters, n.to_bytes(4, "big"), root)


def set_digest(
    digest: bytes,
    attempt: int,
    members: Sequence[int],
    n: int,
    removed: Iterable[tuple[int, int]] = (),
) -> bytes:
    """Digest of the members of one attempt.

    digest: digest of the roster, of n entries
    removed: edges (i < j) of the graph of masks that do not count
    """
    # Sorted, so that both servers and all clients compute one digest from the same set.
    edges = sorted(removed)
    flat = b"".join(i.to_bytes(4, "big") + j.to_bytes(4, "big") for i, j in edges)
    header = attempt.to_bytes(4, "big") + n.to_bytes(4, "big")
    count = len(edges).to_bytes(4, "big")
    return tagged_hash(b"set", digest, header, bitmap(members, n), count, flat)


def bitmap(members: Iterable[int], n: int) -> bytes:
    """The bitmap of members: member i is bit i mod 8, least significant first, of byte i // 8."""
    marks = np.zeros(n, dtype=np.bool_)
    marks[np.fromiter(members, dtype=np.int64)] = True
    return bits_of(marks)


def bits_of(marks: Bools) -> bytes:
    """The bitmap of an array of booleans."""
    return np.packbits(marks, bitorder="little").tobytes()


def marks_of(bits: bytes, n: int) -> Bools | None:
    """A bitmap as n booleans; None unless it has exactly n bits and zero padding."""
    # With padding that is not zero, one set of members would have several bitmaps and digests.
    if len(bits) != (n + 7) // 8 or (n % 8 and bits[-1] >> n % 8):
        return None
    octets = np.frombuffer(bits, dtype=np.uint8)
    return np.unpackbits(octets, count=n, bitorder="little").astype(np.bool_)


def members_of(bits: bytes, n: int) -> tuple[int, ...] | None:
    """The members of a bitmap, ascending; None unless it has exactly n bits and zero padding."""
    marks = marks_of(bits, n)
    return None if marks is None else tuple(np.flatnonzero(marks).tolist())


@dataclass(frozen=True, slots=True)
class MerkleProof:
    """That a leaf stands at `index` of a tree with `size` leaves, by the siblings on its path."""

    index: int
    size: int
    path: Sequence[bytes]


Levels = tuple[tuple[bytes, ...], ...]
"""All levels of a tree, the leaves first and the root last."""


def prove(levels: Levels, index: int) -> MerkleProof:
    """The proof for one leaf of a tree."""
    position = check_integer("index", index, most=len(levels[0]) - 1)
    return MerkleProof(position, len(levels[0]), audit_path(levels, position))


def audit_path(levels: Levels, index: int) -> tuple[bytes, ...]:
    """The siblings on the path from one leaf to the root (RFC 6962).

    The same hashes as `multiproof` for one leaf, and faster.
    """
    path = []
    for level in levels[:-1]:
        # An odd last node has no sibling on this level.
        if index ^ 1 < len(level):
            path.append(level[index ^ 1])
        index >>= 1
    return tuple(path)


def audit_paths(levels: Levels) -> list[tuple[bytes, ...]]:
    """`audit_path` for every leaf, from the root down: siblings share all but their first hash."""
    paths: list[tuple[bytes, ...]] = [()]
    for level in reversed(levels[:-1]):
        size = len(level)
        below = list[tuple[bytes, ...]]()
        for index in range(size):
            above = paths[index >> 1]
            below.append((level[index ^ 1], *above) if index ^ 1 < size else above)
        paths = below
    return paths


def verify_proof(proof: MerkleProof, leaf_hash: bytes, root: bytes) -> bool:
    """Whether the proof leads from the leaf to the root."""
    return root_of_proof(proof, leaf_hash) == root


def root_of_proof(proof: MerkleProof, leaf_hash: bytes) -> bytes | None:
    """The root to which a proof leads from the leaf; None if its path does not fit its index."""
    # An index outside the tree would fit paths that no entry has.
    if not 0 <= proof.index < proof.size:
        return None
    index = proof.index
    size = proof.size
    unused = iter(proof.path)
    node = leaf_hash
    while size > 1:
        # An odd last node has no sibling on this level.
        if index ^ 1 < size:
            sibling = next(unused, None)
            if sibling is None:
                return None
            node = _parent(index, node, sibling)
        index >>= 1
        size = (size + 1) >> 1
    # One root must not have two proofs.
    return node if next(unused, None) is None else None


def build_tree(leaves: Iterable[bytes]) -> Levels:
    """All levels of the tree over some leaf hashes."""
    levels = [tuple(leaves)]
    while len(levels[-1]) > 1:
        level = levels[-1]
        above = [_join(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            above.append(level[-1])
        levels.append(tuple(above))
    return tuple(levels)


def multiproof(levels: Levels, indices: Iterable[int]) -> tuple[bytes, ...]:
    """The hashes that give the root together with the leaves at these indices.

    In order: level by level from the leaves up, ascending on each level.
    """
    known = set(indices)
    hashes: list[bytes] = []
    for level in levels[:-1]:
        siblings = sorted({index ^ 1 for index in known} - known)
        hashes += [level[sibling] for sibling in siblings if sibling < len(level)]
        known = {index >> 1 for index in known}
    return tuple(hashes)


def root_from_multiproof(
    size: int, leaves: Mapping[int, bytes], hashes: Sequence[bytes]
) -> bytes | None:
    """The root over `size` leaves, from some of them and their `multiproof`.

    None if there are too many or too few hashes: one root must not have two proofs. The caller
    checks that the indices are below `size`.
    """
    level = dict(sorted(leaves.items()))
    unused = iter(hashes)
    while size > 1:
        above: dict[int, bytes] = {}
        # Every level is ascending, so that hashes are used in the order in which they were made.
        for index, node in level.items():
            if index >> 1 in above:
                continue  # it was the sibling of the node on its left
            sibling = level.get(index ^ 1)
            if sibling is None and index ^ 1 < size:
                sibling = next(unused, None)
                if sibling is None:
                    return None
            above[index >> 1] = _parent(index, node, sibling)
        level = above
        size = (size + 1) >> 1
    return level.get(0) if next(unused, None) is None else None


def _parent(index: int, node: bytes, sibling: bytes | None) -> bytes:
    """The node above; an odd last node has no sibling and moves up unchanged."""
    if sibling is None:
        return node
    return _join(sibling, node) if index & 1 else _join(node, sibling)


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
