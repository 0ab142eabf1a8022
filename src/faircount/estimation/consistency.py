"""Frequencies that could be somebody's: none negative, all together one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.errors import AnswerError
from faircount.core.validation import numbers


def consistent(estimates: ArrayLike) -> NDArray[np.float64]:
    """The nearest point of the simplex, along the last axis: max(x - shift, 0) with one shift that makes it sum to 1.

    Euclidean projection, which is the same as "norm-sub". It never moves away from the truth, but it is biased:
    small frequencies are pulled up and large ones down. Publish it beside the raw estimates, not instead of them.
    """
    values = numbers("estimates", estimates)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise AnswerError("estimates must be a non-empty list of finite numbers, one per item")
    values = values - values.max(axis=-1, keepdims=True)  # a shift changes nothing, and large numbers lose no digits
    falling = -np.sort(-values, axis=-1)
    shifts = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    kept = (falling > shifts).sum(axis=-1, keepdims=True)  # a prefix: as many items stay positive
    shift = np.take_along_axis(shifts, kept - 1, axis=-1)
    positive = np.maximum(values - shift, 0.0)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))
