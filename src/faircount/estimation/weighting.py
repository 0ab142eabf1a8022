"""Weighted aggregation of groups with their own epsilon (Section III-B).

Group g has n_g users and V_g, the noise variance of one user's contribution summed over the items, so that its estimate
has squared error V_g / n_g. Weights W_g sum to one; the paper's per-user weights are w_g = W_g / n_g up to a factor.
The same functions serve means: V_g is then the noise variance of one report and sigma^2 the variance of the values.

`vwa`, `owa` and `total_variance` assume that the groups are alike; where they are not, all three are biased and only
`uwa` estimates the population (homogeneity.py).
"""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.validation import integer, numbers, real
from faircount.mechanisms.count_law import Channel

AGAINST = ("noise", "population", "distribution")


def group_variance(channel: Channel, items: int, included: int) -> float:
    """V_g = n_g times the sum over items of the estimate's variance; it does not depend on the answers.

    Sampling: (1 - p) / p. Noise of v squared counts: N v / n_g. Local: from both coins.
    """
    count, n = integer("items", items, least=2), integer("included", included, least=1)
    own, others = channel.hit * (1 - channel.hit), channel.miss * (1 - channel.miss)
    noise = channel.noise.variance if channel.noise else 0.0
    return (own + (count - 1) * others + count * noise / n) / (channel.hit - channel.miss) ** 2


def uwa(sizes: ArrayLike) -> Floats:
    """Unweighted: every user counts the same, W_g = n_g / n. Unbiased for the population whatever the groups hold."""
    return _normalized(_positive("sizes", sizes))


def vwa(sizes: ArrayLike, variances: ArrayLike) -> Floats:
    """W_g ~ n_g / V_g (the paper's Eq. goodweight): least privacy noise."""
    n, v = _groups(sizes, variances)
    return _normalized(n / v)


def total_variance(sizes: ArrayLike, variances: ArrayLike, sigma2: float) -> Floats:
    """W_g ~ n_g / (V_g + sigma^2): least error against the population of all groups, and against its distribution."""
    n, v = _groups(sizes, variances)
    return _normalized(n / (v + _spread(sigma2)))


def owa(sizes: ArrayLike, variances: ArrayLike) -> Floats:
    """The paper's optimization problem (Solution 1), solved numerically; its answer is `vwa`.

    min sum n_g w_g^2 V_g / (sum n_g w_g)^2 over 0 < w_g < 1 with sum w_g = 1; returned as W_g ~ n_g w_g.
    """
    from scipy.optimize import minimize

    n, v = _groups(sizes, variances)
    n, v = n / n.mean(), v / v.min()  # neither factor moves the minimum

    def error(w: Floats) -> tuple[float, Floats]:  # its logarithm, lest a large ratio of variances stop the optimizer
        users, noise = n @ w, n @ (w**2 * v)
        return float(np.log(noise / users**2)), 2 * n * (w * v / noise - 1 / users)

    whole = {"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like}
    start, bounds = np.full(n.size, 1 / n.size), [(1e-12, 1.0)] * n.size
    options = {"ftol": 1e-15, "maxiter": 2000}
    found = minimize(error, start, jac=True, method="SLSQP", bounds=bounds, constraints=whole, options=options)
    if not found.success:
        raise FaircountError(f"the optimizer did not find the weights ({found.message}): use vwa, the closed form")
    return _normalized(n * found.x)


def combine(estimates: ArrayLike, weights: ArrayLike) -> Floats:
    """sum_g W_g estimate_g, for frequencies (one row per group) or means (one number per group)."""
    rows, w = numbers("estimates", estimates, ParameterError), numbers("weights", weights, ParameterError)
    if w.ndim != 1 or rows.ndim == 0 or rows.shape[0] != w.size:
        raise ParameterError("give one weight per group: estimates has one row (or number) for each")
    if not np.all(np.isfinite(w)) or not np.all(np.isfinite(rows)):
        raise ParameterError("estimates and weights must be finite numbers")
    if abs(w.sum() - 1) > 1e-9:
        raise ParameterError(f"weights must sum to 1, not {w.sum():g}")
    return np.asarray(np.tensordot(w, rows, axes=1))


def expected_error(
    weights: ArrayLike, sizes: ArrayLike, variances: ArrayLike, sigma2: float = 0.0, *, against: str = "noise"
) -> float:
    """Expected squared error (summed over items) of the weighted estimate when the groups are alike.

    `noise`: against the same weighting of what the groups hold, as the paper's Table II. `population`: against the
    frequencies of all users together. `distribution`: against the law that all users were drawn from.
    """
    if against not in AGAINST:
        raise ParameterError(f"against must be one of {', '.join(AGAINST)}, not {against!r}")
    n, v = _groups(sizes, variances)
    w, spread = numbers("weights", weights, ParameterError), _spread(sigma2)
    if w.shape != n.shape or not np.all(np.isfinite(w)):
        raise ParameterError("give one finite weight per group")
    drawn = {"noise": 0.0, "population": (w**2 / n).sum() - w.sum() ** 2 / n.sum(), "distribution": (w**2 / n).sum()}
    return float((w**2 * v / n).sum() + spread * drawn[against])


def sigma_squared(estimates: ArrayLike, sizes: ArrayLike, variances: ArrayLike) -> float:
    """1 - sum psi^2 of the distribution, from the groups' released estimates: no privacy cost.

    The square of a noisy estimate is too large on average by its variance; that is taken off before clipping to the
    range [0, 1 - 1/N] that N frequencies can have. Needs the groups to be alike.
    """
    n, v = _groups(sizes, variances)
    w = _normalized(n / (v + 1))  # near the best weights for any spread, and chosen without looking at the estimates
    pooled = combine(estimates, w)
    if pooled.ndim != 1 or pooled.size < 2:
        raise ParameterError("sigma_squared is for frequencies: give one row of at least 2 items per group")
    noise, drawn = (w**2 * v / n).sum(), (w**2 / n).sum()
    if drawn >= 1:
        return 1 - 1 / pooled.size  # a single user says nothing about the spread
    return float(np.clip((1 + noise - pooled @ pooled) / (1 - drawn), 0.0, 1 - 1 / pooled.size))


def _groups(sizes: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    n, v = _positive("sizes", sizes), _positive("variances", variances)
    if n.size != v.size:
        raise ParameterError(f"sizes has {n.size} groups but variances has {v.size}")
    return n, v


def _positive(name: str, values: ArrayLike) -> Floats:
    array = numbers(name, values, ParameterError)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ParameterError(f"{name} must be a list of positive numbers, one per group")
    return array


def _spread(sigma2: float) -> float:
    value = real("sigma2", sigma2)
    if value < 0:
        raise ParameterError(f"sigma2 is a variance and must not be negative, not {value:g}")
    return value


def _normalized(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())
