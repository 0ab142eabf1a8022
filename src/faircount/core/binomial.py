"""Confidence bounds for a probability from a number of successes."""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats


def clopper_pearson(successes: ArrayLike, trials: ArrayLike, tail: float) -> tuple[Floats, Floats]:
    """Return exact lower and upper bounds of a binomial probability.

    Either bound is wrong with probability at most `tail`, so that together they are an interval of
    level 1 - 2 tail. Without trials the bounds are 0 and 1.
    """
    return lower_bound(successes, trials, tail), upper_bound(successes, trials, tail)


def lower_bound(successes: ArrayLike, trials: ArrayLike, tail: float) -> Floats:
    """Return the lower of the two bounds, a quantile of Beta(hits, misses + 1)."""
    hits, misses = _count(successes, trials)
    # A shape of 0 has no quantile; it is raised to 1, and that entry is replaced by the bound.
    return np.where(hits == 0, 0.0, _beta_quantiles(np.maximum(hits, 1), misses + 1, tail))


def upper_bound(successes: ArrayLike, trials: ArrayLike, tail: float) -> Floats:
    """Return the upper of the two bounds, a quantile of Beta(hits + 1, misses)."""
    hits, misses = _count(successes, trials)
    return np.where(misses == 0, 1.0, _beta_quantiles(hits + 1, np.maximum(misses, 1), 1 - tail))


def _beta_quantiles(hits: Floats, misses: Floats, level: float) -> Floats:
    """Return the quantiles of Beta(hits, misses) at this level."""
    from scipy.special import betaincinv

    # A quantile takes longer than a comparison, and audits ask for the same counts many times. A
    # complex number holds both shapes.
    different, where = np.unique(hits + 1j * misses, return_inverse=True)
    found = betaincinv(different.real, different.imag, level)
    return np.asarray(found[where.reshape(hits.shape)])


def _count(successes: ArrayLike, trials: ArrayLike) -> tuple[Floats, Floats]:
    """Return the numbers of successes and failures as arrays of one shape."""
    hits, total = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    )
    return hits, total - hits
