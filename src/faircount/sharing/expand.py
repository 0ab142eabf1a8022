"""Expansion of a 32-byte key to a vector over F_q, the same in every client (protocol, section 5).

Both ends of a shared key compute the vector for themselves, in Python or in JavaScript, so every
detail is part of the protocol: AES-256-CTR, little-endian words, rejection of words that would make
some residues likelier than others.
"""

import math
from collections.abc import Sequence

import numpy as np
from cryptography.hazmat.primitives.ciphers import CipherContext

from faircount.core.arrays import Residues
from faircount.core.entropy import key_stream
from faircount.core.errors import ShareError
from faircount.core.validation import check_integer
from faircount.sharing.field import BLOCK_BYTES, dtype_for, last_accepted, reduce_mod, word_for

KEY_BYTES = 32


def expand(key: bytes, q: int, count: int) -> Residues:
    """Return `count` elements from the AES-256-CTR stream of a key.

    Element t is the t-th accepted little-endian word modulo q. A word x is accepted if
    x < floor(2^bits / q) q, so that elements are exactly uniform if the words are.
    """
    if len(key) != KEY_BYTES:
        raise ShareError(f"a key to expand has {KEY_BYTES} bytes, not {len(key)}")
    stream = key_stream(key)
    last = last_accepted(q, word_for(q))
    out = np.empty(check_integer("count", count), dtype=dtype_for(q))
    done = 0
    while done < out.size:
        words = _next_words(stream, q, out.size - done)
        accepted = words <= last
        if not accepted.all():  # selecting by a mask copies, so it is skipped where it can be
            words = words[accepted]
        words = words[: out.size - done]
        out[done : done + words.size] = reduce_mod(words, q)
        done += words.size
    return out


def expand_rows(keys: Sequence[bytes], q: int, count: int) -> Residues:
    """Expand many keys, one row per key: the same elements, with arithmetic on all rows at once."""
    if any(len(key) != KEY_BYTES for key in keys):
        raise ShareError(f"keys to expand have {KEY_BYTES} bytes each")
    word = word_for(q)
    width = _words_for(q, check_integer("count", count))
    zeros = bytes(width * word.itemsize)
    streams = b"".join([key_stream(key).update(zeros) for key in keys])
    words = np.frombuffer(streams, dtype=word.newbyteorder("<")).reshape(len(keys), width)

    # The first `count` accepted words of a row are used. Rows have different numbers of them, so
    # all used words of complete rows are taken out as one flat list, row after row.
    accepted = words <= last_accepted(q, word)
    used = accepted & (np.cumsum(accepted, axis=1, dtype=np.int32) <= count)
    complete = used.sum(axis=1) == count
    chosen = words[used & complete[:, np.newaxis]].astype(word)
    out = np.empty((len(keys), count), dtype=dtype_for(q))
    out[complete] = reduce_mod(chosen, q).reshape(int(complete.sum()), count)

    # Very rarely a row has more rejections than six standard deviations allow for.
    for row in np.flatnonzero(~complete).tolist():
        out[row] = expand(keys[row], q, count)
    return out


def _words_for(q: int, count: int) -> int:
    """Return a number of words of which at least `count` are accepted almost always.

    It is the expected number and six standard deviations (of a negative binomial distribution)
    more.
    """
    word = word_for(q)
    accepted = (int(last_accepted(q, word)) + 1) / (1 << 8 * word.itemsize)
    rejections = count * (1 / accepted - 1)
    deviation = math.sqrt(count * (1 - accepted)) / accepted
    return count + 8 + math.ceil(rejections + 6 * deviation)


def _next_words(stream: CipherContext, q: int, missing: int) -> Residues:
    """Read the next words of the stream, some more than are missing, but at most one block.

    How many are read at a time has no influence on the elements: the stream goes on where it was.
    """
    word = word_for(q)
    expected = missing * (1 << 8 * word.itemsize) // (int(last_accepted(q, word)) + 1)
    size = min(BLOCK_BYTES // word.itemsize, expected + 8)
    words = stream.update(bytes(size * word.itemsize))
    return np.frombuffer(words, dtype=word.newbyteorder("<")).astype(word, copy=False)
