"""Many packed vectors at once: the same bytes as `sharing.packing`, a matrix at a time."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.sharing.field import add, dtype_for, sum_rows
from faircount.sharing.packing import packed_size

_AT_ONCE = 1 << 12


def pack_rows(rows: Residues, q: int) -> list[bytes]:
    """The packed form of every row."""
    count, width = rows.shape
    octets = rows.astype(rows.dtype.newbyteorder("<")).view(np.uint8).reshape(count, width, rows.itemsize)
    bits = np.unpackbits(octets, axis=2, count=(q - 1).bit_length(), bitorder="little")
    packed = np.packbits(bits.reshape(count, width * bits.shape[2]), axis=1, bitorder="little")
    size = packed.shape[1]
    flat = packed.tobytes()
    return [flat[start : start + size] for start in range(0, count * size, size)]


def unpack_rows(packed: Sequence[bytes], q: int, count: int) -> tuple[Residues, NDArray[np.bool_]]:
    """One row of `count` elements for each packed vector, and which of them are canonical; the others are zero."""
    size, bits = packed_size(q, count), (q - 1).bit_length()
    long_enough = np.array([len(each) == size for each in packed], dtype=np.bool_)
    flat = b"".join(each if fine else bytes(size) for each, fine in zip(packed, long_enough, strict=True))
    octets = np.frombuffer(flat, dtype=np.uint8).reshape(len(packed), size)
    rows = _elements(octets, q, count)
    unused = 8 * size - count * bits
    padded = octets[:, -1] >> (8 - unused) != 0 if unused else np.zeros(len(packed), dtype=np.bool_)
    fine = long_enough & ~padded & (rows < q).all(axis=1)
    rows[~fine] = 0
    return rows, fine


def first_elements(packed: Sequence[bytes], q: int, count: int) -> Residues:
    """The first `count` elements of packed vectors that are known to be canonical and at least as long."""
    size = packed_size(q, count)
    octets = np.frombuffer(b"".join(each[:size] for each in packed), dtype=np.uint8).reshape(len(packed), size)
    return _elements(octets, q, count)


def _elements(octets: NDArray[np.uint8], q: int, count: int) -> Residues:
    """Rows of bytes as rows of elements: each element is cut out of the up to nine bytes that it lies in."""
    bits = (q - 1).bit_length()
    first, shift = np.divmod(np.arange(count) * bits, 8)
    span = min(8, (bits + 14) // 8)
    padded = np.zeros((len(octets), octets.shape[1] + 9), dtype=np.uint8)
    padded[:, : octets.shape[1]] = octets
    wide = np.zeros((len(octets), count, 8), dtype=np.uint8)
    wide[:, :, :span] = padded[:, first[:, np.newaxis] + np.arange(span)]
    words = wide.view("<u8")[:, :, 0] >> shift.astype(np.uint64)
    if bits > 57:  # the highest bits may lie in a ninth byte
        ninth = padded[:, first + 8].astype(np.uint64)
        words |= np.where(shift > 0, ninth << (np.uint64(64) - shift.astype(np.uint64)) % np.uint64(64), 0)
    return (words & np.uint64((1 << bits) - 1)).astype(dtype_for(q))


def is_vector(packed: bytes, q: int, count: int) -> bool:
    """Whether these bytes are the packed form of a vector.

    Every second element is looked at in one addition: one of q or more, raised by 2^bits - q, reaches the place beside.
    """
    bits, whole = (q - 1).bit_length(), int.from_bytes(packed, "little")
    if len(packed) != packed_size(q, count) or whole >> count * bits:
        return False
    places, raised, beside = _every_second(q, count)
    return not any((part & places) + raised & beside for part in (whole, whole >> bits))


@lru_cache(maxsize=64)
def _every_second(q: int, count: int) -> tuple[int, int, int]:
    """Over the places of every second element: all bits, 2^bits - q, and the lowest bit of the place beside."""
    bits = (q - 1).bit_length()
    ones = sum(1 << 2 * bits * at for at in range((count + 1) // 2))
    return ones * ((1 << bits) - 1), ones * ((1 << bits) - q), ones << bits


def sum_packed(packed: Iterable[bytes], q: int, count: int) -> Residues:
    """The sum of packed vectors that are known to be canonical, as they come."""
    total, waiting = np.zeros(count, dtype=dtype_for(q)), iter(packed)
    while block := list(islice(waiting, _AT_ONCE)):
        total = add(total, sum_rows(unpack_rows(block, q, count)[0], q), q)
    return total


def sum_vectors(vectors: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of vectors as they come; a few thousand are held at a time."""
    total, waiting = np.zeros(count, dtype=dtype_for(q)), iter(vectors)
    while block := list(islice(waiting, _AT_ONCE)):
        total = add(total, sum_rows(np.stack(block), q), q)
    return total
