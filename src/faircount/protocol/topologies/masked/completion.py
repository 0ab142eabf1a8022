"""How likely a `masked` survey comes to its end: a lower bound that counts on one attempt.

One minus what can go wrong: too few sums, a dropped user with fewer than t helpers, a graph that falls apart.
"""

import math

from faircount.core.errors import ParameterError
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance, Completion
from faircount.protocol.topologies.masked.graph import COLLUDING, DROPOUT, PRIVATE_BITS, plan


def chance(who: Attendance) -> float:
    """At least this often a survey publishes, with the graph planned for so many users and insiders."""
    users, comes = who.users, 1 - who.loss
    try:
        k, t = plan(users, max(COLLUDING, who.insiders / users))
    except ParameterError:  # no graph bears so many insiders
        return 0.0
    few = _below(who.minimum, users, comes**3)  # enrolled, shared and sent
    lonely = users * max(_below(t, k, comes**3), _below(t, users - 1, comes**4))  # of its neighbours, or of everybody
    apart = 2.0**-PRIVATE_BITS + _below(users - math.floor(DROPOUT * users), users, comes**2)
    return max(0.0, 1 - few - lonely - (apart if k < users - 1 else 0.0))


def _below(least: int, users: int, comes: float) -> float:
    """P(fewer than `least` of the users come)."""
    from scipy.stats import binom

    return float(binom.cdf(least - 1, users, comes))


def _words(_: Attendance, found: float) -> str:
    return "neighbours step in" if found >= TARGET_COMPLETION else "too few come back: plan with a larger dropout"


COMPLETION = Completion("at least", chance, _words)
