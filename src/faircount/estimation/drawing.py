"""A result as a figure: a bar per item with its interval, the guarantee above."""

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from faircount.core.domain import shown
from faircount.core.figures import blank_figure, save_figure, shown_axes
from faircount.estimation.presentation import SIMULATION, Frequencies

if TYPE_CHECKING:
    from faircount.estimation.result import MeanResult

LONGEST = 40  # characters of an item beside its bar


def _size(result: Frequencies) -> tuple[float, float]:
    return 8, 1.6 + 0.32 * len(result.items)


def result_axes(result: Frequencies, level: float, covers: str, axes: Any = None) -> Any:
    """Draw on the axes given, or on those of a new figure."""
    axes = shown_axes(*_size(result)) if axes is None else axes
    bounds, places = result.interval(level, covers=covers), np.arange(len(result.items))
    axes.spines[["top", "right"]].set_visible(False)
    axes.barh(places, np.maximum(result.estimates, 0), color="#8fb8ad")
    axes.hlines(places, bounds.low, bounds.high, color="black", lw=1.2)
    points = bounds.width <= 0  # a line without length would not be seen
    axes.plot(bounds.low[points], places[points], "|", color="black", markersize=9)
    axes.set_yticks(places, [label(item) for item in result.items])
    axes.invert_yaxis()
    axes.set_xlabel(f"share of {result.included:,} users, with {level:.0%} intervals")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
    _head(axes, result)
    return axes


def mean_axes(result: "MeanResult", level: float, covers: str, axes: Any = None) -> Any:
    """A mean between -1 and 1, a dot with its interval: on the axes given, or on those of a new figure."""
    target, (low, high) = shown_axes(8, 1.9) if axes is None else axes, result.interval(level, covers=covers)
    target.spines[["top", "right", "left"]].set_visible(False)
    target.hlines([0], low, high, color="black", lw=1.2)
    target.plot([result.estimate], [0], "o", color="#3f7f70")
    target.set_yticks([])
    target.set_xlim(min(-1.05, result.estimate - 0.05), max(1.05, result.estimate + 0.05))
    target.set_xlabel(f"mean of {result.included:,} users, with its {level:.0%} interval")
    _head(target, result)
    return target


def result_file(result: Frequencies, path: Path, level: float, covers: str) -> None:
    """Draw into a file, in the format of its suffix."""
    figure = blank_figure(*_size(result))
    result_axes(result, level, covers, figure.add_subplot())
    save_figure(figure, path, _promise(result))


def _head(axes: Any, result: "Frequencies | MeanResult") -> None:
    """The guarantee above the figure, or that there is none."""
    axes.set_title("\n".join(textwrap.wrap(_promise(result), 100)), size=7, loc="left", color="0.35")


def _promise(result: "Frequencies | MeanResult") -> str:
    return SIMULATION if result.simulation else str(result.guarantee)


def label(item: object) -> str:
    """An item beside its bar: cut where it would take the room of the bars, and nothing in it is a formula."""
    words = shown(item)
    return (words if len(words) <= LONGEST else words[: LONGEST - 1] + "…").replace("$", r"\$")
