"""A privacy guarantee as a value.

A guarantee says how much privacy may be lost (epsilon and delta), between which data sets (the
relation), against whom (the adversary), and under which condition. Relation, adversary and
condition are codes with parameters: they can be compared and translated, and the English sentences
are generated from them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from enum import StrEnum
from typing import Any

from faircount.accounting.conditions import Condition, in_english
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import check_epsilon, check_integer, check_real


class Relation(StrEnum):
    """Which pairs of data sets are neighbours."""

    # One user has another item; who takes part is public.
    REPLACE_ONE = "replace-one"
    # The response of one user is the zero vector.
    ZERO_OUT = "zero-out"

    @classmethod
    def of(cls, value: str) -> "Relation":
        """Return a relation given as such or by its name."""
        # An unknown name is an error: code that tests for one relation must not treat a misspelt
        # name as the other, weaker one.
        try:
            return cls(value)
        except ValueError:
            raise ParameterError(f"relation must be one of {', '.join(cls)}") from None


class AdversaryCode(StrEnum):
    """Who the adversary is, which determines what it sees."""

    READER = "reader"
    # A number of colluding participants, given together with the code.
    PARTICIPANTS = "participants"
    S1 = "s1"
    S2 = "s2"
    # One server together with any number of participants.
    S1_AND_PARTICIPANTS = "s1_participants"
    S2_AND_PARTICIPANTS = "s2_participants"
    GROUP_INSIDERS = "group_insiders"
    COLLECTOR = "collector"


_ANY_NUMBER = "together with any number of participants"
_DESCRIPTIONS: Mapping[AdversaryCode, str] = {
    AdversaryCode.READER: "a reader of the published result",
    AdversaryCode.PARTICIPANTS: "participants who read the result",
    AdversaryCode.S1: "the coordinator (S1), who reads the result",
    AdversaryCode.S2: "the aggregator (S2), who reads the result",
    AdversaryCode.S1_AND_PARTICIPANTS: f"the coordinator (S1), who reads the result, {_ANY_NUMBER}",
    AdversaryCode.S2_AND_PARTICIPANTS: f"the aggregator (S2), who reads the result, {_ANY_NUMBER}",
    AdversaryCode.GROUP_INSIDERS: "the insiders of each group, who read the result",
    AdversaryCode.COLLECTOR: "anybody who sees the participant's own report",
}


@dataclass(frozen=True, slots=True)
class Adversary:
    """An adversary: a code and a number of colluding participants. All of them read the result."""

    code: AdversaryCode
    insiders: int = 0

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "code", AdversaryCode(self.code))
        except ValueError:
            names = ", ".join(AdversaryCode)
            raise ParameterError(f"an adversary must be one of {names}") from None
        object.__setattr__(self, "insiders", check_integer("insiders", self.insiders))

    def __str__(self) -> str:
        if not self.insiders:
            return _DESCRIPTIONS[self.code]
        # "Any": the claim holds against all of them, and does not say that somebody has colluded.
        participants = "any single participant"
        knowing = "who reads the result"
        if self.insiders > 1:
            participants = f"any {self.insiders} participants"
            knowing = "who pool what they know and read the result"
        if self.code is AdversaryCode.PARTICIPANTS:
            return f"{participants} {knowing}"
        return f"{_DESCRIPTIONS[self.code]}, together with {participants}"


OUTSIDER = Adversary(AdversaryCode.READER)
S1 = Adversary(AdversaryCode.S1)
S2 = Adversary(AdversaryCode.S2)
COLLECTOR = Adversary(AdversaryCode.COLLECTOR)


def insiders(count: int) -> Adversary:
    """Return `count` users who pool what they know; 0 is an outsider, who only reads the result."""
    return (
        Adversary(AdversaryCode.PARTICIPANTS, count)
        if check_integer("insiders", count)
        else OUTSIDER
    )


def check_adversary(adversary: object) -> Adversary:
    """Return an adversary for whom all mechanisms can compute a guarantee; raise for others."""
    if not isinstance(adversary, Adversary):
        raise ParameterError("adversary must be OUTSIDER, S1, S2, COLLECTOR or insiders(number)")
    # Combinations such as a server with insiders have views that only some mechanisms account for.
    if adversary not in (OUTSIDER, S1, S2, COLLECTOR, insiders(adversary.insiders)):
        raise RefusedError(
            "guarantees are computed against OUTSIDER, S1, S2, COLLECTOR or insiders(number), "
            f"alone: the view of {str(adversary)!r} is not known"
        )
    return adversary


class Void(StrEnum):
    """Why a guarantee does not hold at all."""

    # The result is a simulation.
    SEEDED = "seeded"

    @property
    def sentence(self) -> str:
        """The reason in English."""
        return _VOID_SENTENCES[self]


_VOID_SENTENCES: Mapping[Void, str] = {
    Void.SEEDED: "the randomness was seeded, so that anybody can repeat it",
}

# Every guarantee assumes this, because all noise and all shares come from that generator. Its keys
# come from the operating system: 32 bytes, or 16 bytes of seed (`sharing.keys.SEED_BYTES`).
GENERATOR_ASSUMPTION = "nobody can tell the output of AES-256-CTR from random bits"

# Epsilons above this are not written as a factor, which would have 44 digits.
LARGEST_FACTOR = 100

# Smaller deltas are not stated in digits: how well the generator satisfies the assumption is not
# known to that precision.
SMALLEST_STATED = 1e-30


def format_factor(epsilon: float) -> str:
    """The factor e^epsilon by which odds may change."""
    if epsilon < LARGEST_FACTOR:
        return f"{math.exp(epsilon):.3g}"
    return f"e^{epsilon:.4g}"


def attacker_certainty(epsilon: float) -> float:
    """How certain, in percent, anybody can become which of two answers a participant gave.

    Both seemed equally likely before the result; rounded up to a tenth.
    """
    return math.ceil(1000 / (1 + math.exp(-epsilon))) / 10


def format_delta(delta: float, digits: int = 3) -> str:
    """Format a delta for printing: rounded up, and "below 1e-30" for all smaller ones."""
    if 0 < delta < SMALLEST_STATED:
        return f"below {SMALLEST_STATED:g}"
    return format_rounded_up(delta, digits)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta) differential privacy, with everything that the claim depends on.

    epsilon: privacy loss; the odds between two answers change by at most a factor e^epsilon
    delta: probability with which more than epsilon may be lost
    relation: which data sets are neighbours
    adversary: from whom it protects; every adversary also reads the published result
    condition: what must be true for the guarantee to hold; None if it holds for any data
    void: why it does not hold at all, as after a simulation; None if it holds

    >>> promised = fc.Laplace(items=3, users=100, epsilon=1.0).guarantee()
    >>> str(promised.relation), promised.condition
    ('replace-one', None)
    """

    epsilon: float
    delta: float
    relation: Relation
    adversary: Adversary
    condition: Condition | None = None
    void: Void | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not 0 <= check_real("delta", self.delta) <= 1:
            raise ParameterError(f"delta must lie in [0, 1], not {self.delta:g}")
        object.__setattr__(self, "relation", Relation.of(self.relation))
        if not isinstance(self.adversary, Adversary):
            raise ParameterError(
                "adversary must be an Adversary: OUTSIDER, S1, S2, COLLECTOR or insiders(number)"
            )
        # A sentence instead of a value could be neither compared nor translated.
        if not isinstance(self.condition, Condition | None):
            raise ParameterError("condition must be a Condition (accounting.conditions) or None")
        if self.void is not None:
            object.__setattr__(self, "void", Void(self.void))

    @property
    def codes(self) -> dict[str, Any]:
        """Adversary, condition and void as codes, for a page that translates them."""
        return {
            "against": str(self.adversary.code),
            "insiders": self.adversary.insiders,
            "condition": [] if self.condition is None else self.condition.to_list(),
            "void": None if self.void is None else str(self.void),
        }

    def to_dict(self) -> dict[str, float | str | bool | None]:
        """Return plain values for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": str(self.relation),
            "adversary": str(self.adversary),
            "condition": in_english(self.condition),
            "holds": self.void is None,
            "void": None if self.void is None else self.void.sentence,
            "assumption": GENERATOR_ASSUMPTION,
        }

    def __str__(self) -> str:
        numbers = f"{format_rounded_up(self.epsilon, 4)}, {format_delta(self.delta)}"
        claim = f"({numbers})-DP, {self.relation}, against {self.adversary}"
        needs = "for any data" if self.condition is None else f"provided that {self.condition}"
        if self.void is not None:
            claim = f"does not hold, because {self.void.sentence}; otherwise it would be {claim}"
        return f"{claim}, {needs}{self.generator_suffix}"

    @property
    def sentence(self) -> str:
        """The guarantee in one plain sentence."""
        return self.describe(delta_digits=2)

    def describe(self, delta_digits: int) -> str:
        """The guarantee in one plain sentence, with so many digits of delta."""
        factor = format_factor(self.epsilon)
        exception = ""
        # Pure differential privacy has no exception to mention.
        if self.delta:
            exception = (
                f", except with probability {format_delta(self.delta, delta_digits)} (delta)"
            )
        condition = "whatever the answers are"
        if self.condition is not None:
            condition = f"provided that {self.condition}"
        prefix = ""
        verb = "change"
        if self.void is not None:
            prefix = f"does not hold, because {self.void.sentence}; otherwise, "
            verb = "would change"
        return (
            f"{prefix}against {self.adversary}, the odds between two possible answers of a user "
            f"{verb} by at most a factor of {factor} (epsilon "
            f"{format_rounded_up(self.epsilon, 4)}){exception}, "
            f"{condition}{self.generator_suffix}."
        )

    @property
    def generator_suffix(self) -> str:
        """Text after a guarantee whose delta is too small for digits; empty for all others."""
        if 0 < self.delta < SMALLEST_STATED:
            return f", assuming that {GENERATOR_ASSUMPTION}"
        return ""


def format_rounded_up(value: float, digits: int) -> str:
    """Format a number with this many digits, rounded up: the printed number must hold as well."""
    # `repr` is the shortest decimal that reads back as the same float, so 0.1 is not rounded up.
    shortest = Decimal(repr(float(value)))
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).plus(shortest)):.{digits}g}"
