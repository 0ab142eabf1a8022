"""Confidence intervals of frequencies that several groups estimate together with weights.

Weights as the sizes (`uwa`): the estimate is unbiased whatever each group holds, and the interval
is valid whatever it holds: it is the set of total counts that are plausible for at least one way to
divide the holders among the groups (first narrowed down to the ways that each group's own sum
leaves plausible, at a tenth of the error: Berger and Boos 1994). For a population it is likewise
the set of frequencies that are plausible for at least one way in which its members, holders or not,
choose a group; how many of the users drawn are in each group is then random, too.

Other weights assume that the groups are alike. The interval is then the set of total counts that
are plausible when their holders are a random set of all users, or divided as evenly as whole
numbers allow: it covers privacy noise, and the chance of the division, which weights unlike the
sizes do not balance out.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Floats, Ints
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import ParameterError
from faircount.core.search import last_integer
from faircount.core.validation import check_fraction, check_numbers
from faircount.estimation.intervals import (
    COVERS,
    NOISE_AND_DRAW,
    NOISE_ONLY,
    Intervals,
    check_choice,
    error_per_item,
    interval,
    normal_quantile,
)
from faircount.estimation.weighted_distribution import (
    EXACT_SPLIT_USERS,
    Distributions,
    WeightedGroup,
    WeightedSum,
)

NARROWING = 0.1
"""Share of the error spent on narrowing down how the holders are divided among the groups."""

# Frequencies of a population are searched in steps of 1 / (16 n).
_FINE = 16

Numbers = TypeVar("Numbers", Ints, Floats)

Search = tuple[Callable[[int], Sequence[Distributions]], int, int]
"""Distributions that the sum may have with a number of holders (or of steps of a frequency), and
the least and the greatest such number.
"""


def weighted_interval(
    sums: ArrayLike,
    groups: Sequence[WeightedGroup],
    *,
    confidence: float = 0.95,
    covers: str = "users",
    simultaneous: bool = False,
) -> Intervals:
    """Return intervals of the items' frequencies among all users.

    `sums` are the decoded sums, one row per group; the weights of the groups must sum to one.
    `covers="population"`: the users are a random draw from a larger population. With weights by
    size it does not matter on what the choice of a group depends. `simultaneous`: all items are
    covered at once with `confidence`.
    """
    check_choice("covers", covers, COVERS)
    table = _check_sums(sums, groups)
    items = table.shape[1]
    total = WeightedSum(tuple(groups))
    independent = (
        covers == "users"
        and _is_weighted_by_size(total)
        and all(group.channel.independent for group in groups)
    )
    error = error_per_item(
        1 - check_fraction("confidence", confidence), items, simultaneous, independent
    )
    searches, error, method = _choose_searches(table, total, covers, error)
    # The same for all searches: an interval is the set of truths that make this estimate plausible.
    estimates = sum(
        group.weight * group.channel.estimate(row, group.users)
        for group, row in zip(groups, table, strict=True)
    )
    bounds = []
    for estimate, search in zip(np.asarray(estimates).tolist(), searches, strict=True):
        bounds.append(_find_bounds(estimate, search, total, error))
    if simultaneous:
        method += f"; {'Sidak' if independent else 'Bonferroni'} over {items} items"
    scale = total.users if covers == "users" else _FINE * total.users
    low, high = np.array(bounds).T
    return Intervals(low / scale, high / scale, float(confidence), covers, simultaneous, method)


def _check_sums(sums: ArrayLike, groups: Sequence[WeightedGroup]) -> Floats:
    table = check_numbers("sums", sums)
    fits = table.ndim == 2 and table.shape[0] == len(groups) and table.size > 0
    if not fits or not np.all(np.isfinite(table)):
        raise ParameterError("give one row of finite sums per group")
    if abs(sum(group.weight for group in groups) - 1) > 1e-9:
        raise ParameterError("the weights of the groups must sum to 1")
    return table


def _is_weighted_by_size(total: WeightedSum) -> bool:
    return all(abs(group.weight - group.users / total.users) < 1e-12 for group in total.groups)


def _choose_searches(
    table: Floats, total: WeightedSum, covers: str, error: float
) -> tuple[list[Search], float, str]:
    """Return what to search for every item, the error left for it, and a description."""
    items = table.shape[1]
    by_size = _is_weighted_by_size(total)
    if covers == "population":
        words = "whatever each group holds" if by_size else "if the groups are alike"
        method = f"distribution of the weighted sum, valid {words}; {NOISE_AND_DRAW}"
        if by_size:
            return *_search_population(table, total, error), method
        return [_alike_population(total)] * items, error, method
    if not by_size:
        exactness = "exact" if total.users <= EXACT_SPLIT_USERS else "approximate"
        method = (
            f"distribution of the weighted sum, {exactness}, valid if the groups are alike; "
            "covers privacy noise and unequal weights"
        )
        return [(_alike_distributions(total), 0, total.users)] * items, error, method
    low, high, error = _narrow(table, total, error)
    searches = [_worst_splits(total, low[:, item], high[:, item]) for item in range(items)]
    method = (
        f"distribution of the sum at the least favourable division among the groups; {NOISE_ONLY}"
    )
    return searches, error, method


def _alike_population(total: WeightedSum) -> Search:
    """Search the frequency of a population, in steps, that all groups have in common."""
    steps = _FINE * total.users

    def distributions(step: int) -> Sequence[Distributions]:
        return [total.population(np.full(len(total.groups), step / steps))]

    return distributions, 0, steps


def _search_population(
    table: Floats, total: WeightedSum, error: float
) -> tuple[list[Search], float]:
    """Search the frequency of a population whose members choose their groups in any way.

    Returns a search for every item, and the error left for it.
    """
    items = table.shape[1]
    sizes = np.array([group.users for group in total.groups])
    if _are_alike(_holder_slopes(total)) and _are_alike(_coin_variances(total)):
        # No matter which groups people are in: no error is spent on where they are.
        nobody = np.zeros(sizes.size)
        everybody = np.ones(sizes.size)
        return [_drawn_users(total, nobody, everybody, everybody)] * items, error
    spent = NARROWING * error / (2 * sizes.size)
    least, most = clopper_pearson(sizes, np.full(sizes.size, total.users), spent / 2)
    bounds = []
    for row, group in zip(table, total.groups, strict=True):
        bounds.append(
            interval(row, group.channel, group.users, confidence=1 - spent, covers="population")
        )
    searches = []
    for item in range(items):
        low = least * [bound.low[item] for bound in bounds]
        high = most * [bound.high[item] for bound in bounds]
        searches.append(_drawn_users(total, low, high, most))
    return searches, (1 - NARROWING) * error


def _drawn_users(total: WeightedSum, low: Floats, high: Floats, most: Floats) -> Search:
    """Search the frequency of a population, in steps, from which every user is drawn alone.

    `low` and `high` bound the share of the population that holds the item and is in each group,
    `most` bounds the share that is in each group at all.
    """
    steps = _FINE * total.users
    orders = _extreme_orders(total)
    # Users without the item matter only by their coins, most where these are noisiest.
    noisiest_first = _largest_first(_coin_variances(total))

    def distributions(step: int) -> Sequence[Distributions]:
        theta = step / steps
        found = []
        for held in _fill(theta, orders, low, high):
            others = _fill(1 - theta, [noisiest_first], np.zeros_like(most), most - held)[0]
            found.append(total.drawn_users(held, others))
        return found

    return distributions, math.ceil(low.sum() * steps), math.floor(min(1.0, high.sum()) * steps)


def _holder_slopes(total: WeightedSum) -> list[float]:
    """By how much the variance of the sum grows with a holder in each group."""
    return [group.per_holder for group in total.groups]


def _coin_variances(total: WeightedSum) -> list[float]:
    """The variance that a user without the item adds in each group."""
    return [group.step**2 * group.channel.miss * (1 - group.channel.miss) for group in total.groups]


def _largest_first(values: Sequence[float]) -> list[int]:
    """Return the positions of the values, that of the largest first."""
    return [*np.argsort([-value for value in values], kind="stable").tolist()]


def _are_alike(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= 1e-9 * max(map(abs, values))


def _narrow(table: Floats, total: WeightedSum, error: float) -> tuple[Ints, Ints, float]:
    """Return plausible numbers of holders, one row per group, and the error left."""
    sizes = np.array([group.users for group in total.groups])
    if _are_alike(_holder_slopes(total)):
        # The division among the groups does not matter: no error is spent on it.
        everything = np.broadcast_to(sizes[:, None], table.shape)
        return np.zeros_like(everything), everything, error
    confidence = 1 - NARROWING * error / sizes.size
    lows = []
    highs = []
    for row, group in zip(table, total.groups, strict=True):
        bounds = interval(row, group.channel, group.users, confidence=confidence)
        lows.append(bounds.low)
        highs.append(bounds.high)
    # Bounds are whole numbers of holders divided by the size; the product is rounded back.
    low = np.rint(lows * sizes[:, None]).astype(np.int64)
    high = np.rint(highs * sizes[:, None]).astype(np.int64)
    return low, high, (1 - NARROWING) * error


def _worst_splits(total: WeightedSum, low: Ints, high: Ints) -> Search:
    """Search over the divisions of the holders that make the sum vary most and least.

    Besides, the divisions that fill one group first: the widest tail need not be where the variance
    is largest.
    """
    orders = _extreme_orders(total)

    def distributions(holders: int) -> Sequence[Distributions]:
        return [total.given_splits(_fill(holders, orders, low, high))]

    return distributions, int(low.sum()), int(high.sum())


def _extreme_orders(total: WeightedSum) -> list[list[int]]:
    """Orders of filling the groups in which the sum varies most, least, or has one wide tail."""
    # The variance is linear in the numbers of holders, so it is extreme where the groups are filled
    # in the order of their slopes.
    by_variance = _largest_first(_holder_slopes(total))
    orders = [by_variance, by_variance[::-1]]
    for first in by_variance:
        others = [g for g in by_variance if g != first]
        orders.append([first, *others])
    return orders


def _alike_distributions(total: WeightedSum) -> Callable[[int], Sequence[Distributions]]:
    """Return the distributions of the sum for holders that do not depend on the group.

    They are a random set of the users, or divided as evenly as whole numbers allow.
    """
    sizes = np.array([group.users for group in total.groups])
    by_weight = np.argsort([group.weight / group.users for group in total.groups], kind="stable")
    by_variance = np.argsort([group.per_holder for group in total.groups], kind="stable")
    ascending = [by_weight.tolist(), by_variance.tolist()]
    orders = ascending + [order[::-1] for order in ascending]

    def distributions(holders: int) -> Sequence[Distributions]:
        low, rest = np.divmod(holders * sizes, total.users)
        splits = _fill(holders, orders, low, low + (rest > 0))
        return total.random_split(holders), total.given_splits(splits)

    return distributions


def _fill(holders: float, orders: Sequence[Sequence[int]], low: Numbers, high: Numbers) -> Numbers:
    """Divide the holders among the groups, between `low` and `high`, once for every order.

    Every group has at least `low`; the others go to the groups in this order, up to `high`.
    """
    # A few numbers: as lists they take a third of the time that arrays would.
    least = low.tolist()
    rooms = (high - low).tolist()
    beyond_least = holders - low.sum()
    splits = set()
    for order in orders:
        split = least.copy()
        left = beyond_least
        for g in order:
            more = min(left, rooms[g])
            split[g] += more
            left -= more
        splits.add(tuple(split))
    return np.array(sorted(splits), dtype=low.dtype)


def _find_bounds(
    estimate: float, search: Search, total: WeightedSum, error: float
) -> tuple[int, int]:
    """Return the least and the greatest plausible number.

    Where none is plausible, it is the boundary that is nearest to being so.
    """
    distributions, least, most = search
    steps_per_holder = max(1.0, most / total.users)
    # The normal approximation is the first guess, from which the search needs few evaluations: the
    # distribution of a weighted sum is slow to compute.
    spread = math.sqrt(total.variance(min(max(estimate, 0.0), 1.0) * total.users))
    middle = estimate * total.users * steps_per_holder
    half = normal_quantile(1 - error / 2) * spread * total.users * steps_per_holder
    step = max(1, round(half / 8))

    # `last_integer` searches upwards, so the lower bound is searched among negated numbers.
    def is_not_too_low(negated: int) -> bool:
        return any(
            np.any(distribution.above(estimate) > error / 2)
            for distribution in distributions(-negated)
        )

    def is_not_too_high(number: int) -> bool:
        return any(
            np.any(distribution.below(estimate) > error / 2)
            for distribution in distributions(number)
        )

    high = max(last_integer(is_not_too_high, round(middle + half), step, least, most), least)
    low = min(-last_integer(is_not_too_low, round(half - middle), step, -most, -least), most)
    return min(low, high), max(low, high)
