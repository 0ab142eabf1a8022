"""How large the error is: at one number of users, at many, and how many users a wanted error needs."""

import math
from collections.abc import Callable, Sequence

from faircount.core.errors import FaircountError
from faircount.planning.calibrate import Family, families
from faircount.planning.question import Question

MOST_USERS = 10**9


def half_width(family: Family, q: Question, users: int) -> float | None:
    """The 95% half-width with another number of users; None where the family refuses it."""
    try:
        other = q.with_users(users)
        return family(other).mechanism.expected_errors(other.staying)[1]
    except FaircountError:
        return None


def curves(q: Question, sizes: Sequence[int]) -> dict[str, list[float | None]]:
    """95% half-width of every mechanism at every number of users: what a plot of error against users shows."""
    return {name: [half_width(family, q, users) for users in sizes] for name, family in families().items()}


def users_needed(family: Family, q: Question, target: float, half: float) -> int | None:
    """The fewest users at which the 95% half-width, now `half`, is at most `target`; None if that is never reached.

    Exact up to 1,000 users, within 0.1% above. Noise falls like 1/n and sampling like 1/sqrt(n): the first guess.
    """
    guess = math.ceil(q.users * (half / target) ** (1 / family(q).mechanism.error_power))

    def enough(users: int) -> bool:
        found = half_width(family, q, users)
        return found is not None and found <= target

    low, high = _bracket(enough, max(2, min(guess, MOST_USERS)))
    if high > MOST_USERS:
        return None
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _bracket(enough: Callable[[int], bool], guess: int) -> tuple[int, int]:
    """Numbers of users around the guess of which the lower one is too small and the higher one enough."""
    step, low, high = 1.02, guess, guess
    if enough(guess):
        while low > 1 and enough(low):
            low, high, step = int(low / step), low, step * step
        return low, high
    while high <= MOST_USERS and not enough(high):
        low, high, step = high, math.ceil(high * step) + 1, step * step
    return low, high
