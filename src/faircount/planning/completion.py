"""How likely a survey comes to an end when each visit of a user is lost with the same probability, independently.

`servers` needs one visit of enough users: exact. `explicit` needs everybody of the set in one attempt; after each
attempt the set is who came, and it gives up below the minimum or after the last attempt: exact. `masked` bears losses
at every visit while everybody keeps enough neighbours: a lower bound. `faircount.testing.completion` plays them.
"""

import math
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.core.validation import integer, real, share_of_users
from faircount.planning.question import Question
from faircount.protocol.survey.parameters import ATTEMPTS, VISITS, Topology
from faircount.protocol.topologies.masked.graph import COLLUDING, DROPOUT, PRIVATE_BITS
from faircount.protocol.topologies.masked.graph import plan as plan_graph

LOSS = 0.05
"""The probability of a missed visit that we plan for, unless told."""

NOTHING = 1e-18
"""Probabilities below this are left out of the recursion."""


def completion(
    topology: Topology, users: int, minimum: int, loss: float, attempts: int = ATTEMPTS, insiders: int = 1
) -> float:
    """Probability that a survey of invited users publishes, each visit being lost with probability `loss`.

    For `masked` a lower bound that counts on one attempt, with the graph planned for so many users and insiders.
    """
    count = integer("users", users, least=2)
    least = integer("minimum", minimum, least=2, most=count)
    if not 0 <= real("loss", loss) < 1:
        raise ParameterError("loss, the probability that a user misses a visit, lies in [0, 1)")
    if topology is Topology.SERVERS:
        return 1 - _below(least, count, 1 - loss)
    if topology is Topology.EXPLICIT:
        return _explicit(count, least, loss, integer("attempts", attempts, least=1))
    if topology is Topology.MASKED:
        return _masked(count, least, loss, integer("insiders", insiders))
    raise ParameterError(f"nothing is known about how often {topology} comes to an end")


def _below(least: int, users: int, comes: float) -> float:
    """P(fewer than `least` of the users come)."""
    from scipy.stats import binom

    return float(binom.cdf(least - 1, users, comes))


def _explicit(users: int, minimum: int, loss: float, attempts: int) -> float:
    """Enrol, share, then attempts: the law of the set's size goes from visit to visit."""
    if attempts * (1 - loss) ** minimum < NOTHING:  # everybody of such a set at once
        return 0.0
    sizes, law = np.array([users]), np.ones(1)
    for _ in range(2):  # enrol and share: who comes is the set
        sizes, law = _after(sizes, law, minimum, loss, missing=0)
    done = 0.0
    for _ in range(attempts):
        done += float(law @ (1 - loss) ** sizes)
        sizes, law = _after(sizes, law, minimum, loss, missing=1)
    return done


def _after(sizes: Ints, law: Floats, minimum: int, loss: float, missing: int) -> tuple[Ints, Floats]:
    """The law of the sizes after a visit that at least `missing` users missed, without sets below the minimum."""
    from scipy.stats import binom

    if not sizes.size:
        return sizes, law
    typical = sizes[0] * (1 - loss) - 10 * math.sqrt(sizes[0] * loss) - 50  # fewer of the fewest come next to never
    came = np.arange(max(minimum, math.floor(typical)), sizes[-1] + 1 - missing)
    chances = np.where(came <= sizes[:, None] - missing, binom.pmf(came, sizes[:, None], 1 - loss), 0.0)
    after = law @ chances
    return came[after > NOTHING], after[after > NOTHING]


def _masked(users: int, minimum: int, loss: float, insiders: int) -> float:
    """One minus what can go wrong: too few sums, a dropped user with fewer than t helpers, a graph that falls apart."""
    comes = 1 - loss
    try:
        k, t = plan_graph(users, max(COLLUDING, insiders / users))
    except ParameterError:  # no graph bears so many insiders
        return 0.0
    few = _below(minimum, users, comes**3)  # enrolled, shared and sent
    lonely = users * max(_below(t, k, comes**3), _below(t, users - 1, comes**4))  # of its neighbours, or of everybody
    apart = 2.0**-PRIVATE_BITS + _below(users - math.floor(DROPOUT * users), users, comes**2)
    return max(0.0, 1 - few - lonely - (apart if k < users - 1 else 0.0))


@dataclass(frozen=True, slots=True)
class Ending:
    """How likely a topology brings a survey to its end, and what there is to know about it."""

    topology: Topology
    chance: float | None  # None where it is not known
    words: str

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        how = {"visits": len(VISITS[self.topology]), "chance": self.chance, "kind": self.kind, "words": self.words}
        return {"topology": str(self.topology), **how}

    @property
    def kind(self) -> str:
        """What the chance is: exact, a lower bound, or not known."""
        return {Topology.MASKED: "at least", Topology.TWO_STAGE: "unknown"}.get(self.topology, "exact")


FRAGILE = (
    "fragile, and not computed: in one attempt every helper of every item must come; one who does not is replaced, and "
    "reporters who then do not come again leave; elect phi + 1 helpers only"
)

TARGET_COMPLETION = 0.99
"""Share of the surveys that should come to an end."""


def endings(users: int, minimum: int, loss: float, insiders: int = 1) -> tuple[Ending, ...]:
    """Which ways for the shares to travel bring a survey of so many users, of whom `minimum` must stay, to its end."""
    known = []
    for topology in (Topology.SERVERS, Topology.MASKED, Topology.EXPLICIT):
        chance = completion(topology, users, minimum, loss, insiders=insiders)
        known.append(Ending(topology, chance, _words(topology, users, minimum, chance)))
    return (*known, Ending(Topology.TWO_STAGE, None, FRAGILE))


def _words(topology: Topology, users: int, minimum: int, chance: float) -> str:
    if topology is Topology.SERVERS:
        return "one visit" if chance >= TARGET_COMPLETION else "too few come: plan with a larger dropout"
    if topology is Topology.MASKED:
        return "neighbours step in" if chance >= TARGET_COMPLETION else "too few come back: plan with a larger dropout"
    if chance >= TARGET_COMPLETION:
        return f"everybody of the set comes back in one of {ATTEMPTS} attempts"
    bearable = tolerable_loss(users, minimum)
    return (
        f"will give up: everybody of a set must come back in one of {ATTEMPTS} attempts; {users:,} users end in "
        f"{TARGET_COMPLETION:.0%} of the surveys only if a visit is missed with probability {bearable:.2g} or less"
    )


def dropout_needed(q: Question, loss: float) -> float | None:
    """The smallest dropout, in whole percent, with which `servers` end often enough; None where nobody could hide."""
    for hundredths in range(100):
        fewest = q.users - share_of_users("dropout", hundredths / 100, q.users)
        if fewest <= max(1, q.insiders):
            return None
        if completion(Topology.SERVERS, q.users, fewest, loss) >= TARGET_COMPLETION:
            return hundredths / 100
    return None


def tolerable_loss(users: int, minimum: int, wanted: float = TARGET_COMPLETION) -> float:
    """The largest loss per visit at which `explicit` still comes to its end with the wanted probability."""
    low, high = 0.0, 1 - (wanted / ATTEMPTS) ** (1 / minimum)  # above, not even one attempt in ten has everybody
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        ends = completion(Topology.EXPLICIT, users, minimum, middle) >= wanted
        low, high = (middle, high) if ends else (low, middle)
    return low
