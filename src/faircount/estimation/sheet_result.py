"""The result of a questionnaire: estimates of every question, under one guarantee."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from faircount.accounting.conditions import Condition
from faircount.accounting.guarantee import Guarantee
from faircount.core import plain
from faircount.core.arrays import ArrayValue, Ints, read_only
from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.questions import Question, Table
from faircount.core.validation import check_fraction
from faircount.estimation.presentation import (
    CONSISTENT_IS_BIASED,
    OUTSIDE_MARK,
    OUTSIDE_NOTE,
    REPETITION,
    SIMULATION,
)
from faircount.estimation.result import add_conditions, void_if
from faircount.estimation.sheet_estimates import SHARE, Estimate, estimate_question
from faircount.mechanisms.joint_noise.mechanism import JointNoise

ASSUMPTION = "every row of the table holds what that person answered"

METHOD = "exact, from the laws of the noise; covers privacy noise only"


@dataclass(frozen=True, eq=False)
class QuestionEstimates:
    """What is estimated about one question.

    number:    its place among the questions, from 1
    question:  the question
    estimates: one for every answer, mean, median and margin
    epsilon:   the share of epsilon of its group
    group:     the number of its group, from 1
    """

    number: int
    question: Question
    estimates: tuple[Estimate, ...]
    epsilon: float
    group: int

    @property
    def title(self) -> str:
        """The number and the text of the question."""
        return f"{self.number}. {self.text}"

    @property
    def text(self) -> str:
        """What was asked; for a table both questions."""
        if isinstance(self.question, Table):
            return f"{self.question.text} / {self.question.columns_text}"
        return self.question.text

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "number": self.number,
            "kind": self.question.kind,
            "text": self.text,
            "group": self.group,
            "epsilon": self.epsilon,
            "estimates": [asdict(row) for row in self.estimates],
        }


@dataclass(frozen=True, eq=False, repr=False)
class QuestionnaireResult(ArrayValue):
    """Estimates of all questions of a questionnaire among the `included` users.

    mechanism:   the joint noise that was added, bound to its number of users
    cells:       the published sums, in the order of the questions
    included:    number of users in the sums
    facts:       about the run, such as whether it is a simulation
    assumptions: conditions of the guarantee that follow from how the answers were collected
    notes:       what a reader must know
    """

    mechanism: JointNoise
    cells: Ints
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)
    assumptions: tuple[Condition, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", read_only(self.cells))

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's.

        Then nobody is protected, whatever is guaranteed.
        """
        return bool(self.facts.get("simulation"))

    @cached_property
    def guarantee(self) -> Guarantee:
        """One guarantee for all answers of a person together."""
        # The first of them is the weakest, so it may be claimed without naming an adversary.
        stated = add_conditions(self.mechanism.stated_guarantees()[0], self.assumptions)
        return void_if(self.simulation, stated)

    @cached_property
    def questions(self) -> tuple[QuestionEstimates, ...]:
        """The estimates of every question, with intervals of 95% each."""
        return self.estimates()

    def estimates(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> tuple[QuestionEstimates, ...]:
        """Return the estimates of every question.

        `simultaneous`: all intervals of all questions cover at once with probability `level`. They
        share one radius, so each may miss with its share of the error (Bonferroni).
        """
        error = 1 - check_fraction("level", level)
        if simultaneous:
            # Counted from the estimates themselves: margins and medians may be wrong as well as
            # answers, so each of them takes its part of the error.
            error /= sum(len(found.estimates) for found in self.questions)
        return self._estimate_all(error)

    def _estimate_all(self, error: float) -> tuple[QuestionEstimates, ...]:
        questionnaire = self.mechanism.questionnaire
        found = []
        pairs = zip(questionnaire.questions, questionnaire.cell_slices, strict=True)
        for number, (question, where) in enumerate(pairs):
            rows = estimate_question(
                question, number, self.cells[where], self.mechanism, self.included, error
            )
            group = self.mechanism.group_of(number)
            place = self.mechanism.groups.index(group) + 1
            found.append(QuestionEstimates(number + 1, question, rows, float(group.epsilon), place))
        return tuple(found)

    def __getitem__(self, question: int | str) -> QuestionEstimates:
        """Return the estimates of a question by its number, from 1, or by its text."""
        for found in self.questions:
            # The first one wins if two questions have the same text; their numbers tell them apart.
            if question in (found.number, found.text):
                return found
        raise ParameterError(f"there is no question {question!r:.60}")

    def to_dict(self, level: float = 0.95, *, simultaneous: bool = False) -> dict[str, Any]:
        """Return plain values for JSON."""
        found = self.estimates(level, simultaneous=simultaneous)
        epsilon, delta = self.mechanism.promise
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "title": self.mechanism.questionnaire.title,
            "mechanism": self.mechanism.name,
            "users": self.included,
            "requested": {"epsilon": epsilon, "delta": delta},
            "level": level,
            "simultaneous": simultaneous,
            "covers": "users",
            "questions": [question.to_dict() for question in found],
            "about_consistent": CONSISTENT_IS_BIASED,
            "guarantee": self.guarantee.to_dict(),
            "again": REPETITION,
            "supposed": ASSUMPTION,
            "notes": list(self.notes),
        }

    def to_frame(self, level: float = 0.95, *, simultaneous: bool = False) -> Any:
        """Return a pandas DataFrame, one row per estimate; its `attrs` hold the guarantee."""
        names = ("measure", "estimate", "low", "high", "standard_error", "consistent")
        columns: dict[str, list[object]] = {name: [] for name in ("question", "answer", *names)}
        index = []
        for question in self.estimates(level, simultaneous=simultaneous):
            for row in question.estimates:
                index.append(question.number)
                columns["question"].append(question.text)
                columns["answer"].append(row.answer)
                for name in names:
                    columns[name].append(getattr(row, name))
        attrs = {
            "guarantee": self.guarantee.to_dict(),
            "simulation": self.simulation,
            "about_consistent": CONSISTENT_IS_BIASED,
        }
        return plain.data_frame(columns, index, "number", attrs)

    def plot(self, level: float = 0.95) -> Any:
        """Draw a chart per question, and return the matplotlib figure."""
        from faircount.estimation.sheet_drawing import draw_questions

        return draw_questions(self, level)

    def __str__(self) -> str:
        lines = [SIMULATION] if self.simulation else []
        if self.mechanism.questionnaire.title:
            # Titles and answers come from a file of the owner: control characters in them could
            # change what the terminal shows of the other lines.
            lines.append(escape_controls(self.mechanism.questionnaire.title))
        lines.append(
            f"{self.mechanism.name}: {self.included} users, {len(self.questions)} questions"
        )
        for question in self.questions:
            lines.append(escape_controls(question.title))
            lines += _text_rows(question)
        if any(is_outside(row) for row in self._rows):
            lines.append(OUTSIDE_NOTE)
        lines += [f"note: {escape_controls(note)}" for note in self.notes]
        lines += [f"{label}: {text}" for label, text in self.statements()]
        return "\n".join(lines)

    @property
    def _rows(self) -> list[Estimate]:
        rows: list[Estimate] = []
        for question in self.questions:
            rows += question.estimates
        return rows

    def statements(
        self, level: float = 0.95, *, simultaneous: bool = False
    ) -> list[tuple[str, str]]:
        """Return what the intervals cover, what is assumed and what is guaranteed, with labels."""
        together = "all together" if simultaneous else "each"
        return [
            ("intervals", f"{plain.format_level(level)} {together}; {METHOD}"),
            ("assumes", ASSUMPTION),
            ("privacy", f"{self.guarantee}, for all answers of a person together"),
            ("running again", REPETITION),
        ]

    def __repr__(self) -> str:
        facts = f"{self.included:,} users, epsilon {self.guarantee.epsilon:.4g}"
        if self.simulation:
            facts += ", SIMULATION"
        return f"<QuestionnaireResult: {len(self.questions)} questions, {facts}>"

    def _repr_html_(self) -> str:
        page = plain.html_paragraph(SIMULATION, strong=True) if self.simulation else ""
        page += plain.html_paragraph(f"{self.included:,} users, {len(self.questions)} questions")
        for question in self.questions:
            page += plain.html_paragraph(question.title, strong=True)
            page += _html_rows(question)
        lines = [OUTSIDE_NOTE] if any(is_outside(row) for row in self._rows) else []
        lines += [f"Note: {note}" for note in self.notes]
        lines += [f"{label.capitalize()}: {text}." for label, text in self.statements()]
        return page + "".join(map(plain.html_paragraph, lines))


def is_share(row: Estimate) -> bool:
    """Whether an estimate is a share, which is written in percent."""
    return row.measure.startswith(SHARE)


def is_outside(row: Estimate) -> bool:
    """Whether an estimate lies outside its interval, because noise put it out of its range."""
    # An interval without noise is a single point, which rounding may miss by a digit.
    return not row.low - 1e-12 <= row.estimate <= row.high + 1e-12


def row_label(row: Estimate) -> str:
    """Return the answer and, if it is not simply a share, what is estimated about it."""
    if row.measure == SHARE:
        return row.answer
    return f"{row.answer} ({row.measure})" if row.answer else row.measure


def format_value(row: Estimate, value: float) -> str:
    """Return a share in percent, or a mean as a number."""
    return f"{value:z.1%}" if is_share(row) else f"{value:z.4g}"


def _text_rows(question: QuestionEstimates) -> list[str]:
    labels = [escape_controls(row_label(row)) for row in question.estimates]
    width = max(map(len, labels))
    lines = []
    for label, row in zip(labels, question.estimates, strict=True):
        estimate, low, high = (
            format_value(row, value) for value in (row.estimate, row.low, row.high)
        )
        mark = f" {OUTSIDE_MARK}" if is_outside(row) else ""
        lines.append(f"  {label:<{width}}  {estimate:>8}  [{low}, {high}]{mark}")
    return lines


def _html_rows(question: QuestionEstimates) -> str:
    shares = [row.estimate for row in question.estimates if is_share(row)]
    # Noise may leave no share above 0, and a bar is a quotient by the longest.
    longest = max([*shares, 1e-9])
    table = []
    for row in question.estimates:
        span = f"{format_value(row, row.low)} to {format_value(row, row.high)}"
        if is_outside(row):
            span += f" {OUTSIDE_MARK}"
        bar = plain.html_bar(row.estimate / longest) if is_share(row) else ""
        estimate = format_value(row, row.estimate)
        table.append([plain.escape_html(row_label(row)), estimate, span, bar])
    return plain.html_table(["answer", "estimate", "95% interval", ""], table)
