"""Pictures of the second edition's computed curves."""

from collections.abc import Callable
from typing import Any

import numpy as np

from faircount.reproduction.report.figure_style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Look,
    Picture,
)
from faircount.reproduction.report.figures import EXACT_LOOKS, SHADES
from faircount.reproduction.studies.exact_curves import FLOOR_EPSILONS, Record, select_records
from faircount.reproduction.studies.study import DATA, TITLES
from faircount.reproduction.studies.weighted_groups import SETTINGS


def _get_numbers(records: list[Record], name: str) -> list[float]:
    return [float(record[name]) for record in records]


def _plot(ax: Any, records: list[Record], x: str, y: str, look: Look, **options: Any) -> None:
    # Where Theorem 1 gives no delta, the record has an empty text.
    known = [record for record in records if record[y] != ""]
    ax.plot(
        _get_numbers(known, x),
        _get_numbers(known, y),
        look.dash,
        marker=look.marker,
        markerfacecolor=look.color if look.filled else "white",
        color=look.color,
        label=look.label,
        **options,
    )


def draw_users_needed(records: list[Record]) -> Picture:
    """Users needed for +-2 points, over epsilon."""
    picture = Picture(1, 1, 3.6)
    ax = picture.axes[0, 0]
    for method, look in EXACT_LOOKS.items():
        label = look.label
        if method == "dpds":
            label = "DPDS, every item chosen by 2% of the users"
        plain = Look(label, look.color, look.marker)
        _plot(ax, select_records(records, method=method), "epsilon", "users", plain)
    ax.set_yscale("log")
    ax.set_xlabel("privacy budget ε (exact; δ = 1e-5 where one is needed)")
    ax.set_ylabel("users needed for ±2 percentage points\n(95% interval, an item chosen by 10%)")
    picture.add_legend(3)
    return picture


def draw_floor_effect(records: list[Record]) -> Picture:
    """What a floor allows, and the best case of DPDS against Laplace."""
    picture = Picture(1, 2, 3.0)
    allowed, ratio = picture.axes.flat
    styles = zip(FLOOR_EPSILONS, SHADES[:4], ("o", "s", "^", "D"), strict=True)
    for epsilon, shade, marker in styles:
        look = Look(f"ε = {epsilon:g}", shade, marker)
        rows = select_records(records, epsilon=epsilon)
        _plot(allowed, rows, "floor", "p", look, markersize=3)
        _plot(ratio, rows, "floor", "error_ratio", look, markersize=3)
    for ax in picture.axes.flat:
        ax.set_xscale("log")
        ax.set_xlabel("floor k: other holders of every item, known to all")
    allowed.set_ylabel("largest private sampling probability p")
    ratio.set_ylabel("error of DPDS ÷ error of Laplace\n(best case: k + 1 holders of every item)")
    ratio.set_yscale("log")
    # Where both errors are equal.
    ratio.axhline(1, color=BLACK, linewidth=1, linestyle=":")
    ratio.text(2.2, 1.07, "below this line DPDS would be better", fontsize=7, va="bottom")
    ratio.set_ylim(0.7, None)
    picture.add_legend(4)
    return picture


def draw_floor_unmet(records: list[Record]) -> Picture:
    """Exact delta of the paper's p beside that of Theorem 1, with the floor met and not met."""
    picture = Picture(1, 2, 3.5)
    met, unmet = picture.axes.flat
    smallest = []
    for data, color, marker in zip(DATA, (BLUE, GREEN, ORANGE), ("o", "s", "^"), strict=True):
        rows = select_records(records, data=data)
        smallest.append(str(rows[0]["smallest_count"]))
        exact = Look(f"{TITLES[data]}: exact δ", color, marker)
        theorem = Look(f"{TITLES[data]}: δ by Theorem 1", color, marker, "--", False)
        _plot(met, rows, "epsilon", "exact_delta", exact)
        _plot(met, rows, "epsilon", "theorem1_delta", theorem)
    met.set_title(f"floor met: rarest items have {', '.join(smallest)} users")
    met.set_ylabel("δ: exact, and as Theorem 1 states it")

    real = select_records(records, data="gowalla-12", floor="real")
    assumed = select_records(records, data="gowalla-12", floor="assumed")
    theorem = Look("δ by Theorem 1 for a floor of 10", SKY, "s", "--", False)
    unmet.set_title(f"all 12 cells of Gowalla: rarest {real[0]['smallest_count']} of 1,000 users")
    _plot(unmet, real, "epsilon", "exact_delta", Look("exact δ, real floor", VERMILION, "o"))
    _plot(unmet, assumed, "epsilon", "exact_delta", Look("exact δ if the floor were 10", SKY, "s"))
    _plot(unmet, assumed, "epsilon", "theorem1_delta", theorem)

    # The panels show different series, so each has its own legend.
    for ax, columns in ((met, 2), (unmet, 1)):
        ax.set_yscale("log")
        ax.set_xlabel("privacy budget ε, p = 1 - exp(-ε)")
        ax.legend(
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            frameon=False,
            ncol=columns,
            fontsize=6.8,
        )
    return picture


TWO_STAGE_LOOKS = {
    "dpds": Look("DPDS (no second stage)", VERMILION, "*"),
    "uniform": Look("uniform", BLACK, "o"),
    "adaptive 0.5": Look("adaptive, ε* = 0.5", SKY, "s"),
    "adaptive 1": Look("adaptive, ε* = 1", BLUE, "^"),
    "adaptive 2": Look("adaptive, ε* = 2", PURPLE, "v"),
}


def draw_two_stage(records: list[Record]) -> Picture:
    """Two-stage sampling at equal exact privacy against S1."""
    picture = Picture(1, 3, 3.1)
    allowed, error, ratio = picture.axes.flat
    base = select_records(records, method="uniform")
    uniform = np.array(_get_numbers(base, "error_per_user"))
    for name, look in TWO_STAGE_LOOKS.items():
        rows = select_records(records, method=name)
        _plot(allowed, rows, "floor", "p", look)
        _plot(error, rows, "floor", "error_per_user", look)
        # The error of DPDS is several times smaller and would flatten this panel.
        if name != "dpds":
            own = np.array(_get_numbers(rows, "error_per_user"))
            floors = _get_numbers(rows, "floor")
            ratio.plot(floors, own / uniform, look.dash, marker=look.marker, color=look.color)
    for ax in picture.axes.flat:
        ax.set_xscale("log")
        ax.set_xlabel("floor k")
        ax.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
        ax.minorticks_off()
    allowed.set_ylabel("largest p that is (1, 1e-5)-private\nagainst S1, who reads the result")
    error.set_ylabel("n × squared error, summed over 30 items")
    error.set_yscale("log")
    ratio.set_ylabel("error ÷ error of uniform sampling")
    picture.add_legend(5)
    return picture


# The exact delta is filled in when the picture is drawn.
GROUP_LOOKS = {
    "dpds, the paper's p": Look(
        "DPDS, the paper's p (exact δ of the worst group {:.0%})", GREY, "X"
    ),
    "laplace": Look("Laplace in groups", BLUE, "o"),
    "dpdg": Look("DPDG in groups", GREEN, "^"),
    "decoys": Look("decoys (fair coins added) in groups", SKY, "s"),
    "one laplace survey": Look("one Laplace survey at the smallest ε", PURPLE, "v"),
    "dpds": Look("DPDS in groups at the data's floor", VERMILION, "*"),
    "oue": Look("OUE in groups", ORANGE, "P"),
}


def draw_groups(records: list[Record]) -> Picture:
    """Weighted groups at exact privacy."""
    picture = Picture(1, 1, 3.6)
    ax = picture.axes[0, 0]
    gap = 0.8 / len(GROUP_LOOKS)
    for place, (method, look) in enumerate(GROUP_LOOKS.items()):
        rows = select_records(records, method=method)
        # Within a setting the methods stand side by side, because settings have no order.
        shift = (place - (len(GROUP_LOOKS) - 1) / 2) * gap
        ax.plot(
            [index + shift for index in range(len(rows))],
            _get_numbers(rows, "error"),
            look.marker,
            color=look.color,
            label=look.label.format(max(_get_numbers(rows, "worst_delta"))),
            markersize=8 if look.marker == "*" else 5,
        )
    names = []
    for setting, epsilons in SETTINGS.items():
        names.append(f"{setting}\nε = {', '.join(map(str, epsilons))}")
    ax.set_yscale("log")
    ax.set_xticks(range(len(names)), names)
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("expected squared error,\nVWA weights, summed over 30 items")
    picture.add_legend(2)
    return picture


CURVE_PICTURES: dict[str, Callable[[list[Record]], Picture]] = {
    "fig2_exact": draw_users_needed,
    "floor_effect": draw_floor_effect,
    "floor_unmet": draw_floor_unmet,
    "fig3_exact": draw_two_stage,
    "fig4_exact": draw_groups,
}
