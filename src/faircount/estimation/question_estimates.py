"""The estimates of one question: what they are, and how they are written for people."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from faircount.core import plain
from faircount.core.domain import escape_controls
from faircount.core.questions import Question, Table
from faircount.core.questions.choices import ChoiceQuestion
from faircount.estimation.intervals import Coverage
from faircount.estimation.presentation import OUTSIDE_MARK, SMALLEST_SHOWN, count_decimals
from faircount.estimation.sheet_estimates import IF_ALIKE, SHARE, Estimate, is_outside, is_share

EXACT_DECIMALS = 2
"""Decimal places of a mean without error, as at a very large epsilon."""


@dataclass(frozen=True, eq=False)
class QuestionEstimates:
    """What is estimated about one question.

    number:    its place among the questions, from 1
    question:  the question
    estimates: one for every answer, mean, median and margin
    coverage:  what the intervals cover, and how often
    epsilon:   what a single answer to it loses at most
    group:     the number of its group, from 1
    alike:     with hidden levels, the weighted estimates under their condition
    """

    number: int
    question: Question
    estimates: tuple[Estimate, ...]
    coverage: Coverage
    epsilon: float | None
    group: int = 1
    alike: tuple[Estimate, ...] = ()

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

    @property
    def shares(self) -> tuple[Estimate, ...]:
        """The shares of all answers, where exactly one is given; empty elsewhere."""
        if not isinstance(self.question, ChoiceQuestion):
            return ()
        return self.estimates[: len(self.question.answers)]

    @property
    def unusual_sum(self) -> float | None:
        """The sum of the shares of all answers, if it should be 100% and is not."""
        # Joint noise of a choice adds up to 0, so that its shares always sum to 100%.
        total = sum(row.estimate for row in self.shares) if self.shares else 1.0
        return None if abs(total - 1) < SMALLEST_SHOWN else total

    @property
    def has_outside(self) -> bool:
        """Whether an estimate lies outside its interval."""
        return any(map(is_outside, self.estimates))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "number": self.number,
            "kind": self.question.kind,
            "text": self.text,
            "group": self.group,
            "epsilon": self.epsilon,
            "method": self.coverage.method,
            "estimates": [row.to_dict() for row in self.estimates],
            **({"if_alike": [row.to_dict() for row in self.alike]} if self.alike else {}),
        }


def row_label(row: Estimate) -> str:
    """Return the answer and, if it is not simply a share, what is estimated about it."""
    # The condition of a weighted estimate stands above it.
    if row.measure in (SHARE, IF_ALIKE):
        return row.answer
    return f"{row.answer} ({row.measure})" if row.answer else row.measure


def decimals_of(question: QuestionEstimates, row: Estimate) -> int:
    """Decimal places of an estimate: the same for all shares of a question.

    A mean has one place more than its half-width begins at, so that two digits of it are seen.
    """
    if not is_share(row):
        width = row.high - row.low
        # A twentieth of the width is a tenth of the half-width: one decimal more.
        return count_decimals(width / 20) if width > 0 else EXACT_DECIMALS
    # The widest interval decides: shares below each other with different digits are hard to
    # compare.
    widths = [other.high - other.low for other in question.estimates if is_share(other)]
    return count_decimals(100 * max(widths) / 2, least=1)


def format_value(row: Estimate, value: float, decimals: int) -> str:
    """Return a share in percent, or a mean as a number."""
    return f"{value:z.{decimals}%}" if is_share(row) else f"{value:z.{decimals}f}"


def text_rows(rows: Sequence[Estimate], question: QuestionEstimates) -> list[str]:
    """Return estimates of a question as aligned lines for a terminal."""
    # Answers were written by somebody else: an escape sequence in one could rewrite the terminal.
    labels = [escape_controls(row_label(row)) for row in rows]
    width = max(map(len, labels))
    lines = []
    for label, row in zip(labels, rows, strict=True):
        decimals = decimals_of(question, row)
        estimate, low, high = (
            format_value(row, value, decimals) for value in (row.estimate, row.low, row.high)
        )
        mark = f" {OUTSIDE_MARK}" if is_outside(row) else ""
        lines.append(f"  {label:<{width}}  {estimate:>8}  [{low}, {high}]{mark}")
    return lines


def html_rows(rows: Sequence[Estimate], question: QuestionEstimates) -> str:
    """Return estimates of a question as a table with bars, for a notebook."""
    shares = [row.estimate for row in rows if is_share(row)]
    # Noise may leave no share above 0, and a bar is a quotient by the longest.
    longest = max([*shares, 1e-9])
    table = []
    for row in rows:
        decimals = decimals_of(question, row)
        low, high = (format_value(row, value, decimals) for value in (row.low, row.high))
        span = f"{low} to {high}"
        if is_outside(row):
            span += f" {OUTSIDE_MARK}"
        bar = plain.html_bar(row.estimate / longest) if is_share(row) else ""
        estimate = format_value(row, row.estimate, decimals)
        table.append([plain.escape_html(row_label(row)), estimate, span, bar])
    return plain.html_table(["answer", "estimate", "95% interval", ""], table)
