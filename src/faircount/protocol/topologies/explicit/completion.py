"""How likely an `explicit` survey completes: exact.

An attempt needs everybody of its set. After a failed one the set is whoever came, and the survey
ends without a result below the minimum or after the last attempt. So the distribution of the set's
size is computed from visit to visit.
"""

import math
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.search import last_float
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance

NEGLIGIBLE = 1e-18
"""Probabilities below this are left out of the recursion."""


def chance(who: Attendance) -> float:
    """Probability that a survey publishes a result."""
    # No set is smaller than the minimum, so this bounds the chance of all attempts together.
    if who.attempts * (1 - who.loss) ** who.minimum < NEGLIGIBLE:
        return 0.0
    sizes = np.array([who.users])
    probabilities = np.ones(1)
    for _ in range(2):  # the visits to enrol and to share: whoever comes is in the set
        sizes, probabilities = _next_sizes(sizes, probabilities, who, missing=0)
    completed = 0.0
    for _ in range(who.attempts):
        completed += float(probabilities @ (1 - who.loss) ** sizes)
        sizes, probabilities = _next_sizes(sizes, probabilities, who, missing=1)
    return completed


def _next_sizes(
    sizes: Ints, probabilities: Floats, who: Attendance, missing: int
) -> tuple[Ints, Floats]:
    """The distribution of the set's size after a visit that at least `missing` members missed.

    Sizes below the minimum are left out: there the survey ends.
    """
    from scipy.stats import binom

    if not sizes.size:
        return sizes, probabilities
    # Ten standard deviations and 50 below the mean of the smallest set: fewer have no weight.
    low = sizes[0] * (1 - who.loss) - 10 * math.sqrt(sizes[0] * who.loss) - 50
    came = np.arange(max(who.minimum, math.floor(low)), sizes[-1] + 1 - missing)
    # From a given size the number that comes is binomial, and at least `missing` do not come.
    chances = np.where(
        came <= sizes[:, None] - missing, binom.pmf(came, sizes[:, None], 1 - who.loss), 0.0
    )
    after = probabilities @ chances
    return came[after > NEGLIGIBLE], after[after > NEGLIGIBLE]


def tolerable_loss(who: Attendance) -> float:
    """The largest loss per visit at which a survey completes with the wanted probability."""
    # Above this loss not even the smallest set is complete often enough.
    high = 1 - (TARGET_COMPLETION / who.attempts) ** (1 / who.minimum)

    def completes(loss: float) -> bool:
        return chance(replace(who, loss=loss)) >= TARGET_COMPLETION

    return last_float(completes, 0.0, high, 1e-5 * high)


def advice(who: Attendance, found: float) -> str:
    """What to tell people about this chance."""
    if found >= TARGET_COMPLETION:
        return f"all who take part come back in one of {who.attempts} attempts"
    return (
        f"will fail: all who take part must come back in one of {who.attempts} attempts; with "
        f"{who.users:,} users {TARGET_COMPLETION:.0%} of the surveys complete only if a visit is "
        f"missed with probability {tolerable_loss(who):.2g} or less"
    )
