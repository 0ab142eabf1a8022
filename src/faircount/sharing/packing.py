"""Vectors over F_q as bytes (protocol, section 5): g elements together are one number in base q.

g is the largest number with q^g <= 2^53, but at least 1, and b the bit length of q^g - 1. Elements
v_0, v_1, ... of a group give the number v_0 + v_1 q + v_2 q^2 + ...; that of group t takes the bits
[t b, (t+1) b), least significant bit first, within bytes too. The last group may have fewer
elements and takes the bits that these need; the last byte is filled up with zeros. A vector has
exactly one encoding, and decoding refuses everything else.

Such a number is exact in a double, which is what JavaScript computes with, and lies within 8 bytes
wherever it begins, unless q itself is above 2^53.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Bools, Residues
from faircount.core.errors import ShareError
from faircount.core.validation import check_integer
from faircount.sharing.field import check_residues, dtype_for

Octets = NDArray[np.uint8]
"""Packed vectors of equal length, one row per vector."""

_LARGEST_GROUP = 1 << 53


class Group(NamedTuple):
    """Elements that are packed into one number, the bits of that number and its exclusive bound."""

    elements: int
    bits: int
    limit: int


@lru_cache(maxsize=1024)
def group_of(q: int) -> Group:
    """Return the size of a full group of elements modulo q."""
    dtype_for(q)  # refuses a modulus out of range
    base = int(q)  # a NumPy scalar would overflow below
    elements = 1
    limit = base
    while limit * base <= _LARGEST_GROUP:
        elements += 1
        limit *= base
    return Group(elements, (limit - 1).bit_length(), limit)


def packed_bits(q: int, count: int) -> int:
    """Return the number of bits that `count` elements take."""
    group = group_of(q)
    full, rest = divmod(check_integer("count", count), group.elements)
    last: int = int(q) ** rest
    return full * group.bits + (last - 1).bit_length()


def packed_size(q: int, count: int) -> int:
    """Return the number of bytes that `count` elements take."""
    return (packed_bits(q, count) + 7) // 8


def pack(values: ArrayLike, q: int) -> bytes:
    """Encode a vector."""
    vector = check_residues(values, q)
    if vector.ndim != 1:
        raise ShareError("only a vector can be packed: flatten the array first")
    return pack_matrix(vector[np.newaxis], q).tobytes()


def unpack(data: bytes, q: int, count: int) -> Residues:
    """Decode a vector of `count` elements; anything but its one encoding is refused."""
    size = packed_size(q, count)
    if len(data) != size:
        raise ShareError(f"{count} elements modulo {q} take {size} bytes, not {len(data)}")
    octets = np.frombuffer(data, dtype=np.uint8).reshape(1, size)
    if not _has_zero_padding(octets, q, count)[0]:
        raise ShareError(
            "the unused bits of the last byte must be zero: the bytes were changed on the way"
        )
    rows, canonical = unpack_matrix(octets, q, count)
    if not canonical[0]:
        raise ShareError(
            f"elements must lie between 0 and {q - 1}: the bytes were changed on the way"
        )
    vector: Residues = rows[0]
    return vector


def pack_matrix(rows: Residues, q: int) -> Octets:
    """Encode every row of residues that are known to be canonical."""
    count, width = rows.shape
    group = group_of(q)
    groups = -(-width // group.elements)
    digits = np.zeros((count, groups * group.elements), dtype=np.uint64)
    digits[:, :width] = rows
    numbers = digits.reshape(count, groups, group.elements) @ _powers(q)
    # From numbers to their bits, b per number, to the bits of a row without gaps, to bytes. The
    # zeros that fill up the last group are cut off, because packed_bits leaves no room for them.
    octets = numbers.astype("<u8")[:, :, np.newaxis].view(np.uint8)
    bits = np.unpackbits(octets, axis=2, count=group.bits, bitorder="little")
    row_bits = bits.reshape(count, groups * group.bits)
    return np.packbits(row_bits[:, : packed_bits(q, width)], axis=1, bitorder="little")


# Up to so many elements two divisions of each, at once, are faster than one, place by place.
_FEW = 1024


@lru_cache(maxsize=64)
def _powers(q: int) -> NDArray[np.uint64]:
    """Return 1, q, q^2, ..., one power for every element of a group."""
    return np.array(
        [int(q) ** exponent for exponent in range(group_of(q).elements)], dtype=np.uint64
    )


def unpack_matrix(octets: Octets, q: int, count: int) -> tuple[Residues, Bools]:
    """Decode rows of bytes to rows of `count` elements.

    The second array says which rows were canonical; the other rows are zero.
    """
    group = group_of(q)
    numbers = _numbers(octets, group, -(-count // group.elements))
    # A number at or above its limit would decode to an element at or above q: a second encoding of
    # some other vector.
    limits = np.full(numbers.shape[1], group.limit, dtype=np.uint64)
    if count % group.elements:
        limits[-1] = int(q) ** (count % group.elements)
    canonical = (numbers < limits).all(axis=1) & _has_zero_padding(octets, q, count)
    rows = _digits(numbers, q)[:, :count]
    rows[~canonical] = 0
    return rows, canonical


def unpack_prefixes(octets: Octets, q: int, count: int) -> Residues:
    """Decode the first `count` elements of rows that are known to be canonical.

    The rows may be cut off after the groups of these elements.
    """
    group = group_of(q)
    return _digits(_numbers(octets, group, -(-count // group.elements)), q)[:, :count]


def _has_zero_padding(octets: Octets, q: int, count: int) -> Bools:
    unused = 8 * octets.shape[1] - packed_bits(q, count)
    if not unused:
        return np.ones(len(octets), dtype=np.bool_)
    return np.asarray(octets[:, -1] >> (8 - unused) == 0)


def _numbers(octets: Octets, group: Group, count: int) -> NDArray[np.uint64]:
    """Return the first `count` numbers of every row."""
    first, shift = np.divmod(np.arange(count) * group.bits, 8)
    # Padded so that eight bytes, and a ninth one, can be read from every byte on.
    size = max(octets.shape[1], (count * group.bits + 7) // 8) + 8
    padded = np.zeros((len(octets), size), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    # Overlapping words, without a copy: word i of a row is made of its bytes i to i + 7.
    words = np.ndarray((len(octets), size - 7), "<u8", padded, strides=(size, 1))
    numbers = words[:, first].astype(np.uint64, copy=False)
    numbers >>= shift.astype(np.uint64)
    if group.bits > 57:
        # Shifted by up to 7 bits, a number of more than 57 bits may end in a ninth byte. Shifting
        # by 64 is undefined in C, hence the remainder; where shift is 0 there is no ninth byte.
        ninth = padded[:, first + 8].astype(np.uint64)
        missing = (np.uint64(64) - shift.astype(np.uint64)) % np.uint64(64)
        numbers |= np.where(shift > 0, ninth << missing, 0)
    numbers &= np.uint64((1 << group.bits) - 1)
    return numbers


def _digits(numbers: NDArray[np.uint64], q: int) -> Residues:
    """Split every number into the elements of its group: its digits in base q."""
    count, groups = numbers.shape
    elements = group_of(q).elements
    if numbers.size * elements <= _FEW:
        digits = numbers[:, :, np.newaxis] // _powers(q) % np.uint64(q)
        return digits.astype(dtype_for(q)).reshape(count, groups * elements)
    rows = np.empty((count, groups, elements), dtype=dtype_for(q))
    for position in range(elements - 1):
        quotient = numbers // np.uint64(q)
        rows[:, :, position] = numbers - quotient * np.uint64(q)
        numbers = quotient
    rows[:, :, -1] = numbers
    return rows.reshape(count, groups * elements)
