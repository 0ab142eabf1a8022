"""What the parties of one whole survey drew: an adversary knows a part of it.

An audit of whole surveys runs a mechanism that writes down what its own methods return. The
mechanism says which part of that an adversary knows (`Mechanism.survey_view`).
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from faircount.core.arrays import Ints, Residues

if TYPE_CHECKING:
    from faircount.mechanisms.proven import Placement


@dataclass
class SurveyLog:
    """The draws of one survey.

    responses: what every client drew, in the order of the users
    noise: what a server added; the key says whether it was the coordinator
    coins: a server's shares of the users' coins, under the same keys
    placement: how the coins were placed, if there are any
    adding: whether the server that added up its shares last was the coordinator
    """

    responses: list[Any] = field(default_factory=list)
    noise: dict[bool, Ints] = field(default_factory=dict)
    coins: dict[bool, Residues] = field(default_factory=dict)
    placement: "Placement | None" = None
    adding: bool = True

    def clear(self) -> None:
        """Forget everything: the next survey begins."""
        self.responses = []
        self.noise = {}
        self.coins = {}
        self.placement = None
        self.adding = True
