"""How likely a `masked` survey completes: a lower bound that counts on one attempt.

One minus the probabilities of what can go wrong: too few sums, a dropped member with fewer than t
neighbours to recover its key, a graph that falls apart.
"""

import math

from faircount.core.errors import ParameterError
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance
from faircount.protocol.topologies.masked.graph import COLLUDING, DROPOUT, PRIVATE_BITS, plan_graph


def chance(who: Attendance) -> float:
    """At least this often a survey publishes, with the graph planned for so many users."""
    users = who.users
    comes = 1 - who.loss
    try:
        k, t = plan_graph(users, max(COLLUDING, who.insiders / users))
    except ParameterError:
        # No graph tolerates so many insiders.
        return 0.0
    # A sum takes three visits: enrol, share, send. Unmasking is a fourth.
    too_few = _below(who.minimum, users, comes**3)
    # Fewer than t are left to recover a key: of a member's k neighbours, or of everybody.
    unrecoverable = users * max(_below(t, k, comes**3), _below(t, users - 1, comes**4))
    disconnected = 0.0
    if k < users - 1:
        beyond_plan = _below(users - math.floor(DROPOUT * users), users, comes**2)
        disconnected = 2.0**-PRIVATE_BITS + beyond_plan
    return max(0.0, 1 - too_few - unrecoverable - disconnected)


def _below(least: int, users: int, comes: float) -> float:
    """P(fewer than `least` of the users come)."""
    from scipy.stats import binom

    return float(binom.cdf(least - 1, users, comes))


def advice(_: Attendance, found: float) -> str:
    """What to tell people about this chance."""
    if found >= TARGET_COMPLETION:
        return "neighbours step in"
    return "too few come back: plan with a larger dropout"
