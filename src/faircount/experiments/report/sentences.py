"""What the second edition shows, in sentences made from its numbers."""

from collections.abc import Callable
from itertools import pairwise

from faircount.experiments.studies.equal_privacy import DELTA
from faircount.experiments.studies.exact_curves import Record, having
from faircount.experiments.studies.fig5 import FREQUENCIES, MEANS
from faircount.experiments.studies.judging import share
from faircount.experiments.studies.study import COUNTS, DATA, TITLES, Line, one
from faircount.experiments.studies.weighted_groups import SETTINGS
from faircount.mechanisms.base import Mechanism

NAMES = {"laplace": "Laplace", "decoys": "decoys", "dpdg": "DPDG", "dpds": "DPDS", "oue": "OUE", "grr": "GRR"}


def equal_privacy(lines: list[Line]) -> str:
    """Errors of all mechanisms in units of Laplace's."""
    told = []
    for data in DATA:
        base = one(lines, data=data, epsilon=1.0, method="laplace", how=COUNTS).expected.mean
        ratios = {
            label: one(lines, data=data, epsilon=1.0, method=method, how=COUNTS).expected.mean / base
            for method, label in NAMES.items()
            if method != "laplace"
        }
        told.append(f"{TITLES[data]}: " + ", ".join(f"{label} {each:.3g}" for label, each in ratios.items()))
    return f"Expected error at epsilon = 1, delta = {DELTA:g}, as a multiple of Laplace's. " + "; ".join(told) + "."


def users_needed(records: list[Record]) -> str:
    """Users for +-2 points at epsilon 1."""
    told = ", ".join(f"{label} {having(records, method=m, epsilon=1.0)[0]['users']:,}" for m, label in NAMES.items())
    return f"Users needed at epsilon = 1 for an interval of +-2 percentage points, privacy noise alone: {told}."


def floor_effect(records: list[Record]) -> str:
    """Whether DPDS beats Laplace anywhere."""
    best = min(records, key=lambda each: float(each["error_ratio"]))
    better = [float(each["error_ratio"]) < 1 for each in records]
    return (
        "Even in the best case for DPDS (every item has exactly the floor's holders, and everybody knows it) its "
        f"error is below Laplace's at {share(better)} points; the smallest ratio is "
        f"{float(best['error_ratio']):.2f}, at epsilon = {best['epsilon']} and a floor of {best['floor']}."
    )


def floor_unmet(records: list[Record]) -> str:
    """What the paper's p gives away on all 12 cells."""
    real, assumed = (having(records, data="gowalla-12", floor=each, epsilon=1.0)[0] for each in ("real", "assumed"))
    return (
        f"With all 12 cells of Gowalla, {real['smallest_count']} of 1,000 users hold the rarest one. At epsilon = 1 "
        f"the paper's p is {float(real['p']):.3f} and the exact delta {float(real['exact_delta']):.2f}, which is no "
        f"protection for them. Somebody who assumes a floor of {assumed['smallest_count']} reads "
        f"{float(assumed['theorem1_delta']):.1e} from Theorem 1, and would have {float(assumed['exact_delta']):.2g} "
        f"even if that floor were met."
    )


def two_stage(records: list[Record]) -> str:
    """Adaptive against uniform at equal privacy against S1."""
    errors = {(str(each["method"]), int(each["floor"])): float(each["error_per_user"]) for each in records}
    floors = sorted({floor for _, floor in errors})
    ladder = ("adaptive 0.5", "adaptive 1", "adaptive 2")
    better = [errors[each, floor] < errors["uniform", floor] for each in ladder for floor in floors]
    larger = [errors[b, floor] < errors[a, floor] for a, b in pairwise(ladder) for floor in floors]
    saved = 1 - min(errors[each, floor] / errors["uniform", floor] for each in ladder for floor in floors)
    least = min(errors["uniform", floor] / errors["dpds", floor] for floor in floors)
    return (
        f"At equal exact privacy against S1 adaptive sampling beats uniform sampling at {share(better)} points, by "
        f"{saved:.0%} at most, and a larger epsilon* is better at {share(larger)} only. The second stage itself "
        f"costs: without it the error is at least {least:.1f} times smaller."
    )


def groups(records: list[Record]) -> str:
    """Weighted groups at their own exact privacy."""
    told = []
    for setting in SETTINGS:
        values = {
            name: float(having(records, setting=setting, method=name)[0]["error"])
            for name in ("laplace", "dpds", "one laplace survey")
        }
        told.append(f"{setting}: {values['laplace']:.2g}, {values['dpds']:.2g}, {values['one laplace survey']:.2g}")
    worst = max(float(each["worst_delta"]) for each in records)
    return (
        f"With the paper's p a group of 250 has an exact delta of up to {worst:.2f}. Expected error of "
        "weighted Laplace groups, of DPDS groups at the data's floor, and of one Laplace survey at the smallest "
        f"epsilon. {'; '.join(told)}."
    )


def local() -> str:
    """Whether the local mechanisms keep their epsilon exactly."""
    epsilons = sorted({each for setting in SETTINGS.values() for each in setting})
    made = [kind(items=30, epsilon=each) for kind in FREQUENCIES.values() for each in epsilons]
    both: list[Mechanism] = [*made, *(kind(epsilon=each) for kind in MEANS.values() for each in epsilons)]
    worst = max(each.guarantee().delta for each in both)
    return (
        "Nothing changes for Figure 5: GRR, OUE, Duchi and PM are locally private for each report. The largest "
        f"exact delta at their epsilon, over all four and every epsilon of the settings, is {worst:.3g}, computed "
        "from the integers they draw with. What the same epsilon buys with shares instead of local reports is in "
        "the second editions of Figures 1, 2 and 4."
    )


CURVE_FINDINGS: dict[str, Callable[[list[Record]], str]] = {
    "fig2_exact": users_needed,
    "floor_effect": floor_effect,
    "floor_unmet": floor_unmet,
    "fig3_exact": two_stage,
    "fig4_exact": groups,
}
