"""All studies by name, and one sweep for any of them: one cluster, one progress bar, one file to resume from."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faircount.core.arrays import Floats
from faircount.experiments.studies import equal_privacy, fig1, fig2, fig3, fig4, fig5, table1, table2
from faircount.experiments.studies.study import Line, Study, beside
from faircount.sweep.sweep import Point, Progress, sweep

STUDIES: dict[str, Study] = {
    each.STUDY.name: each.STUDY for each in (fig1, fig2, fig3, fig4, fig5, table1, table2, equal_privacy)
}


@dataclass(frozen=True)
class Plan:
    """How the sweep of a report is run; `resume` names the file that finished blocks are kept in."""

    runs: int
    seed: int
    engine: str = "local"
    scheduler: str | None = None
    workers: int | None = None
    progress: Progress | None = None
    resume: Path | None = None


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """The task of the study that the point names."""
    return STUDIES[str(point["study"])].task(point, rng, runs)


def measure(studies: Sequence[Study], plan: Plan) -> dict[str, list[Line]]:
    """Run all points of these studies in one sweep, and set each measured number beside its theory."""
    points = [point for study in studies for point in study.named()]
    measured = sweep(
        task,
        points,
        runs=plan.runs,
        seed=plan.seed,
        engine=plan.engine,
        scheduler=plan.scheduler,
        workers=plan.workers,
        progress=plan.progress,
        resume=plan.resume,
    )
    lines: dict[str, list[Line]] = {study.name: [] for study in studies}
    for each in measured:
        name = str(each.point["study"])
        lines[name] += beside(STUDIES[name], each)
    return lines
