"""Vectors of F_q as bytes (protocol, section 5): b bits per element, b the bit length of q - 1.

Element t takes bits [t b, (t+1) b), least significant bit first, within bytes too; the last byte is filled with zeros.
A vector has exactly one encoding, and `unpack` refuses everything else.
"""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Residues
from faircount.core.errors import ShareError
from faircount.core.validation import integer
from faircount.sharing.field import check, dtype_for


def packed_size(q: int, count: int) -> int:
    """Number of bytes that `count` elements take."""
    return (_bits(q) * integer("count", count) + 7) // 8


def pack(values: ArrayLike, q: int) -> bytes:
    """The encoding of a vector."""
    vector = check(values, q)
    if vector.ndim != 1:
        raise ShareError("only a vector can be packed: flatten the array first")
    octets = vector.astype(vector.dtype.newbyteorder("<")).view(np.uint8).reshape(vector.size, vector.itemsize)
    bits = np.unpackbits(octets, axis=1, count=_bits(q), bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


def unpack(data: bytes, q: int, count: int) -> Residues:
    """The vector of `count` elements that `data` encodes."""
    width, size = _bits(q), packed_size(q, count)
    if len(data) != size:
        raise ShareError(f"{count} elements modulo {q} take {size} bytes, not {len(data)}")
    bits = np.unpackbits(np.frombuffer(data, dtype=np.uint8), bitorder="little")
    if bits[count * width :].any():
        raise ShareError("the unused bits of the last byte must be zero: the bytes were changed on the way")
    kind = dtype_for(q).newbyteorder("<")
    octets = np.zeros((count, kind.itemsize), dtype=np.uint8)
    packed = np.packbits(bits[: count * width].reshape(count, width), axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return check(octets.view(kind).reshape(count), q)


def _bits(q: int) -> int:
    dtype_for(q)  # refuses a modulus out of range
    return (int(q) - 1).bit_length()
