"""What given parameters guarantee."""

from dataclasses import dataclass, field
from typing import Any

from faircount.accounting.conditions import Condition, in_english
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.plain import JSON_VERSION
from faircount.planning.request import privacy_warnings

# Digits of every delta that a statement prints, so that one value is not printed as several.
DELTA_DIGITS = 4


@dataclass(frozen=True)
class Statement:
    """What given parameters guarantee.

    Neighbouring data sets differ in one user's answer unless stated otherwise.

    mechanism: its name
    epsilon, delta: the guarantee; None where it cannot be stated
    delta_zero_out: delta where a neighbour lacks the user's response instead
    adversary: who is looking
    condition: what must hold for the claim not to be empty; None where it holds for any data
    releases: how many results about the same users this is for
    paper: what the paper prints for the same parameters; None where it says nothing
    more: further figures of this mechanism
    is_bound: whether delta is an upper bound, and the exact one may be smaller
    remarks: what a reader must know about these figures
    """

    mechanism: str
    epsilon: float | None
    delta: float | None
    delta_zero_out: float | None
    adversary: Adversary
    condition: Condition | None = None
    releases: int = 1
    paper: dict[str, float | None] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    is_bound: bool = False
    remarks: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return hash((self.mechanism, self.epsilon, self.delta, self.adversary, self.releases))

    @property
    def sentence(self) -> str | None:
        """The guarantee in one sentence; None where there is none to state."""
        if self.epsilon is None or self.delta is None:
            return None
        guarantee = Guarantee(
            self.epsilon, self.delta, Relation.REPLACE_ONE, self.adversary, self.condition
        )
        subject = self.mechanism
        if self.releases > 1:
            subject = f"{self.releases} releases of {self.mechanism}"
        return f"{subject}: {guarantee.describe(delta_digits=DELTA_DIGITS)}"

    def __str__(self) -> str:
        return self.sentence or repr(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about these figures, and about so large an epsilon or delta."""
        # Unknown values are not large.
        return (
            *self.remarks,
            *privacy_warnings(self.epsilon or 0.0, self.delta or 0.0, DELTA_DIGITS),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **JSON_VERSION,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "delta_is_bound": self.is_bound,
            "delta_zero_out": self.delta_zero_out,
            "relation": str(Relation.REPLACE_ONE),
            "adversary": str(self.adversary),
            "condition": in_english(self.condition),
            "releases": self.releases,
            "paper": self.paper,
            "notes": list(self.notes),
            **self.more,
        }
