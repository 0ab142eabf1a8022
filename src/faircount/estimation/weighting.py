"""Weighted aggregation of groups with their own epsilon (Section III-B of the paper).

Group g has n_g users and V_g, the noise variance of one user's contribution summed over the items,
so that its estimate has squared error V_g / n_g. Weights W_g sum to one; the paper's per-user
weights are w_g = W_g / n_g up to a factor. The same functions serve means: V_g is then the noise
variance of one report and sigma^2 the variance of the values.

`vwa`, `owa` and `total_variance` assume that the groups are alike; where they are not, all three
are biased and only `uwa` estimates the population (homogeneity.py).
"""

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.validation import check_integer, check_numbers, check_real
from faircount.mechanisms.count_distribution import Channel

AGAINST = ("noise", "population", "distribution")


def group_variance(channel: Channel, items: int, included: int) -> float:
    """Return V_g = n_g times the sum over items of the estimate's variance.

    It does not depend on the answers. Sampling: (1 - p) / p. Noise of v squared counts: N v / n_g.
    Local mechanisms: from both coins.
    """
    count = check_integer("items", items, least=2)
    n = check_integer("included", included, least=1)
    # A user holds one of the items and not the others.
    own = channel.hit * (1 - channel.hit)
    others = channel.miss * (1 - channel.miss)
    noise = channel.noise.variance if channel.noise else 0.0
    return (own + (count - 1) * others + count * noise / n) / (channel.hit - channel.miss) ** 2


def uwa(sizes: ArrayLike) -> Floats:
    """Return unweighted aggregation: every user counts the same, W_g = n_g / n.

    Unbiased for the population whatever the groups hold.
    """
    return _normalize(_check_positives("sizes", sizes))


def vwa(sizes: ArrayLike, variances: ArrayLike) -> Floats:
    """Return W_g ~ n_g / V_g (the paper's Eq. goodweight): least privacy noise."""
    n, v = _check_groups(sizes, variances)
    return _normalize(n / v)


def total_variance(sizes: ArrayLike, variances: ArrayLike, sigma2: float) -> Floats:
    """Return W_g ~ n_g / (V_g + sigma^2).

    Least error against the population of all groups, and against its distribution.
    """
    n, v = _check_groups(sizes, variances)
    return _normalize(n / (v + _check_spread(sigma2)))


def owa(sizes: ArrayLike, variances: ArrayLike) -> Floats:
    """Solve the paper's optimization problem (Solution 1) numerically; its solution is `vwa`.

    min sum n_g w_g^2 V_g / (sum n_g w_g)^2 over 0 < w_g < 1 with sum w_g = 1; returned as
    W_g ~ n_g w_g.
    """
    from scipy.optimize import minimize

    n, v = _check_groups(sizes, variances)
    # In x_g = w_g sqrt(n_g V_g) the numerator is |x|^2 and the denominator (c x)^2 with
    # c_g = sqrt(n_g / V_g). Their quotient does not change when all weights are scaled, so c x = 1
    # may take the place of sum w_g = 1. Every curvature is then alike, however much sizes and
    # variances differ: in w itself the optimizer stopped at a bound.
    scale = np.sqrt(n * v)
    c = np.sqrt(n / v)
    c /= np.linalg.norm(c)
    start = scale / (c @ scale)
    found = minimize(
        lambda x: (float(x @ x), 2 * x),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, None)] * n.size,
        constraints={"type": "eq", "fun": lambda x: c @ x - 1, "jac": lambda _: c},
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    if not found.success:
        raise FaircountError(
            f"the optimizer did not find the weights ({found.message}): use vwa, the closed form"
        )
    # W_g ~ n_g w_g, and n_g / sqrt(n_g V_g) is proportional to c_g.
    return _normalize(c * found.x)


def combine(estimates: ArrayLike, weights: ArrayLike) -> Floats:
    """Return sum_g W_g estimate_g for frequencies (one row per group) or means (one number)."""
    rows = check_numbers("estimates", estimates, ParameterError)
    w = check_numbers("weights", weights, ParameterError)
    if w.ndim != 1 or rows.ndim == 0 or rows.shape[0] != w.size:
        raise ParameterError(
            "give one weight per group: estimates has one row (or number) for each"
        )
    if not np.all(np.isfinite(w)) or not np.all(np.isfinite(rows)):
        raise ParameterError("estimates and weights must be finite numbers")
    if abs(w.sum() - 1) > 1e-9:
        raise ParameterError(f"weights must sum to 1, not {w.sum():g}")
    return np.asarray(np.tensordot(w, rows, axes=1))


def expected_error(
    weights: ArrayLike,
    sizes: ArrayLike,
    variances: ArrayLike,
    sigma2: float = 0.0,
    *,
    against: str = "noise",
) -> float:
    """Return the expected squared error, summed over items, when the groups are alike.

    `noise`: against the same weighting of what the groups hold, as in the paper's Table II.
    `population`: against the frequencies of all users together. `distribution`: against the
    distribution that all users were drawn from.
    """
    if against not in AGAINST:
        raise ParameterError(f"against must be one of {', '.join(AGAINST)}, not {against!r}")
    n, v = _check_groups(sizes, variances)
    w = check_numbers("weights", weights, ParameterError)
    spread = _check_spread(sigma2)
    if w.shape != n.shape or not np.all(np.isfinite(w)):
        raise ParameterError("give one finite weight per group")
    # Variance, per sigma^2, that the draw of the users adds to that of the noise.
    draw_variance = {
        "noise": 0.0,
        "population": (w**2 / n).sum() - w.sum() ** 2 / n.sum(),
        "distribution": (w**2 / n).sum(),
    }
    return float((w**2 * v / n).sum() + spread * draw_variance[against])


def sigma_squared(estimates: ArrayLike, sizes: ArrayLike, variances: ArrayLike) -> float:
    """Return an estimate of 1 - sum psi^2 of the distribution, if the groups are alike.

    It is computed from the groups' released estimates, so it costs no privacy.
    """
    n, v = _check_groups(sizes, variances)
    # Near the best weights for any spread, and chosen without looking at the estimates, which
    # would bias them.
    w = _normalize(n / (v + 1))
    pooled = combine(estimates, w)
    if pooled.ndim != 1 or pooled.size < 2:
        raise ParameterError(
            "sigma_squared is for frequencies: give one row of at least 2 items per group"
        )
    noise = (w**2 * v / n).sum()
    drawn = (w**2 / n).sum()
    largest = 1 - 1 / pooled.size
    if drawn >= 1:
        return largest  # a single user says nothing about the spread
    # The square of a noisy estimate is too large on average by its variance. That is subtracted
    # before clipping to the range that N frequencies can have.
    return float(np.clip((1 + noise - pooled @ pooled) / (1 - drawn), 0.0, largest))


def _check_groups(sizes: ArrayLike, variances: ArrayLike) -> tuple[Floats, Floats]:
    n = _check_positives("sizes", sizes)
    v = _check_positives("variances", variances)
    if n.size != v.size:
        raise ParameterError(f"sizes has {n.size} groups but variances has {v.size}")
    return n, v


def _check_positives(name: str, values: ArrayLike) -> Floats:
    array = check_numbers(name, values, ParameterError)
    is_list = array.ndim == 1 and array.size > 0
    if not is_list or not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ParameterError(f"{name} must be a list of positive numbers, one per group")
    return array


def _check_spread(sigma2: float) -> float:
    value = check_real("sigma2", sigma2)
    if value < 0:
        raise ParameterError(f"sigma2 is a variance and must not be negative, not {value:g}")
    return value


def _normalize(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())
