"""How the pictures look: page width, colours that everybody can tell apart, theory as lines, measured as points.

matplotlib is loaded when the first picture is drawn. Neither a screen nor the user's own settings of it are touched.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError
from faircount.experiments.studies.study import Line

WIDTH = 7.2
"""Inches: the width of a page's text."""

DPI = 200
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F",
)  # fmt: skip
"""Okabe and Ito's colours, which remain apart for the colour-blind, and a grey."""

SUMMED = "mean squared error,\nsummed over items"
STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.grid": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "svg.hashsalt": "faircount",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Look:
    """Label, colour, marker and dash of a series."""

    label: str
    color: str
    marker: str = "o"
    dash: str = "-"
    filled: bool = True
    weight: float = 1.2
    shift: float = 0.0
    """How far measured points stand beside their place on the axis, so that none hides another."""

    @property
    def front(self) -> int:
        """Drawing order: heavy lines lie over light ones."""
        return 4 if self.weight > 1.5 else 2


@dataclass
class Picture:
    """A figure being drawn: a row (or grid) of panels and one legend below."""

    rows: int
    columns: int
    height: float
    sharey: bool | str = False
    figure: Any = field(init=False)
    axes: Any = field(init=False)

    def __post_init__(self) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(WIDTH, self.height), layout="constrained")
        self.axes = self.figure.subplots(self.rows, self.columns, sharey=self.sharey, squeeze=False)

    def legend(self, columns: int) -> None:
        """One legend for all panels, below them, from the first panel."""
        handles, labels = self.axes.flat[0].get_legend_handles_labels()
        unique = dict(zip(labels, handles, strict=True))
        self.figure.legend(
            unique.values(),
            unique.keys(),
            loc="outside lower center",
            ncol=columns,
            frameon=False,
            handlelength=2.6,
            columnspacing=1.4,
        )

    def save(self, stem: Path) -> None:
        """As PNG and SVG, without dates, so that the same numbers give the same files."""
        for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            self.figure.savefig(stem.with_suffix(f".{suffix}"), dpi=DPI, metadata=metadata)


def require_matplotlib() -> None:
    """Ask for matplotlib before anything runs, rather than after."""
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError:
        raise ParameterError("pictures need matplotlib: pip install 'faircount[plot]'") from None


@contextmanager
def style() -> Iterator[None]:
    """The look of all pictures, in force while they are drawn and saved."""
    require_matplotlib()
    import matplotlib as mpl

    settings: Any = STYLE  # matplotlib's type lists every key there is
    with mpl.rc_context(settings):
        yield


def curve(ax: Any, lines: Sequence[Line], x: str, look: Look) -> None:
    """Theory as a line with the band that 19 of 20 averages fall in, measured averages as points with 95% bars."""
    rows = sorted(lines, key=lambda line: float(line.point[x]))
    at = [float(line.point[x]) for line in rows]
    ax.plot(
        at, [line.expected.mean for line in rows], look.dash, color=look.color, linewidth=look.weight, zorder=look.front
    )
    band = [_band(line) for line in rows]
    ax.fill_between(at, [low for low, _ in band], [high for _, high in band], color=look.color, alpha=0.13, linewidth=0)
    points(ax, rows, [place + look.shift for place in at], look)
    ax.plot([], [], look.dash, marker=look.marker, color=look.color, linewidth=look.weight, label=look.label)


def points(ax: Any, rows: Sequence[Line], at: Sequence[float], look: Look) -> None:
    """Measured averages with 95% intervals; an interval that would reach below zero is cut for the logarithm."""
    means = [line.mean for line in rows]
    down = [line.mean - max(line.low, 0.02 * line.mean) for line in rows]
    up = [line.high - line.mean for line in rows]
    size = 7 if look.marker == "*" else None  # a star's body is small
    ax.errorbar(
        at,
        means,
        yerr=(down, up),
        fmt=look.marker,
        color=look.color,
        elinewidth=0.8,
        markersize=size,
        zorder=look.front + 1,
    )


def strokes(ax: Any, rows: Sequence[Line], at: Sequence[float], width: float, look: Look) -> None:
    """Points with theory as short horizontal strokes, where the axis has no order to draw a line along."""
    points(ax, rows, at, look)
    theory = [line.expected.mean for line in rows]
    ends = ([each - width / 2 for each in at], [each + width / 2 for each in at])
    ax.hlines(theory, *ends, color=look.color, linewidth=1.6, zorder=2)
    ax.plot([], [], look.marker, color=look.color, label=look.label)


def named_places(ax: Any, names: Sequence[str], size: float) -> None:
    """The axes of such strokes: places with names below, errors logarithmic."""
    ax.plot([], [], "-", color=GREY, linewidth=1.6, label="strokes: theory")
    logarithmic(ax)
    ax.set_xticks(range(len(names)), names, fontsize=size)
    ax.grid(visible=False, axis="x")


def _band(line: Line) -> tuple[float, float]:
    """Where an average of so many runs falls in 19 of 20 cases, by theory (by the measured spread if it knows none)."""
    error = 1.96 * line.error_of_mean
    return max(line.expected.mean - error, 0.02 * line.expected.mean), line.expected.mean + error


def per_item(ax: Any, items: int) -> None:
    """A second scale on the right: the same error divided by N."""
    right = ax.secondary_yaxis("right", functions=(lambda y: y / items, lambda y: y * items))
    right.set_ylabel(f"per item (÷ {items})", fontsize=7, color=GREY)
    right.tick_params(labelsize=6.5, colors=GREY, which="both")
    _decades_only(right.yaxis)


def logarithmic(ax: Any) -> None:
    """A logarithmic error axis that names its decades only."""
    ax.set_yscale("log")
    _decades_only(ax.yaxis)


def _decades_only(axis: Any) -> None:
    from matplotlib.ticker import NullFormatter

    axis.set_minor_formatter(NullFormatter())


def printed(ax: Any, at: Sequence[float], values: Sequence[float], label: str) -> None:
    """What the paper prints, as open rings: whatever was measured at the same place stays visible inside."""
    style = {"color": VERMILION, "markersize": 10, "markerfacecolor": "none", "markeredgewidth": 1.6, "zorder": 6}
    ax.plot(list(at), list(values), "o", label=label, **style)


def short(value: float) -> str:
    """A number for a legend: 1e-7, not 1e-07."""
    return f"{value:g}".replace("e-0", "e-")


def proxies(ax: Any, runs: int) -> None:
    """Explain points, lines and bands once, in the legend."""
    ax.plot([], [], "o", color=GREY, markersize=4, label="points: measured, 95% intervals")
    ax.plot([], [], "-", color=GREY, label=f"lines: theory; bands: 95% of {runs}-run averages")
