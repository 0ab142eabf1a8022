"""The estimates of every question as the page shows them, in whatever language it is read.

Answers that the owner wrote are texts. Everything else, such as "prefer not to say", bands and
means, is a code that the page words itself, with as many decimals as in exported files.
"""

from collections.abc import Sequence
from typing import Any

from faircount.core.questions import Question, Table
from faircount.core.questions.choices import Bands, ChoiceQuestion, ScaleCounts
from faircount.core.questions.published import format_decimal
from faircount.core.questions.question import NO_ANSWER_LABEL, NOT_APPLICABLE_LABEL, SKIP_LABEL
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.estimation.question_estimates import QuestionEstimates, decimals_of
from faircount.estimation.sheet_estimates import MEDIAN, OF_ANSWERED, Estimate, is_share
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.trend import Trend

WORDS = {
    SKIP_LABEL: "preferNotToSay",
    NOT_APPLICABLE_LABEL: "doesNotApply",
    NO_ANSWER_LABEL: "noAnswer",
}
"""Answers that no owner wrote, as the participant's page names their texts."""

Described = dict[str, Any]


def describe_result(result: QuestionnaireResult) -> list[Described]:
    """Every question with its rows, and what is needed to draw them."""
    return [describe_question(found) for found in result.questions]


def describe_question(found: QuestionEstimates) -> Described:
    """One question: its rows with labels, numbers and decimals, and the range of its mean."""
    question = found.question
    rows = describe_rows(found, found.estimates)
    texts = [question.text]
    sides = None
    if isinstance(question, Table):
        texts = [question.text, question.columns_text]
        sides = [list(question.rows), list(question.columns)]
    return {
        "number": found.number,
        "text": found.text,
        "kind": question.kind,
        "epsilon": found.epsilon,
        "group": found.group,
        "is_mean": isinstance(question, SumQuestion),
        "range": _range_of(question),
        "bands": _edges_of(question),
        "texts": texts,
        "sides": sides,
        "rows": rows,
    }


def describe_rows(found: QuestionEstimates, estimates: Sequence[Estimate]) -> list[Described]:
    """Estimates of a question, which are about the same as its own in the same place."""
    rows = []
    for place, row in enumerate(estimates):
        bounds = {"estimate": row.estimate, "low": row.low, "high": row.high}
        shown = {"consistent": row.consistent, "decimals": decimals_of(found, row)}
        rows.append({**describe_row(found, place), **bounds, **shown})
    return rows


def describe_row(found: QuestionEstimates, place: int) -> Described:
    """What a row is about.

    part:  to which table it belongs: shares, answered (shares among those who answered), rows and
           columns (margins of a table), or measure (a mean or a median)
    label: what the owner wrote; None where `word` or `band` says what it is
    """
    row = found.estimates[place]
    part = _part_of(found.question, row, place)
    about: Described = {"part": part, "label": None, "word": None, "band": None}
    if part == "measure":
        return {**about, "word": _measure_word(row)}
    if isinstance(found.question, SumQuestion):
        return {**about, "word": "answeredShare"}
    # Rows are known by their places: an owner may call an item "no answer", or "all".
    if part == "shares" and place >= _count_written(found.question):
        return {**about, "word": WORDS[row.answer]}
    if isinstance(found.question, Bands):
        inside = len(found.question.answers) if part == "answered" else 0
        return {**about, "band": place - inside}
    if isinstance(found.question, Table) and part in ("rows", "columns"):
        return {**about, "label": _margin_label(found.question, place)}
    return {**about, "label": row.answer}


def describe_changes(trend: Trend) -> list[Described]:
    """What has changed in every question that two surveys have in common."""
    questions = []
    for compared in trend.questions:
        # Two surveys, so there is one change; a trend of more is for the command line.
        (change,) = compared.changes
        later = compared.series[-1]
        changes = []
        for place, (row, estimate) in enumerate(zip(change.rows, later.estimates, strict=True)):
            bounds = {"estimate": row.estimate, "low": row.low, "high": row.high}
            shown = {"clear": row.is_clear, "decimals": decimals_of(later, estimate)}
            changes.append({**describe_row(later, place), **bounds, **shown})
        asked = {"number": later.number, "text": later.text, "bands": _edges_of(later.question)}
        questions.append({**asked, "changes": changes})
    return questions


def _part_of(question: Question, row: Estimate, place: int) -> str:
    if not is_share(row):
        return "measure"
    if row.measure.endswith(OF_ANSWERED):
        return "answered"
    # Behind the cells come the margins: first those of the rows, then those of the columns.
    if isinstance(question, Table) and place >= len(question.answers):
        return "rows" if place < len(question.answers) + len(question.rows) else "columns"
    return "shares"


def _count_written(question: Question) -> int:
    """How many of the first rows have answers that the owner wrote, or bands."""
    if isinstance(question, ChoiceQuestion):
        return len(question.choices)
    return len(question.items) if isinstance(question, SeveralItems) else 0


def _margin_label(table: Table, place: int) -> str:
    return (*table.rows, *table.columns)[place - len(table.answers)]


def _measure_word(row: Estimate) -> str:
    if row.measure == MEDIAN:
        return "median"
    return "meanAnswered" if row.measure.endswith(OF_ANSWERED) else "mean"


def _range_of(question: Question) -> list[float] | None:
    """The least and the greatest value that a mean or a median can have."""
    if isinstance(question, SumQuestion):
        least = question.origin
        return [float(least), float(least + question.unit * question.largest)]
    if isinstance(question, Bands):
        return [float(question.edges[0]), float(question.edges[-1])]
    return [1.0, float(len(question.items))] if isinstance(question, ScaleCounts) else None


def _edges_of(question: Question) -> list[str] | None:
    """The edges of bands, as exact decimals."""
    return [*map(format_decimal, question.edges)] if isinstance(question, Bands) else None
