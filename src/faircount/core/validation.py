"""Checks of what comes in. Each returns the clean value or raises a typed error that says what to do."""

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.errors import AnswerError, InputError, ParameterError

MOST_USERS = 1 << 53
"""No number of users beyond this: floating point would not tell it from its neighbours."""


_SHOWN = 60  # characters of a refused value that a message repeats


def integer(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """A whole number in [least, most]; booleans and fractions are refused."""
    if type(value) is not int and (isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral)):
        raise ParameterError(f"{name} must be a whole number, not {_said(value)}")
    number = int(value)
    if number < least or (most is not None and number > most):
        bound = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ParameterError(f"{name} must be {bound}, not {_said(number)}")
    return number


def _said(value: object) -> str:
    """A refused value for a message, cut short; Python writes out no integer of more than 4,300 digits."""
    try:
        words = repr(value)
    except ValueError:
        return "a number that long"
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}..."


def real(name: str, value: object) -> float:
    """A finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, not {_said(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ParameterError(f"{name} must be a number that a computer can hold, not {_said(value)}") from None
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, not {number}")
    return number


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if number <= 0:
        raise ParameterError(f"{name} must be above 0, not {number:g}")
    return number


def probability(name: str, value: object) -> float:
    """A number in (0, 1]."""
    number = real(name, value)
    if not 0 < number <= 1:
        raise ParameterError(f"{name} must lie in (0, 1], not {number:g}")
    return number


def fraction(name: str, value: object) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} must lie strictly between 0 and 1, not {number:g}")
    return number


_HALF_DIGIT = Fraction(1, 1 << 52)  # a number as typed and the double that stands for it differ by less, relatively


def share_of_users(name: str, share: object, users: int) -> int:
    """How many of the users a share in [0, 1) of them is: rounded up, because those users are not to be relied on.

    0.29 of 100 is 29 although the double next to 0.29, times 100, is less; 0.07 of 100 is 7 although it is more.
    """
    value = real(name, share)
    if not 0 <= value < 1:
        raise ParameterError(f"{name} is a share of the users: give a number from 0 to below 1")
    return math.ceil(Fraction(value) * users * (1 - _HALF_DIGIT))


def expected_users(name: str, rate: object, invited: int) -> int:
    """How many of the invited users answer at a rate in (0, 1]: rounded down, because the others are not relied on."""
    value = real(name, rate)
    if not 0 < value <= 1:
        raise ParameterError(f"{name} is the share of the invited users who answer: give a number above 0, at most 1")
    return min(invited, math.floor(Fraction(value) * invited * (1 + _HALF_DIGIT)))


def epsilon(value: object, name: str = "epsilon") -> float:
    """A privacy loss: finite and not negative."""
    number = real(name, value)
    if number < 0:
        raise ParameterError(f"{name} must not be negative, not {number:g}")
    return number


def numbers(name: str, values: ArrayLike, kind: type[InputError] = AnswerError) -> NDArray[np.float64]:
    """The values as an array of floating-point numbers; the message of a refusal repeats none of them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise kind(f"{name} must be numbers, in rows of equal length") from None


def counts(values: ArrayLike, *, items: int | None = None) -> NDArray[np.int64]:
    """A vector of whole, non-negative counts with at least one user among them."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise AnswerError("counts must be a non-empty list, one number per item") from None
    if array.ndim != 1 or array.size == 0:
        raise AnswerError("counts must be a non-empty list, one number per item")
    if items is not None and array.size != items:
        raise AnswerError(f"counts has {array.size} entries for {items} items: give one number per item")
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)) or np.any(array != np.floor(array)):
        raise AnswerError("counts must be whole numbers")
    if np.any(array < 0):
        raise AnswerError("counts must not be negative")
    if float(array.sum(dtype=np.float64)) > MOST_USERS:
        raise AnswerError(f"counts add up to more than {MOST_USERS} users")
    clean = array.astype(np.int64)
    if clean.sum() == 0:
        raise AnswerError("counts add up to 0: at least one user is needed")
    return clean


def frequencies(values: ArrayLike, *, items: int | None = None) -> NDArray[np.float64]:
    """A vector of non-negative frequencies that sum to one."""
    array = numbers("frequencies", values)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)):
        raise AnswerError("frequencies must be a non-empty list of finite numbers, one per item")
    if items is not None and array.size != items:
        raise AnswerError(f"frequencies has {array.size} entries for {items} items: give one number per item")
    if np.any(array < 0) or abs(array.sum() - 1) > 1e-9:
        raise AnswerError("frequencies must not be negative and must sum to 1")
    return array


def same_length(**named: Sequence[object] | NDArray[np.generic]) -> int:
    """The common length of the named sequences, which must not be zero."""
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        said = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ParameterError(f"these must have the same, non-zero length: {said}")
    return next(iter(lengths.values()))
