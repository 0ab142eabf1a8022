"""Table II: weights and errors of weighted aggregation on uniform and normal data, 30 items."""

import numpy as np

from faircount.core.arrays import Floats
from faircount.reproduction.studies import weighted_groups
from faircount.reproduction.studies.fig4 import dpds_maker, list_group_points, make_group_study
from faircount.reproduction.studies.judging import (
    ARITHMETIC,
    MIN_PROBABILITY,
    THEORY,
    Verdict,
    judge_all,
    judge_number,
    printed_probability,
    rescale,
)
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    USERS,
    Line,
    Value,
    find_line,
    sampled_counts,
)
from faircount.reproduction.studies.weighted_groups import NOISE, POPULATION, SETTINGS
from faircount.reproduction.sweep.sweep import Point

DATA = ("uniform", "normal")
METHODS = weighted_groups.METHODS

# The paper's column "Weights", the same for both distributions.
WEIGHTS = {
    "s1": (0.0316, 0.1477, 0.3045, 0.5162),
    "s2": (0.0333, 0.0333, 0.3885, 0.5448),
    "s3": (0.0517, 0.0517, 0.0517, 0.8449),
    "s4": (0.0259, 0.3017, 0.2495, 0.4229),
}

# The paper's column "MSE", as printed; its rows "OWA/VWA" are called vwa here.
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


def points() -> list[Point]:
    """Both distributions and all settings; one point at user level."""
    return list_group_points(DATA, simulated=("normal", "s3"))


def our_weights(setting: str, data: str, method: str = "vwa") -> Floats:
    """Our weights for a setting; only the total-variance weights depend on the data."""
    counts = sampled_counts(data, USERS, 0.0)
    items = len(counts)
    size = USERS // weighted_groups.GROUPS
    variances = weighted_groups.compute_group_variances(
        dpds_maker(items), SETTINGS[setting], items, size
    )
    answer_variance = weighted_groups.compute_answer_variance(counts)
    return weighted_groups.compute_weights(method, variances, answer_variance, size)


# Every cell of the table, and what Section IV-B4 says about it.

PLACE = "Table II"

# Weights are printed with four digits, whose rounding is at most half of 1e-4.
WEIGHT_TOLERANCE = 0.6e-4

# The numerical optimization stops at about this distance from the minimum.
OPTIMIZER_TOLERANCE = 1e-4


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge all weights and errors, and the claims of the text."""
    return [
        *map(_judge_weights, SETTINGS),
        _judge_optimization(),
        *(_judge_error(lines, *cell, printed) for cell, printed in ERRORS.items()),
        _judge_larger_for_normal(lines),
        _judge_normalization(),
    ]


def _judge_weights(setting: str) -> Verdict:
    distances = [_distance(our_weights(setting, data), WEIGHTS[setting]) for data in DATA]
    largest = max(distances)
    return Verdict(
        "table2",
        PLACE,
        f"{setting}: weights of OWA/VWA, the same for both data distributions",
        _format_weights(WEIGHTS[setting]),
        _format_weights(our_weights(setting, "uniform")),
        judge_all([largest < WEIGHT_TOLERANCE]),
        ARITHMETIC,
        f"largest difference {largest:.1e}, uniform and normal data; V_g = 1/(e^epsilon_g - 1) "
        "does not depend on the data",
    )


def _distance(weights: Floats, others: Floats | tuple[float, ...]) -> float:
    return float(np.abs(weights - np.array(others)).max())


def _format_weights(weights: Floats | tuple[float, ...]) -> str:
    return ", ".join(f"{weight:.4f}" for weight in weights)


def _judge_optimization() -> Verdict:
    distances = []
    for setting in SETTINGS:
        optimized = our_weights(setting, "uniform", "owa")
        distances.append(_distance(optimized, our_weights(setting, "uniform")))
    largest = max(distances)
    return Verdict(
        "table2",
        PLACE,
        "OWA (numerical optimization) and VWA (closed form) have the same weights",
        "one row for both",
        f"largest difference {largest:.1e}",
        judge_all([largest < OPTIMIZER_TOLERANCE]),
        ARITHMETIC,
        "up to a factor, the closed form is the only minimum of the optimization problem",
    )


def _judge_error(lines: list[Line], setting: str, data: str, method: str, printed: str) -> Verdict:
    here: dict[str, Value] = {
        "data": data,
        "setting": setting,
        "method": method,
        "how": COUNT_LEVEL,
    }
    noise = find_line(lines, against=NOISE, **here)
    population = find_line(lines, against=POPULATION, **here)
    # The paper does not say which truth it compares with: both are tried.
    theory = {"privacy noise": noise.expected, "population": population.expected}
    ours = f"measured {noise.mean:.3g} (privacy noise), {population.mean:.3g} (population)"
    label = "OWA/VWA" if method == "vwa" else "UWA"
    claim = f"{setting}, {data}, {label}: MSE"
    return judge_number("table2", PLACE, claim, printed, theory, ours)


def _judge_larger_for_normal(lines: list[Line]) -> Verdict:
    cases = []
    averages = []
    for against in (NOISE, POPULATION):
        expected_ratios = []
        measured_ratios = []
        for setting, data, method in ERRORS:
            if data != "uniform":
                continue
            here: dict[str, Value] = {
                "setting": setting,
                "method": method,
                "against": against,
                "how": COUNT_LEVEL,
            }
            uniform = find_line(lines, data="uniform", **here)
            normal = find_line(lines, data="normal", **here)
            # Equal errors differ in their last digits, which must not count as larger.
            cases.append(normal.expected.mean > uniform.expected.mean * (1 + 1e-9))
            expected_ratios.append(normal.expected.mean / uniform.expected.mean)
            measured_ratios.append(normal.mean / uniform.mean)
        expected = float(np.mean(expected_ratios))
        measured = float(np.mean(measured_ratios))
        averages.append(f"{against}: theory {expected:.3f}, measured {measured:.2f}")
    printed = []
    for setting, data, method in ERRORS:
        if data == "uniform":
            normal_error = float(ERRORS[setting, "normal", method])
            printed.append(normal_error / float(ERRORS[setting, "uniform", method]))
    return Verdict(
        "table2",
        "IV-B4",
        "On data with normal distribution the mechanism has a relatively larger error than on "
        "uniform data",
        f"{min(printed):.1f} to {max(printed):.1f} times",
        "normal over uniform, average; " + "; ".join(averages),
        judge_all(cases),
        THEORY,
        "summed over the items the noise of DPDS is (1-p)/(p n) whatever the data, and the random "
        "split adds less for normal data",
    )


def _judge_normalization() -> Verdict:
    """Judge which normalization the printed errors of the uniform rows have."""
    summed = 0
    divided = 0
    # Only these rows: the errors printed for normal data fit neither normalization.
    uniform = [cell for cell in ERRORS if cell[1] == "uniform"]
    for setting, data, method in uniform:
        point: Point = {"data": data, "users": USERS, "setting": setting, "how": COUNT_LEVEL}
        expected = STUDY.theory(point)[f"{method}|{NOISE}"]
        per_item = rescale(expected, 1 / STUDY.items(point))
        printed = ERRORS[setting, data, method]
        summed += printed_probability(printed, expected) > MIN_PROBABILITY
        divided += printed_probability(printed, per_item) > MIN_PROBABILITY
    return Verdict(
        "table2",
        "IV-A2",
        "MSE = 1/N sum (psi_i - psihat_i)^2 is what is reported",
        "1/N",
        f"of {len(uniform)} printed errors of Table II on uniform data theory fits summed over the "
        f"items {summed}, divided by N {divided}",
        judge_all([divided >= summed]),
        THEORY,
        "the printed errors are sums over the items, of the privacy noise alone; so are ours, and "
        "the CSV files have both",
    )


STUDY = make_group_study(
    name="table2",
    title="Weights and errors for groups with different privacy settings",
    paper="Table II: weights of OWA/VWA and mean squared error of OWA/VWA and UWA for s1 to s4 on "
    "uniform and normal data, 1,000 participants, 30 items.",
    ours="The error is given against the groups' own truth (privacy noise alone) and against the "
    "population. The paper does not say how it cut the normal into 30 items; here they are "
    "intervals of width 0.2.",
    points=points,
    methods=METHODS,
    floor_share=0.0,
)
