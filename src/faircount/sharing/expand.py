"""From a 32-byte key to a vector of F_q, the same in every client (protocol, section 5)."""

from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext

from faircount.core.arrays import Residues
from faircount.core.entropy import fill_from, key_stream
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
    words = np.empty((len(keys), integer("count", count) + 8), dtype=kind.newbyteorder("<"))
    for key, row in zip(keys, words, strict=True):
        fill_from(key_stream(key), row.view(np.uint8))
    accepted = words <= last
    out = reduced(words[:, :count].astype(kind), q).astype(dtype_for(q))
    for short in np.flatnonzero(~accepted[:, :count].all(axis=1)).tolist():
        kept = words[short][accepted[short]][:count].astype(kind)
        out[short] = reduced(kept, q) if kept.size == count else expand(keys[short], q, count)
    return out


def _next_words(stream: CipherContext, q: int, missing: int) -> Residues:
    """The next words of the stream: those still missing and a few for rejections, but at most one block."""
    kind = word_for(q)
    expected = missing * (1 << 8 * kind.itemsize) // (int(last_accepted(q, kind)) + 1)
    size = min(BLOCK_BYTES // kind.itemsize, expected + 8)
    out = np.empty(size * kind.itemsize, dtype=np.uint8)
    fill_from(stream, out)
    return out.view(kind.newbyteorder("<")).astype(kind, copy=False)
