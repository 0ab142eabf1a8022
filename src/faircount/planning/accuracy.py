"""How large the error is: at one number of users, at many, and how many users a wanted error needs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from faircount.accounting.divergence import smallest_whole
from faircount.core.errors import FaircountError
from faircount.planning.calibrate import Family, families
from faircount.planning.question import Question

MOST_USERS = 10**9

ONE_BY_ONE = 1000
"""Up to this many users the number needed is exact; above it is rounded up to three digits."""


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


def users_needed(family: Family, q: Question, target: float) -> int | None:
    """The smallest number of users at which the 95% half-width is at most `target`; None if none was found.

    More users are not always better, because those who may drop out or collude are whole users, and coins are whole
    coins. So every number is tried, beginning where it would not be enough even if nobody dropped out, up to 100 times
    that; above 1,000 every number of three digits.
    """

    def enough(users: int) -> bool:
        found = half_width(family, q, users)
        return found is not None and found <= target

    first = _best_case(family, q, target)
    if first is None:
        return None
    return next((users for users in _round_numbers(first, min(100 * first, MOST_USERS)) if enough(users)), None)


def _best_case(family: Family, q: Question, target: float) -> int | None:
    """A number of users below which none is enough: with one insider and no dropouts, less one count of error.

    Without missing users noise falls with the users, but for one count: that of an odd coin and of a whole quantile.
    """
    best = replace(q, dropout=0.0, colluding=0.0)

    def enough(staying: int) -> bool:
        found = half_width(family, best, staying)
        return found is not None and found * staying - 1 <= target * staying

    staying = smallest_whole(enough, MOST_USERS)
    return None if staying is None else max(1, staying - 1)


def _round_numbers(first: int, last: int) -> Iterator[int]:
    """The numbers from `first` to `last`, all of them up to 1,000 and those of three digits above."""
    users = first
    while users <= last:
        step = 10 ** max(0, len(str(users)) - 3) if users >= ONE_BY_ONE else 1
        users = -(-users // step) * step
        yield users
        users += step
