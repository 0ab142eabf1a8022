"""NumPy array types that travel between modules, and equality for values that hold arrays."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Residues = NDArray[np.unsignedinteger[Any]]
"""Elements of a prime field in canonical form: 0 <= x < q."""


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of the array that cannot be written to."""
    copy = np.array(values)
    copy.setflags(write=False)
    return copy


class ArrayValue:
    """Base of frozen dataclasses that hold arrays: two of one class are equal if their fields are.

    Python's own comparison of dataclasses compares tuples of fields, which raises an error as soon
    as an array is among them. A subclass is declared with `eq=False` so that these methods stay.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = zip(_field_values(self), _field_values(other), strict=True)
        return all(_is_equal(left, right) for left, right in pairs)

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(_hashable, _field_values(self))))


def _field_values(value: Any) -> list[object]:
    return [getattr(value, field.name) for field in fields(value)]


def _is_equal(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and np.array_equal(left, right)
    return bool(left == right)


def _hashable(value: object) -> object:
    """Return a stand-in for `value` that can be hashed and is the same for equal values."""
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    if isinstance(value, Mapping):
        # The keys alone: the values of a mapping may be unhashable. Equal mappings still have
        # equal hashes as long as they were filled in the same order.
        return tuple(value)
    return value
