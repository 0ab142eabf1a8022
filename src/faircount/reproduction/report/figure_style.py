"""How the pictures look: one page wide, theory as lines, measurements as points.

The colours can be told apart by everybody. matplotlib is imported when the first picture is drawn;
it needs no screen, and the user's own settings of it are not changed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError
from faircount.reproduction.studies.study import Line

# In inches: the width of a page's text.
WIDTH = 7.2

DPI = 200

# The palette of Okabe and Ito, which the colour-blind can tell apart, and a grey.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
BLUE = "#0072B2"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
GREY = "#7F7F7F"

SUMMED = "mean squared error,\nsummed over items"

# 97.5% quantile of the normal distribution, for bands that hold 19 of 20 averages.
NORMAL_QUANTILE = 1.96

# On a logarithmic axis an interval that would reach below zero ends at this share of its mean.
LOWEST_SHARE = 0.02

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
    # A fixed salt for ids and text as paths: the same numbers give the same SVG on every machine.
    "svg.hashsalt": "faircount",
    "svg.fonttype": "path",
}


@dataclass(frozen=True)
class Look:
    """Label, colour, marker and dash of a series.

    shift: how far measured points are moved along the axis, so that none hides another
    """

    label: str
    color: str
    marker: str = "o"
    dash: str = "-"
    filled: bool = True
    weight: float = 1.2
    shift: float = 0.0

    @property
    def zorder(self) -> int:
        """Drawing order: heavy lines are drawn over light ones."""
        return 4 if self.weight > 1.5 else 2


@dataclass
class Picture:
    """A figure being drawn: a row or grid of panels and one legend below."""

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

    def add_legend(self, columns: int) -> None:
        """One legend for all panels, below them, with the entries of the first panel."""
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
    """Raise an error that says what to install if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401  # only whether it is there
    except ImportError:
        raise ParameterError("pictures need matplotlib: pip install 'faircount[plot]'") from None


@contextmanager
def picture_style() -> Iterator[None]:
    """Apply the look of all pictures while they are drawn and saved."""
    require_matplotlib()
    import matplotlib as mpl

    # matplotlib's type lists every key that there is.
    settings: Any = STYLE
    with mpl.rc_context(settings):
        yield


def draw_curve(ax: Any, lines: Sequence[Line], x: str, look: Look) -> None:
    """Theory as a line with a band of 19 in 20 averages; measured averages as points with bars."""
    ordered = sorted(lines, key=lambda line: float(line.point[x]))
    places = [float(line.point[x]) for line in ordered]
    theory = [line.expected.mean for line in ordered]
    low = []
    high = []
    for line in ordered:
        # By theory, or by the measured spread where theory knows none.
        error = NORMAL_QUANTILE * line.error_of_mean
        low.append(max(line.expected.mean - error, LOWEST_SHARE * line.expected.mean))
        high.append(line.expected.mean + error)
    ax.plot(places, theory, look.dash, color=look.color, linewidth=look.weight, zorder=look.zorder)
    ax.fill_between(places, low, high, color=look.color, alpha=0.13, linewidth=0)
    draw_points(ax, ordered, [place + look.shift for place in places], look)
    # An empty series gives the legend one entry for line and points together.
    ax.plot(
        [],
        [],
        look.dash,
        marker=look.marker,
        color=look.color,
        linewidth=look.weight,
        label=look.label,
    )


def draw_points(ax: Any, lines: Sequence[Line], places: Sequence[float], look: Look) -> None:
    """Measured averages with 95% intervals."""
    means = [line.mean for line in lines]
    down = [line.mean - max(line.low, LOWEST_SHARE * line.mean) for line in lines]
    up = [line.high - line.mean for line in lines]
    ax.errorbar(
        places,
        means,
        yerr=(down, up),
        fmt=look.marker,
        color=look.color,
        elinewidth=0.8,
        # The body of a star is small.
        markersize=7 if look.marker == "*" else None,
        zorder=look.zorder + 1,
    )


def draw_strokes(
    ax: Any, lines: Sequence[Line], places: Sequence[float], width: float, look: Look
) -> None:
    """Points with theory as short strokes, where the axis has no order to draw a line along."""
    draw_points(ax, lines, places, look)
    theory = [line.expected.mean for line in lines]
    starts = [place - width / 2 for place in places]
    ends = [place + width / 2 for place in places]
    ax.hlines(theory, starts, ends, color=look.color, linewidth=1.6, zorder=2)
    ax.plot([], [], look.marker, color=look.color, label=look.label)


def label_places(ax: Any, names: Sequence[str], size: float) -> None:
    """The axes of such strokes: names below, errors on a logarithmic scale."""
    ax.plot([], [], "-", color=GREY, linewidth=1.6, label="strokes: theory")
    use_log_scale(ax)
    ax.set_xticks(range(len(names)), names, fontsize=size)
    ax.grid(visible=False, axis="x")


def add_per_item_scale(ax: Any, items: int) -> None:
    """A second scale on the right: the same error divided by N."""
    functions = (lambda y: y / items, lambda y: y * items)
    right = ax.secondary_yaxis("right", functions=functions)
    right.set_ylabel(f"per item (÷ {items})", fontsize=7, color=GREY)
    right.tick_params(labelsize=6.5, colors=GREY, which="both")
    _label_decades_only(right.yaxis)


def use_log_scale(ax: Any) -> None:
    """A logarithmic error axis with labels at its decades only."""
    ax.set_yscale("log")
    _label_decades_only(ax.yaxis)


def _label_decades_only(axis: Any) -> None:
    from matplotlib.ticker import NullFormatter

    axis.set_minor_formatter(NullFormatter())


def draw_printed(ax: Any, places: Sequence[float], values: Sequence[float], label: str) -> None:
    """Numbers printed in the paper, as open rings in which measured points stay visible."""
    ax.plot(
        list(places),
        list(values),
        "o",
        label=label,
        color=VERMILION,
        markersize=10,
        markerfacecolor="none",
        markeredgewidth=1.6,
        zorder=6,
    )


def format_short(value: float) -> str:
    """A number for a legend: 1e-7, not 1e-07."""
    return f"{value:g}".replace("e-0", "e-")


def explain_marks(ax: Any, runs: int) -> None:
    """Explain points, lines and bands once, in the legend."""
    ax.plot([], [], "o", color=GREY, markersize=4, label="points: measured, 95% intervals")
    ax.plot([], [], "-", color=GREY, label=f"lines: theory; bands: 95% of {runs}-run averages")
