"""Table II: weights and errors of weighted aggregation on uniform and normal data, 1,000 users, 30 items."""

import numpy as np

from faircount.core.arrays import Floats
from faircount.experiments.studies import weighted_groups
from faircount.experiments.studies.fig4 import sampling, sampling_study
from faircount.experiments.studies.judging import (
    ARITHMETIC,
    CHANCE,
    THEORY,
    Verdict,
    chance,
    everywhere,
    number,
    scaled,
)
from faircount.experiments.studies.study import ACTING, COUNTS, USERS, Line, holders, one
from faircount.sweep.sweep import Point

DATA = ("uniform", "normal")
METHODS = weighted_groups.METHODS

WEIGHTS = {
    "s1": (0.0316, 0.1477, 0.3045, 0.5162),
    "s2": (0.0333, 0.0333, 0.3885, 0.5448),
    "s3": (0.0517, 0.0517, 0.0517, 0.8449),
    "s4": (0.0259, 0.3017, 0.2495, 0.4229),
}
"""The paper's column "Weights", the same for both distributions."""

ERRORS = {
    ("s1", "uniform", "vwa"): "1.124e-3",
    ("s1", "uniform", "uwa"): "3.757e-3",
    ("s1", "normal", "vwa"): "4.96e-3",
    ("s1", "normal", "uwa"): "5.72e-3",
    ("s2", "uniform", "vwa"): "1.253e-3",
    ("s2", "uniform", "uwa"): "4.885e-3",
    ("s2", "normal", "vwa"): "6.26e-3",
    ("s2", "normal", "uwa"): "6.51e-3",
    ("s3", "uniform", "vwa"): "9.52e-4",
    ("s3", "uniform", "uwa"): "7.999e-3",
    ("s3", "normal", "vwa"): "8.66e-3",
    ("s3", "normal", "uwa"): "1.4e-2",
    ("s4", "uniform", "vwa"): "9.61e-4",
    ("s4", "uniform", "uwa"): "3.233e-3",
    ("s4", "normal", "vwa"): "4.02e-3",
    ("s4", "normal", "uwa"): "4.17e-3",
}
"""The paper's column "MSE", as printed; its rows OWA/VWA stand here as vwa."""


def points() -> list[Point]:
    """Both distributions and every setting; every user acts at one point."""
    chosen: list[Point] = [
        {"data": data, "users": USERS, "setting": setting, "how": COUNTS}
        for data in DATA
        for setting in weighted_groups.SETTINGS
    ]
    return [*chosen, {"data": "normal", "users": USERS, "setting": "s3", "how": ACTING}]


def found_weights(setting: str, data: str, method: str = "vwa") -> Floats:
    """Our weights for a setting; the data enter through the total-variance weights alone."""
    people, epsilons = holders(data, USERS, 0.0), weighted_groups.SETTINGS[setting]
    size = USERS // weighted_groups.GROUPS
    variances = weighted_groups.group_variances(sampling(len(people)), epsilons, len(people), size)
    return weighted_groups.weights(method, variances, weighted_groups.spread_of(people), size)


# Every cell of the table, and what the text says about it.

PLACE = "Table II"


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Weights, errors, and the two claims of the text."""
    return [
        *(_weights(setting) for setting in weighted_groups.SETTINGS),
        _optimized(),
        *(_error(lines, *cell, printed) for cell, printed in ERRORS.items()),
        _larger_for_normal(lines),
        _metric(),
    ]


def _weights(setting: str) -> Verdict:
    ours = {data: found_weights(setting, data) for data in DATA}
    off = max(float(np.abs(found - np.array(WEIGHTS[setting])).max()) for found in ours.values())
    claim = f"{setting}: weights of OWA/VWA, the same for both data distributions"
    printed = ", ".join(f"{weight:.4f}" for weight in WEIGHTS[setting])
    told = ", ".join(f"{weight:.4f}" for weight in ours["uniform"])
    why = (
        f"largest difference {off:.1e}, uniform and normal data; V_g = 1/(e^epsilon_g - 1) does not depend on the data"
    )
    return Verdict("table2", PLACE, claim, printed, told, everywhere([off < 0.6e-4]), ARITHMETIC, why)


def _optimized() -> Verdict:
    off = max(
        float(np.abs(found_weights(each, "uniform", "owa") - found_weights(each, "uniform")).max())
        for each in weighted_groups.SETTINGS
    )
    claim = "OWA (numerical optimization) and VWA (closed form) have the same weights"
    why = "the optimization problem has the closed form as its only minimum up to a factor"
    ours = f"largest difference {off:.1e}"
    return Verdict("table2", PLACE, claim, "one row for both", ours, everywhere([off < 1e-4]), ARITHMETIC, why)


def _error(lines: list[Line], setting: str, data: str, method: str, printed: str) -> Verdict:
    found = {
        name: one(lines, data=data, setting=setting, method=method, against=against, how=COUNTS)
        for name, against in (("privacy noise", weighted_groups.NOISE), ("population", weighted_groups.POPULATION))
    }
    theory = {name: line.expected for name, line in found.items()}
    ours = ", ".join(f"{line.mean:.3g} ({name})" for name, line in found.items())
    label = "OWA/VWA" if method == "vwa" else "UWA"
    return number("table2", PLACE, f"{setting}, {data}, {label}: MSE", printed, theory, f"measured {ours}")


def _larger_for_normal(lines: list[Line]) -> Verdict:
    cases, told = [], []
    for against in (weighted_groups.NOISE, weighted_groups.POPULATION):
        pairs = [
            [one(lines, data=data, setting=each, method=method, against=against, how=COUNTS) for data in DATA]
            for each in weighted_groups.SETTINGS
            for method in ("vwa", "uwa")
        ]
        cases += [normal.expected.mean > uniform.expected.mean * (1 + 1e-9) for uniform, normal in pairs]
        ratio = float(np.mean([normal.expected.mean / uniform.expected.mean for uniform, normal in pairs]))
        seen = float(np.mean([normal.mean / uniform.mean for uniform, normal in pairs]))
        told.append(f"{against}: theory {ratio:.3f}, measured {seen:.2f}")
    claim = "On data with normal distribution the mechanism has a relatively larger error than on uniform data"
    printed = [float(ERRORS[setting, "normal", m]) / float(ERRORS[setting, "uniform", m]) for setting, _, m in ERRORS]
    why = (
        "summed over the items the noise of DPDS is (1-p)/(p n) whatever the data, and the luck of the split is "
        "less for normal"
    )
    return Verdict(
        "table2",
        "IV-B4",
        claim,
        f"{min(printed):.1f} to {max(printed):.1f} times",
        "normal over uniform, average; " + "; ".join(told),
        everywhere(cases),
        THEORY,
        why,
    )


def _metric() -> Verdict:
    """Which normalization the printed errors of the uniform rows have."""
    fits = {"summed over the items": 0, "divided by N": 0}
    cells = [cell for cell in ERRORS if cell[1] == "uniform"]
    for setting, data, method in cells:
        point: Point = {"data": data, "users": USERS, "setting": setting, "how": COUNTS}
        expected, items = STUDY.theory(point)[f"{method}|{weighted_groups.NOISE}"], STUDY.items(point)
        for name, factor in zip(fits, (1.0, 1 / items), strict=True):
            fits[name] += chance(ERRORS[setting, data, method], scaled(expected, factor)) > CHANCE
    told = ", ".join(f"{name} {count}" for name, count in fits.items())
    claim = "MSE = 1/N sum (psi_i - psihat_i)^2 is what is reported"
    why = "the printed errors are sums over the items, of the privacy noise alone; so are ours, and CSV files have both"
    ours = f"of {len(cells)} printed errors of Table II on uniform data theory fits {told}"
    verdict = everywhere([fits["divided by N"] >= fits["summed over the items"]])
    return Verdict("table2", "IV-A2", claim, "1/N", ours, verdict, THEORY, why)


STUDY = sampling_study(
    name="table2",
    title="Weights and errors for groups with different privacy settings",
    paper="Table II: weights of OWA/VWA and mean squared error of OWA/VWA and UWA for s1 to s4 on uniform and "
    "normal data, 1,000 participants, 30 items.",
    ours="The error is given against the groups' own truth (privacy noise alone) and against the population. The "
    "paper does not say how it cut the normal into 30 items; here into intervals of width 0.2.",
    points=points,
    methods=METHODS,
    floor_share=0.0,
)
