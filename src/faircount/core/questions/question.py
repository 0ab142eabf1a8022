"""The kinds of questions, and how an answer becomes bits.

    one      exactly one of several answers; a yes/no question has two
    any      any of several items
    most     at most `most` of several items
    scale    one of several ordered answers, published as counts, or as the sum of the scores
    number   a number in a range, published as a sum; with bands, one of them
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
from typing import Any, ClassVar

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import (
    Block,
    Constraint,
    Weights,
)

SKIP_LABEL = "prefer not to say"
NOT_APPLICABLE_LABEL = "does not apply"
NO_ANSWER_LABEL = "no answer"

# A finer number would make the distribution of its noise too long; a larger step loses next to
# nothing.
MAX_STEPS = 10_000

MAX_TEXT = 1000
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
    """A question, which turns an answer into bits and says which sums of them are published.

    text:    what is asked
    skip:    whether "prefer not to say" is offered
    only_if: which answers to an earlier question lead to this one; None asks everybody
    """

    kind: ClassVar[str]
    text: str
    skip: bool = False
    only_if: Branch | None = None

    def __post_init__(self) -> None:
        # Checked by every reader of parameters, and not only by whoever writes them.
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
    def cell_weights(self) -> tuple[Weights, ...]:
        """The cells, each a weighted sum of bits."""

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
        """Number of cells."""
        return sum(block.cells for block in self.blocks)

    @property
    @abstractmethod
    def moves(self) -> int:
        """How many cells one person can move at once by giving another answer."""

    @property
    @abstractmethod
    def size(self) -> str:
        """The kind with its size, as in "one of 5"."""


def check_text(name: str, text: object) -> str:
    """Return a text that people can read, or raise."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_TEXT:
        raise ParameterError(f"{name} must be a text of at most {MAX_TEXT} characters")
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
        # By the shortest decimal text of a float, which is what its author wrote.
        number = value if isinstance(value, Fraction) else Fraction(repr(value))
    except ValueError:
        raise ParameterError(f"{name} must be a finite number") from None
    if abs(number) > _LARGEST_NUMBER:
        raise ParameterError(f"{name} is too large: numbers up to 1e300 are possible")
    return number


def format_exact(number: Fraction) -> str:
    """Return a number without needless digits."""
    return str(number.numerator) if number.denominator == 1 else f"{float(number):.15g}"


def check_position(answer: object, size: int) -> int:
    """Return the position of an answer, or raise."""
    if isinstance(answer, bool) or not isinstance(answer, int) or not 0 <= answer < size:
        raise AnswerError(f"an answer must be a whole number from 0 to {size - 1}")
    return answer
