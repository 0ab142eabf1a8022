"""The counts of one question out of several, in the form of a result with one question."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from faircount.accounting.guarantee import Guarantee
from faircount.core.arrays import Floats, read_only
from faircount.core.errors import ParameterError
from faircount.core.questions.choices import ChoiceQuestion
from faircount.estimation.intervals import Intervals, interval
from faircount.estimation.presentation import Frequencies
from faircount.estimation.record import SurveyRecord
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.validity import Validity
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.sheets import SheetNoise


@dataclass(frozen=True, eq=False, repr=False)
class QuestionCounts(Frequencies):
    """The counts of a question to which everybody gives exactly one answer.

    whole:  the result that it is a part of; its guarantee is for all answers together
    number: the place of the question, from 0
    """

    whole: QuestionnaireResult
    number: int

    def __post_init__(self) -> None:
        if not isinstance(self.question, ChoiceQuestion):
            raise ParameterError(f"question {self.number + 1} has not exactly one answer each")

    @property
    def question(self) -> ChoiceQuestion:
        """The question."""
        found = self.whole.questionnaire.questions[self.number]
        # `__post_init__` has refused every other kind.
        assert isinstance(found, ChoiceQuestion)  # noqa: S101
        return found

    @property
    def included(self) -> int:
        """Number of users in the sums."""
        return self.whole.included

    @cached_property
    def channel(self) -> Channel:
        """The distribution of a count, whose noise adds up to zero over the answers."""
        # Not independent: what one count has too much, the others have too little.
        return Channel(1.0, noise=self._noise.distribution(self.number), independent=False)

    @property
    def _noise(self) -> SheetNoise:
        if self.whole.noise is None:
            raise ParameterError(f"{self.whole.name} counts one vote each")
        return self.whole.noise

    @cached_property
    def aggregate(self) -> Floats:
        """The published counts, one per answer."""
        cells = self.whole.cells[self.whole.questionnaire.cell_slices[self.number]]
        fitted = self._noise.fit(self.number, [int(cell) for cell in cells], self.included)
        counts = np.asarray(fitted, dtype=np.float64)
        # Of two answers only the second has a cell: whoever did not give it gave the first.
        if self.question.is_binary:
            counts = np.array([self.included - counts[0], counts[0]])
        return read_only(counts)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.whole.name

    @property
    def items(self) -> tuple[object, ...]:
        """The answers, in the order of the estimates."""
        return self.question.answers

    @property
    def topology(self) -> str | None:
        """How the shares travelled; None where there were none."""
        return self.whole.topology

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's."""
        return self.whole.simulation

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports."""
        return self.whole.validity

    @property
    def record(self) -> SurveyRecord | None:
        """The survey that the result is about; None where there was none."""
        return self.whole.record

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased frequencies, which sum to one."""
        return read_only(self.channel.estimate(self.aggregate, self.included))

    @property
    def raw(self) -> Floats:
        """The same: joint noise keeps the number of users."""
        return self.estimates

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard deviation of the privacy noise, the same for every answer."""
        return read_only(np.sqrt(self.channel.variance(self.consistent, self.included)))

    @property
    def guarantee(self) -> Guarantee:
        """What may be claimed without naming the adversary, for all answers together."""
        return self.whole.guarantee

    @property
    def requested(self) -> dict[str, float | None]:
        """The epsilon and delta that the mechanism was made for."""
        return self.whole.requested

    def interval(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> Intervals:
        """Return confidence intervals of the frequencies."""
        return interval(
            self.aggregate,
            self.channel,
            self.included,
            confidence=confidence,
            covers=covers,
            simultaneous=simultaneous,
        )
