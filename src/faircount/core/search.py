"""Where a condition begins to hold, or a falling function passes a limit: the one place for searches."""

import math
from collections.abc import Callable

SMALLEST = 5e-324
"""The smallest positive double."""


def first_whole(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number in [low, high] from which on a condition holds; it is known to hold at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def last_real(holds: Callable[[float], bool], low: float, high: float, precision: float) -> float:
    """A number up to which a condition holds, within `precision` below where it ends.

    It is known to hold at `low` and not at `high`. The number returned is one at which it was seen to hold.
    """
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def smallest_whole(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest whole number >= 0 that is enough (monotone), or None if `most` is not."""
    if enough(0):
        return 0
    low, high = 0, 1
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    return first_whole(enough, low + 1, high)


def last_whole(holds: Callable[[int], bool], start: int, step: int, least: int, most: int) -> int:
    """The last whole number in [least, most] where a condition holds that never holds again; else least - 1.

    Begins at `start`, a guess, and goes away from it by growing steps: few evaluations where the guess is good.
    """
    low, high, at = least - 1, most + 1, min(max(start, least), most)
    while high - low > 1:
        low, high = (at, high) if holds(at) else (low, at)
        if low >= least and high <= most:
            at = (low + high) // 2
        else:
            at = min(low + step, most) if low >= least else max(high - step, least)
            step *= 2
    return low


def smallest_within(
    value_at: Callable[[float], float], limit: float, low: float, high: float, precision: float = 1e-12
) -> float:
    """The smallest x of (low, high] with value_at(x) <= limit, rounded up by at most `precision`, relative to `high`.

    `value_at` falls, from above the limit at `low` to below at `high`. The ITP method: false position on the
    logarithm, never more than a few evaluations behind bisection.
    """

    def height(value: float) -> float:
        return (math.log(value) if value > 0 else -800.0) - (math.log(limit) if limit > 0 else -780.0)

    above, below = height(value_at(low)), height(value_at(high))
    start, step = high - low, 0
    tolerance = max(precision * high, SMALLEST)
    while high - low > tolerance:
        middle = (low + high) / 2
        radius = max(0.0, (start + tolerance) * 2.0 ** (1 - step) - (high - low)) / 2
        guess = (above * high - below * low) / (above - below) if above > below else middle  # flat to the last bit
        nudge = min(0.2 * (high - low) ** 2 / start, abs(middle - guess))
        guess += math.copysign(max(nudge, tolerance / 4), middle - guess)
        point = guess if abs(guess - middle) <= radius else middle - math.copysign(radius, middle - guess)
        if not low < point < high:
            point = middle
        if not low < point < high:
            break
        value = value_at(point)
        if value <= limit:
            high, below = point, height(value)
        else:
            low, above = point, height(value)
        step += 1
    return high
