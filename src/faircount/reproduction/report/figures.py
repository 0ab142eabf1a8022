"""Pictures of the measured studies: one function for every figure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from faircount.reproduction.report.figure_style import (
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
    add_per_item_scale,
    draw_curve,
    draw_printed,
    draw_strokes,
    explain_marks,
    format_short,
    label_places,
    use_log_scale,
)
from faircount.reproduction.studies import (
    equal_privacy,
    fig1,
    fig2,
    fig3,
    fig5,
    poisoning,
    table2,
    weighted_groups,
)
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    TITLES,
    USERS,
    Line,
    find_line,
    sampled_counts,
    select,
)

# Dark to light for an ordered parameter: different in lightness as well as in hue.
SHADES = ("#440154", "#31688E", "#35B779", "#8FB032", "#C7B42C")

# The same without black and purple: for the Gaussian at several delta, beside sampling in red.
BLUES = ("#08306B", "#1F6FB4", "#3AA0C9", "#5FBFA0", "#9CC76B")

MARKERS = ("o", "s", "^", "D", "v")

# Which lines, and how they look.
Series = tuple[dict[str, Any], Look]


def _draw_data_sets(
    lines: list[Line], series: Sequence[Series], x: str, label: str, height: float = 3.1
) -> Picture:
    """Series over x in three panels for the three data sets, with both normalizations."""
    picture = Picture(1, len(DATA), height, sharey=True)
    for ax, data in zip(picture.axes.flat, DATA, strict=True):
        items = next(line.items for line in lines if line.point["data"] == data)
        ax.set_title(f"{TITLES[data]}, N = {items}")
        ax.set_xlabel(label)
        use_log_scale(ax)
        add_per_item_scale(ax, items)
        for wanted, look in series:
            draw_curve(ax, select(lines, data=data, how=COUNT_LEVEL, **wanted), x, look)
    picture.axes[0, 0].set_ylabel(SUMMED)
    # The legend takes its entries from the first panel.
    explain_marks(picture.axes[0, 0], lines[0].runs)
    return picture


def draw_fig1(lines: list[Line]) -> Picture:
    """DPDS against DPDG."""
    series: list[Series] = [
        ({"method": fig1.SAMPLING}, Look("DPDS", VERMILION, "*", weight=2.2)),
    ]
    for delta, shade, marker in zip(fig1.DELTAS, BLUES, MARKERS, strict=True):
        look = Look(f"DPDG, δ = {format_short(delta)}", shade, marker)
        series.append(({"method": fig1.GAUSSIAN, "delta": delta}, look))
    # Dashed and grey: with the pieces of noise as printed there is almost no privacy.
    for delta, marker, dash in zip(fig1.PRINTED_DELTAS, ("x", "+"), ("--", ":"), strict=True):
        look = Look(f"DPDG as printed, δ = {format_short(delta)}", GREY, marker, dash)
        series.append(({"method": fig1.AS_PRINTED, "delta": delta}, look))
    picture = _draw_data_sets(lines, series, "epsilon", "privacy budget ε", 3.9)
    picture.add_legend(3)
    return picture


def draw_fig2(lines: list[Line]) -> Picture:
    """DPDS over the number of users."""
    # Every size has one point for each epsilon: moved apart, their intervals stay visible.
    shifts = (-140, -70, 0, 70, 140)
    series: list[Series] = []
    for place, epsilon in enumerate(fig2.EPSILONS):
        look = Look(f"ε = {epsilon:g}", SHADES[place], MARKERS[place], shift=shifts[place])
        series.append(({"epsilon": epsilon}, look))
    picture = _draw_data_sets(lines, series, "users", "number of users n")
    for ax in picture.axes.flat:
        ax.set_xticks(fig2.SIZES, [f"{size:,}" for size in fig2.SIZES], fontsize=6.5)
    # The printed numbers are for epsilon = 0.2, the first series.
    places = [users + shifts[0] for users in fig2.PRINTED]
    values = list(map(float, fig2.PRINTED.values()))
    draw_printed(picture.axes[0, 0], places, values, "printed, ε = 0.2")
    picture.add_legend(4)
    return picture


def draw_fig3(lines: list[Line]) -> Picture:
    """Uniform and adaptive two-stage sampling over p."""
    series: list[Series] = [({"epsilon_star": 0.0}, Look("US (uniform)", BLACK, "o"))]
    styles = zip(fig3.BUDGETS, (SKY, BLUE, PURPLE), ("s", "^", "D"), strict=True)
    for budget, color, marker in styles:
        series.append(({"epsilon_star": budget}, Look(f"AS, ε* = {budget:g}", color, marker)))
    picture = _draw_data_sets(lines, series, "p", "sampling probability p")
    picture.add_legend(3)
    return picture


WEIGHTED_LOOKS = {
    "owa": Look("OWA", SKY, "s"),
    "vwa": Look("VWA", BLUE, "o"),
    "uwa": Look("UWA", ORANGE, "^"),
    "cpa": Look("CPA (all at the smallest ε)", VERMILION, "v"),
    "total": Look("total variance (ours)", GREEN, "D"),
}
_TRUTHS = {
    weighted_groups.NOISE: "against the groups'\nown truth",
    weighted_groups.POPULATION: "against the\npopulation",
}


def _draw_settings(ax: Any, lines: list[Line], methods: Sequence[str]) -> None:
    """All methods side by side in every setting: points measured, short strokes theory."""
    # The methods share 80% of the width of a setting; the rest separates the settings.
    gap = 0.8 / len(methods)
    for place, method in enumerate(methods):
        rows = [
            find_line(lines, setting=setting, method=method) for setting in weighted_groups.SETTINGS
        ]
        shift = (place - (len(methods) - 1) / 2) * gap
        places = [index + shift for index in range(len(rows))]
        draw_strokes(ax, rows, places, gap * 0.95, WEIGHTED_LOOKS[method])
    names = []
    for setting, epsilons in weighted_groups.SETTINGS.items():
        names.append(f"{setting}\n{_format_epsilons(epsilons)}")
    label_places(ax, names, 6)


def _format_epsilons(epsilons: Sequence[float]) -> str:
    """The epsilons of four groups in two lines, short enough for a tick: '.1 .4' over '.7 1'."""
    short = [f"{epsilon:g}".removeprefix("0") for epsilon in epsilons]
    half = len(short) // 2
    return " ".join(short[:half]) + "\n" + " ".join(short[half:])


def _draw_both_truths(
    lines: list[Line],
    columns: Mapping[str, dict[str, Any]],
    methods: Sequence[str],
    error: str,
    picture: Picture,
) -> None:
    """A column for every title and choice of lines; own truth above, population below."""
    for row, (against, truth) in zip(picture.axes, _TRUTHS.items(), strict=True):
        for ax, wanted in zip(row, columns.values(), strict=True):
            _draw_settings(ax, select(lines, against=against, how=COUNT_LEVEL, **wanted), methods)
        row[0].set_ylabel(f"{error},\n{truth}")
    for (above, below), title in zip(picture.axes.T, columns, strict=True):
        above.set_title(title)
        below.set_xlabel("ε of the four groups")


def draw_fig4(lines: list[Line]) -> Picture:
    """Weighted aggregation, against both truths."""
    columns = {}
    for data in DATA:
        columns[f"{TITLES[data]}, N = {len(sampled_counts(data))}"] = {"data": data}
    picture = Picture(2, len(DATA), 4.8, sharey=True)
    _draw_both_truths(lines, columns, ("owa", "vwa", "total", "uwa", "cpa"), SUMMED, picture)
    # Two rows with the same data sets.
    for ax, data in zip(picture.axes.flat, DATA * 2, strict=True):
        add_per_item_scale(ax, len(sampled_counts(data)))
    picture.add_legend(6)
    return picture


def draw_fig5(lines: list[Line]) -> Picture:
    """Weighted aggregation of local mechanisms, against both truths."""
    columns = {}
    for name, label in fig5.LABELS.items():
        unit = "frequencies" if name in fig5.FREQUENCIES else "mean"
        columns[f"{label} ({unit})"] = {"mechanism": name}
    picture = Picture(2, len(columns), 4.7)
    _draw_both_truths(lines, columns, ("vwa", "total", "uwa"), "mean squared error", picture)
    picture.add_legend(4)
    return picture


def draw_table2(lines: list[Line]) -> Picture:
    """Every printed error beside theory and measurement."""
    picture = Picture(1, 2, 3.0, sharey=True)
    # The rows of the table: VWA and UWA in every setting.
    cells = [(setting, method) for setting, data, method in table2.ERRORS if data == "uniform"]
    looks = {
        weighted_groups.NOISE: Look("against the groups' own truth", BLUE, "o", shift=-0.18),
        weighted_groups.POPULATION: Look("against the population", GREEN, "s", shift=0.18),
    }
    for ax, data in zip(picture.axes.flat, table2.DATA, strict=True):
        here = select(lines, data=data, how=COUNT_LEVEL)
        for against, look in looks.items():
            rows = [find_line(here, setting=s, method=m, against=against) for s, m in cells]
            places = [place + look.shift for place in range(len(cells))]
            draw_strokes(ax, rows, places, 0.34, look)
        printed = [float(table2.ERRORS[s, data, m]) for s, m in cells]
        draw_printed(ax, range(len(cells)), printed, "printed in Table II")
        label_places(ax, [f"{s}\n{m.upper()}" for s, m in cells], 6.5)
        ax.set_title(f"{data} data, N = {here[0].items}")
    picture.axes[0, 0].set_ylabel(SUMMED)
    picture.add_legend(4)
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
    """All mechanisms at equal exact privacy, and the paper's DPDS, which does not have it."""
    series = [({"method": method}, EXACT_LOOKS[method]) for method in equal_privacy.METHODS]
    picture = _draw_data_sets(lines, series, "epsilon", "privacy budget ε", 3.6)
    deltas = [level.exact for level in fig1.privacy_levels()]
    label = f"DPDS, the paper's p (exact δ {min(deltas):.1g} to {max(deltas):.1g})"
    # The error that the paper claims, at a privacy that it does not have.
    errors = [fig1.sampling_error(USERS, epsilon) for epsilon in fig1.EPSILONS]
    for ax in picture.axes.flat:
        ax.plot(fig1.EPSILONS, errors, ":", color=GREY, label=label, linewidth=1.6)
    picture.add_legend(3)
    return picture


POISONING_LOOKS = {
    "laplace": Look("Laplace of users, no proofs: 50 votes each", VERMILION, "*", weight=2.2),
    "grr": Look("GRR (local), manipulated", PURPLE, "P"),
    "oue": Look("OUE (local), manipulated", ORANGE, "v"),
    "placed-coins": Look("placed coins, proven reports", SKY, "s", shift=-0.15),
    "server-laplace": Look("server Laplace, proven reports", BLUE, "o", shift=0.15),
}


def draw_poisoning(lines: list[Line]) -> Picture:
    """How far malicious clients move one item's frequency, and the bound for proven reports."""
    picture = Picture(1, 1, 3.9)
    ax = picture.axes[0, 0]
    for method, look in POISONING_LOOKS.items():
        _draw_attack(ax, select(lines, method=method, how=COUNT_LEVEL), look)
    # Without noise, c of n clients move a frequency by c/n.
    shares = [100 * malicious / USERS for malicious in poisoning.MALICIOUS if malicious]
    ax.plot(
        shares,
        shares,
        "--",
        color=BLACK,
        linewidth=1,
        label="bound for proven reports, c/n, without noise",
        zorder=5,
    )
    explanation = f"lines: theory; points: {lines[0].runs} runs, 95% intervals"
    ax.plot([], [], "-", color=GREY, label=explanation)
    ax.set(yscale="log", ylim=(0.15, 200), xlabel="malicious clients, % of the users")
    ax.set_ylabel("root mean squared error of the pushed\nitem's frequency, percentage points")
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xticks(range(0, 21, 5))
    picture.add_legend(2)
    return picture


def _draw_attack(ax: Any, lines: list[Line], look: Look) -> None:
    """Theory and measurements of one method over the share of malicious clients."""
    ordered = sorted(lines, key=lambda line: int(line.point[poisoning.KEY]))
    places = [100 * int(line.point[poisoning.KEY]) / USERS for line in ordered]
    theory = [_to_points(line.expected.mean) for line in ordered]
    # The axis shows a root mean squared error: the ends of an interval are roots as well.
    means = []
    down = []
    up = []
    for line in ordered:
        mean = _to_points(line.mean)
        means.append(mean)
        down.append(mean - _to_points(max(line.low, 0.0)))
        up.append(_to_points(line.high) - mean)
    ax.plot(places, theory, color=look.color, linewidth=look.weight)
    ax.errorbar(
        [place + look.shift for place in places],
        means,
        yerr=[down, up],
        fmt=look.marker,
        markersize=8 if look.marker == "*" else 4,
        color=look.color,
        elinewidth=0.8,
        label=look.label,
        zorder=look.zorder,
    )


def _to_points(squared: float) -> float:
    """The root of a mean squared error of a frequency, in percentage points."""
    return float(100 * squared**0.5)


# Pictures of measured studies by name; Table I has none.
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
