"""One function per picture: from measured lines or computed records to a figure at page width."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from faircount.experiments.report.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    SUMMED,
    VERMILION,
    Look,
    Picture,
    curve,
    logarithmic,
    named_places,
    per_item,
    printed,
    proxies,
    short,
    strokes,
)
from faircount.experiments.studies import equal_privacy, fig1, fig2, fig3, fig5, poisoning, table2, weighted_groups
from faircount.experiments.studies.study import COUNTS, DATA, TITLES, USERS, Line, holders, one, select

SHADES = ("#440154", "#31688E", "#35B779", "#8FB032", "#C7B42C")
"""Dark to light for an ordered parameter: apart in lightness as well as in hue."""

BLUES = ("#08306B", "#1F6FB4", "#3AA0C9", "#5FBFA0", "#9CC76B")
"""The same without black and purple: for the Gaussian at several delta, beside sampling in red."""

Series = tuple[dict[str, Any], Look]
"""Which lines, and how they look."""

MARKS = ("o", "s", "^", "D", "v")


def _curves(lines: list[Line], series: Sequence[Series], x: str, words: str, height: float = 3.1) -> Picture:
    """Series over x in three panels for the three data sets, logarithmic, both normalizations."""
    picture = Picture(1, len(DATA), height, sharey=True)
    for ax, data in zip(picture.axes.flat, DATA, strict=True):
        items = next(line.items for line in lines if line.point["data"] == data)
        ax.set_title(f"{TITLES[data]}, N = {items}")
        ax.set_xlabel(words)
        logarithmic(ax)
        per_item(ax, items)
        for wanted, look in series:
            curve(ax, select(lines, data=data, how=COUNTS, **wanted), x, look)
    picture.axes[0, 0].set_ylabel(SUMMED)
    proxies(picture.axes[0, 0], lines[0].runs)
    return picture


def draw_fig1(lines: list[Line]) -> Picture:
    """DPDS against DPDG."""
    series: list[Series] = [({"method": fig1.SAMPLING}, Look("DPDS", VERMILION, "*", weight=2.2))]
    for delta, shade, mark in zip(fig1.DELTAS, BLUES, MARKS, strict=True):
        series.append(({"method": fig1.GAUSSIAN, "delta": delta}, Look(f"DPDG, δ = {short(delta)}", shade, mark)))
    for delta, mark, dash in zip(fig1.PRINTED_DELTAS, ("x", "+"), ("--", ":"), strict=True):
        look = Look(f"DPDG as printed, δ = {short(delta)}", GREY, mark, dash)
        series.append(({"method": fig1.AS_PRINTED, "delta": delta}, look))
    picture = _curves(lines, series, "epsilon", "privacy budget ε", 3.9)
    picture.legend(3)
    return picture


def draw_fig2(lines: list[Line]) -> Picture:
    """DPDS over the number of users."""
    series = [
        ({"epsilon": epsilon}, Look(f"ε = {epsilon:g}", shade, mark, shift=shift))
        for epsilon, shade, mark, shift in zip(fig2.EPSILONS, SHADES, MARKS, (-140, -70, 0, 70, 140), strict=True)
    ]
    picture = _curves(lines, series, "users", "number of users n")
    for ax in picture.axes.flat:
        ax.set_xticks(fig2.SIZES, [f"{size:,}" for size in fig2.SIZES], fontsize=6.5)
    values = [float(value) for value in fig2.PRINTED.values()]
    printed(picture.axes[0, 0], [users + series[0][1].shift for users in fig2.PRINTED], values, "printed, ε = 0.2")
    picture.legend(4)
    return picture


def draw_fig3(lines: list[Line]) -> Picture:
    """Uniform and adaptive two-stage sampling over p."""
    series: list[Series] = [({"epsilon_star": 0.0}, Look("US (uniform)", BLACK, "o"))]
    for budget, color, mark in zip(fig3.BUDGETS, (SKY, BLUE, PURPLE), ("s", "^", "D"), strict=True):
        series.append(({"epsilon_star": budget}, Look(f"AS, ε* = {budget:g}", color, mark)))
    picture = _curves(lines, series, "p", "sampling probability p")
    picture.legend(3)
    return picture


WEIGHTED_LOOKS = {
    "owa": Look("OWA", SKY, "s"),
    "vwa": Look("VWA", BLUE, "o"),
    "uwa": Look("UWA", ORANGE, "^"),
    "cpa": Look("CPA (all at the smallest ε)", VERMILION, "v"),
    "total": Look("total variance (ours)", GREEN, "D"),
}
_AGAINST = {
    weighted_groups.NOISE: "against the groups'\nown truth",
    weighted_groups.POPULATION: "against the\npopulation",
}


def _settings(ax: Any, lines: list[Line], methods: Sequence[str]) -> None:
    """Methods side by side in each setting: points measured, short strokes theory."""
    gap = 0.8 / len(methods)
    for place, method in enumerate(methods):
        rows = [one(lines, setting=setting, method=method) for setting in weighted_groups.SETTINGS]
        at = [index + (place - (len(methods) - 1) / 2) * gap for index in range(len(rows))]
        strokes(ax, rows, at, gap * 0.95, WEIGHTED_LOOKS[method])
    named_places(ax, [f"{name}\n{_two_lines(each)}" for name, each in weighted_groups.SETTINGS.items()], 6)


def _two_lines(epsilons: Sequence[float]) -> str:
    """'.1 .4' over '.7 1': the epsilons of four groups, short enough to stand below a tick."""
    short_forms = [f"{epsilon:g}".removeprefix("0") for epsilon in epsilons]
    half = len(short_forms) // 2
    return " ".join(short_forms[:half]) + "\n" + " ".join(short_forms[half:])


def _both_truths(
    lines: list[Line], columns: Mapping[str, dict[str, Any]], methods: Sequence[str], error: str, picture: Picture
) -> None:
    """A column for each title and what its lines have; errors against the groups' own truth above, all users below."""
    for row, (against, words) in zip(picture.axes, _AGAINST.items(), strict=True):
        for ax, wanted in zip(row, columns.values(), strict=True):
            _settings(ax, select(lines, against=against, how=COUNTS, **wanted), methods)
        row[0].set_ylabel(f"{error},\n{words}")
    for (above, below), title in zip(picture.axes.T, columns, strict=True):
        above.set_title(title)
        below.set_xlabel("ε of the four groups")


def draw_fig4(lines: list[Line]) -> Picture:
    """Weighted aggregation, against both truths."""
    columns = {f"{TITLES[data]}, N = {len(holders(data))}": {"data": data} for data in DATA}
    methods, picture = ("owa", "vwa", "total", "uwa", "cpa"), Picture(2, len(DATA), 4.8, sharey=True)
    _both_truths(lines, columns, methods, SUMMED, picture)
    for ax, data in zip(picture.axes.flat, DATA * 2, strict=True):
        per_item(ax, len(holders(data)))
    picture.legend(6)
    return picture


def draw_fig5(lines: list[Line]) -> Picture:
    """Weighted aggregation of local mechanisms, against both truths."""
    units = {"grr": "frequencies", "oue": "frequencies", "duchi": "mean", "pm": "mean"}
    columns = {f"{label} ({units[name]})": {"mechanism": name} for name, label in fig5.LABELS.items()}
    picture = Picture(2, len(columns), 4.7)
    _both_truths(lines, columns, ("vwa", "total", "uwa"), "mean squared error", picture)
    picture.legend(4)
    return picture


def draw_table2(lines: list[Line]) -> Picture:
    """Every printed error beside theory and measurement."""
    picture = Picture(1, 2, 3.0, sharey=True)
    cells = [(setting, method) for setting in weighted_groups.SETTINGS for method in ("vwa", "uwa")]
    looks = {
        weighted_groups.NOISE: Look("against the groups' own truth", BLUE, "o"),
        weighted_groups.POPULATION: Look("against the population", GREEN, "s"),
    }
    for ax, data in zip(picture.axes.flat, table2.DATA, strict=True):
        for shift, (against, look) in zip((-0.18, 0.18), looks.items(), strict=True):
            rows = [one(lines, data=data, setting=s, method=m, against=against, how=COUNTS) for s, m in cells]
            strokes(ax, rows, [place + shift for place in range(len(cells))], 0.34, look)
        printed(ax, range(len(cells)), [float(table2.ERRORS[s, data, m]) for s, m in cells], "printed in Table II")
        named_places(ax, [f"{s}\n{m.upper()}" for s, m in cells], 6.5)
        ax.set_title(f"{data} data, N = {rows[0].items}")
    picture.axes[0, 0].set_ylabel(SUMMED)
    picture.legend(4)
    return picture


EXACT_LOOKS = {
    "laplace": Look("Laplace (ours)", BLUE, "o"),
    "decoys": Look("decoys (ours: fair coins added)", SKY, "s", shift=-0.012),
    "dpdg": Look("DPDG (exact Gaussian)", GREEN, "^", shift=0.012),
    "dpds": Look("DPDS at the data's floor", VERMILION, "*", weight=2.2),
    "oue": Look("OUE (local)", ORANGE, "v"),
    "grr": Look("GRR (local)", PURPLE, "P"),
}


def draw_fig1_exact(lines: list[Line]) -> Picture:
    """All mechanisms at equal exact privacy; the paper's DPDS as a dashed line without a guarantee."""
    series = [({"method": method}, EXACT_LOOKS[method]) for method in equal_privacy.METHODS]
    picture = _curves(lines, series, "epsilon", "privacy budget ε", 3.6)
    real = [exact for _, _, _, exact in fig1.levels()]
    label = f"DPDS, the paper's p (exact δ {min(real):.1g} to {max(real):.1g})"
    claimed = [fig1.sampling_error(USERS, epsilon) for epsilon in fig1.EPSILONS]
    for ax in picture.axes.flat:
        ax.plot(fig1.EPSILONS, claimed, ":", color=GREY, label=label, linewidth=1.6)
    picture.legend(3)
    return picture


POISONING_LOOKS = {
    "laplace": Look("Laplace of users, no proofs: 50 votes each", VERMILION, "*", weight=2.2),
    "grr": Look("GRR (local), manipulated", PURPLE, "P"),
    "oue": Look("OUE (local), manipulated", ORANGE, "v"),
    "placed-coins": Look("placed coins, proven reports", SKY, "s", shift=-0.15),
    "server-laplace": Look("server Laplace, proven reports", BLUE, "o", shift=0.15),
}


def draw_poisoning(lines: list[Line]) -> Picture:
    """How far lying clients move one item's frequency, beside the bound for proven reports."""
    picture = Picture(1, 1, 3.9)
    ax = picture.axes[0, 0]
    for method, look in POISONING_LOOKS.items():
        rows = sorted(select(lines, method=method, how=COUNTS), key=lambda line: int(line.point["liars"]))
        at = [100 * int(line.point["liars"]) / USERS for line in rows]
        ax.plot(at, [_points_moved(line.expected.mean) for line in rows], color=look.color, linewidth=look.weight)
        ends = [[_points_moved(value) for value in (line.mean, max(line.low, 0.0), line.high)] for line in rows]
        bars = [[mean - low for mean, low, _ in ends], [high - mean for mean, _, high in ends]]
        places, size = [each + look.shift for each in at], 8 if look.marker == "*" else 4
        ax.errorbar(
            places, [mean for mean, _, _ in ends], yerr=bars, fmt=look.marker, markersize=size, color=look.color,
            elinewidth=0.8, label=look.label, zorder=look.front,
        )  # fmt: skip
    shares = [100 * liars / USERS for liars in poisoning.LIARS if liars]
    ax.plot(
        shares, shares, "--", color=BLACK, linewidth=1, label="bound for proven reports, c/n, without noise", zorder=5
    )
    ax.plot([], [], "-", color=GREY, label=f"lines: theory; points: {lines[0].runs} runs, 95% intervals")
    ax.set(yscale="log", ylim=(0.15, 200), xlabel="lying clients, % of the users")
    ax.set_ylabel("root mean squared error of the pushed\nitem's frequency, percentage points")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xticks(range(0, 21, 5))
    picture.legend(2)
    return picture


def _points_moved(squared: float) -> float:
    """A mean squared error of a frequency in percentage points."""
    return float(100 * squared**0.5)


PICTURES: dict[str, Callable[[list[Line]], Picture]] = {
    "fig1": draw_fig1,
    "fig2": draw_fig2,
    "fig3": draw_fig3,
    "fig4": draw_fig4,
    "fig5": draw_fig5,
    "table2": draw_table2,
    "fig1_exact": draw_fig1_exact,
    "poisoning": draw_poisoning,
}
"""Pictures of measured studies by name; Table I has none."""
