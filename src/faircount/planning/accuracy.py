"""How large the error is: at one number of users, at many, and how many users a wanted error needs."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from faircount.core.errors import FaircountError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.secret_shared import NoiseMechanism
from faircount.planning.calibrate import FAMILIES, Family
from faircount.planning.question import Question

Z95 = 1.959963984540054
MOST_USERS = 10**9
MANY_COINS = 10**5
"""More coins than this are normal to four digits, and their law is not written out."""


def errors(mechanism: FrequencyMechanism, q: Question) -> tuple[float, float]:
    """Standard error and 95% half-width of an average item among the users who stay, as fractions of them.

    Noise mechanisms: the half-width is the noise's own quantile; the others use the normal approximation.
    """
    if isinstance(mechanism, DPDG):  # a sum of many rounded Gaussians: its law is not needed to know its quantiles
        rounding = q.staying / 12 / mechanism.steps_per_count**2  # that of a uniform law, one grid step wide, per user
        return _normal(mechanism.planned**2 * q.staying / mechanism.h + rounding, q)
    present = _present(mechanism, q)
    if isinstance(mechanism, Decoys) and mechanism.D > MANY_COINS:
        return _normal(present[-1] / 4, q)
    share = np.full(q.items, 1 / q.items)
    channel = mechanism.channel(*present)
    error = math.sqrt(float(channel.variance(share, q.staying).mean()))
    if channel.noise is None:
        return error, Z95 * error
    low, high = channel.noise.quantiles(0.025)
    return error, (high - low) / 2 / q.staying


def _normal(variance: float, q: Question) -> tuple[float, float]:
    """Errors of normal noise with this variance of a count."""
    error = math.sqrt(variance) / q.staying
    return error, Z95 * error


def _present(mechanism: FrequencyMechanism, q: Question) -> tuple[int, ...]:
    """Arguments for `channel` when the expected dropouts have happened; decoys: with the coins of an average crowd."""
    if not isinstance(mechanism, Decoys):
        return (q.staying,)
    fewest, most = mechanism.coins_between(q.staying)
    return q.staying, min(max(round(mechanism.D * q.staying / q.users), fewest), most)


def half_width(family: Family, q: Question, users: int) -> float | None:
    """The 95% half-width with another number of users; None where the family refuses it."""
    try:
        other = q.with_users(users)
        return errors(family(other).mechanism, other)[1]
    except FaircountError:
        return None


def curves(q: Question, sizes: Sequence[int]) -> dict[str, list[float | None]]:
    """95% half-width of every mechanism at every number of users: what a plot of error against users shows."""
    return {name: [half_width(family, q, users) for users in sizes] for name, family in FAMILIES.items()}


def users_needed(family: Family, q: Question, target: float, half: float) -> int | None:
    """The fewest users at which the 95% half-width, now `half`, is at most `target`; None if that is never reached.

    Exact up to 1,000 users, within 0.1% above. Noise falls like 1/n and sampling like 1/sqrt(n): the first guess.
    """
    falls = 1 if isinstance(family(q).mechanism, NoiseMechanism) else 2
    guess = math.ceil(q.users * (half / target) ** falls)

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
