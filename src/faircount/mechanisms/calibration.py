"""What a mechanism is made for, as a value: the question that every mechanism's `calibrated` answers.

The budget (epsilon, delta) is the total over all releases to the same users, against the insiders. A mechanism that
cannot meet it says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from faircount.accounting.composition import compose
from faircount.accounting.divergence import LossPair

if TYPE_CHECKING:
    from faircount.mechanisms.base import FrequencyMechanism


@dataclass(frozen=True, slots=True)
class Requirements:
    """So many users and items, a total budget over all releases, and whom not to count on."""

    users: int
    items: int
    epsilon: float
    delta: float
    floor: int = 0  # other holders that every item has for sure
    releases: int = 1
    insiders: int = 1
    dropouts: int = 0

    @property
    def crowd(self) -> dict[str, Any]:
        """Who takes part and whom not to count on, as parameters of a mechanism."""
        return {"items": self.items, "users": self.users, "insiders": self.insiders, "dropouts": self.dropouts}

    @property
    def promise(self) -> dict[str, Any]:
        """What a single release promises; of several, each alone promises nothing that was asked for."""
        return {"epsilon": self.epsilon, "delta": self.delta} if self.releases == 1 else {}

    def composed(self, pair: LossPair) -> float:
        """Delta of all releases, in each of which one count moves as in the pair and another one back."""
        return compose([[pair, pair.swapped()]] * self.releases, epsilon=self.epsilon)


@dataclass(frozen=True)
class Calibrated:
    """A mechanism for one release, and the delta of all releases together at the epsilon asked for."""

    mechanism: "FrequencyMechanism"
    total_delta: Callable[[], float]
