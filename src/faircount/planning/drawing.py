"""A plan as a figure: 95% error against the number of users, a line per mechanism."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from faircount.core.figures import blank_figure, save_figure, shown_axes
from faircount.planning.accuracy import curves
from faircount.planning.question import Question

SIZE = (8, 5)
POINTS = 25
COLOURS = {
    "laplace": "#0b6e4f",
    "decoys": "#c8553d",
    "dpdg": "#3d5a80",
    "dpds": "#8f2d56",
    "tss-prime": "#7a6c5d",
    "oue": "#6c757d",
    "grr": "#adb5bd",
}


def plan_file(question: Question, path: Path) -> None:
    """Draw into a file, in the format of its suffix."""
    figure = blank_figure(*SIZE)
    plan_axes(question, figure.add_subplot())
    save_figure(figure, path)


def plan_axes(asked: Question, axes: Any = None) -> Any:
    """Draw on the axes given, or on those of a new figure; both logarithmic, each line labelled at its end."""
    axes = shown_axes(*SIZE) if axes is None else axes
    sizes = np.unique(np.geomspace(max(10, asked.users / 30), asked.users * 30, POINTS).astype(int)).tolist()
    drawn = {name: _known(sizes, values) for name, values in curves(asked, sizes).items() if name != "dpcs"}
    axes.spines[["top", "right"]].set_visible(False)
    for name, (users, errors) in drawn.items():
        axes.plot(users, errors, color=COLOURS.get(name, "black"), lw=1.6)
    _name_lines(axes, {name: errors[-1] for name, (_, errors) in drawn.items() if errors}, sizes[-1])
    _mark(axes, asked, sizes)
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="95% error of an item's frequency")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    several = f", {asked.releases} releases" if asked.releases > 1 else ""
    axes.set_title(f"epsilon {asked.epsilon:g}, delta {asked.delta:g}, {asked.items} items{several}", size=10)
    return axes


def _known(sizes: list[int], values: list[float | None]) -> tuple[list[int], list[float]]:
    pairs = [(n, value) for n, value in zip(sizes, values, strict=True) if value is not None]
    return [n for n, _ in pairs], [value for _, value in pairs]


def _name_lines(axes: Any, ends: dict[str, float], at: int) -> None:
    """Names at the right end of the lines, moved apart where lines meet; every line ends at the most users."""
    if not ends:
        return
    low, high = (math.log10(each) for each in (min(ends.values()), max(ends.values())))
    gap, last = max(0.04 * (high - low + 2), 0.05), -math.inf
    for name, end in sorted(ends.items(), key=lambda entry: entry[1]):
        last = max(math.log10(end), last + gap)
        place = {"textcoords": "offset points", "va": "center", "color": COLOURS.get(name, "black")}
        axes.annotate(name, (at, 10**last), (5, 0), **place)


def _mark(axes: Any, asked: Question, sizes: list[int]) -> None:
    """The number of users asked about, the wanted error, and the size of the answers themselves."""
    small = {"textcoords": "offset points", "color": "0.4", "size": 8}
    axes.axvline(asked.users, color="0.8", lw=0.8, zorder=0)
    axes.annotate(f"{asked.users:,} users", (asked.users, 1), (3, -9), xycoords=("data", "axes fraction"), **small)
    for height, words, at in (
        (asked.target_error, "target", sizes[0]),
        (1 / asked.items, "frequency of an average item", sizes[-1]),
    ):
        if height is not None:
            axes.axhline(height, color="0.6", lw=0.8, ls="--", zorder=0)
            axes.annotate(words, (at, height), (0, 3), ha="left" if at == sizes[0] else "right", **small)
