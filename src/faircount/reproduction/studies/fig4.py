"""Figure 4: weighted aggregation (OWA, VWA) against UWA and CPA, DPDS in four groups of 250."""

from itertools import product
from typing import Any

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.core.arrays import Floats
from faircount.mechanisms.sampling import DPDS
from faircount.reproduction.studies import weighted_groups
from faircount.reproduction.studies.judging import RUNS, Pair, Verdict, judge_order
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    FLOOR_SHARE,
    USERS,
    Expected,
    Line,
    Study,
    Value,
    add_user_level,
    counts_at,
    find_line,
)
from faircount.reproduction.sweep.sweep import Point

# CPA is compared with the weightings, although it has no groups.
METHODS = (*weighted_groups.METHODS, weighted_groups.CPA)


def points() -> list[Point]:
    """All data sets and settings; one point at user level."""
    return list_group_points(DATA, simulated=("gowalla", "s1"))


def list_group_points(data_sets: tuple[str, ...], simulated: tuple[str, str]) -> list[Point]:
    """All settings of these data sets; the data set and setting `simulated` also at user level."""
    chosen: list[Point] = [
        {"data": data, "users": USERS, "setting": setting, "how": COUNT_LEVEL}
        for data, setting in product(data_sets, weighted_groups.SETTINGS)
    ]
    return add_user_level(chosen, lambda point: (point["data"], point["setting"]) == simulated)


def dpds_maker(items: int) -> weighted_groups.Maker:
    """DPDS with the p of Theorem 1 for the epsilon of a group."""
    return lambda epsilon: DPDS(items=items, p=theorem1_p(epsilon))


def make_group_study(methods: tuple[str, ...], floor_share: float, **description: Any) -> Study:
    """A study of DPDS in weighted groups; the theory is the sum of W_g^2 V_g / n_g."""

    def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
        counts = counts_at(point, floor_share)
        epsilons = weighted_groups.SETTINGS[str(point["setting"])]
        maker = dpds_maker(len(counts))
        how = str(point["how"])
        return weighted_groups.measure_errors(maker, counts, epsilons, methods, runs, how, rng)

    def theory(point: Point) -> dict[str, Expected]:
        counts = counts_at(point, floor_share)
        epsilons = weighted_groups.SETTINGS[str(point["setting"])]
        return weighted_groups.expected_errors(dpds_maker(len(counts)), counts, epsilons, methods)

    def items(point: Point) -> int:
        return len(counts_at(point, floor_share))

    return Study(task=task, theory=theory, items=items, **description)


# What the text says about the figure (Section IV-B4). It prints no numbers.

PLACE = "IV-B4"

# What an error is measured against, and why weighting helps there.
TRUTHS = {weighted_groups.NOISE: "groups' own truth", weighted_groups.POPULATION: "population"}
REASONS = {
    weighted_groups.NOISE: "by the weighted variance 1 / sum(n_g / V_g), which is the smallest "
    "there is",
    weighted_groups.POPULATION: "the random split into groups, which weighting makes visible, "
    "matters less than the noise that weighting saves",
}


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge the claim of the text on Figure 4, against both truths."""
    return [_judge_smallest(lines, against) for against in TRUTHS]


def _judge_smallest(lines: list[Line], against: str) -> Verdict:
    clusters: list[list[Pair]] = []
    for data, setting in product(DATA, weighted_groups.SETTINGS):
        here: dict[str, Value] = {
            "data": data,
            "setting": setting,
            "against": against,
            "how": COUNT_LEVEL,
        }
        weighted = find_line(lines, method="vwa", **here)
        unweighted = find_line(lines, method="uwa", **here)
        common = find_line(lines, method=weighted_groups.CPA, **here)
        # Both pairs use the same weighted line, so they form one cluster.
        clusters.append([(unweighted, weighted), (common, weighted)])
    verdict, ours = judge_order(clusters)
    claim = (
        "The weighted method has the smallest MSE compared to UWA and CPA over all settings "
        f"(error against the {TRUTHS[against]})"
    )
    return Verdict("fig4", PLACE, claim, "", ours, verdict, RUNS, REASONS[against])


STUDY = make_group_study(
    name="fig4",
    title="Weighted aggregation for frequency estimation by sampling",
    paper="Figure 4: mean squared error of the weighted methods (OWA/VWA), of unweighted "
    "aggregation (UWA) and of everybody at the smallest epsilon (CPA) for the privacy settings s1 "
    "to s4, 1,000 users in four groups, three data sets.",
    ours="Two errors are shown: against the frequencies in the groups themselves (privacy noise "
    "alone, as in the paper's numbers), and against the population of all 1,000 users, where "
    "weighting also brings in the random split. 'total' are weights by total variance, which are "
    "not in the paper.",
    points=points,
    methods=METHODS,
    floor_share=FLOOR_SHARE,
)
