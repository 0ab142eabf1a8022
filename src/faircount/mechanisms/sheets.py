"""What mechanisms have in common that count the answers to a whole questionnaire."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.errors import CorruptSumError, ParameterError
from faircount.core.questions import Block, Question, QuestionGroup, Questionnaire, Sheet
from faircount.core.questions.blocks import Weights
from faircount.core.questions.question import Answer
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.mechanisms.count_distribution import NoiseDistribution
from faircount.mechanisms.secret_shared import VectorMechanism
from faircount.sharing.field import to_signed


class SheetNoise(Protocol):
    """The noise in the cells of a questionnaire: all of them at once, or every cell by itself."""

    @property
    def questionnaire(self) -> Questionnaire:
        """The questions that the noise was made for."""

    @property
    def groups(self) -> tuple[QuestionGroup, ...]:
        """Shares of epsilon, and the questions that have them."""

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question."""

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most."""

    def fit(self, question: int, cells: Sequence[float], included: int) -> tuple[float, ...]:
        """Return the cells of a question; counts that must add up to the people do."""

    def distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of the noise in a fitted cell of a question's block."""

    def distribution_of_sum(self, question: int, terms: int) -> NoiseDistribution:
        """Return the distribution of the noise in a sum of fitted cells of a one-of question."""

    def distribution_of_scores(
        self, question: int, weights: Sequence[int]
    ) -> NoiseDistribution | None:
        """Return the distribution of a weighted sum of cells, if known; weights add up to 0."""

    def contrast_variance(self, question: int, weights: Floats) -> float:
        """Return the variance of a weighted sum of the fitted cells of a one-of question."""


@runtime_checkable
class CountsSheets(Protocol):
    """A mechanism that counts the answers to a whole questionnaire."""

    @property
    def questionnaire(self) -> Questionnaire:
        """The questions."""

    @property
    def groups(self) -> tuple[QuestionGroup, ...]:
        """Shares of epsilon, and the questions that have them."""

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question."""

    def noise_in(self, included: int) -> SheetNoise:
        """Return the noise in the cells of so many people."""


@dataclass(frozen=True, kw_only=True)
class SheetMechanism(VectorMechanism):
    """The sums of all cells of a questionnaire, each of which has a range of its own."""

    parameter_docs: ClassVar[dict[str, str]] = {
        "questionnaire": "the questions",
        "groups": "which questions share their noise, and their shares of epsilon",
        "epsilon": "privacy loss of all answers together",
    }

    questionnaire: Questionnaire
    groups: tuple[QuestionGroup, ...]
    epsilon: float

    @property
    @abstractmethod
    def reaches(self) -> tuple[int, ...]:
        """How far the noise of every cell reaches, on both sides of 0."""

    @abstractmethod
    def noise_in(self, included: int) -> SheetNoise:
        """Return the noise in the cells of so many people."""

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of cells of all questions."""
        return self.questionnaire.cells

    def check_questionnaire(self, questionnaire: Questionnaire) -> None:
        """Refuse any other questions than those that the noise was made for."""
        # Equal in every text and step: the noise was calibrated for what these answers can move.
        if questionnaire != self.questionnaire:
            raise ParameterError("the noise was made for other questions")

    def cells_of(self, sheet: Sheet) -> Ints:
        """Return what one sheet adds to the cells."""
        return np.array(
            self.questionnaire.cells_from_bits(self.questionnaire.encode(sheet)), dtype=np.int64
        )

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """The largest number that one sheet adds to every cell."""
        # All bits of a cell at once: no valid sheet adds more.
        return tuple(sum(weight for _, weight in weights) for weights in self.cell_weights)

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question."""
        return next(group for group in self.groups if question in group.questions)

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most: the epsilon of its group."""
        return float(self.group_of(question).epsilon)

    @property
    def cell_weights(self) -> tuple[Weights, ...]:
        """All cells as weighted sums of the bits of a sheet."""
        return self.questionnaire.cell_weights

    @cached_property
    def layout(self) -> tuple[tuple[int, int, Block], ...]:
        """Question, place among its blocks, and block of every cell."""
        found = []
        for number, question in enumerate(self.questionnaire.questions):
            for place, block in enumerate(question.blocks):
                # In the order in which cells are published, so that a position names the same cell
                # everywhere.
                found += [(number, place, block)] * block.cells
        return tuple(found)

    @property
    def min_sum(self) -> int:
        """Nobody in a cell, and the most negative noise."""
        return -max(self.reaches)

    @property
    def sum_span(self) -> int:
        """The widest range of a cell: from no holder to all, and the noise on both sides."""
        pairs = zip(self.tops, self.reaches, strict=True)
        # One field for all cells, so it follows from the widest.
        return max(self.n * top + 2 * reach for top, reach in pairs)

    def decode_cells(self, total: Residues, users: int) -> Ints:
        """Return the cells, or raise if one of them is outside its own range."""
        cells = to_signed(self.check_sum(total), self.modulus, self.min_sum)
        reaches = np.array(self.reaches)
        # check: cell-range - a sum outside the range of its cell was corrupted
        if (cells < -reaches).any() or (cells > users * np.array(self.tops) + reaches).any():
            raise CorruptSumError(
                "a revealed cell lies outside its range: a response was corrupted"
            )
        return cells


def extreme_sheets(questionnaire: Questionnaire) -> tuple[Sheet, Sheet]:
    """Return two sheets that differ in as many cells as two sheets can, and as far as they can."""
    pairs = [_extreme_answers(question) for question in questionnaire.questions]
    return tuple(first for first, _ in pairs), tuple(second for _, second in pairs)


def _extreme_answers(question: Question) -> tuple[Answer, Answer]:
    if isinstance(question, SeveralItems):
        limit = question.limit
        most = tuple(range(limit))
        others = tuple(range(limit, min(2 * limit, len(question.items))))
        # Other items instead of the chosen ones. Where there are none, "prefer not to say" has a
        # cell of its own that moves besides.
        return None if question.may_be_missing and not others else others, most
    if isinstance(question, SumQuestion):
        return None if question.may_be_missing else 0, question.largest
    return 0, 1
