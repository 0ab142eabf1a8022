"""How large the error is: at one number of users, at many, and how many users a wanted error needs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from faircount.core.errors import FaircountError
from faircount.core.search import smallest_whole
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.question import Question

Kind = type[FrequencyMechanism]

MOST_USERS = 10**9

ONE_BY_ONE = 1000
"""Up to this many users the number needed is exact; above it is rounded up to three digits."""


def half_width(kind: Kind, q: Question, users: int) -> float | None:
    """The 95% half-width with another number of users; None where the mechanism refuses it."""
    try:
        other = replace(q, users=users)
        return kind.calibrated(other.requirements).mechanism.expected_errors(other.staying)[1]
    except FaircountError:
        return None


def curves(q: Question, sizes: Sequence[int]) -> dict[str, list[float | None]]:
    """95% half-width of every mechanism at every number of users: what a plot of error against users shows."""
    return {name: [half_width(kind, q, users) for users in sizes] for name, kind in frequency_mechanisms().items()}


def users_needed(kind: Kind, q: Question, target: float) -> int | None:
    """The smallest number of users at which the 95% half-width is at most `target`; None if none was found.

    More users are not always better, because those who may drop out or collude are whole users, and coins, reports and
    holders are whole ones. So every number is tried but those that would not be enough even if nobody were missing, up
    to 100 times the last of these; above 1,000 every number of three digits.
    """

    users = most = asked = 0
    while users <= most or users < ONE_BY_ONE:
        if users >= 2 * asked:  # where it is hopeless to try one by one, jump
            ahead = smallest_whole(partial(_perhaps, kind, q, target, users), MOST_USERS)
            if ahead is None:
                return None
            asked = max(1, users + ahead)
            most = min(MOST_USERS, max(most, 100 * asked if ahead else 0))
            users = _rounded_up(asked)
        found = half_width(kind, q, users)
        if found is not None and found <= target:
            return users
        users = _rounded_up(users + 1)
    return None


def _perhaps(kind: Kind, q: Question, target: float, users: int, more: int) -> bool:
    """Whether `users` and so many more could be enough, with one insider and no dropouts, less one step of error.

    From where it does not hold, it begins to hold once: without missing users the error falls with the users, but for
    one step of the sum: that of an odd coin, of a whole quantile, of a holder more.
    """
    staying = users + more
    try:
        asked = replace(q, users=staying, dropout=0.0, colluding=0.0)
        mechanism = kind.calibrated(asked.requirements).mechanism
        return mechanism.expected_errors(staying)[1] * staying - mechanism.count_step <= target * staying
    except FaircountError:
        return False


def _rounded_up(users: int) -> int:
    """The next number that is tried: all of them up to 1,000 and those of three digits above."""
    step = 10 ** max(0, len(str(users)) - 3) if users >= ONE_BY_ONE else 1
    return -(-users // step) * step
