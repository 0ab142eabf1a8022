"""Digests: what two parties compare to know that they mean the same parameters, roster and set.

All are SHA-256 over a label, a zero byte and fixed-width big-endian fields. The roster and the published set are Merkle
trees as in RFC 6962: leaf = H(0x00 | content), node = H(0x01 | left | right), an odd last node moves up unchanged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from faircount.core.arrays import Marks
from faircount.core.validation import integer

LABEL = b"faircount/1"


def params_digest(published: bytes) -> bytes:
    """Digest of the published parameter bytes."""
    return labelled(b"params", published)


def labelled(purpose: bytes, *parts: bytes) -> bytes:
    """SHA-256 of "faircount/1/<purpose>" 0x00 and the parts, which the caller makes of fixed or stated length."""
    return sha256(b"".join((LABEL, b"/", purpose, b"\0", *parts))).digest()


def leaf(index: int, user: bytes, public_key: bytes) -> bytes:
    """Leaf hash of one entry of a roster or of a published set."""
    return sha256(b"\0" + index.to_bytes(4, "big") + user + public_key).digest()


def roster_leaves(entries: Iterable[tuple[bytes, bytes]], first: int = 0) -> Iterator[bytes]:
    """Leaf hashes of (user id, public key) in roster order, as they come; `first` is the place of the first one."""
    return (leaf(index, user, key) for index, (user, key) in enumerate(entries, first))


@dataclass(frozen=True, slots=True)
class Peaks:
    """A tree that grows: how many leaves it has, and the roots of its full subtrees, the largest first."""

    count: int = 0
    roots: tuple[bytes, ...] = ()

    def grown(self, leaves: Iterable[bytes]) -> "Peaks":
        """The tree with these leaves behind the others."""
        count, roots = self.count, list(self.roots)
        for node in leaves:
            count += 1
            for _ in range((count & -count).bit_length() - 1):  # so many subtrees become one with the new leaf
                node = _join(roots.pop(), node)
            roots.append(node)
        return Peaks(count, tuple(roots))

    @property
    def root(self) -> bytes:
        """The root of the whole tree; of none it is the hash of nothing."""
        if not self.roots:
            return sha256(b"").digest()
        *others, node = self.roots
        for larger in reversed(others):
            node = _join(larger, node)
        return node


def merkle_root(leaves: Iterable[bytes]) -> bytes:
    """Root over leaf hashes, which are not held; of none it is the hash of nothing."""
    return Peaks().grown(leaves).root


def roster_digest(parameters: bytes, n: int, root: bytes) -> bytes:
    """The `digest` of section 3: params_digest, number of users and Merkle root of (index, user id, public key)."""
    return labelled(b"roster", parameters, n.to_bytes(4, "big"), root)


def set_digest(
    digest: bytes, attempt: int, members: Sequence[int], n: int, removed: Iterable[tuple[int, int]] = ()
) -> bytes:
    """Digest of one attempt's set: roster digest, attempt, bitmap of the members, removed edges (i < j, ascending)."""
    edges = sorted(removed)
    flat = b"".join(i.to_bytes(4, "big") + j.to_bytes(4, "big") for i, j in edges)
    header = attempt.to_bytes(4, "big") + n.to_bytes(4, "big")
    return labelled(b"set", digest, header, bitmap(members, n), len(edges).to_bytes(4, "big"), flat)


def bitmap(members: Iterable[int], n: int) -> bytes:
    """Member i is bit i mod 8, least significant first, of byte i // 8."""
    marks = np.zeros(n, dtype=np.bool_)
    marks[np.fromiter(members, dtype=np.int64)] = True
    return bits_of(marks)


def bits_of(marks: Marks) -> bytes:
    """The bitmap of those that are marked."""
    return np.packbits(marks, bitorder="little").tobytes()


def marks_of(bits: bytes, n: int) -> Marks | None:
    """Whether each of n is a member of a bitmap; None unless it has exactly n bits and zero padding."""
    if len(bits) != (n + 7) // 8 or (n % 8 and bits[-1] >> n % 8):
        return None
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=n, bitorder="little").astype(np.bool_)


def members_of(bits: bytes, n: int) -> tuple[int, ...] | None:
    """The members of a bitmap, ascending; None unless it has exactly n bits and zero padding."""
    marks = marks_of(bits, n)
    return None if marks is None else tuple(np.flatnonzero(marks).tolist())


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """That a leaf stands at `index` of a tree with `size` leaves: the hashes beside its way up."""

    index: int
    size: int
    path: Sequence[bytes]


Levels = tuple[tuple[bytes, ...], ...]
"""All levels of a tree, the leaves first and the root last."""


def prove(levels: Levels, index: int) -> InclusionProof:
    """The proof for one leaf of a tree."""
    at = integer("index", index, most=len(levels[0]) - 1)
    return InclusionProof(at, len(levels[0]), way_up(levels, at))


def way_up(levels: Levels, at: int) -> tuple[bytes, ...]:
    """The hashes beside the way from one leaf up to the root: as `beside` for one place, and quicker."""
    found = []
    for level in levels[:-1]:
        if at ^ 1 < len(level):
            found.append(level[at ^ 1])
        at >>= 1
    return tuple(found)


def proves(proof: InclusionProof, leaf_hash: bytes, root: bytes) -> bool:
    """Whether the proof leads from the leaf to the root."""
    return root_of_proof(proof, leaf_hash) == root


def root_of_proof(proof: InclusionProof, leaf_hash: bytes) -> bytes | None:
    """The root to which the proof leads from the leaf; None if the path does not fit the place."""
    if not 0 <= proof.index < proof.size:
        return None
    return root_from(proof.size, {proof.index: leaf_hash}, proof.path)


def tree(leaves: Iterable[bytes]) -> Levels:
    """All levels over some leaf hashes, the root last."""
    levels = [tuple(leaves)]
    while len(levels[-1]) > 1:
        levels.append(_up(levels[-1]))
    return tuple(levels)


def beside(levels: Levels, places: Iterable[int]) -> tuple[bytes, ...]:
    """The hashes that, with the leaves at these places, give the root: level by level, ascending."""
    known, found = set(places), []
    for level in levels[:-1]:
        found += [level[at ^ 1] for at in sorted(known) if at ^ 1 not in known and at ^ 1 < len(level)]
        known = {at >> 1 for at in known}
    return tuple(found)


def root_from(size: int, leaves: Mapping[int, bytes], hashes: Sequence[bytes]) -> bytes | None:
    """The root over `size` leaves from some of them and the hashes beside them; None if these do not fit."""
    level, rest = dict(sorted(leaves.items())), iter(hashes)
    while size > 1:
        above: dict[int, bytes] = {}
        for at, node in level.items():  # ascending on every level
            if at >> 1 in above:  # joined with the one on its left
                continue
            other = level.get(at ^ 1) or (next(rest, None) if at ^ 1 < size else b"")
            if other is None:
                return None
            above[at >> 1] = (_join(other, node) if at & 1 else _join(node, other)) if other else node
        level, size = above, (size + 1) >> 1
    return level.get(0) if next(rest, None) is None else None


def _up(level: tuple[bytes, ...]) -> tuple[bytes, ...]:
    pairs = (_join(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2))
    return (*pairs, *level[len(level) - len(level) % 2 :])


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()
