"""The input and the output of `FrequencyMechanism.calibrate`.

Calibration finds the parameters with which a mechanism spends a privacy budget. The budget
(epsilon, delta) is the total over all releases to the same users, and it holds against the
insiders. A mechanism that cannot meet it raises `RefusedError` with the reason.
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
    """The size of a survey, its total privacy budget, and which users may collude or drop out.

    users: number of users who are asked
    items: number of items
    epsilon, delta: total budget over all releases
    floor: number of other holders that every item is known to have
    releases: number of releases to the same users
    insiders: number of users who may collude
    dropouts: dropout allowance, the number of users who may be missing
    """

    users: int
    items: int
    epsilon: float
    delta: float
    floor: int = 0
    releases: int = 1
    insiders: int = 1
    dropouts: int = 0

    @property
    def population(self) -> dict[str, Any]:
        """Size and composition of the survey, as parameters of a mechanism."""
        return {
            "items": self.items,
            "users": self.users,
            "insiders": self.insiders,
            "dropouts": self.dropouts,
        }

    @property
    def promised_budget(self) -> dict[str, Any]:
        """The budget as parameters of a mechanism, if there is one release; else nothing.

        A single one of several releases promises less than the total, and no budget of its own
        was asked for.
        """
        if self.releases > 1:
            return {}
        return {"epsilon": self.epsilon, "delta": self.delta}

    def compose_shifts(self, pair: LossPair) -> float:
        """Return the delta of all releases, each of which has the privacy loss of `pair`."""
        # Replacing an answer lowers one count and raises another, hence the pair and its mirror
        # image.
        return compose([[pair, pair.swap()]] * self.releases, epsilon=self.epsilon)


@dataclass(frozen=True)
class CalibrationResult:
    """A calibrated mechanism for one release, and the delta of all releases together.

    `total_delta` is computed at the epsilon of the budget, and only on demand: composing many
    releases takes time.
    """

    mechanism: "FrequencyMechanism"
    total_delta: Callable[[], float]
