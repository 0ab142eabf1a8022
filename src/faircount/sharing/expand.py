"""From a 32-byte key to a vector of F_q, the same in every client (protocol, section 5)."""

import math
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext

from faircount.core.arrays import Residues
from faircount.core.entropy import key_stream
from faircount.core.errors import ShareError
from faircount.core.validation import integer
from faircount.sharing.field import BLOCK_BYTES, dtype_for, last_accepted, reduced, word_for

KEY_BYTES = 32


def expand(key: bytes, q: int, count: int) -> Residues:
    """`count` elements: the t-th accepted little-endian word of the AES-256-CTR key stream, modulo q, is element t.

    A word x is accepted if x < floor(2^bits / q) q, so elements are exactly uniform over uniform words.
    """
    if len(key) != KEY_BYTES:
        raise ShareError(f"a key to expand has {KEY_BYTES} bytes, not {len(key)}")
    stream, last = key_stream(key), last_accepted(q, word_for(q))
    out = np.empty(integer("count", count), dtype=dtype_for(q))
    done = 0
    while done < out.size:
        words = _next_words(stream, q, out.size - done)
        accepted = words <= last
        if not accepted.all():
            words = words[accepted]
        words = words[: out.size - done]
        out[done : done + words.size] = reduced(words, q)
        done += words.size
    return out


def expand_rows(keys: Sequence[bytes], q: int, count: int) -> Residues:
    """`expand` of many keys, one row each: the same elements, with the arithmetic on all rows at once."""
    if any(len(key) != KEY_BYTES for key in keys):
        raise ShareError(f"keys to expand have {KEY_BYTES} bytes each")
    kind, last = word_for(q), last_accepted(q, word_for(q))
    width = _words_for(q, integer("count", count))
    zeros = bytes(width * kind.itemsize)
    streams = b"".join([key_stream(key).update(zeros) for key in keys])
    words = np.frombuffer(streams, dtype=kind.newbyteorder("<")).reshape(len(keys), width)
    accepted = words <= last
    used = accepted & (np.cumsum(accepted, axis=1, dtype=np.int32) <= count)
    enough = used.sum(axis=1) == count
    out = np.empty((len(keys), count), dtype=dtype_for(q))
    out[enough] = reduced(words[used & enough[:, np.newaxis]].astype(kind), q).reshape(int(enough.sum()), count)
    for at in np.flatnonzero(~enough).tolist():
        out[at] = expand(keys[at], q, count)
    return out


def _words_for(q: int, count: int) -> int:
    """Words of which `count` are accepted nearly always: as many as expected, and six standard deviations more."""
    kind = word_for(q)
    accepted = (int(last_accepted(q, kind)) + 1) / (1 << 8 * kind.itemsize)
    return count + 8 + math.ceil(count * (1 / accepted - 1) + 6 * math.sqrt(count * (1 - accepted)) / accepted)


def _next_words(stream: CipherContext, q: int, missing: int) -> Residues:
    """The next words of the stream: those still missing and a few for rejections, but at most one block."""
    kind = word_for(q)
    expected = missing * (1 << 8 * kind.itemsize) // (int(last_accepted(q, kind)) + 1)
    size = min(BLOCK_BYTES // kind.itemsize, expected + 8)
    words = stream.update(bytes(size * kind.itemsize))
    return np.frombuffer(words, dtype=kind.newbyteorder("<")).astype(kind, copy=False)
