"""A result as a figure: a bar per item with its interval, and the guarantee in small print."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.core import plain
from faircount.core.arrays import Floats
from faircount.core.domain import escape_controls
from faircount.core.figures import create_axes, create_figure, save_figure
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.presentation import MAX_DECIMALS, Described, Frequencies, decimals_for
from faircount.estimation.result_texts import words_of

if TYPE_CHECKING:
    from faircount.estimation.result import MeanResult

LONGEST = 40  # characters of an item beside its bar


def _size(result: Frequencies) -> tuple[float, float]:
    lines = len(describe_survey(result).splitlines())
    question = 0.0
    if result.record is not None:
        question = 0.25 * len(wrap_text(result.record.question, 75).splitlines())
    return 8, 1.3 + 0.32 * len(result.items) + 0.13 * lines + question


def draw_frequencies(
    result: Frequencies,
    confidence: float,
    covers: str,
    axes: Any = None,
    *,
    consistent: bool = False,
) -> Any:
    """Draw frequencies on the axes given, or on those of a new figure, and return the axes."""
    if axes is None:
        axes = create_axes(*_size(result))
    bounds = result.interval(confidence, covers=covers)
    words = words_of(result)
    shares = result.consistent if consistent else result.estimates
    digits = decimals_for(bounds)
    texts = []
    for share, low, high in zip(shares, bounds.low, bounds.high, strict=True):
        # With its interval: a share alone would read as the number where the line ends.
        texts.append(f"{words.percent(share, digits)} ({words.range(low, high, digits)})")
    draw_bars(axes, shares, (bounds.low, bounds.high), texts)
    axes.set_yticks(np.arange(len(texts)), [axis_label(item) for item in result.items])
    axes.set_xlabel(_axis_text(result, confidence, covers, consistent=consistent), size=9)
    write_ticks(axes.xaxis, words)
    _set_heading(axes, result)
    return axes


def draw_bars(axes: Any, shares: Floats, bounds: tuple[Floats, Floats], texts: list[str]) -> None:
    """Draw a bar per share with its interval, from top to bottom, and a text beside each."""
    low, high = bounds
    places = np.arange(len(texts))
    axes.spines[["top", "right"]].set_visible(False)
    axes.barh(places, np.maximum(shares, 0), color="#8fb8ad")
    axes.hlines(places, low, high, color="black", lw=1.2)
    # An interval of length 0 would be an invisible line, so it gets a tick mark.
    points = high - low <= 0
    axes.plot(low[points], places[points], "|", color="black", markersize=9)
    axes.invert_yaxis()
    beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "size": 8}
    for place, share, end, text in zip(places, shares, high, texts, strict=True):
        axes.annotate(text, (max(share, end, 0), place), **beside)


def _set_heading(axes: Any, result: Frequencies) -> None:
    """Write the question above the bars, and the survey and the guarantee in small print."""
    about = describe_survey(result)
    if result.record is None:
        _set_title(axes, about)
        return
    question = wrap_text(result.record.question, 75)
    # A figure with other axes keeps its own title.
    if len(axes.figure.axes) > 1:
        _set_title(axes, f"{question}\n{about}")
        return
    set_survey_heading(axes.figure, question, about)


def set_survey_heading(figure: Any, question: str, about: str) -> None:
    """Write the question above the charts of a figure, and what belongs to it below them."""
    figure.suptitle(question, x=0.02, ha="left", size=12)
    # Below: on a slide the question and the bars come first.
    figure.supxlabel(about, x=0.02, ha="left", size=7, color="0.35")


def write_ticks(axis: Any, words: ResultWords) -> None:
    """Write percentages along an axis, all with as many decimal places as one of them needs."""

    def write(value: float, _: object) -> str:
        ticks = 100 * np.asarray(axis.get_majorticklocs())
        # Ticks are round numbers with rounding errors, which are no reason for more places.
        places = (digits for digits in range(MAX_DECIMALS) if _is_round(ticks, digits))
        return words.percent(value, next(places, MAX_DECIMALS))

    axis.set_major_formatter(write)


def _is_round(values: Floats, digits: int) -> bool:
    return bool(np.allclose(values, np.round(values, digits), rtol=0, atol=1e-9))


def _axis_text(result: Frequencies, confidence: float, covers: str, *, consistent: bool) -> str:
    """What the bars and lines are, and why the bars do not sum to 100%."""
    words = words_of(result)
    text = words.axis(result, confidence, covers, consistent=consistent)
    sum_note = words.short_sum_note(result)
    if sum_note is not None and not consistent:
        text += "\n" + sum_note
    return text


def draw_mean(result: "MeanResult", confidence: float, covers: str, axes: Any = None) -> Any:
    """Draw a mean between -1 and 1 as a dot with its interval, and return the axes."""
    if axes is None:
        axes = create_axes(8, 1.9)
    low, high = result.interval(confidence, covers=covers)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.hlines([0], low, high, color="black", lw=1.2)
    axes.plot([result.estimate], [0], "o", color="#3f7f70")
    axes.set_yticks([])
    # An estimate may lie outside [-1, 1], where noise has put it.
    axes.set_xlim(min(-1.05, result.estimate - 0.05), max(1.05, result.estimate + 0.05))
    interval = f"{plain.format_confidence(confidence)} interval"
    axes.set_xlabel(f"mean of {result.included:,} users, with its {interval}")
    _set_title(axes, wrap_text(claim_text(result)))
    return axes


def save_frequencies(
    result: Frequencies, path: Path, confidence: float, covers: str, *, consistent: bool = False
) -> None:
    """Draw frequencies into a file, in the format of its suffix."""
    figure = create_figure(*_size(result))
    draw_frequencies(result, confidence, covers, figure.add_subplot(), consistent=consistent)
    save_described(figure, path, result)


def save_described(figure: Any, path: Path, result: Described, *more: str) -> None:
    """Save a figure with the survey and the guarantee in its description."""
    lines = []
    if result.record is not None:
        record_lines = words_of(result).record_lines(result.record)
        lines = [f"{label}: {text}" for label, text in record_lines]
    save_figure(figure, path, escape_controls("; ".join([*lines, claim_text(result), *more])))


def describe_survey(result: Described, *more: str) -> str:
    """The survey and the guarantee, as lines of small print; `more` follows the guarantee."""
    claim = wrap_text("; ".join([claim_text(result), *more]))
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


def claim_text(result: "Described | MeanResult") -> str:
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
