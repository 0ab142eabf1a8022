"""A questionnaire's result as a figure: a chart per question, and the guarantee above them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.core import plain
from faircount.core.domain import escape_controls
from faircount.core.figures import create_figure, save_figure
from faircount.core.questions.kinds import SumQuestion
from faircount.estimation.drawing import axis_label, wrap_text
from faircount.estimation.presentation import SIMULATION

if TYPE_CHECKING:
    from faircount.estimation.sheet_result import QuestionEstimates, QuestionnaireResult


def draw_questions(result: "QuestionnaireResult", level: float = 0.95) -> Any:
    """Draw a chart per question, one below the other, and return the figure."""
    found = result.estimates(level)
    heights = [0.9 + 0.3 * len(question.estimates) for question in found]
    figure = create_figure(8, 0.8 + sum(heights))
    charts = figure.subplots(len(found), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, question in zip(charts, found, strict=True):
        _draw_question(axes, question)
    intervals = f"{plain.format_level(level)} intervals"
    charts[-1].set_xlabel(f"{result.included:,} users, with {intervals}", size=9)
    figure.suptitle(wrap_text(_claim(result)), x=0.02, ha="left", size=7, color="0.35")
    return figure


def save_questions(result: "QuestionnaireResult", path: Path, level: float = 0.95) -> None:
    """Draw the questions into a file, in the format of its suffix."""
    save_figure(draw_questions(result, level), path, escape_controls(_claim(result)))


def _claim(result: "QuestionnaireResult") -> str:
    if result.simulation:
        return SIMULATION
    return f"{result.guarantee}, for all answers of a person together"


def _draw_question(axes: Any, question: "QuestionEstimates") -> None:
    """Draw shares as bars, and the mean of a number or a scale as a dot within its range."""
    from faircount.estimation.sheet_result import is_share, row_label

    asked = question.question
    has_shares = not isinstance(asked, SumQuestion)
    rows = [row for row in question.estimates if is_share(row) == has_shares]
    places = np.arange(len(rows))
    values = np.array([row.estimate for row in rows])
    axes.spines[["top", "right"]].set_visible(False)
    if has_shares:
        axes.barh(places, np.maximum(values, 0), color="#8fb8ad")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    else:
        axes.plot(values, places, "o", color="#3f7f70")
    if isinstance(asked, SumQuestion):
        # An estimate may lie outside the range, where noise has put it.
        least = float(asked.origin)
        greatest = float(asked.origin + asked.unit * asked.largest)
        axes.set_xlim(min(least, *values), max(greatest, *values))
    axes.hlines(places, [row.low for row in rows], [row.high for row in rows], color="black")
    axes.set_yticks(places, [axis_label(row_label(row)) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title(wrap_text(question.title, 75), size=10, loc="left")
