"""Where a condition begins to hold: the one bisection."""

from collections.abc import Callable


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
