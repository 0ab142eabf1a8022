"""All studies by name, and one sweep for any choice of them.

One sweep means one cluster, one progress bar and one file to resume from.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from faircount.core.arrays import Floats
from faircount.reproduction.data.populations import (
    REPLACEMENTS,
    Population,
    replace_populations,
)
from faircount.reproduction.studies import (
    equal_privacy,
    fig1,
    fig2,
    fig3,
    fig4,
    fig5,
    poisoning,
    table1,
    table2,
)
from faircount.reproduction.studies.study import USER_LEVEL, Line, Study, compare_with_theory
from faircount.reproduction.sweep.blocks import BLOCK_RUNS
from faircount.reproduction.sweep.sweep import Load, Point, sweep

MODULES = (fig1, fig2, fig3, fig4, fig5, table1, table2, equal_privacy, poisoning)
STUDIES: dict[str, Study] = {module.STUDY.name: module.STUDY for module in MODULES}

# Most runs of a point at which every user is simulated: as many as the paper made. A thousand would
# take hours.
USER_LEVEL_RUNS = 20

# How long a block takes, roughly. It is what a killed run loses.
BLOCK_SECONDS = 2.0

# Under this name a point carries a population that is not built in, so that every worker has it.
POPULATION = "population"


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Run the task of the study that the point names, on the data that the point carries."""
    study = STUDIES[str(point["study"])]
    plain = _remove_population(point)
    if POPULATION not in point:
        return study.task(plain, rng, runs)
    population = _decode_population(str(point[POPULATION]))
    with replace_populations({str(point["data"]): population}):
        return study.task(plain, rng, runs)


def plan_load(point: Point, runs: int) -> Load:
    """How many runs a point gets, in blocks of about two seconds."""
    seconds = STUDIES[str(point["study"])].seconds(point)
    block = max(1, min(BLOCK_RUNS, int(BLOCK_SECONDS / seconds)))
    if point["how"] == USER_LEVEL:
        runs = min(runs, USER_LEVEL_RUNS)
    return Load(runs, block, seconds)


def measure(studies: Sequence[Study], runs: int, **options: Any) -> dict[str, list[Line]]:
    """Run all points of these studies in one sweep and set every result beside its theory."""
    points: list[Point] = []
    for study in studies:
        points += map(_add_population, study.named_points())
    results = sweep(task, points, runs=lambda point: plan_load(point, runs), **options)
    lines: dict[str, list[Line]] = {study.name: [] for study in studies}
    for measured in results:
        study = STUDIES[str(measured.point["study"])]
        plain = replace(measured, point=_remove_population(measured.point))
        lines[study.name] += compare_with_theory(study, plain)
    return lines


def _add_population(point: Point) -> Point:
    """The point with the population that replaces the built-in one of its data set."""
    population = REPLACEMENTS.get().get(str(point.get("data")))
    if population is None:
        return point
    return {**point, POPULATION: json.dumps(asdict(population), sort_keys=True)}


def _remove_population(point: Point) -> Point:
    return {name: value for name, value in point.items() if name != POPULATION}


def _decode_population(text: str) -> Population:
    values = json.loads(text)
    # JSON has lists where a population has tuples.
    for name in ("labels", "counts"):
        values[name] = tuple(values[name])
    return Population(**values)
