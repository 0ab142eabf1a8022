"""Confidence intervals of frequencies that several groups estimate together with weights.

Weights as the sizes (`uwa`): the estimate is unbiased whatever each group holds, and so the interval holds: it is the
set of total counts that are plausible for at least one way to divide the holders among the groups (first narrowed down
to the ways that each group's own sum leaves plausible, at a tenth of the error: Berger and Boos 1994). Other weights
suppose that the groups are alike. The interval then is the set of total counts that are plausible when their holders
are a random set of all users, or divided as evenly as whole numbers allow: privacy noise, and the luck of the division,
which weights unlike the sizes do not balance out.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.core.search import last_real, last_whole
from faircount.core.validation import fraction, numbers
from faircount.estimation.intervals import (
    COVERS,
    Intervals,
    error_per_item,
    interval,
    normal_quantile,
    one_of,
)
from faircount.estimation.weighted_law import EXACT_SPLIT_USERS, Laws, Part, WeightedSum

NARROWING = 0.1
"""Share of the error that is spent on narrowing down how the holders are divided among the groups."""

_FINE = 16  # frequencies of a population are searched in steps of 1 / (16 n)

Search = tuple[Callable[[int], Sequence[Laws]], int, int]
"""Laws that the sum may have with a number of holders (or steps of a frequency); the least and most of that number."""


def weighted_interval(
    sums: ArrayLike,
    parts: Sequence[Part],
    *,
    level: float = 0.95,
    covers: str = "users",
    simultaneous: bool = False,
) -> Intervals:
    """Intervals of the items' frequencies among all users from the opened sums, one row per group.

    The weights of the parts must sum to one. `covers="population"`: the users of each group are a random draw from a
    larger population, whose groups have the same shares. `simultaneous`: all items hold at once with `level`.
    """
    one_of("covers", covers, COVERS)
    table, total = _checked(sums, parts), WeightedSum(tuple(parts))
    alone = covers == "users" and _by_size(total) and all(part.channel.independent for part in parts)
    error = error_per_item(1 - fraction("level", level), table.shape[1], simultaneous, alone)
    searches, error, method = _searches(table, total, covers, error)
    estimates = sum(
        part.weight * part.channel.estimate(row, part.users) for part, row in zip(parts, table, strict=True)
    )
    found = np.array(
        [_bounds(*each, total, error) for each in zip(np.asarray(estimates).tolist(), searches, strict=True)]
    )
    if simultaneous:
        method += f"; {'Sidak' if alone else 'Bonferroni'} over {table.shape[1]} items"
    scale = total.users if covers == "users" else _FINE * total.users
    return Intervals(found[:, 0] / scale, found[:, 1] / scale, float(level), covers, simultaneous, method)


def _checked(sums: ArrayLike, parts: Sequence[Part]) -> Floats:
    table = numbers("sums", sums)
    if table.ndim != 2 or table.shape[0] != len(parts) or table.size == 0 or not np.all(np.isfinite(table)):
        raise ParameterError("give one row of finite sums and one part per group")
    if abs(sum(part.weight for part in parts) - 1) > 1e-9:
        raise ParameterError("the weights of the parts must sum to 1")
    return table


def _by_size(total: WeightedSum) -> bool:
    return all(abs(part.weight - part.users / total.users) < 1e-12 for part in total.parts)


def _searches(table: Floats, total: WeightedSum, covers: str, error: float) -> tuple[list[Search], float, str]:
    """What to search for every item, the error left for it, and how it is done in words."""
    items, by_size = table.shape[1], _by_size(total)
    if covers == "population":
        most = _FINE * total.users
        shares = _widest_shares if by_size else _equal_shares
        words = "whatever each group holds" if by_size else "if the groups are alike"
        search = (lambda step: [total.population(shares(total, step / most))]), 0, most
        return [search] * items, error, f"law of the weighted sum, {words}: privacy noise and user sampling"
    if not by_size:
        exact = "exact" if total.users <= EXACT_SPLIT_USERS else "approximate"
        method = f"law of the weighted sum, {exact}, if the groups are alike: privacy noise and unequal weights"
        return [(_alike(total), 0, total.users)] * items, error, method
    low, high, error = _narrowed(table, total, error)
    ways = [_ways(total, low[:, item], high[:, item]) for item in range(items)]
    method = "law of the sum at the least favourable division among the groups: privacy noise alone"
    return ways, error, method


def _narrowed(table: Floats, total: WeightedSum, error: float) -> tuple[Ints, Ints, float]:
    """Plausible numbers of holders, one row per group, and the error left; no narrowing where it would not matter."""
    sizes = np.array([part.users for part in total.parts])
    slopes = [part.per_holder for part in total.parts]
    if max(slopes) - min(slopes) <= 1e-9 * max(map(abs, slopes)):
        everything = np.broadcast_to(sizes[:, None], table.shape)
        return np.zeros_like(everything), everything, error
    level = 1 - NARROWING * error / sizes.size
    each = [interval(row, part.channel, part.users, level=level) for row, part in zip(table, total.parts, strict=True)]
    low, high = (np.rint([getattr(made, side) for made in each] * sizes[:, None]) for side in ("low", "high"))
    return low.astype(np.int64), high.astype(np.int64), (1 - NARROWING) * error


def _ways(total: WeightedSum, low: Ints, high: Ints) -> Search:
    """Laws of the sum at the ways to divide the holders that make it vary most, least, and most within each group."""
    by_variance = np.argsort([-part.per_holder for part in total.parts], kind="stable").tolist()
    orders = [by_variance, by_variance[::-1]]
    orders += [[g, *(h for h in by_variance if h != g)] for g in by_variance]
    return (lambda holders: [total.fixed(_filled(holders, orders, low, high))]), int(low.sum()), int(high.sum())


def _alike(total: WeightedSum) -> Callable[[int], Sequence[Laws]]:
    """Laws of the sum when holders are a random set of the users, or divided as evenly as whole numbers allow."""
    sizes = np.array([part.users for part in total.parts])
    keys = [[part.weight / part.users for part in total.parts], [part.per_holder for part in total.parts]]
    rising = [np.argsort(key, kind="stable").tolist() for key in keys]
    orders = [*rising, *(order[::-1] for order in rising)]

    def laws(holders: int) -> Sequence[Laws]:
        low, left = np.divmod(holders * sizes, total.users)
        return total.random(holders), total.fixed(_filled(holders, orders, low, low + (left > 0)))

    return laws


def _filled(holders: int, orders: Sequence[Sequence[int]], low: Ints, high: Ints) -> Ints:
    """Every group at least at `low`; who is left goes to the groups in each of these orders, up to `high`."""
    splits = np.repeat(low[None, :], len(orders), axis=0)
    for split, order in zip(splits, orders, strict=True):
        left = holders - int(low.sum())
        for g in order:
            more = min(left, int(high[g] - low[g]))
            split[g] += more
            left -= more
    return np.unique(splits, axis=0)


def _equal_shares(total: WeightedSum, theta: float) -> Floats:
    return np.full(len(total.parts), theta)


def _widest_shares(total: WeightedSum, theta: float) -> Floats:
    """Frequencies in the groups, theta together, at which the sum varies most: its variance is concave in each."""
    weights = np.array([part.weight for part in total.parts])
    slopes = np.array([part.per_holder for part in total.parts]) * total.users**2
    low, high = float(slopes.min()) - 1, float(slopes.max()) + 1

    def shares(level: float) -> Floats:  # a group's slope + 1 - 2 share is this level, unless its share is at an end
        return np.clip((slopes + 1 - level) / 2, 0, 1)

    return shares(last_real(lambda level: bool(weights @ shares(level) > theta), low, high, 1e-12 * (high - low)))


def _bounds(estimate: float, search: Search, total: WeightedSum, error: float) -> tuple[int, int]:
    """Least and greatest plausible number; where none is, the boundary that is nearest to plausible."""
    laws, least, most = search
    unit = max(1.0, most / total.users)  # steps per holder
    spread = math.sqrt(total.variance(min(max(estimate, 0.0), 1.0) * total.users))
    middle, half = (x * total.users * unit for x in (estimate, normal_quantile(1 - error / 2) * spread))
    step = max(1, round(half / 8))

    def not_too_low(number: int) -> bool:
        return any(np.any(each.above(estimate) > error / 2) for each in laws(-number))

    def not_too_high(number: int) -> bool:
        return any(np.any(each.below(estimate) > error / 2) for each in laws(number))

    high = max(last_whole(not_too_high, round(middle + half), step, least, most), least)
    low = min(-last_whole(not_too_low, round(half - middle), step, -most, -least), most)
    return min(low, high), max(low, high)
