"""The kinds of NumPy arrays that travel between modules."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]
Residues = NDArray[np.unsignedinteger[Any]]
"""Elements of a prime field, canonical: 0 <= x < q."""
