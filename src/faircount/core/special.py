"""Special functions that plans need, where importing SciPy would take longer than the plan."""

import math
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats

# From here on a continued fraction has fewer rounding errors than e^(x^2) erfc(x).
_FRACTION_FROM = 2.0

# The fraction is cut off after so many terms; at 2 this leaves an error below 1e-17.
_TERMS = 140

# So many logarithms of factorials are computed in less time than an array is sorted.
_SMALL_TABLE = 4096


def log_factorial(n: ArrayLike) -> Floats:
    """Return log n! for an array of whole numbers."""
    numbers = np.asarray(n)
    largest = int(numbers.max(initial=0))
    # A distribution asks for few different numbers, many times each: a table up to the next power
    # of two serves the following calls too. A few large numbers do not need one.
    if numbers.min(initial=0) >= 0 and largest <= max(_SMALL_TABLE, numbers.size):
        return np.asarray(_log_factorials(1 << largest.bit_length())[numbers])
    different, where = np.unique(numbers, return_inverse=True)
    logs = np.array([math.lgamma(number + 1) for number in different.tolist()])
    return logs[where].reshape(numbers.shape)


@lru_cache(maxsize=32)
def _log_factorials(below: int) -> Floats:
    """Return log 0!, log 1!, ..., as many as are asked for."""
    logs = np.array([math.lgamma(number + 1) for number in range(below)])
    logs.setflags(write=False)  # shared by all callers
    return logs


def log_sum_exp(logs: Iterable[float]) -> float:
    """Return the logarithm of a sum of numbers that are given by their logarithms."""
    values = list(logs)
    largest = max(values, default=-math.inf)
    if largest == -math.inf:
        return largest
    return largest + math.log(math.fsum(math.exp(value - largest) for value in values))


def erfcx(x: float) -> float:
    """Return e^(x^2) erfc(x), the scaled complementary error function, good to 1e-15.

    That is the relative error for x >= -4; further below, the error of x^2 counts.
    """
    if x < _FRACTION_FROM:
        return math.exp(x * x) * math.erfc(x)
    # Laplace's continued fraction, from its end: all terms are positive, so nothing cancels.
    tail = x
    for k in range(_TERMS, 0, -1):
        tail = x + 0.5 * k / tail
    return 1 / (math.sqrt(math.pi) * tail)
