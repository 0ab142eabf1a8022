"""Common parts of local randomizers: every report is private by itself, whoever sees it.

Most of them are instances of one construction, a window. Of K cells, w neighbouring ones belong to
the user's answer. A report is one cell, and every cell in the user's window is e^epsilon times more
likely than any other:

    GRR    K = N items, w = 1: the item itself
    Duchi  K = 2 ends of [-1, 1], w = 1
    PM     K cells along the line, w about K / (e^(epsilon/2) + 1)

All probabilities are integers over 2^128, rounded so that no ratio of two of them exceeds
e^epsilon. Pure epsilon therefore holds for the program and not only for the formula.
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

from faircount.accounting.composition import (
    Losses,
    compose_randomized_response,
    randomized_response,
)
from faircount.accounting.guarantee import COLLECTOR, Adversary, Relation
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import check_epsilon, check_positive
from faircount.mechanisms.base import Collected, Mechanism, set_fields
from faircount.mechanisms.exact_draws import ONE, PRECISE, flip_coins
from faircount.sharing.field import uniform

# Below this epsilon reports are practically pure noise in a survey of any realistic size.
LEAST_EPSILON = 1e-6

# e^100 exceeds 2^128, so probabilities over 2^128 cannot tell a larger epsilon from this one.
_MAX_EPSILON = 100.0


def exp_rounded_down(epsilon: float) -> Fraction:
    """Return a rational number in [1, e^epsilon], within a relative error of 10^-78.

    Beyond epsilon = 100 the result is that for 100.
    """
    # `exp` rounds to the nearest 80-digit number; the one before it is certainly below e^epsilon.
    power = PRECISE.exp(Decimal(min(epsilon, _MAX_EPSILON)))
    return max(Fraction(1), Fraction(PRECISE.next_minus(power)))


@dataclass(frozen=True)
class Window:
    """The exact distribution of a report over `cells` cells, `width` of which are the user's own.

    Every own cell is e^epsilon times more likely than any other cell.
    """

    cells: int
    width: int
    epsilon: float

    @cached_property
    def threshold(self) -> int:
        """Probability of a report inside the user's window, as an integer over 2^128."""
        # Rounded DOWN, on the safe side: no ratio of two probabilities exceeds e^epsilon.
        inside = self.width * exp_rounded_down(self.epsilon)
        return int(inside / (inside + self.cells - self.width) * ONE)

    @cached_property
    def own(self) -> Fraction:
        """Exact probability of every cell inside the user's window."""
        return Fraction(self.threshold, ONE * self.width)

    @cached_property
    def other(self) -> Fraction:
        """Exact probability of every cell outside the user's window."""
        return Fraction(ONE - self.threshold, ONE * (self.cells - self.width))

    @cached_property
    def excess(self) -> Fraction:
        """By how much an own cell is more likely than another one.

        With probability width * excess a report is uniform over the window, and otherwise it is
        uniform over all cells.
        """
        return self.own - self.other

    def draw(self, starts: Ints, entropy: Entropy) -> Ints:
        """Draw one report per user, whose window begins at its entry of `starts`."""
        # The stream is read in a fixed order that other clients replay: cells inside, cells
        # outside, then the coin that chooses between them.
        inside = starts
        if self.width > 1:
            inside = starts + _draw_below(self.width, starts.size, entropy)
        outside = _draw_below(self.cells - self.width, starts.size, entropy)
        # Cells from the start of the window on move behind it.
        outside += self.width * (outside >= starts)
        return np.where(flip_coins(self.threshold, starts.size, entropy), inside, outside)

    def simulate(self, starts: Ints, rng: np.random.Generator) -> Ints:
        """Sample reports with the same distribution as a mixture of two uniform ones."""
        from_window = rng.random(starts.size) < float(self.width * self.excess)
        inside = starts + rng.integers(self.width, size=starts.size)
        return np.where(from_window, inside, rng.integers(self.cells, size=starts.size))

    @property
    def disjoint_cells(self) -> int:
        """Number of cells of a window outside another one, for two windows that overlap least.

        These two are the worst case, also for answers that are a mixture of windows.
        """
        return min(self.width, self.cells - self.width)

    @property
    def informative_probability(self) -> Fraction:
        """Probability of a cell that lies in exactly one of two such windows.

        Any other cell is equally likely for both and carries no information.
        """
        return self.disjoint_cells * (self.own + self.other)

    def divergence(self, growth: Fraction) -> Fraction:
        """Return the hockey-stick divergence at e^epsilon = growth between two such windows."""
        return self.disjoint_cells * max(Fraction(0), self.own - growth * self.other)


@dataclass(frozen=True, kw_only=True)
class LocalMechanism(Mechanism):
    """A mechanism in which every report satisfies epsilon local differential privacy."""

    collected: ClassVar[Collected] = Collected.REPORTS
    parameter_docs: ClassVar[dict[str, str]] = {"epsilon": "privacy loss of one report"}

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, epsilon=check_positive("epsilon", self.epsilon))
        if self.epsilon < LEAST_EPSILON:
            raise ParameterError(
                f"epsilon must be at least {LEAST_EPSILON:g}: below it reports are pure noise"
            )

    @property
    def default_adversary(self) -> Adversary:
        """The collector, who sees the report itself."""
        return COLLECTOR

    def for_batch(self, copies: int) -> Self:
        """Return the mechanism for one user per survey: reports do not depend on each other."""
        return replace(self, users=copies)

    @property
    def promise(self) -> tuple[float, float]:
        """(epsilon, 0): the guarantee is pure."""
        return self.epsilon, 0.0

    @abstractmethod
    def divergence(self, growth: Fraction) -> Fraction:
        """Return the largest hockey-stick divergence at e^epsilon = growth, exactly.

        It is taken over the reports of any two answers.
        """

    @property
    @abstractmethod
    def informative_probability(self) -> Fraction:
        """Exact probability that a report favours one of the two answers that differ most."""

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the loss of a randomized response that is sometimes uninformative."""
        informed = min(1.0, round_up(self.informative_probability))
        return Losses((randomized_response(self.epsilon, informed),))

    def compose_reports(
        self, reports: int, *, epsilon: float | None = None, delta: float | None = None
    ) -> float:
        """Return the exact delta at `epsilon`, or epsilon at `delta`, of several reports.

        All reports are by the same user. Each is a randomized response of this mechanism's epsilon,
        or carries no information about which of two answers it was.
        """
        informed = round_up(self.informative_probability)
        return compose_randomized_response(
            self.epsilon, reports, epsilon=epsilon, delta=delta, informed=informed
        )

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return delta, exact against the collector and an upper bound against all who see less.

        It is computed from the integers that reports are drawn with.
        """
        if relation is not Relation.REPLACE_ONE:
            raise RefusedError(
                f"{self.name}: whoever collects reports sees who sent one, so it is not hidden "
                f"that a user took part; ask for the {Relation.REPLACE_ONE} guarantee"
            )
        # A smaller e^epsilon gives a larger divergence, so rounding it down is on the safe side.
        return round_up(self.divergence(exp_rounded_down(check_epsilon(epsilon))))


@dataclass(frozen=True, kw_only=True)
class WindowMechanism(LocalMechanism):
    """A local randomizer whose report is one cell, distributed as in a `Window`."""

    @cached_property
    @abstractmethod
    def window(self) -> Window:
        """The exact distribution of a report given the start of the user's window."""

    @property
    def informative_probability(self) -> Fraction:
        """Probability of a cell in exactly one of the two windows that overlap least."""
        return self.window.informative_probability

    def divergence(self, growth: Fraction) -> Fraction:
        """Return the divergence of the two windows that overlap least."""
        return self.window.divergence(growth)

    def check_reports(self, responses: NDArray[Any]) -> Ints:
        """Return the reports, or raise unless they are one cell per user."""
        reports = np.asarray(responses)
        last = self.window.cells - 1
        if reports.ndim != 1 or reports.size == 0 or reports.dtype.kind not in "iu":
            raise AnswerError("reports must be a non-empty list of whole numbers, one per user")
        if int(reports.min()) < 0 or int(reports.max()) > last:
            raise AnswerError(f"reports must be whole numbers from 0 to {last}")
        return reports.astype(np.int64)


def round_up(value: Fraction) -> float:
    """Return the smallest floating-point number that is not below an exact probability."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def log_probabilities(*probabilities: float) -> Floats:
    """Return the logarithms of probabilities; that of 0 is -inf."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.array(probabilities)))


def _draw_below(bound: int, size: int, entropy: Entropy) -> Ints:
    """Draw integers that are exactly uniform over 0..bound-1."""
    # With a single value there is nothing to draw, and the stream is not advanced.
    if bound == 1:
        return np.zeros(size, dtype=np.int64)
    return uniform(bound, size, entropy).astype(np.int64)
