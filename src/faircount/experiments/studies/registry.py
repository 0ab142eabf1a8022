"""All studies by name, and one sweep for any of them: one cluster, one progress bar, one file to resume from."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from faircount.core.arrays import Floats
from faircount.experiments.data.populations import IN_USE, Population, using
from faircount.experiments.studies import equal_privacy, fig1, fig2, fig3, fig4, fig5, poisoning, table1, table2
from faircount.experiments.studies.study import ACTING, Line, Study, lines_of
from faircount.sweep.blocks import BLOCK_RUNS
from faircount.sweep.sweep import Load, Point, sweep

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (fig1, fig2, fig3, fig4, fig5, table1, table2, equal_privacy, poisoning)
}

ACTING_RUNS = 20
"""Runs, at most, of a point at which every user acts: as many as the paper made. A thousand would take hours."""

BLOCK_SECONDS = 2.0
"""How long a block takes, roughly: what a killed run loses."""

POPULATION = "population"
"""Name under which a point carries a population that is not built in, so that any worker has it."""


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """The task of the study that the point names, on the data that the point carries."""
    plain = _without_data(point)
    study = STUDIES[str(point["study"])]
    if POPULATION not in point:
        return study.task(plain, rng, runs)
    with using({str(point["data"]): _unpacked(str(point[POPULATION]))}):
        return study.task(plain, rng, runs)


def load(point: Point, runs: int) -> Load:
    """How many runs a point gets, in blocks that last about two seconds."""
    seconds = STUDIES[str(point["study"])].seconds(point)
    block = max(1, min(BLOCK_RUNS, int(BLOCK_SECONDS / seconds)))
    return Load(min(runs, ACTING_RUNS) if point["how"] == ACTING else runs, block, seconds)


def measure(studies: Sequence[Study], runs: int, **how: Any) -> dict[str, list[Line]]:
    """Run all points of these studies in one sweep, as `how` tells it, and set each number beside its theory."""
    points = [_with_data(point) for study in studies for point in study.named()]
    measured = sweep(task, points, runs=lambda point: load(point, runs), **how)
    lines: dict[str, list[Line]] = {study.name: [] for study in studies}
    for found in measured:
        study = STUDIES[str(found.point["study"])]
        lines[study.name] += lines_of(study, replace(found, point=_without_data(found.point)))
    return lines


def _with_data(point: Point) -> Point:
    """The point, with the population that stands in for the built-in one of its data set."""
    people = IN_USE.get().get(str(point.get("data")))
    return point if people is None else {**point, POPULATION: json.dumps(asdict(people), sort_keys=True)}


def _unpacked(text: str) -> Population:
    values = json.loads(text)
    values |= {name: tuple(values[name]) for name in ("labels", "counts")}
    return Population(**values)


def _without_data(point: Point) -> Point:
    return {name: value for name, value in point.items() if name != POPULATION}
