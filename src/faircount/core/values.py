"""Equality of values that hold arrays, which Python's dataclasses cannot compare."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


class ArrayValue:
    """A frozen dataclass with `eq=False` that is equal to another one of its class with the same contents."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_equal(one, two) for one, two in zip(_contents(self), _contents(other), strict=True))

    def __hash__(self) -> int:
        return hash((type(self).__name__, *map(_hashed, _contents(self))))


def _contents(value: Any) -> list[object]:
    return [getattr(value, each.name) for each in fields(value)]


def _equal(one: object, two: object) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(two, np.ndarray) and np.array_equal(one, two)
    return bool(one == two)


def _hashed(value: object) -> object:
    """Something with a hash that is the same for equal contents."""
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    return tuple(value) if isinstance(value, Mapping) else value
