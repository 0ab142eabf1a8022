"""Many packed vectors at once: the same bytes as `sharing.packing`, a matrix at a time."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.core.errors import ShareError
from faircount.sharing.field import add, dtype_for, sum_rows
from faircount.sharing.packing import packed_size, unpack

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
    spread = np.unpackbits(octets, axis=1, bitorder="little")
    rows = _elements(spread[:, : count * bits], q)
    fine = long_enough & ~spread[:, count * bits :].any(axis=1) & (rows < q).all(axis=1)
    rows[~fine] = 0
    return rows, fine


def first_elements(packed: Sequence[bytes], q: int, count: int) -> Residues:
    """The first `count` elements of packed vectors that are known to be canonical and at least as long."""
    size, bits = packed_size(q, count), (q - 1).bit_length()
    octets = np.frombuffer(b"".join(each[:size] for each in packed), dtype=np.uint8).reshape(len(packed), size)
    return _elements(np.unpackbits(octets, axis=1, count=count * bits, bitorder="little"), q)


def _elements(spread: NDArray[np.uint8], q: int) -> Residues:
    """Rows of bits as rows of elements."""
    kind, bits = dtype_for(q), (q - 1).bit_length()
    count = spread.shape[1] // bits
    narrow = np.packbits(spread.reshape(len(spread), count, bits), axis=2, bitorder="little")
    wide = np.zeros((len(spread), count, kind.itemsize), dtype=np.uint8)
    wide[:, :, : narrow.shape[2]] = narrow
    return wide.view(kind.newbyteorder("<"))[:, :, 0].astype(kind)


def is_vector(packed: bytes, q: int, count: int) -> bool:
    """Whether these bytes are the packed form of a vector."""
    try:
        unpack(packed, q, count)
    except ShareError:
        return False
    return True


def sum_packed(packed: Sequence[bytes], q: int, count: int) -> Residues:
    """The sum of packed vectors that are known to be canonical."""
    total = np.zeros(count, dtype=dtype_for(q))
    for start in range(0, len(packed), _AT_ONCE):
        total = add(total, sum_rows(unpack_rows(packed[start : start + _AT_ONCE], q, count)[0], q), q)
    return total


def sum_vectors(vectors: Iterable[Residues], q: int, count: int) -> Residues:
    """The sum of vectors as they come; a few thousand are held at a time."""
    total, waiting = np.zeros(count, dtype=dtype_for(q)), iter(vectors)
    while block := list(islice(waiting, _AT_ONCE)):
        total = add(total, sum_rows(np.stack(block), q), q)
    return total
