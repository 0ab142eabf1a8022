"""Everything a report is made of, and which parts belong to which figure."""

from dataclasses import dataclass

from faircount.experiments.studies.checks import Check
from faircount.experiments.studies.exact_curves import Record
from faircount.experiments.studies.judging import Verdict
from faircount.experiments.studies.study import Line

LABELS = {**{f"fig{number}": f"Figure {number}" for number in range(1, 6)}, "table1": "Table I", "table2": "Table II"}
NAMES = tuple(LABELS)
MEASURED_EDITIONS = {"fig1": "fig1_exact"}
CURVES = {
    "fig1": ("floor_unmet",),
    "fig2": ("fig2_exact", "floor_effect"),
    "fig3": ("fig3_exact",),
    "fig4": ("fig4_exact",),
}
"""The second edition of each figure that speaks of privacy. Figure 5's mechanisms are exact as they are."""

CURVE_TITLES = {
    "floor_unmet": "Exact privacy of the paper's p, where the floor is met and where it is not",
    "fig2_exact": "Users needed for +-2 percentage points at equal exact privacy",
    "floor_effect": "What a floor allows, and what it buys",
    "fig3_exact": "Two-stage sampling at equal exact privacy against S1",
    "fig4_exact": "Weighted groups at their own exact privacy",
}


@dataclass(frozen=True)
class Outcome:
    """Everything a report is made of."""

    chosen: tuple[str, ...]
    runs: int
    seed: int
    results: dict[str, list[Line]]
    curves: dict[str, list[Record]]
    checks: list[Check]
    judged: list[Verdict]
