"""What a number of successes says about a probability."""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    """Exact lower and upper bound of a binomial probability, each wrong with probability at most `tail`.

    Together they are an interval of level 1 - 2 tail. Without trials the bounds are 0 and 1.
    """
    from scipy.special import betaincinv

    hits, misses = np.broadcast_arrays(np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    misses = misses - hits
    low = betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    return np.where(hits == 0, 0.0, low), np.where(misses == 0, 1.0, high)
