"""A result as a figure: a chart per question, and the survey with its guarantee in small print."""

from pathlib import Path
from typing import Any

import numpy as np

from faircount.core.figures import create_figure
from faircount.core.questions.sums import SumQuestion
from faircount.estimation.drawing import (
    axis_label,
    describe_survey,
    draw_bars,
    save_described,
    set_survey_heading,
    wrap_text,
    write_ticks,
)
from faircount.estimation.question_estimates import QuestionEstimates, decimals_of
from faircount.estimation.sheet_estimates import Estimate, is_share
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.sheet_texts import SheetWords, sheet_words_of

WIDTH = 8


def draw_questions(
    result: QuestionnaireResult,
    confidence: float = 0.95,
    covers: str = "users",
    *,
    consistent: bool = False,
) -> Any:
    """Draw a chart per question, one below the other, and return the figure."""
    words = sheet_words_of(result)
    found = result.estimates(confidence, covers=covers)
    about = describe_survey(result, *words.privacy_lines(result))
    heading = wrap_text(_heading(result), 75)
    # In inches: a title and an axis, and a bar of the same height in all charts.
    heights = [0.8 + 0.32 * len(_rows_to_draw(question)) for question in found]
    lines = 0.25 * len(heading.splitlines()) + 0.13 * len(about.splitlines())
    figure = create_figure(WIDTH, 0.5 + sum(heights) + lines)
    charts = figure.subplots(len(found), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, question in zip(charts, found, strict=True):
        _draw_question(axes, question, words, consistent=consistent)
        titles = [question.title] if len(found) > 1 else []
        titles += _further(question, words)
        axes.set_title(wrap_text("; ".join(titles), 90), size=10, loc="left")
    # Below the last chart only: all of them have the same scale and the same people.
    note = words.general.axis(result, confidence, covers, consistent=consistent)
    sums = [] if consistent else [words.general.short_sum_note(question) for question in found]
    charts[-1].set_xlabel("\n".join([note, *filter(None, sums)]), size=9)
    set_survey_heading(figure, heading, about)
    return figure


def save_questions(
    result: QuestionnaireResult,
    path: Path,
    confidence: float = 0.95,
    covers: str = "users",
    *,
    consistent: bool = False,
) -> None:
    """Draw the questions into a file, in the format of its suffix."""
    figure = draw_questions(result, confidence, covers, consistent=consistent)
    save_described(figure, path, result, *sheet_words_of(result).privacy_lines(result))


def _heading(result: QuestionnaireResult) -> str:
    if result.record is not None:
        return result.record.question
    return result.questionnaire.text


def _rows_to_draw(question: QuestionEstimates) -> list[Estimate]:
    """The estimates that a chart shows: shares, or the mean of a question that has nothing else."""
    has_shares = not isinstance(question.question, SumQuestion)
    return [row for row in question.estimates if is_share(row) == has_shares]


def _further(question: QuestionEstimates, words: SheetWords) -> list[str]:
    """The estimates that a chart does not show, as texts."""
    drawn = _rows_to_draw(question)
    return [
        f"{words.label(question, row)} {_value_text(question, row, words)}"
        for row in question.estimates
        if row not in drawn
    ]


def _value_text(
    question: QuestionEstimates, row: Estimate, words: SheetWords, value: float | None = None
) -> str:
    """An estimate with its interval: alone it would read as the number where the line ends."""
    digits = decimals_of(question, row)
    shown = row.estimate if value is None else value
    return f"{words.value(row, shown, digits)} ({words.range(row, digits)})"


def _draw_question(
    axes: Any, question: QuestionEstimates, words: SheetWords, *, consistent: bool
) -> None:
    """Draw shares as bars, and the mean of a number or a scale as a dot within its range."""
    rows = _rows_to_draw(question)
    values = np.array([row.consistent if consistent else row.estimate for row in rows])
    low = np.array([row.low for row in rows])
    high = np.array([row.high for row in rows])
    texts = [
        _value_text(question, row, words, value)
        for row, value in zip(rows, values.tolist(), strict=True)
    ]
    if isinstance(question.question, SumQuestion):
        _draw_mean(axes, question.question, (values, low, high), texts)
    else:
        draw_bars(axes, values, (low, high), texts)
        write_ticks(axes.xaxis, words.general)
    labels = [axis_label(words.label(question, row)) for row in rows]
    axes.set_yticks(np.arange(len(rows)), labels)


def _draw_mean(
    axes: Any, asked: SumQuestion, estimate: tuple[Any, Any, Any], texts: list[str]
) -> None:
    values, low, high = estimate
    places = np.arange(len(texts))
    axes.spines[["top", "right"]].set_visible(False)
    axes.plot(values, places, "o", color="#3f7f70")
    axes.hlines(places, low, high, color="black", lw=1.2)
    # An estimate may lie outside the range, where noise has put it.
    least = float(asked.origin)
    greatest = float(asked.origin + asked.unit * asked.largest)
    axes.set_xlim(min(least, *values), max(greatest, *values))
    # From top to bottom, as the bars of the other questions.
    axes.set_ylim(len(texts) - 0.4, -0.6)
    # In points and not in data: the range of a number may be any.
    above = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center", "size": 8}
    for place, value, text in zip(places, values, texts, strict=True):
        axes.annotate(text, (value, place), **above)
