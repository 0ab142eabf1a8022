import sys
from collections.abc import Iterable

import numpy as np
import pytest
from numpy.typing import NDArray

from faircount.core.entropy import Entropy


class Tape(Entropy):
    """Bytes known beforehand, so that tests can enumerate every random choice.

    Running out of them is an error.
    """

    def __init__(self, data: bytes) -> None:
        self.left = data

    @classmethod
    def of_words(cls, values: Iterable[int], dtype: type) -> "Tape":
        return cls(np.array(list(values), dtype=dtype).tobytes())

    def fill(self, out: NDArray[np.uint8]) -> None:
        assert out.size <= len(self.left), "more randomness was used than expected"
        out[:] = np.frombuffer(self.left[: out.size], dtype=np.uint8)
        self.left = self.left[out.size :]


class Constant(Entropy):
    """One word over and over."""

    def __init__(self, word: int, size: int) -> None:
        self.pattern = np.frombuffer(word.to_bytes(size, sys.byteorder), dtype=np.uint8)

    def fill(self, out: NDArray[np.uint8]) -> None:
        out[:] = np.resize(self.pattern, out.size)


@pytest.fixture
def tape() -> type[Tape]:
    return Tape


@pytest.fixture
def constant() -> type[Constant]:
    return Constant
