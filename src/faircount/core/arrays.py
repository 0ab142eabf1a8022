"""The kinds of NumPy arrays that travel between modules."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
Residues = NDArray[np.unsignedinteger[Any]]
"""Elements of a prime field, canonical: 0 <= x < q."""


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can change."""
    kept = np.array(values)
    kept.setflags(write=False)
    return kept
