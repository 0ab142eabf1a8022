"""A result as a figure: a bar per item with its interval, and the guarantee above it."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.core.domain import escape_controls
from faircount.core.figures import create_axes, create_figure, save_figure
from faircount.estimation.presentation import SIMULATION, Frequencies

if TYPE_CHECKING:
    from faircount.estimation.result import MeanResult

LONGEST = 40  # characters of an item beside its bar


def _size(result: Frequencies) -> tuple[float, float]:
    return 8, 1.6 + 0.32 * len(result.items)


def draw_frequencies(result: Frequencies, level: float, covers: str, axes: Any = None) -> Any:
    """Draw frequencies on the axes given, or on those of a new figure, and return the axes."""
    if axes is None:
        axes = create_axes(*_size(result))
    bounds = result.interval(level, covers=covers)
    places = np.arange(len(result.items))
    axes.spines[["top", "right"]].set_visible(False)
    axes.barh(places, np.maximum(result.estimates, 0), color="#8fb8ad")
    axes.hlines(places, bounds.low, bounds.high, color="black", lw=1.2)
    # An interval of length 0 would be an invisible line, so it gets a tick mark.
    points = bounds.width <= 0
    axes.plot(bounds.low[points], places[points], "|", color="black", markersize=9)
    axes.set_yticks(places, [axis_label(item) for item in result.items])
    axes.invert_yaxis()
    axes.set_xlabel(f"share of {result.included:,} users, with {level:.0%} intervals")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    _set_title(axes, result)
    return axes


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
    axes.set_xlabel(f"mean of {result.included:,} users, with its {level:.0%} interval")
    _set_title(axes, result)
    return axes


def save_frequencies(result: Frequencies, path: Path, level: float, covers: str) -> None:
    """Draw frequencies into a file, in the format of its suffix."""
    figure = create_figure(*_size(result))
    draw_frequencies(result, level, covers, figure.add_subplot())
    save_figure(figure, path, _claim(result))


def _set_title(axes: Any, result: "Frequencies | MeanResult") -> None:
    title = "\n".join(textwrap.wrap(_claim(result), 100))
    axes.set_title(title, size=7, loc="left", color="0.35")


def _claim(result: "Frequencies | MeanResult") -> str:
    """Return the guarantee in words, or the warning that a simulation has none."""
    return SIMULATION if result.simulation else str(result.guarantee)


def axis_label(item: object) -> str:
    """Return an item as the label of its bar, shortened so that it leaves space for the bars."""
    text = escape_controls(item)
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    # Between two dollar signs matplotlib would read a formula.
    return text.replace("$", r"\$")
