"""Figures: matplotlib is loaded when one is drawn, and not before."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faircount.analysis.groups import GroupedHistogram
    from faircount.estimation.result import Result
    from faircount.planning.plan import Plan

POINTS = 25
LONGEST = 40  # characters of an item beside its bar
COLOURS = {
    "laplace": "#0b6e4f",
    "decoys": "#c8553d",
    "dpdg": "#3d5a80",
    "dpds": "#8f2d56",
    "tss-prime": "#7a6c5d",
    "oue": "#6c757d",
    "grr": "#adb5bd",
}


@contextmanager
def figure(path: Path, width: float, height: float) -> Iterator[Any]:
    """Axes to draw on; written to the path, in the format of its suffix, at the end."""
    from faircount.core.errors import FaircountError, ParameterError

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"a plot is a .png, .svg or .pdf file, not {path.name}")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FaircountError("plots need matplotlib: install faircount[plot]") from None
    drawing = Figure(figsize=(width, height), layout="constrained", dpi=150)
    axes = drawing.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    yield axes
    try:
        with warnings.catch_warnings():  # a label may have letters that the font lacks: they are drawn as boxes
            warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
            drawing.savefig(path)
    except OSError as problem:
        raise FaircountError(f"{path} cannot be written: {(problem.strerror or 'unknown reason').lower()}") from None


def plan_figure(made: "Plan", path: Path) -> None:
    """95% error against the number of users, every mechanism, both axes logarithmic, each line labelled at its end."""
    import numpy as np

    from faircount.planning.accuracy import curves

    asked = made.question
    sizes = np.unique(np.geomspace(max(10, asked.users / 30), asked.users * 30, POINTS).astype(int)).tolist()
    drawn = {name: _known(sizes, values) for name, values in curves(asked, sizes).items() if name != "dpcs"}
    with figure(path, 8, 5) as axes:
        for name, (users, errors) in drawn.items():
            axes.plot(users, errors, color=COLOURS.get(name, "black"), lw=1.6)
        _name_lines(axes, {name: errors[-1] for name, (_, errors) in drawn.items() if errors}, sizes[-1])
        _mark(axes, made, sizes)
        axes.set(xscale="log", yscale="log", xlabel="users", ylabel="95% error of an item's frequency")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        several = f", {asked.releases} releases" if asked.releases > 1 else ""
        axes.set_title(f"epsilon {asked.epsilon:g}, delta {asked.delta:g}, {asked.items} items{several}", size=10)


def _known(sizes: list[int], values: list[float | None]) -> tuple[list[int], list[float]]:
    pairs = [(n, value) for n, value in zip(sizes, values, strict=True) if value is not None]
    return [n for n, _ in pairs], [value for _, value in pairs]


def _name_lines(axes: Any, ends: dict[str, float], at: int) -> None:
    """Names at the right end of the lines, moved apart where lines meet; every line ends at the most users."""
    import math

    low, high = (math.log10(each) for each in (min(ends.values()), max(ends.values())))
    gap, last = max(0.04 * (high - low + 2), 0.05), -math.inf
    for name, end in sorted(ends.items(), key=lambda entry: entry[1]):
        last = max(math.log10(end), last + gap)
        place = {"textcoords": "offset points", "va": "center", "color": COLOURS.get(name, "black")}
        axes.annotate(name, (at, 10**last), (5, 0), **place)


def _mark(axes: Any, made: "Plan", sizes: list[int]) -> None:
    """The number of users asked about, the wanted error, and the size of the answers themselves."""
    small = {"textcoords": "offset points", "color": "0.4", "size": 8}
    asked = made.question
    axes.axvline(asked.users, color="0.8", lw=0.8, zorder=0)
    axes.annotate(f"{asked.users:,} users", (asked.users, 1), (3, -9), xycoords=("data", "axes fraction"), **small)
    for level, words, at in (
        (asked.target_error, "target", sizes[0]),
        (1 / asked.items, "frequency of an average item", sizes[-1]),
    ):
        if level is not None:
            axes.axhline(level, color="0.6", lw=0.8, ls="--", zorder=0)
            axes.annotate(words, (at, level), (0, 3), ha="left" if at == sizes[0] else "right", **small)


def result_figure(result: "Result | GroupedHistogram", path: Path, level: float = 0.95) -> None:
    """A bar per item with its interval, the guarantee (or the warning that there is none) above."""
    import textwrap

    import numpy as np

    from faircount.estimation.result import SIMULATION

    bounds, places = result.interval(level), np.arange(len(result.items))
    with figure(path, 8, 1.6 + 0.32 * len(result.items)) as axes:
        axes.barh(places, np.maximum(result.estimates, 0), color="#8fb8ad")
        axes.hlines(places, bounds.low, bounds.high, color="black", lw=1.2)
        axes.set_yticks(places, [_label(item) for item in result.items])
        axes.invert_yaxis()
        axes.set_xlabel(f"share of {result.included:,} users, with {level:.0%} intervals")
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}%")
        words = SIMULATION if result.simulation else str(result.guarantee)
        axes.set_title("\n".join(textwrap.wrap(words, 100)), size=7, loc="left", color="0.35")


def _label(item: object) -> str:
    """An item beside its bar: cut where it would take the room of the bars, and nothing in it is a formula."""
    from faircount.core.domain import shown

    words = shown(item)
    return (words if len(words) <= LONGEST else words[: LONGEST - 1] + "…").replace("$", r"\$")
