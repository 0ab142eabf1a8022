"""Vectors of F_q as bytes (protocol, section 5): g elements together are one number in base q.

g is the largest number with q^g <= 2^53, but at least 1, and b the bit length of q^g - 1. The number of elements v_0,
v_1, ... is v_0 + v_1 q + v_2 q^2 + ...; that of group t takes bits [t b, (t+1) b), least significant bit first, within
bytes too. The last group may have fewer elements and takes the bits that these need; the last byte is filled up with
zeros. A vector has exactly one encoding, and whatever reads bytes refuses everything else.

Every such number is exact in a double, and lies in 8 bytes wherever it begins, unless q itself is above 2^53.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Marks, Residues
from faircount.core.errors import ShareError
from faircount.core.validation import integer
from faircount.sharing.field import check, dtype_for

Octets = NDArray[np.uint8]
"""Packed vectors of equal length, one row each."""

_LARGEST_GROUP = 1 << 53


class Group(NamedTuple):
    """How many elements are one number, the bits that it takes, and what it is below."""

    elements: int
    bits: int
    limit: int


@lru_cache(maxsize=1024)
def group_of(q: int) -> Group:
    """The full group of elements modulo q."""
    dtype_for(q)  # refuses a modulus out of range
    base = int(q)  # it may come out of an array, and overflow
    elements, limit = 1, base
    while limit * base <= _LARGEST_GROUP:
        elements, limit = elements + 1, limit * base
    return Group(elements, (limit - 1).bit_length(), limit)


def packed_bits(q: int, count: int) -> int:
    """Bits that `count` elements take."""
    group = group_of(q)
    full, rest = divmod(integer("count", count), group.elements)
    last: int = int(q) ** rest
    return full * group.bits + (last - 1).bit_length()


def packed_size(q: int, count: int) -> int:
    """Bytes that `count` elements take."""
    return (packed_bits(q, count) + 7) // 8


def pack(values: ArrayLike, q: int) -> bytes:
    """The encoding of a vector."""
    vector = check(values, q)
    if vector.ndim != 1:
        raise ShareError("only a vector can be packed: flatten the array first")
    return pack_matrix(vector[np.newaxis], q).tobytes()


def unpack(data: bytes, q: int, count: int) -> Residues:
    """The vector of `count` elements that `data` encodes."""
    size = packed_size(q, count)
    if len(data) != size:
        raise ShareError(f"{count} elements modulo {q} take {size} bytes, not {len(data)}")
    octets = np.frombuffer(data, dtype=np.uint8).reshape(1, size)
    if not _zeros_at_the_end(octets, q, count)[0]:
        raise ShareError("the unused bits of the last byte must be zero: the bytes were changed on the way")
    rows, fine = unpack_matrix(octets, q, count)
    if not fine[0]:
        raise ShareError(f"elements must lie between 0 and {q - 1}: the bytes were changed on the way")
    vector: Residues = rows[0]
    return vector


def pack_matrix(rows: Residues, q: int) -> Octets:
    """The encoding of every row of residues known to be canonical."""
    (count, width), group = rows.shape, group_of(q)
    groups = -(-width // group.elements)
    digits = np.zeros((count, groups * group.elements), dtype=np.uint64)
    digits[:, :width] = rows
    numbers = digits.reshape(count, groups, group.elements) @ _powers(q)
    octets = numbers.astype("<u8")[:, :, np.newaxis].view(np.uint8)
    bits = np.unpackbits(octets, axis=2, count=group.bits, bitorder="little").reshape(count, groups * group.bits)
    return np.packbits(bits[:, : packed_bits(q, width)], axis=1, bitorder="little")


@lru_cache(maxsize=64)
def _powers(q: int) -> NDArray[np.uint64]:
    """Of q, one for each element of a group."""
    return np.array([int(q) ** at for at in range(group_of(q).elements)], dtype=np.uint64)


def unpack_matrix(octets: Octets, q: int, count: int) -> tuple[Residues, Marks]:
    """One row of `count` elements for each row of bytes, and which rows are canonical; the others are zero."""
    group = group_of(q)
    numbers = _numbers(octets, group, -(-count // group.elements))
    limits = np.full(numbers.shape[1], group.limit, dtype=np.uint64)
    if count % group.elements:
        limits[-1] = int(q) ** (count % group.elements)
    fine = (numbers < limits).all(axis=1) & _zeros_at_the_end(octets, q, count)
    rows = _digits(numbers, q)[:, :count]
    rows[~fine] = 0
    return rows, fine


def first_of_matrix(octets: Octets, q: int, count: int) -> Residues:
    """The first `count` elements of rows that are known to be canonical, whole or cut after these elements' groups."""
    group = group_of(q)
    return _digits(_numbers(octets, group, -(-count // group.elements)), q)[:, :count]


def _zeros_at_the_end(octets: Octets, q: int, count: int) -> Marks:
    unused = 8 * octets.shape[1] - packed_bits(q, count)
    return octets[:, -1] >> (8 - unused) == 0 if unused else np.ones(len(octets), dtype=np.bool_)


def _numbers(octets: Octets, group: Group, count: int) -> NDArray[np.uint64]:
    """The first numbers of every row, each cut out of the eight or nine bytes that it lies in."""
    first, shift = np.divmod(np.arange(count) * group.bits, 8)
    size = max(octets.shape[1], (count * group.bits + 7) // 8) + 8
    padded = np.zeros((len(octets), size), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    words = np.ndarray((len(octets), size - 7), "<u8", padded, strides=(size, 1))  # eight bytes from each byte on
    numbers = words[:, first].astype(np.uint64, copy=False)
    numbers >>= shift.astype(np.uint64)
    if group.bits > 57:  # the highest bits may lie in a ninth byte
        ninth = padded[:, first + 8].astype(np.uint64)
        numbers |= np.where(shift > 0, ninth << (np.uint64(64) - shift.astype(np.uint64)) % np.uint64(64), 0)
    numbers &= np.uint64((1 << group.bits) - 1)
    return numbers


def _digits(numbers: NDArray[np.uint64], q: int) -> Residues:
    """Rows of numbers as rows of elements, whole groups."""
    (count, groups), elements = numbers.shape, group_of(q).elements
    rows = np.empty((count, groups, elements), dtype=dtype_for(q))
    for at in range(elements - 1):
        above = numbers // np.uint64(q)
        rows[:, :, at] = numbers - above * np.uint64(q)
        numbers = above
    rows[:, :, -1] = numbers
    return rows.reshape(count, groups * elements)
