"""Confidence intervals of frequencies.

`covers="users"`: the truth is what these users hold, and only the mechanism is random.
`covers="population"`: the users are themselves a random draw from a larger population. Every
interval is the set of truths under which the decoded sum is not too unlikely, so it covers the
truth at least as often as its confidence says, at any n; where an approximation is used instead,
`method` says so. The tails are split evenly; for sampling Blaker's ordering is used because it is
up to a quarter narrower for rare items and never wider (docs/explanation/coverage.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import ArrayValue, Floats, Ints, read_only
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import MAX_USERS, check_fraction, check_integer, check_numbers
from faircount.estimation.distributions import (
    Rows,
    binomial_below,
    binomial_rows,
    bracket_fractions,
    first_integers,
    hypergeometric_rows,
    noisy_below,
    two_coins_below,
)
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution

COVERS = ("users", "population")
ESTIMATORS = ("ht", "ratio")

EXACT_LOCAL_USERS = 100_000
"""Up to this many users the intervals of local mechanisms are inverted exactly.

Above, a score interval is used.
"""

APPROXIMATE = "approximate"
NOISE_ONLY = "covers privacy noise only"
NOISE_AND_DRAW = "covers privacy noise and the draw of these users"

# Entries of the matrices that are worked on at a time: some 16 MB per matrix of doubles.
_CELLS = 2_000_000

Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often intervals cover the truth, and which truth; the fields are those of `Intervals`."""

    confidence: float
    covers: str
    simultaneous: bool
    method: str

    @property
    def is_approximate(self) -> bool:
        """Whether the confidence holds only approximately."""
        return self.method.startswith(APPROXIMATE)


@dataclass(frozen=True, eq=False, slots=True)
class Intervals(ArrayValue):
    """Lower and upper bounds of frequencies.

    low, high:    one number per item, read-only
    confidence:        how often such an interval covers the truth, at least
    covers:       "users" (privacy noise only) or "population" (also the draw of these users)
    simultaneous: whether the confidence is that of all items together
    method:       how the bounds were computed, in words
    """

    low: Floats
    high: Floats
    confidence: float
    covers: str
    simultaneous: bool
    method: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", read_only(self.low))
        object.__setattr__(self, "high", read_only(self.high))

    @property
    def width(self) -> Floats:
        """Upper minus lower bound."""
        return self.high - self.low

    @property
    def coverage(self) -> Coverage:
        """How often they cover the truth, and which truth."""
        return Coverage(self.confidence, self.covers, self.simultaneous, self.method)

    @property
    def is_approximate(self) -> bool:
        """Whether the confidence holds only approximately."""
        return self.coverage.is_approximate

    def contains(self, truth: ArrayLike) -> NDArray[np.bool_]:
        """Return for every item whether the interval contains the true frequency."""
        return contains(self.low, self.high, truth)


def contains(low: Floats, high: Floats, truth: ArrayLike) -> NDArray[np.bool_]:
    """Return whether low <= truth <= high, up to the last bits of a division by n."""
    value = np.asarray(truth, dtype=np.float64)
    return np.asarray((low <= value + 1e-12) & (value <= high + 1e-12))


def interval(
    sums: ArrayLike,
    channel: Channel,
    included: int,
    *,
    confidence: float = 0.95,
    covers: str = "users",
    simultaneous: bool = False,
    estimator: str = "ht",
    known_total: bool = False,
) -> Intervals:
    """Return intervals of the items' frequencies from the decoded sums of `included` users.

    The last axis of `sums` are the items. `known_total`: these are all items, so that their counts
    add up to `included`; sums with independent noise are then fitted to it. `simultaneous`: all
    items of a release are covered at once with probability `confidence` (Sidak where the sums are
    independent given the answers, Bonferroni elsewhere). `estimator="ratio"` conditions on how many
    users were sampled: narrower, for sampling mechanisms only.
    """
    check_choice("covers", covers, COVERS)
    check_choice("estimator", estimator, ESTIMATORS)
    n = check_integer("included", included, least=1, most=MAX_USERS)
    points = _check_sums(sums, channel, n)
    items = points.shape[-1]
    fitted = known_total and channel.fits_total(items)
    if fitted:
        points = _fit_points(points, channel, n)
        channel = channel.fitted_to_total(items)
    # Given the answers the sums of independent channels are independent. The draw of the users and
    # the number sampled are common to all items and make them dependent again.
    independent = channel.independent and covers == "users" and estimator == "ht"
    error = error_per_item(
        1 - check_fraction("confidence", confidence), items, simultaneous, independent
    )
    if estimator == "ratio":
        require_sampling(channel)
        bounds, method = _invert_given_sampled(points, n, error, covers)
    else:
        bounds, method = _invert(points, channel, n, error, covers)
    if fitted:
        method += f"; uses the known total of {n:,} users"
    if simultaneous:
        method += f"; {'Sidak' if independent else 'Bonferroni'} over {items} items"
    return Intervals(*bounds, float(confidence), covers, simultaneous, method)


def bound_shares(
    counts: ArrayLike, noise: NoiseDistribution, included: int, error: float, covers: str
) -> Bounds:
    """Return bounds of shares whose counts have this noise.

    Each interval misses its share with a probability of at most `error`.
    """
    channel = Channel(1.0, noise=noise)
    points = _check_sums(counts, channel, included)
    return _invert(points, channel, included, error, covers)[0]


def error_per_item(error: float, items: int, simultaneous: bool, independent: bool) -> float:
    """Return the probability with which one of `items` intervals may miss the truth."""
    if not simultaneous:
        return error
    if independent:
        return -math.expm1(math.log1p(-error) / items)  # Sidak: 1 - (1 - error)^(1 / items)
    return error / items


def require_sampling(channel: Channel) -> None:
    """Refuse the ratio estimator where sums contain anything but sampled holders."""
    if channel.noise is not None or channel.miss:
        raise ParameterError(
            "the ratio estimator is for sampling mechanisms: "
            "with noise or local reports use estimator='ht'"
        )


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not among the allowed ones."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}"
        )


def _check_sums(sums: ArrayLike, channel: Channel, included: int) -> Ints:
    """Return the sums as integers in units of 1 / scale; impossible ones are refused."""
    values = check_numbers("sums", sums)
    # Noise may be finer than whole counts. A decoded sum is then a multiple of 1 / scale, and as an
    # integer it can be looked up in tables without rounding.
    scale = channel.noise.scale if channel.noise else 1
    points = np.rint(values * scale)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise AnswerError("sums must be a non-empty list of finite numbers, one per item")
    # Fitted sums are multiples of a small step: they are off by the rounding of one division.
    off = np.abs(values * scale - points) - 1e-15 * np.abs(values) * scale
    if np.abs(points).max() > MAX_USERS or np.any(off > 1e-6):
        raise AnswerError("sums must be counts as decoded, not estimates or rounded values")
    if channel.noise is None and (points.min() < 0 or points.max() > included):
        raise AnswerError(f"sums must lie between 0 and the {included} users included")
    return points.astype(np.int64)


def _fit_points(points: Ints, channel: Channel, included: int) -> Ints:
    """Return what `Channel.fit` does, in whole steps of the fitted noise: nothing is rounded."""
    items = points.shape[-1]
    total = included * _require_noise(channel).scale
    return np.asarray(items * points - (points.sum(axis=-1, keepdims=True) - total))


def _invert(
    points: Ints, channel: Channel, n: int, error: float, covers: str
) -> tuple[Bounds, str]:
    solve, method = _choose_method(channel, n, covers)
    low, high = _solve_distinct(
        lambda rows: solve(rows[:, 0], channel, n, error), points.reshape(-1, 1), n
    )
    return (low.reshape(points.shape), high.reshape(points.shape)), method


def _solve_distinct(solve: Callable[[Ints], Bounds], rows: Ints, n: int) -> Bounds:
    """Solve every distinct row once, as many at a time as fit into memory."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    # A distribution of n users has a window of about 20 sqrt(n) + 50 points (distributions.py).
    step = max(1, int(_CELLS / (20 * math.sqrt(n) + 50)))
    # Many items of a release have the same sum, small ones most of all.
    lows = []
    highs = []
    for start in range(0, len(distinct), step):
        low, high = solve(distinct[start : start + step])
        lows.append(low)
        highs.append(high)
    return np.concatenate(lows)[inverse.ravel()], np.concatenate(highs)[inverse.ravel()]


def _choose_method(
    channel: Channel, n: int, covers: str
) -> tuple[Callable[[Ints, Channel, int, float], Bounds], str]:
    """Return the function that inverts this channel, and its description."""
    noisy = channel.noise is not None
    local = channel.miss > 0
    if noisy and local:
        raise ParameterError("intervals for a local mechanism with added noise are not available")
    if covers == "population":
        if noisy:
            method = "exact, from the distributions of the noise and of the number of holders"
            return _solve_noisy_population, f"{method}; {NOISE_AND_DRAW}"
        return _solve_population, f"exact (Clopper-Pearson); {NOISE_AND_DRAW}"
    if noisy and channel.hit == 1:
        return _solve_noisy, f"exact, from the quantiles of the noise; {NOISE_ONLY}"
    if noisy:
        return (
            _solve_sampled_noisy,
            f"exact, from the distributions of sampling and noise; {NOISE_ONLY}",
        )
    if not local:
        return (
            _solve_sampled,
            f"exact, from the distribution of sampling (Blaker's ordering); {NOISE_ONLY}",
        )
    if n <= EXACT_LOCAL_USERS:
        return _solve_local, f"exact, from the distribution of the randomized reports; {NOISE_ONLY}"
    return (
        _solve_local_score,
        f"{APPROXIMATE}: score interval with continuity correction; {NOISE_ONLY}",
    )


def _from_tails(
    below: Callable[[Ints, Ints], Floats], points: Ints, n: int, tail: float
) -> tuple[Ints, Ints]:
    """Return the least and greatest plausible number of holders in [0, n].

    A number is plausible if both tails of the sum, cut at the point, are more likely than `tail`.
    Where none is, the result is the boundary.
    """
    low = first_integers(lambda holders: 1 - below(points - 1, holders) > tail, points.size, n)
    high = first_integers(lambda holders: below(points, holders) <= tail, points.size, n) - 1
    low = np.minimum(low, n)
    high = np.maximum(high, 0)
    return np.minimum(low, high), np.maximum(low, high)


def _blaker(
    rows: Callable[[Ints], Rows], points: Ints, low: Ints, high: Ints, error: float
) -> tuple[Ints, Ints]:
    """Narrow an equal-tailed interval to the acceptable numbers of holders (Blaker 2000)."""

    # Blaker's interval lies inside the equal-tailed one. Its p-value is not monotone, so both ends
    # walk inwards one by one to the first acceptable number instead of bisecting.
    def walk(edge: Ints, step: int, stop: Ints) -> Ints:
        while np.any(out := (edge != stop) & (rows(edge).acceptability(points) <= error)):
            edge = edge + step * out
        return edge

    low = walk(low, 1, high)
    return low, walk(high, -1, low)


# Solvers: from sums, all of them integers in units of 1 / scale, to the bounds of frequencies.


def _solve_sampled(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    # The tails come from the incomplete beta function: bisection needs no whole distributions,
    # which are computed only for the few steps of Blaker's walk.
    p = np.full(points.size, channel.hit)
    ends = _from_tails(
        lambda x, holders: binomial_below(x, holders, channel.hit), points, n, error / 2
    )
    low, high = _blaker(lambda holders: binomial_rows(holders, p), points, *ends, error)
    return low / n, high / n


def _solve_local(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    def below(x: Ints, holders: Ints) -> Floats:
        return two_coins_below(x, holders, n, channel.hit, channel.miss)

    low, high = _from_tails(below, points, n, error / 2)
    return low / n, high / n


def _solve_local_score(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    """Return the holders k with (|s - mean(k)| - 1/2)^2 <= z^2 variance(k)."""
    z2 = normal_quantile(1 - error / 2) ** 2
    gain = channel.hit - channel.miss
    base = channel.miss * (1 - channel.miss)
    slope = channel.hit * (1 - channel.hit) - base

    # Mean and variance are linear in k, so the boundaries are the roots of a quadratic.
    def root(shift: float, sign: int) -> Floats:
        y = points + shift - n * channel.miss
        middle = 2 * gain * y + z2 * slope
        spread = np.sqrt(np.maximum(middle**2 - 4 * gain**2 * (y**2 - z2 * n * base), 0))
        return np.asarray((middle + sign * spread) / (2 * gain**2))

    low = np.floor(root(-0.5, -1))
    high = np.ceil(root(0.5, 1))
    return np.clip(low, 0, n) / n, np.clip(high, 0, n) / n


def _solve_noisy(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise = _require_noise(channel)
    smallest, largest = noise.quantiles(error / 2)
    least = round(smallest * noise.scale)
    most = round(largest * noise.scale)
    # Whole numbers of holders between point - most and point - least, both in units of 1 / scale:
    # the lower end is rounded up, the upper end down.
    low = -((most - points) // noise.scale)
    high = (points - least) // noise.scale
    # With noise that stays below 1/2 there may be no whole number between them.
    low, high = np.minimum(low, high), np.maximum(low, high)
    return np.clip(low, 0, n) / n, np.clip(high, 0, n) / n


def _solve_sampled_noisy(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise = _require_noise(channel)
    p = np.full(points.size, channel.hit)
    low, high = _from_tails(
        lambda x, holders: noisy_below(x, holders, p, noise), points, n, error / 2
    )
    return low / n, high / n


def _solve_noisy_population(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise = _require_noise(channel)
    users = np.full(points.size, n, dtype=np.int64)

    # A random user is a holder with probability psi and then counted with probability hit.
    def below(x: Ints, psi: Floats) -> Floats:
        return noisy_below(x, users, channel.hit * psi, noise)

    # The outer ends of both brackets: the interval may be 1e-9 too wide, but not too narrow.
    low, _ = bracket_fractions(lambda psi: 1 - below(points - 1, psi) > error / 2, points.size)
    _, high = bracket_fractions(lambda psi: below(points, psi) <= error / 2, points.size)
    return low, high


def _require_noise(channel: Channel) -> NoiseDistribution:
    if channel.noise is None:
        raise ParameterError("this channel adds no noise")
    return channel.noise


def _solve_population(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    # A random user's report is a yes with probability miss + gain psi, so the sum is binomial.
    low, high = clopper_pearson(points, n, error / 2)
    gain = channel.hit - channel.miss
    return np.clip((low - channel.miss) / gain, 0, 1), np.clip((high - channel.miss) / gain, 0, 1)


def _invert_given_sampled(points: Ints, n: int, error: float, covers: str) -> tuple[Bounds, str]:
    """Return the bounds given the number S of users sampled.

    An item's sum is then hypergeometric (users) or Bin(S, frequency) (population).
    """
    # Every sampled user is counted for exactly one item, so the sums tell how many there are.
    sampled = np.broadcast_to(points.sum(axis=-1, keepdims=True), points.shape)
    if sampled.max() > n:
        raise AnswerError(f"sums add up to more than the {n} users included")
    rows = np.stack([points.ravel(), sampled.ravel()], axis=1)
    if covers == "population":
        low, high = clopper_pearson(rows[:, 0], rows[:, 1], error / 2)
        method = f"exact given the number sampled (Clopper-Pearson); {NOISE_AND_DRAW}"
    else:
        low, high = _solve_distinct(
            lambda distinct: _solve_hypergeometric(distinct[:, 0], distinct[:, 1], n, error),
            rows,
            n,
        )
        method = f"exact given the number sampled (Blaker's ordering); {NOISE_ONLY}"
    return (low.reshape(points.shape), high.reshape(points.shape)), method


def _solve_hypergeometric(points: Ints, sampled: Ints, n: int, error: float) -> Bounds:
    def rows(holders: Ints) -> Rows:
        return hypergeometric_rows(n, holders, sampled)

    ends = _from_tails(lambda x, holders: rows(holders).below(x), points, n, error / 2)
    low, high = _blaker(rows, points, *ends, error)
    return low / n, high / n


def normal_quantile(probability: float) -> float:
    """Return the z with P(Z <= z) = probability for a standard normal Z."""
    from scipy.special import ndtri

    return float(ndtri(probability))
