"""The kinds of questions, and how an answer becomes bits.

    one      exactly one of several answers; a yes/no question has two
    any      any of several items
    most     at most `most` of several items
    scale    one of several ordered answers, opened as counts, or as the sum of the scores
    number   a number in a range, opened as a sum; with bands, one of them
    table    two questions whose answers are counted together

"Prefer not to say" (`skip`) is one more answer where exactly one is given. Elsewhere it is a cell
of its own, and a constraint ties it to the others: who skips chooses nothing and has the number 0.
So a mean among those who answered has a denominator, and a false report cannot add to the sum
without adding to the number of people.

A question may depend on an earlier one (`only_if`). For everybody else the answer is "does not
apply": one more answer where exactly one is given, and elsewhere the same cell as for skip. Every
report has the bits of all questions, so nobody sees which of them a person was asked.

A canonical answer is the position of an answer (one, scale as counts, bands, table), a sorted tuple
of positions (any, most), a whole number of steps (number, scale as a mean), or None for skip.
"""

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import (
    Block,
    BlockKind,
    Constraint,
    Weights,
    number_bits,
    number_weights,
)

SKIP_LABEL = "prefer not to say"
NOT_APPLICABLE_LABEL = "does not apply"
NO_ANSWER_LABEL = "no answer"

# A finer number would make the law of its noise too long; a larger step loses next to nothing.
MOST_STEPS = 10_000

MOST_TEXT = 1000
"""Characters of a question or an answer."""

# Largest number in a question: estimates are doubles, and sums of them must be, too.
_LARGEST_NUMBER = 10**300

Answer = int | tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Branch:
    """On which answers to an earlier question it depends that a question is asked.

    question: number of the earlier question, from 0
    items:    positions of the answers with which a person is asked, ascending
    """

    question: int
    items: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A question, which turns an answer into bits and says which sums of them are opened.

    text:    what is asked
    skip:    whether "prefer not to say" is offered
    only_if: which answers to an earlier question lead to this one; None asks everybody
    """

    kind: ClassVar[str]
    text: str
    skip: bool = False
    only_if: Branch | None = None

    def __post_init__(self) -> None:
        check_text("text", self.text)
        if not isinstance(self.skip, bool):
            raise ParameterError("skip must be true or false")

    @property
    def may_be_missing(self) -> bool:
        """Whether a person may have no answer: by choice, or because the question is not asked."""
        return self.skip or self.only_if is not None

    @property
    def not_applicable(self) -> Answer:
        """The canonical answer of people whom the question does not concern."""
        return None

    @property
    def missing_label(self) -> str:
        """What people without an answer are called where one cell counts all of them."""
        if self.only_if is None:
            return SKIP_LABEL
        return NO_ANSWER_LABEL if self.skip else NOT_APPLICABLE_LABEL

    @property
    @abstractmethod
    def bits(self) -> int:
        """Number of bits of an answer."""

    @property
    @abstractmethod
    def constraint(self) -> Constraint | None:
        """What the bits of a valid answer satisfy; None where all patterns are answers."""

    @property
    @abstractmethod
    def openings(self) -> tuple[Weights, ...]:
        """The opened cells, each a weighted sum of bits."""

    @property
    @abstractmethod
    def blocks(self) -> tuple[Block, ...]:
        """The cells in their order, as blocks that noise protects together."""

    @abstractmethod
    def check_answer(self, answer: object) -> Answer:
        """Return the canonical answer, or raise; the message never repeats the answer."""

    @abstractmethod
    def encode(self, answer: object) -> tuple[int, ...]:
        """Return the bits of an answer."""

    @property
    def cells(self) -> int:
        """Number of opened cells."""
        return sum(block.cells for block in self.blocks)

    @property
    @abstractmethod
    def moves(self) -> int:
        """How many cells one person can move at once by giving another answer."""

    @property
    @abstractmethod
    def size(self) -> str:
        """The kind with its size, as in "one of 5"."""


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
        return 1 if self.is_binary else len(self.answers)

    @property
    def constraint(self) -> Constraint | None:
        """The bits add up to 1."""
        if self.is_binary:
            return None
        return Constraint(tuple((bit, 1) for bit in range(self.bits)), 1)

    @property
    def openings(self) -> tuple[Weights, ...]:
        """The count of every answer, or of the second of two."""
        return tuple(((bit, 1),) for bit in range(self.bits))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """One block: a replaced answer moves one count up and another one down."""
        if self.is_binary:
            return (Block(BlockKind.ANY, 1),)
        return (Block(BlockKind.ONE, self.bits),)

    @property
    def moves(self) -> int:
        """One count goes up and another one down; of two answers one is counted."""
        return 1 if self.is_binary else 2

    def check_answer(self, answer: object) -> int:
        """Return a position among the answers; None is "prefer not to say"."""
        if answer is None and self.skip:
            return len(self.answers) - 1
        return _check_position(answer, len(self.answers))

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
    """One of several ordered answers with the scores 1, 2, ..., opened as counts."""

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
        for row in self.rows:
            pairs += [f"{row} / {column}" for column in self.columns]
        return tuple(pairs)

    @property
    def size(self) -> str:
        """The kind with rows and columns."""
        return f"table {len(self.rows)} x {len(self.columns)}"


@dataclass(frozen=True, kw_only=True)
class SeveralItems(Question):
    """Several items, of which a person may choose up to `limit`."""

    items: tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "items", check_items("items", self.items))

    @property
    @abstractmethod
    def limit(self) -> int:
        """How many items one person may choose."""

    @property
    def _is_limited(self) -> bool:
        return self.may_be_missing or self.limit < len(self.items)

    @property
    def bits(self) -> int:
        """A bit per item, then that of "prefer not to say", then the slack of the limit."""
        slack = len(number_weights(self.limit)) if self._is_limited else 0
        return self.cells + slack

    @property
    def constraint(self) -> Constraint | None:
        """Chosen items, `limit` for skip, and the slack add up to the limit."""
        if not self._is_limited:
            return None
        weights = [(item, 1) for item in range(len(self.items))]
        if self.may_be_missing:
            weights.append((len(self.items), self.limit))
        # The public value is the limit. Slack of two bits that must add up to 3 would be shorter,
        # and would let a report choose three items where two are allowed.
        slack = number_weights(self.limit)
        weights += [(self.cells + place, weight) for place, weight in enumerate(slack)]
        return Constraint(tuple(weights), self.limit)

    @property
    def openings(self) -> tuple[Weights, ...]:
        """The count of every item, and of "prefer not to say"; never the slack."""
        return tuple(((bit, 1),) for bit in range(self.cells))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The items, and "prefer not to say" by itself."""
        if self.limit < len(self.items):
            items = Block(BlockKind.MOST, len(self.items), self.limit)
        else:
            items = Block(BlockKind.ANY, len(self.items))
        return (items, Block(BlockKind.ANY, 1)) if self.may_be_missing else (items,)

    @property
    def moves(self) -> int:
        """Other items instead of the chosen ones; or from no answer to as many as possible."""
        moved = min(2 * self.limit, len(self.items))
        return max(moved, self.limit + 1) if self.may_be_missing else moved

    def check_answer(self, answer: object) -> tuple[int, ...] | None:
        """Return the sorted positions of the chosen items; None is "prefer not to say"."""
        if answer is None and self.may_be_missing:
            return None
        if isinstance(answer, str | bytes) or not isinstance(answer, Sequence | set | frozenset):
            raise AnswerError("an answer must be a list of positions")
        chosen = sorted({_check_position(position, len(self.items)) for position in answer})
        if len(chosen) < len(answer):
            raise AnswerError("an answer names an item twice")
        if len(chosen) > self.limit:
            raise AnswerError(f"an answer has more than {self.limit} items")
        return tuple(chosen)

    def encode(self, answer: object) -> tuple[int, ...]:
        """Return a bit per item, that of skip, and the slack."""
        chosen = self.check_answer(answer)
        bits = [int(item in (chosen or ())) for item in range(len(self.items))]
        if self.may_be_missing:
            bits.append(int(chosen is None))
        if self._is_limited:
            slack = 0 if chosen is None else self.limit - len(chosen)
            bits += number_bits(slack, self.limit)
        return tuple(bits)


@dataclass(frozen=True, kw_only=True)
class AnyOf(SeveralItems):
    """Any of several items."""

    kind: ClassVar[str] = "any"

    @property
    def limit(self) -> int:
        """All items."""
        return len(self.items)

    @property
    def size(self) -> str:
        """The kind and the number of items."""
        return f"any of {len(self.items)}"


@dataclass(frozen=True, kw_only=True)
class MostOf(SeveralItems):
    """At most so many of several items."""

    kind: ClassVar[str] = "most"
    most: int

    def __post_init__(self) -> None:
        super().__post_init__()
        is_whole = isinstance(self.most, int) and not isinstance(self.most, bool)
        if not is_whole or not 1 <= self.most < len(self.items):
            raise ParameterError(
                f"most must be a whole number from 1 to {len(self.items) - 1}, fewer than the "
                "items; use kind 'any' if all of them may be chosen"
            )

    @property
    def limit(self) -> int:
        """The number given."""
        return self.most

    @property
    def size(self) -> str:
        """The kind, the limit and the number of items."""
        return f"at most {self.most} of {len(self.items)}"


@dataclass(frozen=True, kw_only=True)
class SumQuestion(Question):
    """A whole number of steps from 0 to `largest`, of which only the sum is opened.

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
        return 2 * length + 1 if self.may_be_missing else length

    @property
    def constraint(self) -> Constraint | None:
        """With skip: number and slack are the largest number, or 0 without an answer."""
        if not self.may_be_missing:
            return None
        parts = number_weights(self.largest)
        weights = list(enumerate(parts))
        weights.append((len(parts), -self.largest))
        weights += [(len(parts) + 1 + place, weight) for place, weight in enumerate(parts)]
        return Constraint(tuple(weights), 0)

    @property
    def openings(self) -> tuple[Weights, ...]:
        """The sum of the numbers and, with skip, the number of people who answered."""
        parts = number_weights(self.largest)
        total = tuple(enumerate(parts))
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
        return _check_position(answer, self.largest + 1)

    def encode(self, answer: object) -> tuple[int, ...]:
        """Return the bits of the number, then "answered" and the slack."""
        steps = self.check_answer(answer)
        if not self.may_be_missing:
            return number_bits(steps or 0, self.largest)
        if steps is None:
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
        steps = (self.high - self.low) / self.step
        if steps.denominator != 1:
            raise ParameterError("step must divide the range from low to high")
        if steps > MOST_STEPS:
            raise ParameterError(
                f"a number may have {MOST_STEPS:,} steps from low to high, not {int(steps):,}: "
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
        """Scores are opened as 0, 1, ..., so that a person moves the sum as little as possible."""
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


def check_text(name: str, text: object) -> str:
    """Return a text that people can read, or raise."""
    if not isinstance(text, str) or not text.strip() or len(text) > MOST_TEXT:
        raise ParameterError(f"{name} must be a text of at most {MOST_TEXT} characters")
    # A lone half of a surrogate pair can be neither printed nor written to a file.
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise ParameterError(f"{name} has a character that is not valid Unicode")
    return text


def check_items(name: str, items: Any) -> tuple[str, ...]:
    """Return at least two distinct texts, or raise."""
    if isinstance(items, str) or not isinstance(items, Sequence):
        raise ParameterError(f"{name} must be a list of texts")
    texts = tuple(check_text(f"every entry of {name}", item) for item in items)
    if len(texts) < 2:
        raise ParameterError(f"{name} must be at least 2")
    # Two items that read alike would be counted as one of them.
    read = set(map(read_label, texts))
    if len(read) < len(texts):
        raise ParameterError(f"{name} must differ from each other")
    if SKIP_LABEL in read:
        raise ParameterError(f"{name} cannot contain {SKIP_LABEL!r}: set skip to true instead")
    if NOT_APPLICABLE_LABEL in read:
        raise ParameterError(
            f"{name} cannot contain {NOT_APPLICABLE_LABEL!r}: say with only_if who is asked"
        )
    return texts


def read_label(text: str) -> str:
    """Return a text as answers are read: without the blanks around it and in composed form.

    Tables are read in the same way (see `analysis.cells`).
    """
    return unicodedata.normalize("NFC", text.strip())


def check_exact(name: str, value: object) -> Fraction:
    """Return a decimal number exactly as it is written: 0.1 is a tenth."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise ParameterError(f"{name} must be a number")
    try:
        number = value if isinstance(value, Fraction) else Fraction(repr(value))
    except ValueError:
        raise ParameterError(f"{name} must be a finite number") from None
    if abs(number) > _LARGEST_NUMBER:
        raise ParameterError(f"{name} is too large: numbers up to 1e300 are possible")
    return number


def format_exact(number: Fraction) -> str:
    """Return a number without needless digits."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"


def _check_position(answer: object, size: int) -> int:
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < size:
        raise AnswerError(f"an answer must be a whole number from 0 to {size - 1}")
    return answer
