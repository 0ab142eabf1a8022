"""The findings of the second edition, in sentences made from its numbers."""

from collections.abc import Callable
from itertools import pairwise

from faircount.mechanisms.base import Mechanism
from faircount.reproduction.studies.equal_privacy import DELTA
from faircount.reproduction.studies.exact_curves import Record, select_records
from faircount.reproduction.studies.fig5 import FREQUENCIES, MEANS
from faircount.reproduction.studies.judging import format_count
from faircount.reproduction.studies.study import COUNT_LEVEL, DATA, TITLES, Line, Value, find_line
from faircount.reproduction.studies.weighted_groups import SETTINGS

NAMES = {
    "laplace": "Laplace",
    "decoys": "decoys",
    "dpdg": "DPDG",
    "dpds": "DPDS",
    "oue": "OUE",
    "grr": "GRR",
}


def describe_equal_privacy(lines: list[Line]) -> str:
    """The errors of all mechanisms in units of Laplace's."""
    comparisons = []
    for data in DATA:
        here: dict[str, Value] = {"data": data, "epsilon": 1.0, "how": COUNT_LEVEL}
        base = find_line(lines, method="laplace", **here).expected.mean
        ratios = []
        for method, label in NAMES.items():
            if method != "laplace":
                error = find_line(lines, method=method, **here).expected.mean
                ratios.append(f"{label} {error / base:.3g}")
        comparisons.append(f"{TITLES[data]}: {', '.join(ratios)}")
    return (
        f"Expected error at epsilon = 1, delta = {DELTA:g}, as a multiple of Laplace's. "
        f"{'; '.join(comparisons)}."
    )


def describe_users_needed(records: list[Record]) -> str:
    """Users for +-2 points at epsilon 1."""
    numbers = []
    for method, label in NAMES.items():
        record = select_records(records, method=method, epsilon=1.0)[0]
        numbers.append(f"{label} {record['users']:,}")
    return (
        "Users needed at epsilon = 1 for an interval of +-2 percentage points, privacy noise "
        f"alone: {', '.join(numbers)}."
    )


def describe_floor_effect(records: list[Record]) -> str:
    """Whether DPDS is better than Laplace anywhere."""
    best = min(records, key=lambda record: float(record["error_ratio"]))
    # A ratio below 1 would mean that DPDS is better.
    is_better = [float(record["error_ratio"]) < 1 for record in records]
    return (
        "Even in the best case for DPDS (every item has exactly as many holders as the floor says, "
        "and everybody knows it) its error is below Laplace's at "
        f"{format_count(is_better)} points; the smallest ratio is "
        f"{float(best['error_ratio']):.2f}, at epsilon = {best['epsilon']} and a floor of "
        f"{best['floor']}."
    )


def describe_floor_unmet(records: list[Record]) -> str:
    """The privacy of the paper's p on all 12 cells."""
    cells = select_records(records, data="gowalla-12", epsilon=1.0)
    real = select_records(cells, floor="real")[0]
    assumed = select_records(cells, floor="assumed")[0]
    return (
        f"With all 12 cells of Gowalla, {real['smallest_count']} of 1,000 users choose the rarest "
        f"one. At epsilon = 1 the paper's p is {float(real['p']):.3f} and the exact delta is "
        f"{float(real['exact_delta']):.2f}, which does not protect these users. Somebody who "
        f"assumes a floor of {assumed['smallest_count']} reads "
        f"{float(assumed['theorem1_delta']):.1e} from Theorem 1, but even if that floor were met, "
        f"the exact delta would be {float(assumed['exact_delta']):.2g}."
    )


def describe_two_stage(records: list[Record]) -> str:
    """Adaptive against uniform sampling at equal privacy against S1."""
    errors = {}
    for record in records:
        errors[str(record["method"]), int(record["floor"])] = float(record["error_per_user"])
    floors = sorted({int(record["floor"]) for record in records})
    methods = ("adaptive 0.5", "adaptive 1", "adaptive 2")
    ratios = []
    gains_by_larger = []
    costs_of_stage = []
    for floor in floors:
        ratios += [errors[method, floor] / errors["uniform", floor] for method in methods]
        for smaller, larger in pairwise(methods):
            gains_by_larger.append(errors[larger, floor] < errors[smaller, floor])
        costs_of_stage.append(errors["uniform", floor] / errors["dpds", floor])
    # Below 1: adaptive sampling is better than uniform sampling at the same floor.
    is_better = [ratio < 1 for ratio in ratios]
    return (
        "At equal exact privacy against S1, adaptive sampling is better than uniform sampling at "
        f"{format_count(is_better)} points, by {1 - min(ratios):.0%} at most, and a larger "
        f"epsilon* is better at {format_count(gains_by_larger)} only. The second stage itself has "
        f"a price: without it the error is at least {min(costs_of_stage):.1f} times smaller."
    )


def describe_groups(records: list[Record]) -> str:
    """Weighted groups at their own exact privacy."""
    errors = []
    for setting in SETTINGS:
        values = []
        for method in ("laplace", "dpds", "one laplace survey"):
            record = select_records(records, setting=setting, method=method)[0]
            values.append(f"{float(record['error']):.2g}")
        errors.append(f"{setting}: {', '.join(values)}")
    worst = max(float(record["worst_delta"]) for record in records)
    return (
        f"With the paper's p a group of 250 has an exact delta of up to {worst:.2f}. Expected "
        "error of weighted Laplace groups, of DPDS groups at the floor of the data, and of one "
        f"Laplace survey at the smallest epsilon. {'; '.join(errors)}."
    )


def describe_local() -> str:
    """Whether the local mechanisms keep their epsilon exactly."""
    epsilons = sorted(set().union(*SETTINGS.values()))
    mechanisms: list[Mechanism] = []
    for epsilon in epsilons:
        mechanisms += [kind(items=30, epsilon=epsilon) for kind in FREQUENCIES.values()]
        mechanisms += [kind(epsilon=epsilon) for kind in MEANS.values()]
    # From the integer tables that the mechanisms draw with, not from their formulas.
    worst = max(mechanism.guarantee().delta for mechanism in mechanisms)
    return (
        "Nothing changes for Figure 5: GRR, OUE, Duchi and PM make every report locally private. "
        "The largest exact delta at their epsilon, over all four and every epsilon of the "
        f"settings, is {worst:.3g}, computed from the integers that they draw with. The second "
        "editions of Figures 1, 2 and 4 show what the same epsilon achieves with shares instead of "
        "local reports."
    )


# Computed from the records, so that the text stays true when data or mechanisms change.
CURVE_FINDINGS: dict[str, Callable[[list[Record]], str]] = {
    "fig2_exact": describe_users_needed,
    "floor_effect": describe_floor_effect,
    "floor_unmet": describe_floor_unmet,
    "fig3_exact": describe_two_stage,
    "fig4_exact": describe_groups,
}
