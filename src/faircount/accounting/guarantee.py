"""A privacy guarantee as a value: how much, between which data sets, against whom, on which condition."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum

from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import integer, real


class Relation(StrEnum):
    """Which pairs of data sets are neighbours."""

    REPLACE_ONE = "replace-one"  # one user's item is another one; the roster is public
    ZERO_OUT = "zero-out"  # one user's response is the zero vector

    @classmethod
    def of(cls, value: str) -> "Relation":
        """A relation, or its name; a name that is none must not pass for the other one."""
        try:
            return cls(value)
        except ValueError:
            raise ParameterError(f"relation must be one of {', '.join(cls)}") from None


PARTICIPANTS = "participants"


@dataclass(frozen=True, slots=True)
class Adversary:
    """Who is looking. Everybody also reads the published result."""

    who: str
    insiders: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "insiders", integer("insiders", self.insiders))

    def __str__(self) -> str:
        if not self.insiders:
            return self.who
        users = f"{self.insiders} colluding participant{'s' if self.insiders > 1 else ''}"
        return f"{users} reading the result" if self.who == PARTICIPANTS else f"{self.who}, with {users}"


OUTSIDER = Adversary("a reader of the published result")
S1 = Adversary("S1, the coordinator, reading the result")
S2 = Adversary("S2, the aggregator, reading the result")
COLLECTOR = Adversary("anybody who sees the user's own report")


def insiders(count: int) -> Adversary:
    """`count` users who pool what they know; 0 is an outsider."""
    return Adversary(PARTICIPANTS, count) if integer("insiders", count) else OUTSIDER


def known(adversary: object) -> Adversary:
    """An adversary about whom mechanisms can say something; a name made up by hand has no view to account for."""
    if not isinstance(adversary, Adversary):
        raise ParameterError("adversary must be OUTSIDER, S1, S2, COLLECTOR or insiders(number)")
    if adversary not in (OUTSIDER, S1, S2, COLLECTOR, insiders(adversary.insiders)):
        raise RefusedError(
            "guarantees are computed against OUTSIDER, S1, S2, COLLECTOR or insiders(number), alone: what "
            f"{adversary.who!r} sees is not known"
        )
    return adversary


SEEDED = "the randomness was seeded, so that anybody can repeat it"
"""Why the guarantee of a simulation is void."""

GENERATOR = "nobody can tell the output of AES-256-CTR from random bits"
"""What every guarantee supposes: all noise and all shares come from that generator, keyed by the operating system.

A key has 32 bytes, or is made of a seed with 16 (`sharing.keys.SEED_BYTES`)."""

SMALLEST_STATED = 1e-30
"""A delta below this is not stated in digits: what `GENERATOR` supposes is not known to so many."""


def delta_in_words(delta: float, digits: int = 3) -> str:
    """A delta as it is printed: rounded up, and below 1e-30 only said to be below."""
    return f"below {SMALLEST_STATED:g}" if 0 < delta < SMALLEST_STATED else rounded_up(delta, digits)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta) differential privacy, with everything the claim depends on.

    epsilon: privacy loss: the odds between two answers of a user change by at most a factor e^epsilon
    delta: probability with which more than epsilon may be lost
    relation: which data sets are neighbours
    adversary: who is looking; everybody also reads the published result
    condition: what must hold for the claim not to be empty; None where it holds for any data
    void: why it does not hold at all, as after a simulation; None where it does
    """

    epsilon: float
    delta: float
    relation: Relation
    adversary: Adversary
    condition: str | None = None
    void: str | None = None

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon)
        if not 0 <= real("delta", self.delta) <= 1:
            raise ParameterError(f"delta must lie in [0, 1], not {self.delta:g}")
        object.__setattr__(self, "relation", Relation.of(self.relation))
        if not isinstance(self.adversary, Adversary):
            raise ParameterError("adversary must be an Adversary: OUTSIDER, S1, S2, COLLECTOR or insiders(number)")

    def to_dict(self) -> dict[str, float | str | bool | None]:
        """Plain values, for JSON."""
        words = {"relation": str(self.relation), "adversary": str(self.adversary), "condition": self.condition}
        holds = {"holds": self.void is None, "void": self.void, "supposes": GENERATOR}
        return {"epsilon": self.epsilon, "delta": self.delta, **words, **holds}

    def __str__(self) -> str:
        numbers = f"{rounded_up(self.epsilon, 4)}, {delta_in_words(self.delta)}"
        claim = f"({numbers})-DP, {self.relation}, against {self.adversary}"
        needs = "for any data" if self.condition is None else f"provided that {self.condition}"
        return f"{self.reservation}{claim}, {needs}{self.supposition}"

    @property
    def reservation(self) -> str:
        """What stands before a guarantee that does not hold; nothing before others."""
        return "" if self.void is None else f"does not hold, because {self.void}; otherwise it would be "

    @property
    def supposition(self) -> str:
        """What stands after a guarantee whose delta is too small for digits; nothing after others."""
        return f", supposing that {GENERATOR}" if 0 < self.delta < SMALLEST_STATED else ""


def rounded_up(value: float, digits: int) -> str:
    """A number to so many digits, never below it: what is printed must hold as well."""
    shortest = Decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(shortest)):.{digits}g}"
