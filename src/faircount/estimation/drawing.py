"""A result as a figure: a bar per item with its interval, and the guarantee in small print."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.core import plain
from faircount.core.domain import escape_controls
from faircount.core.figures import create_axes, create_figure, save_figure
from faircount.estimation.presentation import Frequencies
from faircount.estimation.result_texts import words_of

if TYPE_CHECKING:
    from faircount.estimation.result import MeanResult
    from faircount.estimation.trend import Trend

MARKS = "os^DvPX"
LONGEST = 40  # characters of an item beside its bar


def _size(result: Frequencies) -> tuple[float, float]:
    lines = len(_describe(result).splitlines())
    question = 0.0
    if result.record is not None:
        question = 0.25 * len(wrap_text(result.record.question, 75).splitlines())
    return 8, 1.3 + 0.32 * len(result.items) + 0.13 * lines + question


def draw_frequencies(
    result: Frequencies, level: float, covers: str, axes: Any = None, *, consistent: bool = False
) -> Any:
    """Draw frequencies on the axes given, or on those of a new figure, and return the axes."""
    if axes is None:
        axes = create_axes(*_size(result))
    bounds = result.interval(level, covers=covers)
    places = np.arange(len(result.items))
    axes.spines[["top", "right"]].set_visible(False)
    shares = result.consistent if consistent else result.estimates
    axes.barh(places, np.maximum(shares, 0), color="#8fb8ad")
    axes.hlines(places, bounds.low, bounds.high, color="black", lw=1.2)
    # An interval of length 0 would be an invisible line, so it gets a tick mark.
    points = bounds.width <= 0
    axes.plot(bounds.low[points], places[points], "|", color="black", markersize=9)
    axes.set_yticks(places, [axis_label(item) for item in result.items])
    axes.invert_yaxis()
    axes.set_xlabel(_axis_text(result, level, covers, consistent=consistent), size=9)
    words = words_of(result)
    axes.xaxis.set_major_formatter(lambda value, _: words.tick(value))
    beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "size": 8}
    for place, share, low, high in zip(places, shares, bounds.low, bounds.high, strict=True):
        # With its interval: a share alone would read as the number where the line ends.
        text = f"{words.percent(share)} ({words.range(low, high)})"
        axes.annotate(text, (max(share, high, 0), place), **beside)
    _set_heading(axes, result)
    return axes


def _set_heading(axes: Any, result: Frequencies) -> None:
    """Write the question above the bars, and the survey and the guarantee in small print."""
    about = _describe(result)
    if result.record is None:
        _set_title(axes, about)
        return
    question = wrap_text(result.record.question, 75)
    # A figure with other axes keeps its own title.
    if len(axes.figure.axes) > 1:
        _set_title(axes, f"{question}\n{about}")
        return
    axes.figure.suptitle(question, x=0.02, ha="left", size=12)
    # Below: on a slide the question and the bars come first.
    axes.figure.supxlabel(about, x=0.02, ha="left", size=7, color="0.35")


def _axis_text(result: Frequencies, level: float, covers: str, *, consistent: bool) -> str:
    """What the bars and lines are, and why the bars do not sum to 100%."""
    words = words_of(result)
    text = words.axis(result, level, covers, consistent=consistent)
    sum_note = words.short_sum_note(result)
    if sum_note is not None and not consistent:
        text += "\n" + sum_note
    return text


def draw_trend(trend: "Trend", axes: Any = None) -> Any:
    """Draw shares over several surveys, a line per item with intervals, and return the axes."""
    if axes is None:
        axes = create_axes(*_trend_size(trend))
    axes.spines[["top", "right"]].set_visible(False)
    places = np.arange(len(trend.results), dtype=np.float64)
    shares = np.array([result.estimates for result in trend.results])
    bounds = [result.interval(trend.level, covers=trend.covers) for result in trend.results]
    count = len(trend.items)
    for item, label in enumerate(trend.items):
        # Beside each other, so that intervals do not cover one another.
        at = places + 0.3 * ((item + 0.5) / count - 0.5)
        low = [bound.low[item] for bound in bounds]
        high = [bound.high[item] for bound in bounds]
        colour = f"C{item % 10}"
        # Marks differ too, for readers who cannot tell colours apart.
        mark = MARKS[item % len(MARKS)]
        axes.plot(at, shares[:, item], f"{mark}-", color=colour, label=axis_label(label), lw=1.4)
        axes.vlines(at, low, high, color=colour, lw=1.2)
    titles = [axis_label(title).replace(", ", "\n") for title in trend.titles]
    axes.set_xticks(places, titles)
    axes.set_xlim(-0.4, len(places) - 0.6)
    axes.set_ylim(bottom=min(0.0, float(shares.min())))
    words = words_of(trend.results[-1])
    axes.yaxis.set_major_formatter(lambda value, _: words.tick(value))
    axes.set_ylabel(words.trend_axis(trend.level), size=9)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    _set_trend_heading(axes, trend)
    return axes


def _trend_size(trend: "Trend") -> tuple[float, float]:
    return 8, max(4.2, 2.2 + 0.22 * len(trend.items))


def _set_trend_heading(axes: Any, trend: "Trend") -> None:
    lines = []
    for name, result in zip(trend.names, trend.results, strict=True):
        people = f"{result.included:,} counted"
        if result.record is not None:
            people = words_of(result).people(result.record)
        epsilon = f"epsilon {result.guarantee.epsilon:.4g}"
        lines.append(wrap_text(f"{name}: {people}; {epsilon}"))
    record = trend.results[-1].record
    if record is not None and len(axes.figure.axes) == 1:
        axes.figure.suptitle(wrap_text(record.question, 75), x=0.02, ha="left", size=12)
    _set_title(axes, "\n".join(lines))


def save_trend(trend: "Trend", path: Path) -> None:
    """Draw a trend into a file, in the format of its suffix."""
    figure = create_figure(*_trend_size(trend))
    draw_trend(trend, figure.add_subplot())
    parts = []
    for name, result in zip(trend.names, trend.results, strict=True):
        parts.append(f"{name}: {_claim(result)}")
    save_figure(figure, path, escape_controls("; ".join(parts)))


def draw_mean(result: "MeanResult", level: float, covers: str, axes: Any = None) -> Any:
    """Draw a mean between -1 and 1 as a dot with its interval, and return the axes."""
    if axes is None:
        axes = create_axes(8, 1.9)
    low, high = result.interval(level, covers=covers)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.hlines([0], low, high, color="black", lw=1.2)
    axes.plot([result.estimate], [0], "o", color="#3f7f70")
    axes.set_yticks([])
    # An estimate may lie outside [-1, 1], where noise has put it.
    axes.set_xlim(min(-1.05, result.estimate - 0.05), max(1.05, result.estimate + 0.05))
    interval = f"{plain.format_level(level)} interval"
    axes.set_xlabel(f"mean of {result.included:,} users, with its {interval}")
    _set_title(axes, wrap_text(_claim(result)))
    return axes


def save_frequencies(
    result: Frequencies, path: Path, level: float, covers: str, *, consistent: bool = False
) -> None:
    """Draw frequencies into a file, in the format of its suffix."""
    figure = create_figure(*_size(result))
    draw_frequencies(result, level, covers, figure.add_subplot(), consistent=consistent)
    description = _claim(result)
    if result.record is not None:
        record_lines = words_of(result).record_lines(result.record)
        lines = [f"{label}: {text}" for label, text in record_lines]
        description = "; ".join([*lines, description])
    save_figure(figure, path, escape_controls(description))


def _describe(result: Frequencies) -> str:
    """The survey and the guarantee, as lines of small print."""
    claim = wrap_text(_claim(result))
    if result.record is None:
        return claim
    record = result.record
    words = words_of(result)
    facts = [record.owner, words.dates(record), words.people(record), words.survey_id(record)]
    # On a slide, two operators need no space; one of both servers must not be hidden.
    if record.one_operator:
        facts.append(words.servers(record))
    about = "; ".join(filter(None, facts))
    return f"{wrap_text(about)}\n{claim}"


def wrap_text(text: str, width: int = 110) -> str:
    """Return a text in lines, as matplotlib shows it literally."""
    # Between two dollar signs matplotlib would read a formula.
    return "\n".join(textwrap.wrap(escape_controls(text), width)).replace("$", r"\$")


def _set_title(axes: Any, text: str) -> None:
    axes.set_title(text, size=7, loc="left", color="0.35")


def _claim(result: "Frequencies | MeanResult") -> str:
    """Return the guarantee in words, or the warning that a simulation has none."""
    words = words_of(result)
    return words.simulation if result.simulation else words.claim(result.guarantee)


def axis_label(item: object) -> str:
    """Return an item as the label of its bar, shortened so that it leaves space for the bars."""
    text = escape_controls(item)
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    # Between two dollar signs matplotlib would read a formula.
    return text.replace("$", r"\$")
