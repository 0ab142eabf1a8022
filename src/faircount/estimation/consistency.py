"""Consistent frequencies: none negative, and their sum one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.errors import AnswerError
from faircount.core.validation import check_numbers


def project_to_simplex(estimates: ArrayLike) -> NDArray[np.float64]:
    """Return the nearest point of the probability simplex, along the last axis.

    This is the Euclidean projection, also known as "norm-sub": max(x - shift, 0) with the one shift
    that makes it sum to 1. It never moves away from the truth, but it is biased: small frequencies
    are pulled up and large ones down. Publish it beside the raw estimates, not instead of them.
    """
    values = check_numbers("estimates", estimates)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise AnswerError("estimates must be a non-empty list of finite numbers, one per item")
    # A common shift changes nothing about the projection, and without it large numbers would lose
    # the digits in which they differ.
    values = values - values.max(axis=-1, keepdims=True)
    descending = -np.sort(-values, axis=-1)
    # If the k largest stay positive, the shift is (their sum - 1) / k. The items that are above
    # their own shift are the first ones in this order, and the last of them has the right shift.
    shifts = (np.cumsum(descending, axis=-1) - 1) / np.arange(1, values.shape[-1] + 1)
    kept = (descending > shifts).sum(axis=-1, keepdims=True)
    shift = np.take_along_axis(shifts, kept - 1, axis=-1)
    positive = np.maximum(values - shift, 0.0)
    return np.asarray(positive / positive.sum(axis=-1, keepdims=True))
