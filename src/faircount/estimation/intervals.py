"""Confidence intervals of frequencies.

`covers="users"`: the truth is what these users hold, the only luck is the mechanism's. `covers="population"`: the users
are themselves a random draw from a larger population. Every interval is the set of truths under which the opened sum is
not too unlikely, so it holds at least as often as it says, at any n; where an approximation is used instead, `method`
says so. The tails are split evenly; for sampling Blaker's ordering is used because it is up to a quarter narrower for
rare items and never wider (docs/coverage.md).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats, Ints, read_only
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import MOST_USERS, fraction, integer, numbers
from faircount.core.values import ArrayValue
from faircount.estimation.laws import (
    Rows,
    binomial_below,
    binomial_rows,
    bracket_fraction,
    first_integer,
    hypergeometric_rows,
    noisy_below,
    two_coins_below,
)
from faircount.mechanisms.count_law import Channel, NoiseLaw

COVERS = ("users", "population")
ESTIMATORS = ("ht", "ratio")

EXACT_LOCAL_USERS = 100_000
"""Up to this many users the intervals of local mechanisms are inverted exactly; above, a score interval is used."""

_CELLS = 2_000_000  # size of the matrices that are worked on at a time

Bounds = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False, slots=True)
class Intervals(ArrayValue):
    """Lower and upper bounds of frequencies, and in words how they were made.

    low, high:    one number per item, read-only
    level:        how often such an interval holds at least
    covers:       "users" (privacy noise alone) or "population" (also the draw of these users)
    simultaneous: whether all items hold together with this level
    method:       how the bounds were computed, in words
    """

    low: Floats
    high: Floats
    level: float
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

    def contains(self, truth: ArrayLike) -> NDArray[np.bool_]:
        """Whether each interval holds the true frequency."""
        return holds(self.low, self.high, truth)


def holds(low: Floats, high: Floats, truth: ArrayLike) -> NDArray[np.bool_]:
    """Whether low <= truth <= high, up to the last bits of a division by n."""
    value = np.asarray(truth, dtype=np.float64)
    return np.asarray((low <= value + 1e-12) & (value <= high + 1e-12))


def interval(
    sums: ArrayLike,
    channel: Channel,
    included: int,
    *,
    level: float = 0.95,
    covers: str = "users",
    simultaneous: bool = False,
    estimator: str = "ht",
) -> Intervals:
    """Intervals of the items' frequencies from the opened sums (last axis: items) of `included` users.

    `simultaneous`: all items of a release hold at once with probability `level` (Sidak where the sums are independent
    given the answers, Bonferroni elsewhere). `estimator="ratio"` conditions on how many users were sampled: narrower,
    for sampling mechanisms only.
    """
    one_of("covers", covers, COVERS)
    one_of("estimator", estimator, ESTIMATORS)
    n = integer("included", included, least=1, most=MOST_USERS)
    points = _points(sums, channel, n)
    alone = channel.independent and covers == "users" and estimator == "ht"
    error = error_per_item(1 - fraction("level", level), points.shape[-1], simultaneous, alone)
    if estimator == "ratio":
        require_sampling(channel)
        bounds, method = _ratio(points, n, error, covers)
    else:
        bounds, method = _invert(points, channel, n, error, covers)
    if simultaneous:
        method += f"; {'Sidak' if alone else 'Bonferroni'} over {points.shape[-1]} items"
    return Intervals(*bounds, float(level), covers, simultaneous, method)


def error_per_item(error: float, items: int, simultaneous: bool, independent: bool) -> float:
    """Probability of a miss that each of `items` intervals may have."""
    if not simultaneous:
        return error
    return -math.expm1(math.log1p(-error) / items) if independent else error / items


def require_sampling(channel: Channel) -> None:
    """Refuse the ratio estimator where sums hold anything but sampled holders."""
    if channel.noise is not None or channel.miss:
        raise ParameterError(
            "the ratio estimator is for sampling mechanisms: with noise or local reports use estimator='ht'"
        )


def one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is not among the allowed ones."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _points(sums: ArrayLike, channel: Channel, included: int) -> Ints:
    """The sums as integers in units of 1 / scale; those that no honest run can open are refused."""
    values, scale = numbers("sums", sums), channel.noise.scale if channel.noise else 1
    points = np.rint(values * scale)
    if values.ndim == 0 or values.size == 0 or not np.all(np.isfinite(values)):
        raise AnswerError("sums must be a non-empty list of finite numbers, one per item")
    if np.abs(points).max() > MOST_USERS or np.any(np.abs(values * scale - points) > 1e-6):
        raise AnswerError("sums must be opened counts as decoded, not estimates or rounded values")
    if channel.noise is None and (points.min() < 0 or points.max() > included):
        raise AnswerError(f"sums must lie between 0 and the {included} users included")
    return points.astype(np.int64)


def _invert(points: Ints, channel: Channel, n: int, error: float, covers: str) -> tuple[Bounds, str]:
    solve, method = _method(channel, n, covers)
    low, high = _each_distinct(lambda rows: solve(rows[:, 0], channel, n, error), points.reshape(-1, 1), n)
    return (low.reshape(points.shape), high.reshape(points.shape)), method


def _each_distinct(solve: Callable[[Ints], Bounds], rows: Ints, n: int) -> Bounds:
    """Solve every distinct row once, as many at a time as fit into memory."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    step = max(1, int(_CELLS / (20 * math.sqrt(n) + 50)))
    parts = [solve(distinct[at : at + step]) for at in range(0, len(distinct), step)]
    low, high = (np.concatenate(side)[inverse.ravel()] for side in zip(*parts, strict=True))
    return low, high


def _method(channel: Channel, n: int, covers: str) -> tuple[Callable[[Ints, Channel, int, float], Bounds], str]:
    """How to invert this channel, and its description."""
    noisy, local = channel.noise is not None, channel.miss > 0
    if noisy and local:
        raise ParameterError("intervals for a local mechanism with added noise are not available")
    if covers == "population":
        if noisy:
            return (
                _noisy_population,
                "exact, from the chance of meeting a holder and the law of the noise: privacy noise and user sampling",
            )
        return _binomial_population, "Clopper-Pearson, exact: privacy noise and user sampling"
    if noisy and channel.hit == 1:
        return _noise_quantiles, "quantiles of the realized noise law, exact: privacy noise alone"
    if noisy:
        return (
            _sampled_and_noisy,
            "exact, from the chance of being sampled and the law of the noise: privacy noise alone",
        )
    if not local:
        return _sampled, "exact, from the chance of being sampled (Blaker's ordering): privacy noise alone"
    if n <= EXACT_LOCAL_USERS:
        return _local, "exact, from the chances of a yes with and without the item: privacy noise alone"
    return _local_score, "score interval with continuity correction, approximate: privacy noise alone"


def _from_tails(below: Callable[[Ints, Ints], Floats], points: Ints, n: int, tail: float) -> tuple[Ints, Ints]:
    """Holders in [0, n] for which neither tail of the sum at the point is `tail` or less; else the boundary."""
    low = first_integer(lambda holders: 1 - below(points - 1, holders) > tail, points.size, n)
    high = first_integer(lambda holders: below(points, holders) <= tail, points.size, n) - 1
    low, high = np.minimum(low, n), np.maximum(high, 0)
    return np.minimum(low, high), np.maximum(low, high)


def _blaker(rows: Callable[[Ints], Rows], points: Ints, low: Ints, high: Ints, error: float) -> tuple[Ints, Ints]:
    """Walk both ends of an equal-tailed interval inwards to the first acceptable number of holders."""

    def walk(edge: Ints, step: int, stop: Ints) -> Ints:
        while np.any(out := (edge != stop) & (rows(edge).acceptability(points) <= error)):
            edge = edge + step * out
        return edge

    low = walk(low, 1, high)
    return low, walk(high, -1, low)


def _sampled(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    p = np.full(points.size, channel.hit)
    ends = _from_tails(lambda x, holders: binomial_below(x, holders, channel.hit), points, n, error / 2)
    low, high = _blaker(lambda holders: binomial_rows(holders, p), points, *ends, error)
    return low / n, high / n


def _local(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    def below(x: Ints, holders: Ints) -> Floats:
        return two_coins_below(x, holders, n, channel.hit, channel.miss)

    low, high = _from_tails(below, points, n, error / 2)
    return low / n, high / n


def _local_score(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    """Holders k with (|s - mean(k)| - 1/2)^2 <= z^2 variance(k): a quadratic, since both are linear in k."""
    z2, gain = normal_quantile(1 - error / 2) ** 2, channel.hit - channel.miss
    base = channel.miss * (1 - channel.miss)
    slope = channel.hit * (1 - channel.hit) - base

    def root(shift: float, sign: int) -> Floats:
        y = points + shift - n * channel.miss
        middle = 2 * gain * y + z2 * slope
        spread = np.sqrt(np.maximum(middle**2 - 4 * gain**2 * (y**2 - z2 * n * base), 0))
        return np.asarray((middle + sign * spread) / (2 * gain**2))

    low, high = np.floor(root(-0.5, -1)), np.ceil(root(0.5, 1))
    return np.clip(low, 0, n) / n, np.clip(high, 0, n) / n


def _noise_quantiles(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise = _noise(channel)
    least, most = (round(each * noise.scale) for each in noise.quantiles(error / 2))
    low, high = -((most - points) // noise.scale), (points - least) // noise.scale
    low, high = np.minimum(low, high), np.maximum(low, high)  # noise below 1/2: no whole number may be plausible
    return np.clip(low, 0, n) / n, np.clip(high, 0, n) / n


def _sampled_and_noisy(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise, p = _noise(channel), np.full(points.size, channel.hit)
    low, high = _from_tails(lambda x, holders: noisy_below(x, holders, p, noise), points, n, error / 2)
    return low / n, high / n


def _noisy_population(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    noise, users = _noise(channel), np.full(points.size, n, dtype=np.int64)

    def below(x: Ints, psi: Floats) -> Floats:
        return noisy_below(x, users, channel.hit * psi, noise)

    low, _ = bracket_fraction(lambda psi: 1 - below(points - 1, psi) > error / 2, points.size)
    _, high = bracket_fraction(lambda psi: below(points, psi) <= error / 2, points.size)
    return low, high


def _noise(channel: Channel) -> NoiseLaw:
    if channel.noise is None:
        raise ParameterError("this channel adds no noise")
    return channel.noise


def _binomial_population(points: Ints, channel: Channel, n: int, error: float) -> Bounds:
    low, high = clopper_pearson(points, n, error / 2)
    gain = channel.hit - channel.miss
    return np.clip((low - channel.miss) / gain, 0, 1), np.clip((high - channel.miss) / gain, 0, 1)


def _ratio(points: Ints, n: int, error: float, covers: str) -> tuple[Bounds, str]:
    """Given the number S of users sampled, s_j is hypergeometric (users) or Bin(S, frequency) (population)."""
    drawn = np.broadcast_to(points.sum(axis=-1, keepdims=True), points.shape)
    if drawn.max() > n:
        raise AnswerError(f"sums add up to more than the {n} users included")
    rows = np.stack([points.ravel(), drawn.ravel()], axis=1)
    if covers == "population":
        low, high = clopper_pearson(rows[:, 0], rows[:, 1], error / 2)
        method = "Clopper-Pearson given the number sampled, exact: privacy noise and user sampling"
    else:
        low, high = _each_distinct(lambda some: _drawn(some[:, 0], some[:, 1], n, error), rows, n)
        method = "exact, given the number of users sampled (Blaker's ordering): privacy noise alone"
    return (low.reshape(points.shape), high.reshape(points.shape)), method


def _drawn(points: Ints, drawn: Ints, n: int, error: float) -> Bounds:
    ends = _from_tails(lambda x, k: hypergeometric_rows(n, k, drawn).below(x), points, n, error / 2)
    low, high = _blaker(lambda k: hypergeometric_rows(n, k, drawn), points, *ends, error)
    return low / n, high / n


def normal_quantile(probability: float) -> float:
    """z with P(Z <= z) = probability for a standard normal Z."""
    from scipy.special import ndtri

    return float(ndtri(probability))
