"""Searches for the point where a monotone condition changes or a falling function meets a limit.

Every search returns a point at which the condition was evaluated, never one that was interpolated:
a parameter found here has been shown to satisfy its privacy budget.
"""

import math
from collections.abc import Callable

SMALLEST = 5e-324
"""The smallest positive double."""


def first_integer(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer in [low, high] from which on a condition holds.

    The condition is known to hold at `high`, where it is not evaluated.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def last_float(holds: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """Return a number at which a condition holds, at most `precision` below where it ends.

    The condition is known to hold at `low` and not to hold at `high`.
    """
    while high - low > precision:
        middle = (low + high) / 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def smallest_integer(is_enough: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest integer >= 0 that is enough, or None if `most` is not.

    The condition is monotone: what is more than enough is enough.
    """
    if is_enough(0):
        return 0
    # Doubling first: the answer is often far below `most`, and an evaluation near `most` slow.
    low = 0
    high = 1
    while not is_enough(high):
        if high >= most:
            return None
        low = high
        high = min(2 * high, most)
    return first_integer(is_enough, low + 1, high)


def last_integer(holds: Callable[[int], bool], start: int, step: int, least: int, most: int) -> int:
    """Return the last integer in [least, most] where a condition holds, or least - 1.

    Once the condition fails it fails for all larger integers. The search begins at `start`, a
    guess, and moves away from it by growing steps: it needs few evaluations if the guess is good.
    """
    low = least - 1  # the condition holds up to here
    high = most + 1  # and fails from here on
    point = min(max(start, least), most)
    while high - low > 1:
        if holds(point):
            low = point
        else:
            high = point
        if low >= least and high <= most:
            point = (low + high) // 2
            continue
        # Only one side has been evaluated so far: move on towards the other one.
        point = min(low + step, most) if low >= least else max(high - step, least)
        step *= 2
    return low


def smallest_within(
    value_at: Callable[[float], float],
    limit: float,
    low: float,
    high: float,
    precision: float = 1e-12,
) -> float:
    """Return the smallest x in (low, high] with value_at(x) <= limit, rounded up.

    `value_at` falls, from above the limit at `low` to at most the limit at `high`. The result is
    too large by at most `precision` relative to `high`. The ITP method (Oliveira and Takahashi
    2020): false position on the logarithm, truncated and projected so that it never needs more
    than a few evaluations more than bisection.
    """

    def height(value: float) -> float:
        # Deltas span hundreds of powers of ten, so the line is drawn through logarithms. A value
        # of 0 has none; -800 lies below that of every positive double and of a limit of 0.
        log_value = math.log(value) if value > 0 else -800.0
        log_limit = math.log(limit) if limit > 0 else -780.0
        return log_value - log_limit

    above = height(value_at(low))
    below = height(value_at(high))
    start = high - low
    step = 0
    tolerance = max(precision * high, SMALLEST)
    while high - low > tolerance:
        middle = (low + high) / 2
        # After `step` evaluations bisection would have an interval of start / 2^step. A point may
        # be as far from the middle as keeps this one no more than twice as long.
        radius = max(0.0, (start + tolerance) * 2.0 ** (1 - step) - (high - low)) / 2
        # False position. Where both ends have the same height, there is no line to follow.
        guess = middle
        if above > below:
            guess = (above * high - below * low) / (above - below)
        # Truncation: a step towards the middle, so that the end far from the root moves as well.
        nudge = min(0.2 * (high - low) ** 2 / start, abs(middle - guess))
        guess += math.copysign(max(nudge, tolerance / 4), middle - guess)
        # Projection into the radius around the middle.
        point = guess
        if abs(guess - middle) > radius:
            point = middle - math.copysign(radius, middle - guess)
        if not low < point < high:
            point = middle
        if not low < point < high:
            break  # no double lies between the two
        value = value_at(point)
        if value <= limit:
            high = point
            below = height(value)
        else:
            low = point
            above = height(value)
        step += 1
    return high
