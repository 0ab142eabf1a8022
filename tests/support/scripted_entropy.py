"""Entropy with known bytes, with which a test goes through every outcome of a sampler."""

import numpy as np
from numpy.typing import NDArray

from faircount.core.entropy import Entropy


class ScriptedEntropy(Entropy):
    """Returns prepared bytes in order; a request for more than are left fails.

    data: the bytes that are left, so that a test can check that all were used
    """

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fill(self, out: NDArray[np.uint8]) -> None:
        """Copy the next bytes."""
        assert out.size <= len(self.data), "more randomness was requested than expected"
        out[:] = np.frombuffer(self.data[: out.size], dtype=np.uint8)
        self.data = self.data[out.size :]
