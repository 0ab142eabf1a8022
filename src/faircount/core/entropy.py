"""Sources of random bytes.

`SystemEntropy` is what a release uses: an AES-256-CTR key stream whose key comes from the operating
system, with a fresh key for every object, process and gibibyte. `SeededStream` has the same
interface and is for simulations and tests. Whoever knows its seed can repeat it, so nothing that
leaves a client may be drawn from it.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from faircount.core.validation import check_integer

Word = TypeVar("Word", np.uint8, np.uint16, np.uint32, np.uint64)

# Key stream is written in blocks that fit into the processor's cache together with their zeros.
_BLOCK = 1 << 18
_ZEROS = memoryview(bytes(_BLOCK))

# A new key after 2^26 blocks of AES, far below the 2^64 at which CTR output could be told from
# random bytes because no block ever repeats.
_REKEY_AFTER = 1 << 30
_FROM_ZERO = modes.CTR(bytes(16))


def key_stream(key: bytes) -> CipherContext:
    """Return the AES-256-CTR stream of a key, as section 5 of the protocol defines it.

    The initial counter block is zero; the counter has 128 bits and is big endian.
    """
    return Cipher(algorithms.AES256(key), _FROM_ZERO).encryptor()


def fill_from(stream: CipherContext, out: NDArray[np.uint8]) -> None:
    """Write the next bytes of the key stream over `out`, block by block."""
    if not out.size:
        return
    # The key stream is the encryption of zeros. `update_into` writes it straight into the array,
    # where `update` would allocate bytes of that length first.
    view = out.data.cast("B")
    for start in range(0, len(view), _BLOCK):
        block = view[start : start + _BLOCK]
        stream.update_into(_ZEROS[: len(block)], block)


class Entropy(ABC):
    """Uniform random bytes, as arrays."""

    @abstractmethod
    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous byte array with uniform bytes."""

    def bytes(self, size: int) -> bytes:
        """Return `size` uniform bytes."""
        out = np.empty(size, dtype=np.uint8)
        self.fill(out)
        return out.tobytes()

    def words(self, size: int, dtype: type[Word]) -> NDArray[Word]:
        """Return `size` uniform unsigned integers over the whole range of `dtype`."""
        out = np.empty(size, dtype=dtype)
        self.fill(out.view(np.uint8))
        return out


class Streamed(Entropy):
    """The next bytes of a key stream."""

    __slots__ = ("_stream",)
    _stream: CipherContext

    def _stream_for(self, size: int) -> CipherContext:
        """Return the stream from which the next `size` bytes will be taken."""
        return self._stream

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous byte array with the next bytes of the stream."""
        fill_from(self._stream_for(out.size), out)

    def bytes(self, size: int) -> bytes:
        """Return the next `size` bytes of the stream."""
        return self._stream_for(size).update(bytes(size))


class SystemEntropy(Streamed):
    """The operating system's randomness, stretched by AES; safe across fork."""

    __slots__ = ("_bytes_left", "_process")

    def __init__(self) -> None:
        self._process = -1
        self._bytes_left = 0

    def _stream_for(self, size: int) -> CipherContext:
        # After a fork both processes hold the same stream. Shares or noise that the child drew
        # from it would be known to the parent, so the first draw in a process takes a new key.
        process = os.getpid()
        if self._bytes_left < size or self._process != process:
            self._stream = key_stream(os.urandom(32))
            self._process = process
            self._bytes_left = max(_REKEY_AFTER, size)
        self._bytes_left -= size
        return self._stream

    def __repr__(self) -> str:
        return "SystemEntropy()"


class KeyStream(Streamed):
    """The stream of a secret key, for bytes that one party or two must be able to draw again.

    key: 32 bytes, used for this alone
    """

    __slots__ = ()

    def __init__(self, key: bytes) -> None:
        self._stream = key_stream(key)

    def __repr__(self) -> str:
        # Without the key: representations end up in logs.
        return "KeyStream()"


class SeededStream(KeyStream):
    """A repeatable stream for simulations and tests only; never for a release.

    seed: the same seed gives the same stream

    >>> fc.SeededStream(1).bytes(16) == fc.SeededStream(1).bytes(16)
    True
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = check_integer("seed", seed)
        super().__init__(hashlib.sha256(f"faircount simulation {self.seed}".encode()).digest())

    def __repr__(self) -> str:
        return f"SeededStream({self.seed})"
