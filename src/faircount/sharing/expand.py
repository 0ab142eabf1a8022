"""From a 32-byte key to a vector of F_q, the same in every client (protocol, section 5)."""

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext

from faircount.core.entropy import fill_from, key_stream
from faircount.core.errors import ShareError
from faircount.core.validation import integer
from faircount.sharing.field import BLOCK_BYTES, Residues, dtype_for, last_accepted, reduced, word_for

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


def _next_words(stream: CipherContext, q: int, missing: int) -> Residues:
    """The next words of the stream: those still missing and a few for rejections, but at most one block."""
    kind = word_for(q)
    expected = missing * (1 << 8 * kind.itemsize) // (int(last_accepted(q, kind)) + 1)
    size = min(BLOCK_BYTES // kind.itemsize, expected + 8)
    out = np.empty(size * kind.itemsize, dtype=np.uint8)
    fill_from(stream, out)
    return out.view(kind.newbyteorder("<")).astype(kind, copy=False)
