"""The result of a survey, or of a questionnaire about a table: estimates of every question."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from faircount.accounting.conditions import Condition
from faircount.accounting.guarantee import Guarantee
from faircount.core import plain
from faircount.core.arrays import ArrayValue, read_only
from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.questions import Question, Questionnaire
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.validation import check_fraction
from faircount.estimation.intervals import (
    COVERS,
    NOISE_AND_DRAW,
    NOISE_ONLY,
    Coverage,
    check_choice,
)
from faircount.estimation.leveled import BOTH_TABLES, LeveledTables, add_levels
from faircount.estimation.presentation import (
    CONSISTENT_IS_BIASED,
    OUTSIDE_NOTE,
    REPETITION,
    SIMULATION,
    describe_sum,
)
from faircount.estimation.question_estimates import QuestionEstimates, html_rows, text_rows
from faircount.estimation.record import SurveyRecord
from faircount.estimation.result import Result, add_conditions, void_if
from faircount.estimation.sheet_estimates import (
    ALIKE_CONDITION,
    Estimate,
    estimate_question,
)
from faircount.estimation.sheet_frequencies import estimate_frequencies
from faircount.estimation.validity import Validity, describe_assumption
from faircount.mechanisms.base import FrequencyMechanism, Mechanism
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.sheets import CountsSheets, SheetNoise

TOGETHER = "for all answers of a person together"

# Means have no exact interval of a population: of their distribution only the range is known.
_METHODS = {
    "users": f"exact, from the distribution of the noise; {NOISE_ONLY}",
    "population": "exact for frequencies, from the distributions of the noise and of the number of "
    f"holders, and wider than needed for means and among those who answered; {NOISE_AND_DRAW}",
}


@dataclass(frozen=True, eq=False, repr=False)
class QuestionnaireResult(ArrayValue):
    """Estimates of all questions among the `included` users.

    Every survey has such a result, whatever its mechanism. Where it counts whole questionnaires
    there may be several questions of all kinds. Any other mechanism counts the answers to one
    question, and everything comes from its `Result`, which is in `frequencies`.

    questionnaire: the questions
    mechanism:     the mechanism that ran, bound to its number of users
    cells:         the published sums, in the order of the questions
    included:      number of users in the sums
    facts:         about the run, such as topology, modulus, whether it is a simulation
    conditions:    what the guarantee requires of how the answers were collected
    notes:         what a reader must know
    """

    questionnaire: Questionnaire
    mechanism: Mechanism
    cells: Any
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # Read-only: estimates are cached, and a caller who changed the sums would get old ones.
        object.__setattr__(self, "cells", read_only(np.asarray(self.cells)))
        if self.noise is None:
            self._require_choice()

    def _require_choice(self) -> ChoiceQuestion:
        """Return the only question, to which exactly one answer is given."""
        # Every other mechanism was analysed for one vote per person; its guarantee says nothing
        # about people who give several answers.
        question, *others = self.questionnaire.questions
        if others or not isinstance(question, ChoiceQuestion):
            raise ParameterError(f"{self.mechanism.name} counts the answers to one question only")
        return question

    @classmethod
    def of_frequencies(cls, result: Result, question: Question) -> "QuestionnaireResult":
        """Return the same result as that of a survey with this one question."""
        return cls(
            Questionnaire((question,)),
            result.mechanism,
            result.aggregate,
            result.included,
            result.facts,
            result.conditions,
        )

    @property
    def noise(self) -> SheetNoise | None:
        """The noise in the cells; None where a mechanism counts one vote each."""
        if not isinstance(self.mechanism, CountsSheets):
            return None
        return self.mechanism.noise_in(self.included)

    @cached_property
    def frequencies(self) -> Result | None:
        """The result of a mechanism that counts one vote each; None for questionnaires."""
        return None if self.noise is not None else self.count_votes()

    def count_votes(self) -> Result:
        """Return the result of a mechanism that counts one vote each."""
        if not isinstance(self.mechanism, FrequencyMechanism):
            raise ParameterError(f"{self.mechanism.name} does not count one vote each")
        return Result(self.mechanism, self.cells, self.included, self.facts, self.conditions)

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.mechanism.name

    @property
    def topology(self) -> str | None:
        """How the shares travelled; None where there were none."""
        topology = self.facts.get("topology")
        return None if topology is None else str(topology)

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's.

        Then nobody is protected, whatever is guaranteed.
        """
        return bool(self.facts.get("simulation"))

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports, where they travelled between clients and servers."""
        validity = self.facts.get("validity")
        return validity if isinstance(validity, Validity) else None

    @property
    def record(self) -> SurveyRecord | None:
        """The survey that the result is about; None where there was none."""
        record = self.facts.get("record")
        return record if isinstance(record, SurveyRecord) else None

    @property
    def assumption(self) -> str:
        """What the result assumes about clients, or about the table, in words."""
        return describe_assumption(self.validity, is_survey=self.record is not None)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first, for all answers of a person together."""
        if self.frequencies is not None:
            return self.frequencies.guarantees
        # What the mechanism guarantees is for the people who were counted, not for those it was
        # planned for.
        stated = [
            add_conditions(guarantee, self.conditions)
            for guarantee in self.mechanism.stated_guarantees(self.included)
        ]
        return tuple(void_if(self.simulation, guarantee) for guarantee in stated)

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees: what may be claimed without naming the adversary."""
        return self.guarantees[0]

    @property
    def requested(self) -> dict[str, float | None]:
        """The epsilon and delta that the mechanism was made for."""
        return dict(zip(("epsilon", "delta"), self.mechanism.promise, strict=True))

    @cached_property
    def questions(self) -> tuple[QuestionEstimates, ...]:
        """The estimates of every question, with intervals of 95% each."""
        return self.estimates()

    def estimates(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> tuple[QuestionEstimates, ...]:
        """Return the estimates of every question.

        `covers="users"`: privacy noise only, the truth being what these users answered.
        `covers="population"`: also the random draw of these users from a larger population.
        `simultaneous`: all intervals of all questions cover at once with probability `confidence`.
        """
        error = 1 - check_fraction("confidence", confidence)
        check_choice("covers", covers, COVERS)
        if self.noise is not None:
            method = _METHODS[covers]
            if self.tables is not None and self.tables.narrows(covers):
                method += BOTH_TABLES
            if simultaneous:
                # All questions of a group share one radius, so nothing better than Bonferroni.
                # `_rows` are those of 95%, which are as many as of any other confidence.
                count = len(self._rows)
                error /= count
                method += f"; Bonferroni over {count} estimates"
            coverage = Coverage(confidence, covers, simultaneous, method)
            return self._estimate_sheet(self.noise, error, coverage)
        return (self._estimate_votes(confidence, covers, simultaneous),)

    def _estimate_sheet(
        self, noise: SheetNoise, error: float, coverage: Coverage
    ) -> tuple[QuestionEstimates, ...]:
        found = []
        pairs = zip(self.questionnaire.questions, self.questionnaire.cell_slices, strict=True)
        for number, (question, where) in enumerate(pairs):
            cells = self.cells[where]
            rows = estimate_question(
                question, number, cells, noise, self.included, error, coverage.covers
            )
            place = noise.groups.index(noise.group_of(number)) + 1
            estimates = QuestionEstimates(
                number + 1, question, rows, coverage, noise.answer_epsilon(number), place
            )
            if self.tables is not None:
                estimates = add_levels(self.tables, estimates, error)
            found.append(estimates)
        return tuple(found)

    @cached_property
    def tables(self) -> LeveledTables | None:
        """Both tables of a survey with hidden levels; None for all others."""
        if not isinstance(self.mechanism, ServerLevels):
            return None
        return LeveledTables(self.mechanism, self.cells, self.included)

    def _estimate_votes(
        self, confidence: float, covers: str, simultaneous: bool
    ) -> QuestionEstimates:
        question = self._require_choice()
        # `frequencies` is never None here; the second call only tells the type checker so.
        counted = self.frequencies or self.count_votes()
        rows, coverage = estimate_frequencies(counted, question, confidence, covers, simultaneous)
        return QuestionEstimates(1, question, rows, coverage, self.requested["epsilon"])

    @property
    def _rows(self) -> list[Estimate]:
        rows: list[Estimate] = []
        for question in self.questions:
            rows += question.estimates
        return rows

    def __getitem__(self, question: int | str) -> QuestionEstimates:
        """Return the estimates of a question by its number, from 1, or by its text."""
        for found in self.questions:
            if question in (found.number, found.text):
                return found
        raise ParameterError(f"there is no question {question!r:.60}")

    def to_dict(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> dict[str, Any]:
        """Return plain values for JSON."""
        found = self.estimates(confidence, covers=covers, simultaneous=simultaneous)
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "title": self.questionnaire.title,
            "mechanism": self.name,
            "topology": self.topology,
            "n": self.included,
            "users": self.included,
            "requested": self.requested,
            "confidence": confidence,
            "simultaneous": simultaneous,
            "covers": covers,
            "questions": [question.to_dict() for question in found],
            # Programs that read surveys with one question find the same keys as in the result of a
            # table.
            **(self._only_question(found[0]) if len(found) == 1 else {}),
            "about_consistent": CONSISTENT_IS_BIASED,
            "guarantee": self.guarantee.to_dict(),
            **self._describe_levels(confidence),
            "again": REPETITION,
            "assumption": self.assumption,
            "validity": None if self.validity is None else self.validity.to_dict(),
            "notes": list(self.notes),
            **({} if self.record is None else {"record": self.record.to_dict()}),
        }

    def _describe_levels(self, confidence: float) -> dict[str, Any]:
        """Return what the levels guarantee and tell; nothing where there are none."""
        if self.tables is None:
            return {}
        return {"levels": self.tables.to_dict(self.guarantee, confidence)}

    def _only_question(self, question: QuestionEstimates) -> dict[str, Any]:
        """Return the shares of the only question once more, as those of `Result` are written."""
        if not question.shares:
            return {}
        estimates = []
        for row in question.shares:
            numbers = {"estimate": row.estimate, "low": row.low, "high": row.high}
            estimates.append({"item": row.answer, **numbers})
        # With joint noise an estimate is a published count: there is no other raw value behind it.
        raw = [row.estimate for row in question.shares]
        if self.frequencies is not None:
            raw = self.frequencies.raw.tolist()
        return {
            "estimates": estimates,
            "about_estimates": describe_sum(question),
            "consistent": [row.consistent for row in question.shares],
            "raw": raw,
        }

    def to_frame(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> Any:
        """Return a pandas DataFrame, one row per estimate; its `attrs` hold the guarantee."""
        names = ("answer", "measure", "estimate", "low", "high", "standard_error", "consistent")
        columns: dict[str, list[object]] = {name: [] for name in ("question", *names)}
        index = []
        for question in self.estimates(confidence, covers=covers, simultaneous=simultaneous):
            for row in question.estimates:
                index.append(question.number)
                columns["question"].append(question.text)
                for name in names:
                    columns[name].append(getattr(row, name))
        attrs = {
            "guarantee": self.guarantee.to_dict(),
            "simulation": self.simulation,
            "about_consistent": CONSISTENT_IS_BIASED,
            **({} if self.record is None else {"record": self.record.to_dict()}),
        }
        return plain.data_frame(columns, index, "number", attrs)

    def plot(
        self, confidence: float = 0.95, *, covers: str = "users", consistent: bool = False
    ) -> Any:
        """Draw a chart per question, and return the matplotlib figure."""
        # Matplotlib is optional, so it is loaded by those who draw.
        from faircount.estimation.sheet_drawing import draw_questions

        return draw_questions(self, confidence, covers, consistent=consistent)

    @property
    def size(self) -> str:
        """How many questions there are or, of a single choice, how many items."""
        (first, *others) = self.questions
        if others:
            return f"{len(self.questions)} questions"
        return f"{len(first.shares)} items" if first.shares else "1 question"

    def __str__(self) -> str:
        lines = [SIMULATION] if self.simulation else []
        if self.record is not None:
            lines += [f"{label}: {escape_controls(text)}" for label, text in self.record.lines]
        # A record begins with the title as well; a table has no record.
        elif self.questionnaire.title:
            lines.append(escape_controls(self.questionnaire.title))
        through = f", topology {self.topology}" if self.topology else ""
        lines.append(f"{self.name}: {self.included} users, {self.size}{through}")
        for question in self.questions:
            # A survey with one question has named it above.
            if len(self.questions) > 1 or self.record is None:
                lines.append(escape_controls(question.title))
            lines += text_rows(question.estimates, question)
            if question.alike:
                lines.append(f"{ALIKE_CONDITION}:")
                lines += text_rows(question.alike, question)
        lines += [escape_controls(line) for line in self._remarks]
        lines += [f"note: {escape_controls(note)}" for note in self.notes]
        lines += [f"{label}: {text}" for label, text in self.statements()]
        return "\n".join(lines)

    @property
    def _remarks(self) -> list[str]:
        """What explains estimates that look wrong: outside of their intervals, or of their sum."""
        lines = []
        if any(question.has_outside for question in self.questions):
            lines.append(OUTSIDE_NOTE)
        lines += filter(None, map(describe_sum, self.questions))
        return lines

    def statements(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> list[tuple[str, str]]:
        """Return what the intervals cover, what is assumed and what is guaranteed, with labels."""
        coverage = self.estimates(confidence, covers=covers, simultaneous=simultaneous)[0].coverage
        scope = "all together" if simultaneous else "each"
        found = [
            ("intervals", f"{plain.format_confidence(confidence)} {scope}; {coverage.method}"),
            ("assumes", self.assumption),
        ]
        if self.validity is not None and self.validity.proven:
            found.append(("reports", str(self.validity)))
        if self.tables is not None:
            found += self.tables.statements(self.guarantee, confidence)
        claim = str(self.guarantee)
        found.append(("privacy", f"{claim}, {TOGETHER}" if len(self.questions) > 1 else claim))
        found.append(("running again", REPETITION))
        return found

    def __repr__(self) -> str:
        facts = f"{self.included:,} users, epsilon {self.guarantee.epsilon:.4g}"
        if self.simulation:
            facts += ", SIMULATION"
        count = len(self.questions)
        return f"<QuestionnaireResult: {count} question{'s' * (count > 1)}, {facts}>"

    def _repr_html_(self) -> str:
        page = plain.html_paragraph(SIMULATION, strong=True) if self.simulation else ""
        if self.record is not None:
            lines = [f"{label}: {text}" for label, text in self.record.lines]
            page += "".join(map(plain.html_paragraph, lines))
        page += plain.html_paragraph(f"{self.name}, {self.included:,} users, {self.size}")
        for question in self.questions:
            if len(self.questions) > 1 or self.record is None:
                page += plain.html_paragraph(question.title, strong=True)
            page += html_rows(question.estimates, question)
            if question.alike:
                page += plain.html_paragraph(f"{ALIKE_CONDITION}:")
                page += html_rows(question.alike, question)
        lines = self._remarks
        lines += [f"Note: {note}" for note in self.notes]
        lines += [f"{label.capitalize()}: {text}." for label, text in self.statements()]
        return page + "".join(map(plain.html_paragraph, lines))
