"""The public list of items that a question offers."""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import integer

MOST_ITEMS = 10_000_000
"""A longer list of items would not fit into anybody's response."""

_JOINERS = "\u200c\u200d"  # invisible, but part of how words and emoji are written


def shown(label: object) -> str:
    """A label as a terminal or a plot may show it: control characters are escaped, so none of them does anything."""
    return "".join(each.encode("unicode_escape").decode() if _controls(each) else each for each in str(label))


def _controls(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _JOINERS


def _python(label: object) -> object:
    """NumPy's numbers and texts as Python's own, which are equal to them and can be published."""
    return label.item() if isinstance(label, np.number | np.bool_ | np.str_) else label


@dataclass(frozen=True, slots=True)
class Domain:
    """Ordered, distinct labels; position j is the paper's item I_(j+1)."""

    labels: tuple[object, ...]

    def __post_init__(self) -> None:
        if len(self.labels) < 2:
            raise ParameterError("at least 2 items are needed: with a single item every answer is known beforehand")
        try:
            distinct = len(set(self.labels))
        except TypeError:
            raise ParameterError("items must be single labels, such as words or numbers, not lists") from None
        if distinct != len(self.labels):
            raise ParameterError("items must be distinct: remove the repeated labels")

    @classmethod
    def of(cls, items: "int | Sequence[object] | Domain") -> Self:
        """From a number of items (labels 0, 1, ...) or from the labels themselves."""
        if isinstance(items, Domain):
            return cls(items.labels)
        if isinstance(items, str):
            raise ParameterError("items must be a number or a list of labels, not one string")
        if isinstance(items, Iterable):
            try:
                return cls(tuple(map(_python, items)))
            except TypeError:  # NumPy's array without dimensions only looks iterable
                raise ParameterError("items must be a number or a list of labels") from None
        return cls(tuple(range(integer("items", items, least=1, most=MOST_ITEMS))))

    def __len__(self) -> int:
        return len(self.labels)

    def encode(self, answers: Iterable[object]) -> NDArray[np.int64]:
        """Positions of the answers; one outside the list is an error that says where it stands, not what it is."""
        if hasattr(answers, "columns") or isinstance(answers, Mapping):
            raise AnswerError("answers are one column of a table: give that column, as in frame['city']")
        if hasattr(answers, "to_pylist"):  # an Arrow column holds values of its own kind
            answers = answers.to_pylist()
        if isinstance(answers, np.ndarray) and answers.dtype.kind in "iu" and self.labels == tuple(range(len(self))):
            indices = answers.astype(np.int64)
            bad = np.flatnonzero((indices < 0) | (indices >= len(self)))
        else:
            position = {label: j for j, label in enumerate(self.labels)}
            try:
                indices = np.array([position.get(answer, -1) for answer in answers], dtype=np.int64)
            except TypeError:
                raise AnswerError("answers must be single labels, one per user") from None
            bad = np.flatnonzero(indices < 0)
        if indices.ndim != 1 or indices.size == 0:
            raise AnswerError("answers must be a non-empty list, one item per user")
        if bad.size:
            raise AnswerError(
                f"{bad.size} of {indices.size} answers are not in the item list (first at position {bad[0]}): "
                "add the items to the public list, or map those answers to one of its items"
            )
        return indices
