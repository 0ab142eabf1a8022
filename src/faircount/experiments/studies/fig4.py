"""Figure 4: weighted aggregation (OWA, VWA) against UWA and CPA, DPDS in four groups of 250 users."""

from typing import Any

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.core.arrays import Floats
from faircount.experiments.studies import weighted_groups
from faircount.experiments.studies.judging import RUNS, Pair, Verdict, ordered
from faircount.experiments.studies.study import (
    ACTING,
    COUNTS,
    DATA,
    FLOOR_SHARE,
    USERS,
    Expected,
    Line,
    Study,
    one,
    people,
)
from faircount.mechanisms.sampling import DPDS
from faircount.sweep.sweep import Point

METHODS = (*weighted_groups.METHODS, weighted_groups.CPA)


def points() -> list[Point]:
    """Every data set and setting; every user acts at one point."""
    chosen: list[Point] = [
        {"data": data, "users": USERS, "setting": setting, "how": COUNTS}
        for data in DATA
        for setting in weighted_groups.SETTINGS
    ]
    return [*chosen, {"data": "gowalla", "users": USERS, "setting": "s1", "how": ACTING}]


def sampling(items: int) -> weighted_groups.Maker:
    """DPDS with Theorem 1's p for a group's epsilon."""
    return lambda epsilon: DPDS(items=items, p=theorem1_p(epsilon))


def sampling_study(methods: tuple[str, ...], floor_share: float, **said: Any) -> Study:
    """Errors of every method, against the groups' own truth and the population; theory: the sum of W_g^2 V_g / n_g."""

    def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
        held, epsilons = people(point, floor_share), weighted_groups.SETTINGS[str(point["setting"])]
        return weighted_groups.errors(sampling(len(held)), held, epsilons, methods, runs, str(point["how"]), rng)

    def theory(point: Point) -> dict[str, Expected]:
        held, epsilons = people(point, floor_share), weighted_groups.SETTINGS[str(point["setting"])]
        return weighted_groups.expected(sampling(len(held)), held, epsilons, methods)

    return Study(task=task, theory=theory, items=lambda point: len(people(point, floor_share)), **said)


# What the paper's text says about the figure.

PLACE = "IV-B4"


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every claim of the text on Fig. 4; it prints no numbers."""
    claim = "The weighted method has the smallest MSE compared to UWA and CPA over all settings"
    why = {
        weighted_groups.NOISE: "by the weighted variance 1 / sum(n_g / V_g), which is the smallest there is",
        weighted_groups.POPULATION: "the luck of the split into groups, which weighting adds, is smaller than the "
        "noise it saves",
    }
    return [_smallest(lines, claim, against, why[against]) for against in why]


def _smallest(lines: list[Line], claim: str, against: str, why: str) -> Verdict:
    clusters: list[list[Pair]] = []
    for data in DATA:
        for setting in weighted_groups.SETTINGS:
            here = {"data": data, "setting": setting, "against": against, "how": COUNTS}
            weighed = one(lines, method="vwa", **here)
            clusters.append([(one(lines, method=method, **here), weighed) for method in ("uwa", weighted_groups.CPA)])
    verdict, ours = ordered(clusters)
    return Verdict("fig4", PLACE, f"{claim} (error against the {_NAMES[against]})", "", ours, verdict, RUNS, why)


_NAMES = {weighted_groups.NOISE: "groups' own truth", weighted_groups.POPULATION: "population"}


STUDY = sampling_study(
    name="fig4",
    title="Weighted aggregation for frequency estimation by sampling",
    paper="Fig. 4: mean squared error of the weighted methods (OWA/VWA), of unweighted aggregation (UWA) and of "
    "everybody at the smallest epsilon (CPA) for the privacy settings s1 to s4, 1,000 users in four groups, three "
    "data sets.",
    ours="Both errors are shown: against what the groups themselves hold (privacy noise alone, as the paper's "
    "numbers), and against the population of all 1,000 users, where weighting also adds the luck of the split. "
    "'total' are weights by total variance, which are not in the paper.",
    points=points,
    methods=METHODS,
    floor_share=FLOOR_SHARE,
)
