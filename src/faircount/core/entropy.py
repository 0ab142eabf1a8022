"""Sources of random bytes.

`SystemEntropy` is what a release uses: an AES-256-CTR key stream whose key comes from the operating system, fresh
for every object, process and gibibyte. `SeededStream` has the same interface and is for simulations and tests: it
repeats itself, so nothing that leaves a device may be drawn from it.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from faircount.core.validation import integer

Word = TypeVar("Word", np.uint8, np.uint16, np.uint32, np.uint64)

_BLOCK = 1 << 18
_ZEROS = memoryview(bytes(_BLOCK))
_REKEY_AFTER = 1 << 30
_FROM_ZERO = modes.CTR(bytes(16))


def key_stream(key: bytes) -> CipherContext:
    """AES-256-CTR from a zero initial block with a 128-bit big-endian counter: the stream of protocol section 5."""
    return Cipher(algorithms.AES256(key), _FROM_ZERO).encryptor()


def fill_from(stream: CipherContext, out: NDArray[np.uint8]) -> None:
    """Write the next bytes of the key stream over `out`, block by block."""
    view = out.data.cast("B") if out.size else memoryview(b"")
    for start in range(0, len(view), _BLOCK):
        part = view[start : start + _BLOCK]
        stream.update_into(_ZEROS[: len(part)], part)


class Entropy(ABC):
    """Uniform random bytes, as arrays."""

    @abstractmethod
    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous byte array with uniform bytes."""

    def bytes(self, size: int) -> bytes:
        """`size` uniform bytes."""
        out = np.empty(size, dtype=np.uint8)
        self.fill(out)
        return out.tobytes()

    def words(self, size: int, dtype: type[Word]) -> NDArray[Word]:
        """`size` uniform unsigned integers over the whole range of `dtype`."""
        out = np.empty(size, dtype=dtype)
        self.fill(out.view(np.uint8))
        return out


class Streamed(Entropy):
    """The next bytes of a key stream."""

    __slots__ = ("_stream",)
    _stream: CipherContext

    def _next(self, size: int) -> CipherContext:
        """The stream, of which so many bytes will be taken."""
        return self._stream

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Overwrite a contiguous byte array with the next bytes of the stream."""
        fill_from(self._next(out.size), out)

    def bytes(self, size: int) -> bytes:
        """The next `size` bytes of the stream."""
        return self._next(size).update(bytes(size))


class SystemEntropy(Streamed):
    """The operating system's randomness, stretched; safe across fork."""

    __slots__ = ("_left", "_owner")

    def __init__(self) -> None:
        self._owner = -1
        self._left = 0

    def _next(self, size: int) -> CipherContext:
        if self._left < size or self._owner != os.getpid():
            self._stream = key_stream(os.urandom(32))
            self._owner, self._left = os.getpid(), max(_REKEY_AFTER, size)
        self._left -= size
        return self._stream

    def __repr__(self) -> str:
        return "SystemEntropy()"


class KeyStream(Streamed):
    """The stream of a secret key, for what must come out the same when it is drawn again, by one party or by two.

    key: 32 bytes, used for this alone
    """

    __slots__ = ()

    def __init__(self, key: bytes) -> None:
        self._stream = key_stream(key)

    def __repr__(self) -> str:
        return "KeyStream()"


class SeededStream(KeyStream):
    """A repeatable stream for simulations and tests only; never for a release.

    seed: the same seed gives the same stream
    """

    __slots__ = ("seed",)

    def __init__(self, seed: int) -> None:
        self.seed = integer("seed", seed)
        super().__init__(hashlib.sha256(f"faircount simulation {self.seed}".encode()).digest())

    def __repr__(self) -> str:
        return f"SeededStream({self.seed})"
