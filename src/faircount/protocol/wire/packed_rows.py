"""Many packed vectors at once: the same bytes as `sharing.packing`, a matrix at a time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TypeVar

import numpy as np

from faircount.core.arrays import Marks, Residues
from faircount.sharing.field import add, dtype_for, sum_rows
from faircount.sharing.packing import (
    Group,
    Octets,
    first_of_matrix,
    group_of,
    pack_matrix,
    packed_size,
    unpack_matrix,
)

T = TypeVar("T")
_AT_ONCE = 1 << 12


def pack_rows(rows: Residues, q: int) -> list[bytes]:
    """The packed form of every row."""
    octets = pack_matrix(rows, q)
    flat, size = octets.tobytes(), octets.shape[1]
    return [flat[start : start + size] for start in range(0, len(flat), size)]


def unpack_rows(packed: Sequence[bytes], q: int, count: int) -> tuple[Residues, Marks]:
    """One row of `count` elements for each packed vector, and which of them are canonical; the others are zero."""
    size = packed_size(q, count)
    long_enough = np.array([len(each) == size for each in packed], dtype=np.bool_)
    flat = (each if fine else bytes(size) for each, fine in zip(packed, long_enough, strict=True))
    rows, fine = unpack_matrix(_matrix(flat, len(packed), size), q, count)
    return rows, fine & long_enough


def first_elements(packed: Sequence[bytes], q: int, count: int) -> Residues:
    """The first `count` elements of packed vectors of one length, known to be canonical and at least as long."""
    together = group_of(q).elements
    size = min([packed_size(q, -(-count // together) * together), *map(len, packed[:1])])
    return first_of_matrix(_matrix((each[:size] for each in packed), len(packed), size), q, count)


def _matrix(packed: Iterable[bytes], count: int, size: int) -> Octets:
    return np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(count, size)


def is_vector(packed: bytes, q: int, count: int) -> bool:
    """Whether these bytes are the packed form of a vector.

    Every second group is looked at in one addition: one that is too large, raised by 2^bits - limit, reaches the place
    beside. The last one, with fewer elements, is looked at by itself; nothing may follow it.
    """
    group, whole = group_of(q), int.from_bytes(packed, "little")
    full, rest = divmod(count, group.elements)
    if len(packed) != packed_size(q, count) or whole >> full * group.bits >= q**rest:
        return False
    places, raised, beside = _every_second(group, full)
    return not any((part & places) + raised & beside for part in (whole, whole >> group.bits))


@lru_cache(maxsize=64)
def _every_second(group: Group, count: int) -> tuple[int, int, int]:
    """Over the places of every second of these groups: all bits, 2^bits - limit, the lowest bit of the place beside."""
    ones = sum(1 << 2 * group.bits * at for at in range((count + 1) // 2))
    return ones * ((1 << group.bits) - 1), ones * ((1 << group.bits) - group.limit), ones << group.bits


def in_parts(values: Iterable[T], most: int) -> Iterator[list[T]]:
    """Values as they come, so many at a time."""
    waiting = iter(values)
    while part := list(islice(waiting, most)):
        yield part


def sum_parts(parts: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of all rows of these matrices, of which one is held at a time."""
    total = np.zeros(count, dtype=dtype_for(q))
    for rows in parts:
        total = add(total, sum_rows(rows, q), q)
    return total


def sum_packed(packed: Iterable[bytes], q: int, count: int) -> Residues:
    """The sum of packed vectors that are known to be canonical, as they come."""
    return sum_parts((unpack_rows(part, q, count)[0] for part in in_parts(packed, _AT_ONCE)), q, count)


def sum_vectors(vectors: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of vectors as they come; a few thousand are held at a time."""
    return sum_parts((np.stack(part) for part in in_parts(vectors, _AT_ONCE)), q, count)
