"""What all local randomizers share: each report is private by itself, whoever sees it, whatever the others hold.

Most of them are one thing, a window. Of K cells a user's answer owns w neighbouring ones; a report is one cell, and an
owned cell is e^epsilon times likelier than any other:

    GRR    K = N items, w = 1: the item itself
    Duchi  K = 2 ends of [-1, 1], w = 1
    PM     K cells along the line, w about K / (e^(epsilon/2) + 1)

All probabilities are integers over 2^128, rounded so that no ratio of two of them exceeds e^epsilon: pure epsilon holds
for the program, not only for the formula.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses, compose_randomized_response, randomized_response
from faircount.accounting.guarantee import COLLECTOR, Adversary, Relation
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import positive
from faircount.mechanisms.base import Collected, Mechanism, keep
from faircount.mechanisms.exact_draws import ONE, PRECISE, flips
from faircount.sharing.field import uniform

LEAST_EPSILON = 1e-6
_MOST = 100.0  # e^100 > 2^128: a table cannot tell larger ones apart


def exp_below(epsilon: float) -> Fraction:
    """A rational number in [1, e^epsilon], within 10^-78 of the upper end in relative terms up to epsilon = 100."""
    power = PRECISE.exp(Decimal(min(epsilon, _MOST)))  # rounded to nearest: the number before it is surely below
    return max(Fraction(1), Fraction(PRECISE.next_minus(power)))


@dataclass(frozen=True)
class Window:
    """One report over `cells`; each of the user's own `width` cells is e^epsilon times likelier than any other."""

    cells: int
    width: int
    epsilon: float

    @cached_property
    def heads(self) -> int:
        """Probability over 2^128 of a report inside the own window; rounded DOWN, so no ratio exceeds e^epsilon."""
        inside = self.width * exp_below(self.epsilon)
        return int(inside / (inside + self.cells - self.width) * ONE)

    @cached_property
    def own(self) -> Fraction:
        """Probability of each cell inside the own window, exactly."""
        return Fraction(self.heads, ONE * self.width)

    @cached_property
    def other(self) -> Fraction:
        """Probability of each cell outside the own window, exactly."""
        return Fraction(ONE - self.heads, ONE * (self.cells - self.width))

    @cached_property
    def excess(self) -> Fraction:
        """How much likelier an own cell is: a report is uniform over all cells except with probability w * excess."""
        return self.own - self.other

    def draw(self, starts: Ints, entropy: Entropy) -> Ints:
        """One report for each user, whose own window begins at its entry of `starts`."""
        inside = starts + _below(self.width, starts.size, entropy) if self.width > 1 else starts
        outside = _below(self.cells - self.width, starts.size, entropy)
        outside += self.width * (outside >= starts)  # skip the own window
        return np.where(flips(self.heads, starts.size, entropy), inside, outside)

    def simulate(self, starts: Ints, rng: np.random.Generator) -> Ints:
        """Reports with the same law from a floating-point generator, as a mixture of two uniform ones."""
        informed = rng.random(starts.size) < float(self.width * self.excess)
        inside = starts + rng.integers(self.width, size=starts.size)
        return np.where(informed, inside, rng.integers(self.cells, size=starts.size))

    @property
    def apart(self) -> int:
        """Cells of a window that are outside another one, for two windows that overlap least; mixtures do no worse."""
        return min(self.width, self.cells - self.width)

    @property
    def informed(self) -> Fraction:
        """Probability of a cell that is in one of two such windows alone; any other cell fits both alike."""
        return self.apart * (self.own + self.other)

    def divergence(self, growth: Fraction) -> Fraction:
        """Hockey stick at e^epsilon = growth between two such windows."""
        return self.apart * max(Fraction(0), self.own - growth * self.other)


@dataclass(frozen=True, kw_only=True)
class LocalMechanism(Mechanism):
    """A mechanism whose every report satisfies epsilon local differential privacy."""

    collected: ClassVar[Collected] = Collected.REPORTS
    means: ClassVar[dict[str, str]] = {"epsilon": "privacy loss of one report"}

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        keep(self, epsilon=positive("epsilon", self.epsilon))
        if self.epsilon < LEAST_EPSILON:
            raise ParameterError(f"epsilon must be at least {LEAST_EPSILON:g}: below it reports are pure noise")

    @property
    def default_adversary(self) -> Adversary:
        """Whoever sees the report itself."""
        return COLLECTOR

    def side_by_side(self, copies: int) -> Self:
        """Each report is made alone."""
        return replace(self, users=copies)

    @property
    def promise(self) -> tuple[float, float]:
        """(epsilon, 0)."""
        return self.epsilon, 0.0

    @abstractmethod
    def divergence(self, growth: Fraction) -> Fraction:
        """Largest hockey-stick divergence at e^epsilon = growth between the reports of two answers, exactly."""

    @property
    @abstractmethod
    def informed(self) -> Fraction:
        """Probability that a report is not equally likely for both of the two answers that differ most, exactly."""

    def losses(self, adversary: Adversary) -> Losses | None:
        """A randomized response, or nothing that tells one of two answers from the other."""
        return Losses((randomized_response(self.epsilon, min(1.0, rounded_up(self.informed))),))

    def composed(self, reports: int, *, epsilon: float | None = None, delta: float | None = None) -> float:
        """The exact delta at `epsilon`, or epsilon at `delta`, of so many reports of one user.

        Each is a randomized response of this mechanism's epsilon, or says nothing about which of two answers it was.
        """
        return compose_randomized_response(
            self.epsilon, reports, epsilon=epsilon, delta=delta, informed=rounded_up(self.informed)
        )

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Exact against whoever sees the report, from the integers it is drawn with; a bound for all who see less."""
        if relation is not Relation.REPLACE_ONE:
            raise RefusedError(
                f"{self.name}: whoever collects reports sees who sent one, so that a user took part is not hidden; "
                f"ask for the {Relation.REPLACE_ONE} guarantee"
            )
        return rounded_up(self.divergence(exp_below(checked_epsilon(epsilon))))


@dataclass(frozen=True, kw_only=True)
class WindowMechanism(LocalMechanism):
    """A mechanism whose report is one cell of a window's law."""

    @cached_property
    @abstractmethod
    def window(self) -> Window:
        """The exact law of a report given where the own window starts."""

    @property
    def informed(self) -> Fraction:
        """A report inside one of the two windows that overlap least, and not inside the other."""
        return self.window.informed

    def divergence(self, growth: Fraction) -> Fraction:
        """That of the two windows that overlap least."""
        return self.window.divergence(growth)

    def reported_cells(self, responses: NDArray[Any]) -> Ints:
        """The reports, one cell per user; refused if they are anything else."""
        reports, last = np.asarray(responses), self.window.cells - 1
        if reports.ndim != 1 or reports.size == 0 or reports.dtype.kind not in "iu":
            raise AnswerError("reports must be a non-empty list of whole numbers, one per user")
        if int(reports.min()) < 0 or int(reports.max()) > last:
            raise AnswerError(f"reports must be whole numbers from 0 to {last}")
        return reports.astype(np.int64)


def rounded_up(share: Fraction) -> float:
    """The smallest floating-point number that is not below a probability."""
    near = float(share)
    return near if Fraction(near) >= share else math.nextafter(near, math.inf)


def logs(*chances: float) -> Floats:
    """Logarithms of probabilities."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array(chances)))


def _below(bound: int, size: int, entropy: Entropy) -> Ints:
    """Whole numbers uniform over 0..bound-1, exactly."""
    return np.zeros(size, dtype=np.int64) if bound == 1 else uniform(bound, size, entropy).astype(np.int64)
