"""A trend as a figure: a chart per question, with a line per estimate and its intervals."""

from pathlib import Path
from typing import Any

import numpy as np

from faircount.core.domain import escape_controls
from faircount.core.figures import create_figure, save_figure
from faircount.estimation.drawing import axis_label, claim_text, wrap_text, write_ticks
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.result_texts import words_of
from faircount.estimation.sheet_estimates import is_share
from faircount.estimation.trend import QuestionTrend, Trend

MARKS = "os^DvPX"


def draw_trend(trend: Trend) -> Any:
    """Draw the questions of several surveys over time, and return the figure."""
    heights = [max(4.2, 2.2 + 0.22 * len(question.labels)) for question in trend.questions]
    figure = create_figure(8, sum(heights))
    charts = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    words = words_of(trend.results[-1])
    for axes, question in zip(charts, trend.questions, strict=True):
        _draw_question(axes, trend, question, words)
        if len(trend.questions) > 1:
            axes.set_title(wrap_text(question.title, 90), size=10, loc="left")
    _set_heading(figure, trend)
    return figure


def _draw_question(axes: Any, trend: Trend, question: QuestionTrend, words: ResultWords) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    places = np.arange(len(question.series), dtype=np.float64)
    # Shares and means have no common axis: means are drawn where there is nothing else.
    drawn = [place for place, row in enumerate(question.series[0].estimates) if is_share(row)]
    has_shares = bool(drawn)
    drawn = drawn or list(range(len(question.labels)))
    lowest = 0.0
    for line, place in enumerate(drawn):
        rows = [entry.estimates[place] for entry in question.series]
        # Beside each other, so that intervals do not cover one another.
        at = places + 0.3 * ((line + 0.5) / len(drawn) - 0.5)
        colour = f"C{line % 10}"
        # Marks differ too, for readers who cannot tell colours apart.
        style = f"{MARKS[line % len(MARKS)]}-"
        values = [row.estimate for row in rows]
        lowest = min(lowest, *values)
        label = axis_label(question.labels[place])
        axes.plot(at, values, style, color=colour, label=label, lw=1.4)
        axes.vlines(at, [row.low for row in rows], [row.high for row in rows], color=colour, lw=1.2)
    titles = [axis_label(title).replace(", ", "\n") for title in trend.titles]
    axes.set_xticks(places, titles)
    axes.set_xlim(-0.4, len(places) - 0.6)
    if has_shares:
        axes.set_ylim(bottom=lowest)
        write_ticks(axes.yaxis, words)
        axes.set_ylabel(words.trend_axis(trend.confidence), size=9)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)


def _set_heading(figure: Any, trend: Trend) -> None:
    lines = []
    for name, result in zip(trend.names, trend.results, strict=True):
        people = f"{result.included:,} counted"
        if result.record is not None:
            people = words_of(result).people(result.record)
        epsilon = f"epsilon {result.guarantee.epsilon:.4g}"
        lines.append(wrap_text(f"{name}: {people}; {epsilon}"))
    record = trend.results[-1].record
    if record is not None:
        figure.suptitle(wrap_text(record.question, 75), x=0.02, ha="left", size=12)
    figure.supxlabel("\n".join(lines), x=0.02, ha="left", size=7, color="0.35")


def save_trend(trend: Trend, path: Path) -> None:
    """Draw a trend into a file, in the format of its suffix."""
    parts = []
    for name, result in zip(trend.names, trend.results, strict=True):
        parts.append(f"{name}: {claim_text(result)}")
    save_figure(draw_trend(trend), path, escape_controls("; ".join(parts)))
