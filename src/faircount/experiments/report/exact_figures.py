"""Pictures of the second edition's computed curves."""

from collections.abc import Callable
from typing import Any

import numpy as np

from faircount.experiments.report.figure_style import (
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
from faircount.experiments.report.figures import EXACT_LOOKS, SHADES
from faircount.experiments.studies.exact_curves import FLOOR_EPSILONS, TWO_STAGE, Record, having
from faircount.experiments.studies.study import DATA, TITLES
from faircount.experiments.studies.weighted_groups import SETTINGS


def _numbers(records: list[Record], name: str) -> list[float]:
    return [float(each[name]) for each in records]


def _plot(ax: Any, rows: list[Record], x: str, y: str, look: Look, **more: Any) -> None:
    known = [each for each in rows if each[y] != ""]
    ax.plot(
        _numbers(known, x),
        _numbers(known, y),
        look.dash,
        marker=look.marker,
        markerfacecolor=look.color if look.filled else "white",
        color=look.color,
        label=look.label,
        **more,
    )


def draw_users_needed(records: list[Record]) -> Picture:
    """Users needed for +-2 points, against epsilon."""
    picture = Picture(1, 1, 3.6)
    ax = picture.axes[0, 0]
    for method, look in EXACT_LOOKS.items():
        label = "DPDS, every item held by 2% of the users" if method == "dpds" else look.label
        _plot(ax, having(records, method=method), "epsilon", "users", Look(label, look.color, look.marker))
    ax.set_yscale("log")
    ax.set_xlabel("privacy budget ε (exact; δ = 1e-5 where one is needed)")
    ax.set_ylabel("users needed for ±2 percentage points\n(95% interval, an item held by 10%)")
    picture.legend(3)
    return picture


def draw_floor_effect(records: list[Record]) -> Picture:
    """What a floor allows, and what it buys against Laplace at best."""
    picture = Picture(1, 2, 3.0)
    allowed, ratio = picture.axes.flat
    for epsilon, shade, mark in zip(FLOOR_EPSILONS, SHADES[:4], ("o", "s", "^", "D"), strict=True):
        rows = having(records, epsilon=epsilon)
        for ax, name in ((allowed, "p"), (ratio, "error_ratio")):
            _plot(ax, rows, "floor", name, Look(f"ε = {epsilon:g}", shade, mark), markersize=3)
            ax.set_xscale("log")
            ax.set_xlabel("floor k: other holders of every item, known to all")
    allowed.set_ylabel("largest private sampling probability p")
    ratio.set_ylabel("error of DPDS ÷ error of Laplace\n(best case: k + 1 holders of every item)")
    ratio.set_yscale("log")
    ratio.axhline(1, color=BLACK, linewidth=1, linestyle=":")
    ratio.text(2.2, 1.07, "below this line DPDS would be better", fontsize=7, va="bottom")
    ratio.set_ylim(0.7, None)
    picture.legend(4)
    return picture


def draw_floor_unmet(records: list[Record]) -> Picture:
    """Exact delta of the paper's p beside Theorem 1's, floor met and not met."""
    picture = Picture(1, 2, 3.5)
    met, unmet = picture.axes.flat
    for data, color, mark in zip(DATA, (BLUE, GREEN, ORANGE), ("o", "s", "^"), strict=True):
        rows = having(records, data=data)
        _plot(met, rows, "epsilon", "exact_delta", Look(f"{TITLES[data]}: exact δ", color, mark))
        _plot(met, rows, "epsilon", "theorem1_delta", Look(f"{TITLES[data]}: δ by Theorem 1", color, mark, "--", False))
    met.set_title(f"floor met: rarest items have {_counts(records)} users")
    real, assumed = (having(records, data="gowalla-12", floor=each) for each in ("real", "assumed"))
    unmet.set_title(f"all 12 cells of Gowalla: rarest {real[0]['smallest_count']} of 1,000 users")
    _plot(unmet, real, "epsilon", "exact_delta", Look("exact δ, floor as it is", VERMILION, "o"))
    _plot(unmet, assumed, "epsilon", "exact_delta", Look("exact δ if the floor were 10", SKY, "s"))
    _plot(unmet, assumed, "epsilon", "theorem1_delta", Look("δ by Theorem 1 for a floor of 10", SKY, "s", "--", False))
    for ax in (met, unmet):
        ax.set_yscale("log")
        ax.set_xlabel("privacy budget ε, p = 1 - exp(-ε)")
        ax.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False, ncol=1 if ax is unmet else 2, fontsize=6.8
        )
    met.set_ylabel("δ: exact, and as Theorem 1 states it")
    return picture


def _counts(records: list[Record]) -> str:
    """Holders of the rarest item of each data set."""
    return ", ".join(str(having(records, data=each)[0]["smallest_count"]) for each in DATA)


def draw_two_stage(records: list[Record]) -> Picture:
    """Two-stage sampling at equal exact privacy against S1."""
    picture = Picture(1, 3, 3.1)
    looks = dict(zip(TWO_STAGE, (
        Look("DPDS (no second stage)", VERMILION, "*"),
        Look("uniform", BLACK, "o"),
        Look("adaptive, ε* = 0.5", SKY, "s"),
        Look("adaptive, ε* = 1", BLUE, "^"),
        Look("adaptive, ε* = 2", PURPLE, "v"),
    ), strict=True))  # fmt: skip
    rows = {name: having(records, method=name) for name in looks}
    allowed, error, ratio = picture.axes.flat
    for name, look in looks.items():
        _plot(allowed, rows[name], "floor", "p", look)
        _plot(error, rows[name], "floor", "error_per_user", look)
        if name != "dpds":
            own, uniform = (np.array(_numbers(rows[each], "error_per_user")) for each in (name, "uniform"))
            ratio.plot(_numbers(rows[name], "floor"), own / uniform, look.dash, marker=look.marker, color=look.color)
    for ax in picture.axes.flat:
        ax.set_xscale("log")
        ax.set_xlabel("floor k")
        ax.set_xticks([10, 30, 100, 300], ["10", "30", "100", "300"])
        ax.minorticks_off()
    allowed.set_ylabel("largest p that is (1, 1e-5)-private\nagainst S1, who reads the result")
    error.set_ylabel("n × squared error, summed over 30 items")
    error.set_yscale("log")
    ratio.set_ylabel("error ÷ error of uniform sampling")
    picture.legend(5)
    return picture


def draw_groups(records: list[Record]) -> Picture:
    """Weighted groups at exact privacy."""
    picture = Picture(1, 1, 3.6)
    ax = picture.axes[0, 0]
    looks = {
        "dpds, the paper's p": Look("DPDS, the paper's p (exact δ of the worst group {:.0%})", GREY, "X"),
        "laplace": Look("Laplace in groups", BLUE, "o"),
        "dpdg": Look("DPDG in groups", GREEN, "^"),
        "decoys": Look("decoys (fair coins added) in groups", SKY, "s"),
        "one laplace survey": Look("one Laplace survey at the smallest ε", PURPLE, "v"),
        "dpds": Look("DPDS in groups at the data's floor", VERMILION, "*"),
        "oue": Look("OUE in groups", ORANGE, "P"),
    }
    gap = 0.8 / len(looks)
    for place, (method, look) in enumerate(looks.items()):
        rows = [having(records, setting=setting, method=method)[0] for setting in SETTINGS]
        at = [index + (place - (len(looks) - 1) / 2) * gap for index in range(len(rows))]
        label = look.label.format(max(_numbers(rows, "worst_delta")))
        ax.plot(
            at,
            _numbers(rows, "error"),
            look.marker,
            color=look.color,
            label=label,
            markersize=8 if look.marker == "*" else 5,
        )
    ax.set_yscale("log")
    ax.set_xticks(range(len(SETTINGS)), [f"{name}\nε = {', '.join(map(str, each))}" for name, each in SETTINGS.items()])
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("expected squared error,\nVWA weights, summed over 30 items")
    picture.legend(2)
    return picture


CURVE_PICTURES: dict[str, Callable[[list[Record]], Picture]] = {
    "fig2_exact": draw_users_needed,
    "floor_effect": draw_floor_effect,
    "floor_unmet": draw_floor_unmet,
    "fig3_exact": draw_two_stage,
    "fig4_exact": draw_groups,
}
