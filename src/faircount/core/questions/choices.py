"""Questions with exactly one answer: a bit for every answer, of which one is set."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import (
    Block,
    BlockKind,
    Constraint,
    Weights,
)
from faircount.core.questions.question import (
    NOT_APPLICABLE_LABEL,
    SKIP_LABEL,
    Question,
    check_exact,
    check_items,
    check_position,
    check_text,
    format_exact,
)


@dataclass(frozen=True, kw_only=True)
class ChoiceQuestion(Question):
    """Exactly one of several answers: a bit each, of which one is set; two answers are one bit."""

    @property
    @abstractmethod
    def choices(self) -> tuple[str, ...]:
        """The answers without "prefer not to say"."""

    @property
    def answers(self) -> tuple[str, ...]:
        """All answers: the choices, then "does not apply", "prefer not to say" last."""
        # In this order for all programs: an answer is sent as its position.
        branch = () if self.only_if is None else (NOT_APPLICABLE_LABEL,)
        return (*self.choices, *branch, *((SKIP_LABEL,) if self.skip else ()))

    @property
    def not_applicable(self) -> int | None:
        """The position after the choices; None where everybody is asked."""
        return None if self.only_if is None else len(self.choices)

    @property
    def is_binary(self) -> bool:
        """Whether there are two answers, of which only the second is counted."""
        return len(self.answers) == 2

    @property
    def bits(self) -> int:
        """A bit per answer, or one bit for two answers."""
        # Of two answers the first follows from the second and the number of people. One bit needs
        # no constraint, and only one cell gets noise.
        return 1 if self.is_binary else len(self.answers)

    @property
    def constraint(self) -> Constraint | None:
        """The bits add up to 1."""
        # Any single bit is a valid answer.
        if self.is_binary:
            return None
        return Constraint(tuple((bit, 1) for bit in range(self.bits)), 1)

    @property
    def cell_weights(self) -> tuple[Weights, ...]:
        """The count of every answer, or of the second of two."""
        return tuple(((bit, 1),) for bit in range(self.bits))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """One block: a replaced answer moves one count up and another one down."""
        # A count that goes up by one while nothing else is published: a cube of one cell.
        if self.is_binary:
            return (Block(BlockKind.ANY, 1),)
        return (Block(BlockKind.ONE, self.bits),)

    @property
    def moves(self) -> int:
        """One count goes up and another one down; of two answers one is counted."""
        return 1 if self.is_binary else 2

    def check_answer(self, answer: object) -> int:
        """Return a position among the answers; None is "prefer not to say"."""
        # Only where it is offered: an empty answer elsewhere is a mistake of the program.
        if answer is None and self.skip:
            return len(self.answers) - 1
        return check_position(answer, len(self.answers))

    def encode(self, answer: object) -> tuple[int, ...]:
        """Return one set bit among the answers, or the bit of the second of two."""
        position = self.check_answer(answer)
        if self.is_binary:
            return (position,)
        return tuple(int(position == bit) for bit in range(self.bits))

    @property
    def size(self) -> str:
        """The kind and the number of answers."""
        return f"{self.kind} of {len(self.answers)}"


@dataclass(frozen=True, kw_only=True)
class OneOf(ChoiceQuestion):
    """One of several items."""

    kind: ClassVar[str] = "one"
    items: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "items", check_items("items", self.items))

    @property
    def choices(self) -> tuple[str, ...]:
        """The items."""
        return self.items


@dataclass(frozen=True, kw_only=True)
class YesNo(OneOf):
    """Two answers, of which the second is counted."""

    kind: ClassVar[str] = "yes"
    items: tuple[str, ...] = ("no", "yes")

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.items) != 2:
            raise ParameterError("items of a yes/no question are two: with more, use kind 'one'")

    @property
    def size(self) -> str:
        """The kind in words."""
        return "yes/no or skip" if self.skip else "yes/no"


@dataclass(frozen=True, kw_only=True)
class ScaleCounts(OneOf):
    """One of several ordered answers with the scores 1, 2, ..., published as counts."""

    kind: ClassVar[str] = "scale"


@dataclass(frozen=True, kw_only=True)
class Bands(ChoiceQuestion):
    """A number that is asked as one of several bands; a band includes its lower edge.

    edges: ascending; the last band includes the last edge, too
    """

    kind: ClassVar[str] = "number"
    edges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = tuple(check_exact("bands", edge) for edge in self.edges)
        # Two bands at least: a single one would be answered by everybody alike.
        if len(edges) < 3 or any(low >= high for low, high in pairwise(edges)):
            raise ParameterError(
                "bands are at least 3 edges in ascending order, as in [0, 10, 20, 50]"
            )
        object.__setattr__(self, "edges", edges)

    @property
    def choices(self) -> tuple[str, ...]:
        """The bands in words."""
        named = [
            f"{format_exact(low)} to below {format_exact(high)}"
            for low, high in pairwise(self.edges)
        ]
        named[-1] = f"{format_exact(self.edges[-2])} to {format_exact(self.edges[-1])}"
        return tuple(named)

    def find_band(self, number: Fraction) -> int:
        """Return the position of the band that holds a number."""
        if not self.edges[0] <= number <= self.edges[-1]:
            raise AnswerError("an answer lies outside the bands")
        # The last edge belongs to the last band, as its name says.
        inner = self.edges[1:-1]
        return sum(edge <= number for edge in inner)


@dataclass(frozen=True, kw_only=True)
class Table(ChoiceQuestion):
    """Two questions whose answers are counted together, in a table of rows and columns.

    text:         what is asked for the rows
    columns_text: what is asked for the columns
    """

    kind: ClassVar[str] = "table"
    columns_text: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_text("text", self.columns_text)
        # The cells are all pairs; one more for a missing half would belong to no row and no column.
        if self.may_be_missing:
            raise ParameterError(
                "a table has no skip and no only_if: name such an answer among its rows or columns"
            )
        object.__setattr__(self, "rows", check_items("rows", self.rows))
        object.__setattr__(self, "columns", check_items("columns", self.columns))

    @property
    def choices(self) -> tuple[str, ...]:
        """All pairs of a row and a column, row by row."""
        pairs = []
        # Row by row, as positions are read back where answers are asked for.
        for row in self.rows:
            pairs += [f"{row} / {column}" for column in self.columns]
        return tuple(pairs)

    @property
    def size(self) -> str:
        """The kind with rows and columns."""
        return f"table {len(self.rows)} x {len(self.columns)}"
