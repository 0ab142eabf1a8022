"""The public list of items that participants choose from."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import check_integer

MAX_ITEMS = 10_000_000
"""With a longer list a response, one number per item, would be too large to send."""

# Control characters, format characters, lone surrogates, line and paragraph separators.
_CONTROL_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")

# Format characters that words and emoji are spelled with: zero-width non-joiner and joiner.
_JOINERS = "\u200c\u200d"


def escape_controls(label: object) -> str:
    """Return a label as text that is safe to print: control characters appear as escapes.

    Labels come from other people's files. Unescaped, one of them could move the cursor of a
    terminal, hide text or reverse its direction.
    """
    return "".join(_escape_control(character) for character in str(label))


def _escape_control(character: str) -> str:
    if character in _JOINERS or unicodedata.category(character) not in _CONTROL_CATEGORIES:
        return character
    return character.encode("unicode_escape").decode()


def visible_form(text: str) -> str:
    """What a reader perceives of a text: equal for texts that people cannot tell apart.

    Case, spaces, characters that show nothing and different encodings of the same sign are ignored.
    """
    normal = unicodedata.normalize("NFKC", text).casefold()
    shown = (character for character in normal if unicodedata.category(character) != "Cf")
    # Folding can leave a decomposed form. Every kind of space counts as the same one.
    return " ".join(unicodedata.normalize("NFKC", "".join(shown)).split())


ONE_VALUE_PER_CELL = "answers must be single values, one per row: a cell holds a list"


def is_missing(value: object) -> bool:
    """Whether an answer is None, blank text, NaN, NaT or pandas' NA."""
    if value is None or isinstance(value, str):
        return not (value and value.strip())
    try:
        # NaN and NaT are the values that differ from themselves.
        return bool(value != value)
    except TypeError:
        # The truth value of pandas' NA is undefined, whatever it is compared with.
        return True
    except ValueError:
        raise AnswerError(ONE_VALUE_PER_CELL) from None


@dataclass(frozen=True, slots=True)
class Domain:
    """Ordered, distinct labels; position j is the paper's item I_(j+1)."""

    labels: tuple[object, ...]

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ParameterError(
                "at least 2 items are needed: with a single item every answer is known beforehand"
            )
        try:
            distinct = len(set(self.labels))
        except TypeError:
            raise ParameterError(
                "items must be single labels, such as words or numbers, not lists"
            ) from None
        if distinct != len(self.labels):
            raise ParameterError("items must be distinct: remove the repeated labels")

    @classmethod
    def of(cls, items: "int | Sequence[object] | Domain") -> Self:
        """Make a domain from a number of items (labels 0, 1, ...) or from the labels themselves."""
        if isinstance(items, Domain):
            return cls(items.labels)
        if isinstance(items, str):
            # A string is iterable, but its letters are hardly what the caller meant by items.
            raise ParameterError("items must be a number or a list of labels, not one string")
        if isinstance(items, set | frozenset):
            # A set of texts has another order in every process, and the order of the items decides
            # which noise each of them gets: a simulation could not be repeated.
            raise ParameterError(
                "items must be a list, because their order matters and a set has none: give a "
                "list, such as sorted(items)"
            )
        if isinstance(items, Iterable):
            try:
                return cls(tuple(map(_to_python, items)))
            except TypeError:  # a NumPy array without dimensions only looks iterable
                raise ParameterError("items must be a number or a list of labels") from None
        return cls(tuple(range(check_integer("items", items, least=1, most=MAX_ITEMS))))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_numbered(self) -> bool:
        """Whether the items are the numbers 0, 1, ..., as after a number of items was given."""
        return self.labels == tuple(range(len(self)))

    @property
    def numbering(self) -> str:
        """A sentence about the items of a numbered list; empty for other lists."""
        return f"The items are the numbers 0 to {len(self) - 1}. " if self.is_numbered else ""

    def encode(self, answers: Iterable[object]) -> NDArray[np.int64]:
        """Return the positions of the answers in the list of items.

        The error about answers outside the list says where they are but not what they are: it may
        end up in a log, and an answer is what the survey protects.
        """
        if hasattr(answers, "columns") or isinstance(answers, Mapping):
            raise AnswerError(
                "answers are one column of a table: give that column, as in frame['city']"
            )
        if hasattr(answers, "to_pylist"):
            # The scalars of an Arrow column do not compare equal to Python's own values.
            answers = answers.to_pylist()
        if not isinstance(answers, Iterable):
            raise AnswerError("answers must be a list, one item per user")
        if not isinstance(answers, Sequence | np.ndarray):
            answers = list(answers)
        indices = self._positions(answers)
        if indices.ndim != 1 or indices.size == 0:
            raise AnswerError("answers must be a non-empty list, one item per user")
        unknown = np.flatnonzero((indices < 0) | (indices >= len(self)))
        if unknown.size:
            raise AnswerError(self._explain_unknown(answers, unknown))
        return indices

    def _explain_unknown(
        self, answers: Sequence[object] | NDArray[np.generic], unknown: NDArray[np.int64]
    ) -> str:
        """Say how many answers are missing, or else how many are not in the list."""
        missing = [position for position in unknown.tolist() if is_missing(answers[position])]
        if missing:
            return (
                f"{len(missing)} of {len(answers)} users have no answer (first at position "
                f"{missing[0]}): leave them out if it is public who they are, or give an item of "
                "the list in their place"
            )
        return (
            f"{unknown.size} of {len(answers)} answers are not in the item list "
            f"(first at position {unknown[0]}): add the items to the public list, "
            f"or map those answers to one of its items. {self.numbering}"
        ).rstrip()

    def _positions(self, answers: Iterable[object]) -> NDArray[np.int64]:
        """Look up every answer; one that is not in the list gets a position outside of it."""
        is_integer_array = isinstance(answers, np.ndarray) and answers.dtype.kind in "iu"
        if is_integer_array and self.is_numbered:
            # The labels are their own positions: no dictionary is needed for millions of answers.
            return np.asarray(answers).astype(np.int64)
        position_of = {label: position for position, label in enumerate(self.labels)}
        try:
            positions = [position_of.get(answer, -1) for answer in answers]
        except TypeError:
            raise AnswerError("answers must be single labels, one per user") from None
        return np.array(positions, dtype=np.int64)


def _to_python(label: object) -> object:
    """Replace a NumPy scalar by the equal value of Python's own types, which JSON can hold."""
    if isinstance(label, np.number | np.bool_ | np.str_):
        return label.item()
    return label
