"""The noise of several surveys of the same questions, added up.

The sums of disjoint groups of people add up to the sums of everybody, and their noises to one noise
whose distribution is the convolution of theirs. So every estimate of a questionnaire, with its
interval, can be made of the added sums as of those of one survey, whatever the groups answer: this
is UWA, in which every person counts the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.questions import QuestionGroup, Questionnaire
from faircount.mechanisms.count_distribution import NoiseDistribution, sum_of_distributions
from faircount.mechanisms.sheets import SheetNoise


@dataclass(frozen=True, eq=False)
class PooledNoise:
    """The sum of independent noises, of surveys with the same questions."""

    parts: Sequence[SheetNoise]

    def __post_init__(self) -> None:
        if any(part.questionnaire != self.questionnaire for part in self.parts):
            raise ParameterError("noise of different questions cannot be added up")

    @cached_property
    def questionnaire(self) -> Questionnaire:
        """The questions that all of them have."""
        return self.parts[0].questionnaire

    @property
    def groups(self) -> tuple[QuestionGroup, ...]:
        """Groups of questions, with what the people who lose most lose in each."""
        # The parts may split epsilon in different ways; each person is in one of them.
        weakest = max(self.parts, key=lambda part: sum(group.epsilon for group in part.groups))
        return weakest.groups

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question."""
        return next(group for group in self.groups if question in group.questions)

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most, in whichever part it is."""
        return max(part.answer_epsilon(question) for part in self.parts)

    def fit(self, question: int, cells: Sequence[float], included: int) -> tuple[float, ...]:
        """Return the added cells, fitted to all people if those of a part are fitted to its own."""
        # The first part that fits takes the whole excess away, and the others find none.
        fitted = tuple(cells)
        for part in self.parts:
            fitted = part.fit(question, fitted, included)
        return fitted

    def distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of a cell."""
        return sum_of_distributions([part.distribution(question, block) for part in self.parts])

    def distribution_of_sum(self, question: int, terms: int) -> NoiseDistribution:
        """Return the distribution of a sum of cells."""
        return sum_of_distributions(
            [part.distribution_of_sum(question, terms) for part in self.parts]
        )

    def distribution_of_scores(
        self, question: int, weights: Sequence[int]
    ) -> NoiseDistribution | None:
        """Return the distribution of a weighted sum of cells, if that of every part is known."""
        distributions = [part.distribution_of_scores(question, weights) for part in self.parts]
        known = [distribution for distribution in distributions if distribution is not None]
        return sum_of_distributions(known) if len(known) == len(distributions) else None

    def contrast_variance(self, question: int, weights: Floats) -> float:
        """Return the variance of a weighted sum of the cells of a one-of question."""
        return sum(part.contrast_variance(question, weights) for part in self.parts)
