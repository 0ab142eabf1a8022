"""The error at a given number of users, and the number of users that a target error needs."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from faircount.core.errors import FaircountError
from faircount.core.search import smallest_integer
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.request import PlanRequest

Kind = type[FrequencyMechanism]

# Where no number up to this suffices, the target is out of reach.
MAX_USERS = 10**9

# 6 of 40 users are 15%, although the quotient as a float exceeds 0.15.
ROUNDING = 1 + 1e-12

# Up to this many users the number needed is exact; above it is rounded up to three digits.
ONE_BY_ONE = 1000


def half_width(kind: Kind, request: PlanRequest, users: int) -> float | None:
    """The 95% half-width with another number of users; None where the mechanism refuses it."""
    # A mechanism may refuse a number of users: too few to hide among, or too few coins.
    try:
        other = replace(request, users=users)
        return kind.calibrate(other.requirements).mechanism.expected_errors(other.staying)[1]
    except FaircountError:
        return None


def curves(request: PlanRequest, sizes: Sequence[int]) -> dict[str, list[float | None]]:
    """95% half-width of every mechanism at every number of users, for a plot."""
    found = {}
    for name, kind in frequency_mechanisms().items():
        found[name] = [half_width(kind, request, users) for users in sizes]
    return found


def users_needed(kind: Kind, request: PlanRequest, target: float) -> int | None:
    """The smallest number of users whose 95% half-width is at most `target`, if there is one.

    The error is not monotone in the number of users: shares of users, coins, reports and holders
    are rounded to whole ones. So every number is tried, except those that would not suffice even if
    nobody dropped out, up to 100 times the last of these; above 1,000 only numbers of three digits.
    """
    users = most = asked = 0
    while users <= most or users < ONE_BY_ONE:
        # An optimistic bound skips the numbers that are hopeless; it is asked again at every
        # doubling, because rounding may defeat it for a while.
        if users >= 2 * asked:
            ahead = smallest_integer(partial(_may_suffice, kind, request, target, users), MAX_USERS)
            if ahead is None:
                return None
            asked = max(1, users + ahead)
            # The bound ignores rounding and dropouts. A hundred times as many users leave room for
            # both, and end a search that would never succeed.
            most = min(MAX_USERS, max(most, 100 * asked if ahead else 0))
            users = _next_candidate(asked)
        if _suffices(kind, request, target, users):
            return users
        users = _next_candidate(users + 1)
    return None


def _suffices(kind: Kind, request: PlanRequest, target: float, users: int) -> bool:
    """Whether the 95% half-width of so many users is at most `target`."""
    try:
        other = replace(request, users=users)
        mechanism = kind.calibrate(other.requirements).mechanism
        return mechanism.reaches(target * ROUNDING, other.staying)
    except FaircountError:
        return False


def _may_suffice(kind: Kind, request: PlanRequest, target: float, users: int, more: int) -> bool:
    """Whether `users` and so many more might suffice, with one insider and no dropouts.

    Without dropouts the error falls with the number of users except for one step of the sum, of an
    odd coin, a whole quantile or one more holder. With that step subtracted, the answer changes
    from no to yes only once, as a binary search needs.
    """
    staying = users + more
    try:
        # Fewer insiders and dropouts need less noise, so this never says no where the answer is
        # yes.
        asked = replace(request, users=staying, dropout=0.0, colluding=0.0)
        mechanism = kind.calibrate(asked.requirements).mechanism
        half_width_count = mechanism.expected_errors(staying)[1] * staying
        return half_width_count - mechanism.count_step <= target * staying * ROUNDING
    except FaircountError:
        return False


def _next_candidate(users: int) -> int:
    """This number or the next that is tried: all up to 1,000, and those of three digits above."""
    if users < ONE_BY_ONE:
        return users
    step: int = 10 ** (len(str(users)) - 3)
    return -(-users // step) * step
