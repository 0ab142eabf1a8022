"""Questions with numbers as answers, of which the sum is published: a number, a scale's mean."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import (
    Block,
    BlockKind,
    Constraint,
    Weights,
    number_bits,
    number_weights,
)
from faircount.core.questions.question import (
    MAX_STEPS,
    Question,
    check_exact,
    check_items,
    check_position,
    format_exact,
)


@dataclass(frozen=True, kw_only=True)
class SumQuestion(Question):
    """A whole number of steps from 0 to `largest`, of which only the sum is published.

    Without skip every pattern of the bits is a number in this range. With skip a bit says whether
    there is an answer, and number + slack = largest * answered ties both together.
    """

    @property
    @abstractmethod
    def largest(self) -> int:
        """The largest number of steps."""

    @property
    @abstractmethod
    def origin(self) -> Fraction:
        """The number that stands for 0 steps."""

    @property
    @abstractmethod
    def unit(self) -> Fraction:
        """The length of a step."""

    @property
    def bits(self) -> int:
        """The bits of the number; with skip those of the slack and one more."""
        length = len(number_weights(self.largest))
        # Weights 1, 2, 4, ... and a last one that fits: no pattern exceeds the largest number.
        return 2 * length + 1 if self.may_be_missing else length

    @property
    def constraint(self) -> Constraint | None:
        """With skip: number and slack are the largest number, or 0 without an answer."""
        if not self.may_be_missing:
            return None
        parts = number_weights(self.largest)
        weights = list(enumerate(parts))
        # number + slack - largest * answered = 0. Without an answer both must be 0, since neither
        # can be negative: a false report cannot add to the sum without counting as a person.
        weights.append((len(parts), -self.largest))
        weights += [(len(parts) + 1 + place, weight) for place, weight in enumerate(parts)]
        return Constraint(tuple(weights), 0)

    @property
    def cell_weights(self) -> tuple[Weights, ...]:
        """The sum of the numbers and, with skip, the number of people who answered."""
        parts = number_weights(self.largest)
        total = tuple(enumerate(parts))
        # The slack is never published: it would tell the sum a second time.
        return (total, ((len(parts), 1),)) if self.may_be_missing else (total,)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The sum, and the number of people who answered."""
        total = Block(BlockKind.NUMBER, 1, self.largest)
        return (total, Block(BlockKind.ANY, 1)) if self.may_be_missing else (total,)

    @property
    def moves(self) -> int:
        """The sum and, from no answer to the largest one, the number of people who answered."""
        return len(self.blocks)

    def check_answer(self, answer: object) -> int | None:
        """Return a whole number of steps; None is "prefer not to say"."""
        if answer is None and self.may_be_missing:
            return None
        return check_position(answer, self.largest + 1)

    def encode(self, answer: object) -> tuple[int, ...]:
        """Return the bits of the number, then "answered" and the slack."""
        steps = self.check_answer(answer)
        if not self.may_be_missing:
            return number_bits(steps or 0, self.largest)
        if steps is None:
            # Number, "answered" and slack, all zero, which the constraint allows.
            return (0,) * self.bits
        number = number_bits(steps, self.largest)
        return (*number, 1, *number_bits(self.largest - steps, self.largest))


@dataclass(frozen=True, kw_only=True)
class Number(SumQuestion):
    """A number from `low` to `high` in steps of `step`, of which the mean is estimated."""

    kind: ClassVar[str] = "number"
    low: Fraction
    high: Fraction
    step: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("low", "high", "step"):
            object.__setattr__(self, name, check_exact(name, getattr(self, name)))
        if self.step <= 0 or self.low >= self.high:
            raise ParameterError("a number needs low < high and a step above 0")
        # Exact fractions, so that 0 to 1 in steps of 0.1 has ten of them.
        steps = (self.high - self.low) / self.step
        if steps.denominator != 1:
            raise ParameterError("step must divide the range from low to high")
        if steps > MAX_STEPS:
            raise ParameterError(
                f"a number may have {MAX_STEPS:,} steps from low to high, not {int(steps):,}: "
                "choose a larger step"
            )

    @property
    def largest(self) -> int:
        """The number of steps from low to high."""
        return int((self.high - self.low) / self.step)

    @property
    def origin(self) -> Fraction:
        """The lowest number."""
        return self.low

    @property
    def unit(self) -> Fraction:
        """The step."""
        return self.step

    def count_steps(self, number: Fraction) -> int:
        """Return the whole number of steps that is nearest to a number, halves upwards."""
        if not self.low <= number <= self.high:
            raise AnswerError("an answer lies outside the range")
        # Exact, and the same in all programs: a float could round a half either way.
        return int((number - self.low) / self.step + Fraction(1, 2))

    @property
    def size(self) -> str:
        """The kind and the range."""
        return f"number {format_exact(self.low)} to {format_exact(self.high)}"


@dataclass(frozen=True, kw_only=True)
class ScaleMean(SumQuestion):
    """One of several ordered answers with the scores 1, 2, ..., of which the mean is estimated."""

    kind: ClassVar[str] = "scale"
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "items", check_items("items", self.items))

    @property
    def largest(self) -> int:
        """Scores add up as 0, 1, ..., so that a person moves the sum as little as possible."""
        return len(self.items) - 1

    @property
    def origin(self) -> Fraction:
        """The score of the first answer."""
        return Fraction(1)

    @property
    def unit(self) -> Fraction:
        """Scores are one apart."""
        return Fraction(1)

    @property
    def size(self) -> str:
        """The kind and the number of points."""
        return f"scale of {len(self.items)} as a mean"
