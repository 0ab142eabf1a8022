"""How likely an `explicit` survey comes to its end: exact.

It needs everybody of the set in one attempt; after each attempt the set is who came, and it gives up below the minimum
or after the last attempt. So the law of the set's size goes from visit to visit.
"""

import math
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.search import last_real
from faircount.protocol.survey.topology import TARGET_COMPLETION, Attendance, Completion

NEGLIGIBLE = 1e-18
"""Probabilities below this are left out of the recursion."""


def chance(who: Attendance) -> float:
    """Probability that a survey publishes."""
    if who.attempts * (1 - who.loss) ** who.minimum < NEGLIGIBLE:  # everybody of such a set at once
        return 0.0
    sizes, law = np.array([who.users]), np.ones(1)
    for _ in range(2):  # enrol and share: who comes is the set
        sizes, law = _after(sizes, law, who, missing=0)
    done = 0.0
    for _ in range(who.attempts):
        done += float(law @ (1 - who.loss) ** sizes)
        sizes, law = _after(sizes, law, who, missing=1)
    return done


def _after(sizes: Ints, law: Floats, who: Attendance, missing: int) -> tuple[Ints, Floats]:
    """The law of the sizes after a visit that at least `missing` users missed, without sets below the minimum."""
    from scipy.stats import binom

    if not sizes.size:
        return sizes, law
    # fewer of the fewest come next to never
    typical = sizes[0] * (1 - who.loss) - 10 * math.sqrt(sizes[0] * who.loss) - 50
    came = np.arange(max(who.minimum, math.floor(typical)), sizes[-1] + 1 - missing)
    chances = np.where(came <= sizes[:, None] - missing, binom.pmf(came, sizes[:, None], 1 - who.loss), 0.0)
    after = law @ chances
    return came[after > NEGLIGIBLE], after[after > NEGLIGIBLE]


def tolerable_loss(who: Attendance, wanted: float = TARGET_COMPLETION) -> float:
    """The largest loss per visit at which a survey still comes to its end with the wanted probability."""
    high = 1 - (wanted / who.attempts) ** (1 / who.minimum)  # above, not even one attempt has everybody
    return last_real(lambda loss: chance(replace(who, loss=loss)) >= wanted, 0.0, high, 1e-5 * high)


def _words(who: Attendance, found: float) -> str:
    if found >= TARGET_COMPLETION:
        return f"everybody of the set comes back in one of {who.attempts} attempts"
    return (
        f"will give up: everybody of a set must come back in one of {who.attempts} attempts; {who.users:,} users end "
        f"in {TARGET_COMPLETION:.0%} of the surveys only if a visit is missed with probability "
        f"{tolerable_loss(who):.2g} or less"
    )


COMPLETION = Completion("exact", chance, _words)
