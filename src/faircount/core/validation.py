"""Checks of arguments: a check returns the clean value or raises an error that says what to do."""

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.errors import AnswerError, InputError, ParameterError

MAX_USERS = 1 << 53
"""Largest number of users: above 2^53 doubles do not tell an integer from its neighbours."""

# Characters of a refused value that an error message repeats.
_QUOTED_LENGTH = 60

# A decimal fraction and the double that stands for it differ by at most 2^-53 of their value. Twice
# that is a margin within which a product with a number of users counts as a whole number.
_HALF_DIGIT = Fraction(1, 1 << 52)


def check_integer(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """Return an integer in [least, most]; booleans and fractions are refused."""
    # Plain integers pass without `isinstance`, which is slow with an abstract class. True counts as
    # 1 in Python, but as a number of users it is a mistake.
    if type(value) is not int and (
        isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral)
    ):
        raise ParameterError(f"{name} must be a whole number, not {_quote(value)}")
    number = int(value)
    if number < least or (most is not None and number > most):
        bound = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ParameterError(f"{name} must be {bound}, not {_quote(number)}")
    return number


def _quote(value: object) -> str:
    """Return a refused value as an error message repeats it, shortened."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print an integer of more than 4,300 digits
        return "a number that long"
    return text if len(text) <= _QUOTED_LENGTH else f"{text[:_QUOTED_LENGTH]}..."


def check_real(name: str, value: object) -> float:
    """Return a finite real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, not {_quote(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ParameterError(
            f"{name} must be a number that a computer can hold, not {_quote(value)}"
        ) from None
    if not math.isfinite(number):
        raise ParameterError(f"{name} must be finite, not {number}")
    return number


def check_positive(name: str, value: object) -> float:
    """Return a finite number above zero."""
    number = check_real(name, value)
    if number <= 0:
        raise ParameterError(f"{name} must be above 0, not {number:g}")
    return number


def check_probability(name: str, value: object) -> float:
    """Return a number in (0, 1]."""
    number = check_real(name, value)
    if not 0 < number <= 1:
        raise ParameterError(f"{name} must lie in (0, 1], not {number:g}")
    return number


def check_fraction(name: str, value: object) -> float:
    """Return a number strictly between 0 and 1."""
    number = check_real(name, value)
    if not 0 < number < 1:
        # Many people write 95 for 95%.
        hint = f": write {number / 100:g} for {number:g}%" if 1 < number < 100 else ""
        raise ParameterError(f"{name} must lie strictly between 0 and 1, not {number:g}{hint}")
    return number


def check_epsilon(value: object, name: str = "epsilon") -> float:
    """Return a privacy loss: finite and not negative."""
    number = check_real(name, value)
    if number < 0:
        raise ParameterError(f"{name} must not be negative, not {number:g}")
    return number


def share_of_users(name: str, share: object, users: int) -> int:
    """Return how many users a share in [0, 1) of them is, rounded up.

    The share stands for users who cannot be relied on, such as dropouts, so rounding up is the
    safe side. 0.29 of 100 is 29 although the double next to 0.29, times 100, is less; 0.07 of 100
    is 7 although it is more.
    """
    value = check_real(name, share)
    if not 0 <= value < 1:
        raise ParameterError(f"{name} is a share of the users: give a number from 0 to below 1")
    return math.ceil(Fraction(value) * users * (1 - _HALF_DIGIT))


def expected_users(name: str, rate: object, invited: int) -> int:
    """Return how many of the invited users respond at a rate in (0, 1].

    It is rounded down, because privacy must not rely on users who may not respond.
    """
    value = check_real(name, rate)
    if not 0 < value <= 1:
        raise ParameterError(
            f"{name} is the share of the invited users who answer: give a number above 0, at most 1"
        )
    return min(invited, math.floor(Fraction(value) * invited * (1 + _HALF_DIGIT)))


def check_numbers(
    name: str, values: ArrayLike, error: type[InputError] = AnswerError
) -> NDArray[np.float64]:
    """Return the values as an array of doubles; the error message repeats none of them."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} must be numbers, in rows of equal length") from None


def check_counts(values: ArrayLike, *, items: int | None = None) -> NDArray[np.int64]:
    """Return a vector of non-negative integer counts with at least one user among them."""
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError):
        raise AnswerError("counts must be a non-empty list, one number per item") from None
    if array.ndim != 1 or array.size == 0:
        raise AnswerError("counts must be a non-empty list, one number per item")
    if items is not None and array.size != items:
        raise AnswerError(
            f"counts has {array.size} entries for {items} items: give one number per item"
        )
    if not _are_whole(array):
        raise AnswerError("counts must be whole numbers")
    if np.any(array < 0):
        raise AnswerError("counts must not be negative")
    # Added up as doubles: a sum of 64-bit integers could wrap around and pass the check.
    if float(array.sum(dtype=np.float64)) > MAX_USERS:
        raise AnswerError(f"counts add up to more than {MAX_USERS} users")
    clean = array.astype(np.int64)
    if clean.sum() == 0:
        raise AnswerError("counts add up to 0: at least one user is needed")
    return clean


def _are_whole(array: NDArray[np.generic]) -> bool:
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        return False
    return bool(np.all(array == np.floor(array)))


def check_frequencies(values: ArrayLike, *, items: int | None = None) -> NDArray[np.float64]:
    """Return a vector of non-negative frequencies that sum to one."""
    array = check_numbers("frequencies", values)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)):
        raise AnswerError("frequencies must be a non-empty list of finite numbers, one per item")
    if items is not None and array.size != items:
        raise AnswerError(
            f"frequencies has {array.size} entries for {items} items: give one number per item"
        )
    if np.any(array < 0) or abs(array.sum() - 1) > 1e-9:
        raise AnswerError("frequencies must not be negative and must sum to 1")
    return array


def check_same_length(**named: Sequence[object] | NDArray[np.generic]) -> int:
    """Return the common length of the named sequences, which must not be zero."""
    lengths = {name: len(values) for name, values in named.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        listing = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ParameterError(f"these must have the same, non-zero length: {listing}")
    return next(iter(lengths.values()))
