"""Draw the 95% error of every mechanism against the number of users."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from faircount.core.figures import create_axes, create_figure, save_figure
from faircount.planning.accuracy import curves
from faircount.planning.request import PlanRequest

SIZE = (8, 5)
# Enough for smooth lines, and few enough to be computed in seconds.
POINTS = 25
# Fixed colours, so that a mechanism looks the same in every figure.
COLOURS = {
    "laplace": "#0b6e4f",
    "decoys": "#c8553d",
    "dpdg": "#3d5a80",
    "dpds": "#8f2d56",
    "tss-prime": "#7a6c5d",
    "oue": "#6c757d",
    "grr": "#adb5bd",
}


def plan_file(request: PlanRequest, path: Path) -> None:
    """Draw into a file, in the format of its suffix."""
    figure = create_figure(*SIZE)
    plan_axes(request, figure.add_subplot())
    save_figure(figure, path)


def plan_axes(request: PlanRequest, axes: Any = None) -> Any:
    """Draw on the axes given, or on those of a new figure, and return them.

    Both scales are logarithmic, and each line is labelled at its end.
    """
    axes = create_axes(*SIZE) if axes is None else axes
    # From a thirtieth to thirty times the users asked about: the lines of most mechanisms cross in
    # that range.
    span = np.geomspace(max(10, request.users / 30), request.users * 30, POINTS)
    sizes = np.unique(span.astype(int)).tolist()
    axes.spines[["top", "right"]].set_visible(False)
    ends = {}
    for name, values in curves(request, sizes).items():
        if name == "dpcs":  # needs a trusted server, so it is no alternative to the others
            continue
        # A mechanism that refuses small numbers of users has a line that starts later.
        points = [(n, value) for n, value in zip(sizes, values, strict=True) if value is not None]
        axes.plot(
            [users for users, _ in points],
            [error for _, error in points],
            color=COLOURS.get(name, "black"),
            lw=1.6,
        )
        if points:
            ends[name] = points[-1][1]
    _label_lines(axes, ends, sizes[-1])
    _draw_guides(axes, request, sizes)
    axes.set(xscale="log", yscale="log", xlabel="users", ylabel="95% error of an item's frequency")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    title = f"epsilon {request.epsilon:g}, delta {request.delta:g}, {request.items} items"
    if request.releases > 1:
        title += f", {request.releases} releases"
    axes.set_title(title, size=10)
    return axes


def _label_lines(axes: Any, ends: dict[str, float], users: int) -> None:
    """Write the names at the right end of the lines, moved apart where lines meet."""
    if not ends:
        return
    span = math.log10(max(ends.values())) - math.log10(min(ends.values()))
    gap = max(0.04 * (span + 2), 0.05)
    last = -math.inf
    for name, end in sorted(ends.items(), key=lambda entry: entry[1]):
        # From the bottom up, every name at least one gap above the one before.
        last = max(math.log10(end), last + gap)
        axes.annotate(
            name,
            (users, 10**last),
            (5, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS.get(name, "black"),
        )


def _draw_guides(axes: Any, request: PlanRequest, sizes: list[int]) -> None:
    """Mark the number of users asked about, the target error, and the average frequency."""
    small = {"textcoords": "offset points", "color": "0.4", "size": 8}
    axes.axvline(request.users, color="0.8", lw=0.8, zorder=0)
    place = (request.users, 1)
    corner = ("data", "axes fraction")
    axes.annotate(f"{request.users:,} users", place, (3, -9), xycoords=corner, **small)

    def draw_level(height: float, label: str, users: int, side: str) -> None:
        axes.axhline(height, color="0.6", lw=0.8, ls="--", zorder=0)
        axes.annotate(label, (users, height), (0, 3), ha=side, **small)

    if request.target_error is not None:
        draw_level(request.target_error, "target", sizes[0], "left")
    draw_level(1 / request.items, "frequency of an average item", sizes[-1], "right")
