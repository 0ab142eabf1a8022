"""Confidence bounds for a probability from a number of successes."""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    """Return exact lower and upper bounds of a binomial probability.

    Either bound is wrong with probability at most `tail`, so that together they are an interval of
    level 1 - 2 tail. Without trials the bounds are 0 and 1.
    """
    from scipy.special import betaincinv

    hits, total = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    misses = total - hits
    # The bounds are quantiles of Beta(hits, misses + 1) and Beta(hits + 1, misses). A shape of 0
    # has no quantile; it is raised to 1 here, and that entry is replaced by 0 or 1 below.
    low = betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    return np.where(hits == 0, 0.0, low), np.where(misses == 0, 1.0, high)
