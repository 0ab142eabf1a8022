"""Independent noise in all cells of a questionnaire, for which epsilon is split over the questions.

Discrete Laplace noise of ratio e^-c in a cell hides a change by one up to a factor e^c. One person
who gives other answers to a question moves at most `moves` of its cells at once, each by at most
its reach: 1 for a count, R for a sum of numbers from 0 to R. With the share e of epsilon, every
cell of the question gets c = e / (moves * reach), and all questions together lose the sum of their
shares. There is no smaller noise of this form: some pair of sheets moves that many cells so far.

    one of N         2, or 1 for two answers, of which one is counted
    any of N         N, and 1 more with "prefer not to say" or a branch
    at most c of N   min(2c, N), but at least c + 1 with one of these
    number, mean     1 sum, and with one of these the number of people who answered

The counts of a question with exactly one answer add up to the number of people, which is public, so
they are fitted to it, as those of a single question are (`count_distribution.py`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.questions import BlockKind, Question, QuestionGroup, Questionnaire
from faircount.mechanisms.count_distribution import (
    NoiseDistribution,
    fit_noise,
    fits_total,
    sum_of_draws,
    weigh_noise,
)
from faircount.mechanisms.laplace import LARGEST_EPSILON, laplace_noise

# Largest spread of a sum of scores, in half scores, whose distribution is computed.
_MAX_SPREAD = 200_000.0


def step_loss(question: Question, share: Fraction, block: int = 0) -> float:
    """Return c, what a change of a cell by one loses where the question has this share of epsilon.

    It is rounded down: rounded to the nearest number, all changes could lose more than the share.
    """
    # check: cell-moves - who moves several cells, or one by several steps, would lose it each time
    exact = share / (question.moves * question.blocks[block].reach)
    loss = float(exact)
    if Fraction(loss) > exact:
        loss = math.nextafter(loss, 0.0)
    # Beyond this there is next to no noise, and more of it than is needed only protects better.
    return min(loss, LARGEST_EPSILON / 2)


@dataclass(frozen=True)
class SplitNoise:
    """The noise of a result: in every cell `multiple` times what its share of epsilon needs.

    questionnaire: the questions
    groups:        one for every question, with its share of epsilon
    multiple:      how many times the whole noise was added; need not be a whole number
    """

    questionnaire: Questionnaire
    groups: tuple[QuestionGroup, ...]
    multiple: float = 1.0

    def group_of(self, question: int) -> QuestionGroup:
        """Return the group of a question, which is in it alone."""
        return next(group for group in self.groups if question in group.questions)

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most: its share of epsilon."""
        return float(self.group_of(question).epsilon)

    def loss(self, question: int, block: int = 0) -> float:
        """Return what a change by one loses in a cell of a question's block."""
        asked = self.questionnaire.questions[question]
        return step_loss(asked, self.group_of(question).epsilon, block)

    def raw_distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of the noise in a published cell."""
        # Twice the loss, since that distribution is made for an answer that moves two counts.
        return laplace_noise(2 * self.loss(question, block), self.multiple)

    def _is_fitted(self, question: int) -> bool:
        """Whether the counts of a question are fitted to the number of people."""
        block = self.questionnaire.questions[question].blocks[0]
        if block.kind is not BlockKind.ONE:
            return False
        return fits_total(block.cells, math.sqrt(self.raw_distribution(question).variance))

    def fit(self, question: int, cells: Sequence[float], included: int) -> tuple[float, ...]:
        """Return the cells of a question; counts that must add up to the people do."""
        if not self._is_fitted(question):
            return tuple(cells)
        # The same amount for all of them: no answer is favoured, and the errors are smallest.
        excess = (sum(cells) - included) / len(cells)
        return tuple(cell - excess for cell in cells)

    def distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of the noise in a fitted cell of a question's block."""
        if self._is_fitted(question):
            return self.distribution_of_sum(question, 1)
        return self.raw_distribution(question, block)

    def distribution_of_sum(self, question: int, terms: int) -> NoiseDistribution:
        """Return the distribution of the noise in a sum of fitted cells of a one-of question."""
        raw = self.raw_distribution(question)
        if not self._is_fitted(question):
            # Cells that are not fitted have independent noise.
            return sum_of_draws(raw, terms)
        return fit_noise(raw, self.questionnaire.questions[question].cells, terms)

    def distribution_of_scores(
        self, question: int, weights: Sequence[int]
    ) -> NoiseDistribution | None:
        """Return the distribution of a weighted sum of cells; None where it would be too long.

        The weights add up to 0, so it is the same for fitted cells and for published ones.
        """
        raw = self.raw_distribution(question)
        # A bound on the memory, and so on the time: the distribution has as many points as its
        # spread.
        if sum(map(abs, weights)) * math.sqrt(raw.variance) > _MAX_SPREAD:
            return None
        return weigh_noise(raw, tuple(weights))

    def contrast_variance(self, question: int, weights: Floats) -> float:
        """Return the variance of a weighted sum of the fitted cells of a one-of question."""
        own = np.asarray(weights, dtype=np.float64)
        # Fitted noise adds up to 0, so that only differences of weights count.
        if self._is_fitted(question):
            own = own - own.mean()
        return self.raw_distribution(question).variance * float((own * own).sum())
