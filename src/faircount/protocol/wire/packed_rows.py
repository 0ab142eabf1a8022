"""Many packed vectors at once: the bytes of `sharing.packing`, computed for a matrix at a time.

Sums over a batch are made from vectors as they are read from the store, a few thousand at a time,
so that memory does not grow with the number of reports.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from faircount.core.arrays import Bools, Residues
from faircount.sharing.field import add, dtype_for, sum_rows
from faircount.sharing.packing import (
    Octets,
    group_of,
    pack_matrix,
    packed_size,
    unpack_matrix,
    unpack_prefixes,
)

T = TypeVar("T")
_ROWS_AT_ONCE = 1 << 12


def pack_rows(rows: Residues, q: int) -> list[bytes]:
    """The packed form of every row."""
    octets = pack_matrix(rows, q)
    # One copy of the whole matrix; slices of it are cheaper than one conversion per row.
    flat = octets.tobytes()
    size = octets.shape[1]
    return [flat[start : start + size] for start in range(0, len(flat), size)]


def unpack_rows(packed: Sequence[bytes], q: int, count: int) -> tuple[Residues, Bools]:
    """One row of `count` elements per packed vector, and which of them are canonical.

    Rows of vectors that are not canonical are zero.
    """
    size = packed_size(q, count)
    has_size = np.array([len(vector) == size for vector in packed], dtype=np.bool_)
    # Zeros stand in for vectors of another length: one of them must not shift the rows after it.
    flat = (
        vector if right_size else bytes(size)
        for vector, right_size in zip(packed, has_size, strict=True)
    )
    rows, is_canonical = unpack_matrix(_matrix(flat, len(packed), size), q, count)
    return rows, is_canonical & has_size


def first_elements(packed: Sequence[bytes], q: int, count: int) -> Residues:
    """The first `count` elements of packed vectors.

    The vectors are known to be canonical, of one length, and at least as long.
    """
    # Elements are packed in groups: read up to the end of the group that holds the last one.
    per_group = group_of(q).elements
    size = packed_size(q, -(-count // per_group) * per_group)
    if packed:
        size = min(size, len(packed[0]))
    prefixes = (vector[:size] for vector in packed)
    return unpack_prefixes(_matrix(prefixes, len(packed), size), q, count)


def _matrix(packed: Iterable[bytes], count: int, size: int) -> Octets:
    return np.frombuffer(b"".join(packed), dtype=np.uint8).reshape(count, size)


def is_vector(packed: bytes, q: int, count: int) -> bool:
    """Whether these bytes are the canonical packed form of a vector of `count` elements.

    All full groups are compared with their limit q^g in two additions of large integers. Take every
    second group, so that each has the free bits of its neighbour above it, and add 2^bits - limit
    to it: the addition carries into those free bits exactly if the group is limit or more. The last
    group, which may have fewer elements, is compared by itself, and nothing may follow it.
    """
    form = _vector_form(q, count)
    if len(packed) != form.size:
        return False
    whole = int.from_bytes(packed, "little")
    # This also refuses padding that is not zero.
    if whole >> form.last >= form.last_limit:
        return False
    first = whole & form.mask
    second = whole >> form.bits & form.mask
    return not ((first + form.addend | second + form.addend) & form.carries)


class _VectorForm(NamedTuple):
    """Numbers that `is_vector` needs, the same for all reports of a survey.

    Bytes of the vector, bits of a group, the place of the last group and its limit; and mask,
    addend and carry bits for every second group.
    """

    size: int
    bits: int
    last: int
    last_limit: int
    mask: int
    addend: int
    carries: int


@lru_cache(maxsize=64)
def _vector_form(q: int, count: int) -> _VectorForm:
    group = group_of(q)
    full, rest = divmod(count, group.elements)
    ones = sum(1 << 2 * group.bits * position for position in range((full + 1) // 2))
    return _VectorForm(
        packed_size(q, count),
        group.bits,
        full * group.bits,
        q**rest,
        mask=ones * ((1 << group.bits) - 1),
        addend=ones * ((1 << group.bits) - group.limit),
        carries=ones << group.bits,
    )


def split_into_batches(values: Iterable[T], most: int) -> Iterator[list[T]]:
    """Values as they come, at most `most` in each list."""
    waiting = iter(values)
    while batch := list(islice(waiting, most)):
        yield batch


def sum_batches(batches: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of all rows of these matrices, one of which is in memory at a time."""
    # Reduced modulo q after every batch, so that no integer type overflows.
    total = np.zeros(count, dtype=dtype_for(q))
    for rows in batches:
        total = add(total, sum_rows(rows, q), q)
    return total


def sum_packed(packed: Iterable[bytes], q: int, count: int) -> Residues:
    """The sum of packed vectors that are known to be canonical, as they come."""
    batches = split_into_batches(packed, _ROWS_AT_ONCE)
    return sum_batches((unpack_rows(batch, q, count)[0] for batch in batches), q, count)


def sum_vectors(vectors: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of vectors as they come."""
    return sum_batches(map(np.stack, split_into_batches(vectors, _ROWS_AT_ONCE)), q, count)
