"""A privacy guarantee as a value: how much, between which data sets, against whom, on which condition."""

from dataclasses import dataclass
from enum import StrEnum

from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import integer, real


class Relation(StrEnum):
    """Which pairs of data sets are neighbours."""

    REPLACE_ONE = "replace-one"  # one user's item is another one; the roster is public
    ZERO_OUT = "zero-out"  # one user's response is the zero vector


@dataclass(frozen=True, slots=True)
class Adversary:
    """Who is looking. Everybody also reads the published result."""

    who: str
    insiders: int = 0

    def __str__(self) -> str:
        if self.insiders:
            plural = "s" if self.insiders > 1 else ""
            return f"{self.insiders} colluding participant{plural} reading the result"
        return self.who


OUTSIDER = Adversary("a reader of the published result")
S1 = Adversary("S1, the coordinator, reading the result")
S2 = Adversary("S2, the aggregator, reading the result")
COLLECTOR = Adversary("anybody who sees the user's own report")


def insiders(count: int) -> Adversary:
    """`count` users who pool what they know; 0 is an outsider."""
    return Adversary("participants", integer("insiders", count, least=1)) if count else OUTSIDER


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta) differential privacy, with everything the claim depends on.

    `condition` is None when the guarantee holds for any data; otherwise the claim is empty where it is not met.
    """

    epsilon: float
    delta: float
    relation: Relation
    adversary: Adversary
    condition: str | None = None

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        if not 0 <= real("delta", self.delta) <= 1:
            raise ValueError(f"delta must lie in [0, 1], not {self.delta}")

    def __str__(self) -> str:
        claim = f"({self.epsilon:.4g}, {self.delta:.3g})-DP, {self.relation}, against {self.adversary}"
        return f"{claim}, {'for any data' if self.condition is None else 'provided that ' + self.condition}"


@dataclass(frozen=True, slots=True)
class PaperBound:
    """A bound as the paper prints it, which can only exist beside the exact value.

    `delta` is None where the theorem's own premises cannot be met.
    """

    theorem: str
    epsilon: float
    delta: float | None
    exact_delta: float

    @property
    def holds(self) -> bool:
        """Whether the printed delta is at least the exact one."""
        return self.delta is not None and self.delta >= self.exact_delta

    def __str__(self) -> str:
        said = "does not apply" if self.delta is None else f"says delta = {self.delta:.3g}"
        verdict = "" if self.delta is None or self.holds else " (the printed bound does not hold: see docs/errata.md)"
        return f"{self.theorem} {said}; exact delta = {self.exact_delta:.3g}{verdict}"
