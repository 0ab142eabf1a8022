"""A sweep: many runs of one task at many points, on one process or on a cluster, with the same numbers everywhere.

def error(point, rng, runs):            # at the top of a module; vectorized over runs
    return {"squared error": ...}       # one number per run

rows = sweep(error, [{"epsilon": 0.5}, {"epsilon": 1.0}], runs=100_000, seed=7, engine="dask", resume="errors.sweep")
rows[0].mean("squared error"), rows[0].interval("squared error", 0.95)
"""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.validation import fraction
from faircount.sweep.blocks import Block, Job, Load, Loads, Point, Task, jobs_of, task_name
from faircount.sweep.engines import ENGINES
from faircount.sweep.journal import Journal

__all__ = ["Load", "Loads", "Measured", "Point", "Progress", "Task", "sweep"]

Progress = Callable[[float, float], None]
"""Called with the work done and the work of the whole sweep, after every block: runs, weighted by what they cost."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured at one point: per named statistic one number for each run, in the order of the blocks."""

    point: Point
    runs: int
    values: dict[str, Floats]

    def _of(self, name: str) -> Floats:
        if name not in self.values:
            raise ParameterError(f"{name!r} was not measured: there are {', '.join(self.values)}")
        return self.values[name]

    def mean(self, name: str) -> float:
        """Average over the runs."""
        return float(self._of(name).mean())

    def standard_error(self, name: str) -> float:
        """Standard deviation of the mean, estimated from the runs; at least two are needed."""
        if self.runs < 2:
            raise ParameterError("a standard error needs at least 2 runs")
        return float(self._of(name).std(ddof=1)) / math.sqrt(self.runs)

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of the expected value: mean and Student's quantile times the standard error."""
        from scipy.special import stdtrit

        half = float(stdtrit(self.runs - 1, (1 + fraction("level", level)) / 2)) * self.standard_error(name)
        return self.mean(name) - half, self.mean(name) + half


def sweep(
    task: Task,
    points: Iterable[Point],
    *,
    runs: int | Loads,
    seed: int,
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    resume: str | Path | None = None,
) -> list[Measured]:
    """Make `runs` runs of the task at every point and return what was measured, in the order of the points.

    The numbers depend on the task, the points, `runs` and `seed`, not on engine, scheduler or workers. 'local' works in
    this process and takes a second one when the work is large (`workers` fixes the number); 'dask' works on the cluster
    at the address `scheduler`, or on a cluster of `workers` processes started here. With `resume`, a file that is made
    when it is not there, finished blocks are kept and an interrupted sweep goes on where it stopped. `runs` may be a
    function that gives every point its own `Load`.
    """
    if engine not in ENGINES:
        raise ParameterError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    jobs = jobs_of(task, points, runs, seed)
    blocks: dict[int, list[Block]] = {}
    costs = {(job.position, job.number): job.cost for job in jobs}
    left = total = math.fsum(costs.values())
    with closing(_blocks(jobs, engine, scheduler, workers, resume)) as stream:
        for block in stream:
            blocks.setdefault(block.position, []).append(block)
            left -= costs.pop((block.position, block.number))
            if progress is not None:
                progress(total - left if costs else total, total)  # the end is exact, whatever the sums' rounding
    return [_row(job, blocks[job.position]) for job in jobs if job.number == 0]


def _blocks(
    jobs: Sequence[Job], engine: str, scheduler: str | None, workers: int | None, resume: str | Path | None
) -> Generator[Block, None, None]:
    """Blocks kept from before, then those that are missing, each kept as soon as it is done."""
    with ExitStack() as stack:
        journal = stack.enter_context(closing(Journal(Path(resume), jobs))) if resume is not None else None
        left = {(job.position, job.number): job for job in jobs}
        for block in journal.finished() if journal is not None else ():
            if left.pop((block.position, block.number), None) is not None:
                yield block
        if left:
            for block in stack.enter_context(closing(ENGINES[engine](list(left.values()), scheduler, workers))):
                if journal is not None:
                    journal.append(block)
                yield block


def _row(first: Job, blocks: Sequence[Block]) -> Measured:
    """A point's blocks, one after the other."""
    parts = [block.values for block in sorted(blocks, key=lambda each: each.number)]
    if any(part.keys() != parts[0].keys() for part in parts):
        raise ParameterError(f"{task_name(first.task)} must return the same statistics every time it is called")
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Measured(first.point, sum(block.runs for block in blocks), values)
