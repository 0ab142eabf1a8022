"""A sweep: many runs of one task at many points, with the same numbers on every engine.

def error(point, rng, runs):        # at the top of a module; vectorized over the runs
    return {"squared error": ...}   # one number for every run

points = [{"epsilon": 0.5}, {"epsilon": 1.0}]
results = sweep(error, points, runs=100_000, seed=7, engine="dask", resume="errors.sweep")
results[0].mean("squared error"), results[0].interval("squared error", 0.95)
"""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.validation import check_fraction
from faircount.reproduction.sweep.blocks import (
    Block,
    Job,
    Load,
    Loads,
    Point,
    Task,
    make_jobs,
    task_name,
)
from faircount.reproduction.sweep.engines import ENGINES
from faircount.reproduction.sweep.journal import Journal

__all__ = ["Load", "Loads", "Measured", "Point", "Progress", "Task", "sweep"]

# Called after every block with the finished work and the work of the whole sweep: numbers of runs,
# weighted by their costs.
Progress = Callable[[float, float], None]


@dataclass(frozen=True, eq=False)
class Measured:
    """The results at one point: for every statistic one number per run, in the order of blocks."""

    point: Point
    runs: int
    values: dict[str, Floats]

    def _statistic(self, name: str) -> Floats:
        if name not in self.values:
            known = ", ".join(self.values)
            raise ParameterError(f"{name!r} was not measured: there are {known}")
        return self.values[name]

    def mean(self, name: str) -> float:
        """Average over the runs."""
        return float(self._statistic(name).mean())

    def standard_error(self, name: str) -> float:
        """Standard error of the mean, estimated from at least two runs."""
        if self.runs < 2:
            raise ParameterError("a standard error needs at least 2 runs")
        return float(self._statistic(name).std(ddof=1)) / math.sqrt(self.runs)

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """Student's confidence interval of the expected value."""
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.runs - 1, (1 + check_fraction("confidence", confidence)) / 2))
        half_width = quantile * self.standard_error(name)
        return self.mean(name) - half_width, self.mean(name) + half_width


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
    """Run the task `runs` times at every point; return the results in the order of the points.

    The numbers depend on the task, the points, `runs` and `seed`, not on the engine, the scheduler
    or the workers.

    runs: for all points, or a function that gives every point its own `Load`
    engine: 'local' works in this process, and adds another one when the work is large (`workers`
        fixes the number); 'dask' works on the cluster at the address `scheduler`, or starts a
        cluster of `workers` processes here
    resume: a file that keeps finished blocks, so that an interrupted sweep continues from there; it
        is created if it does not exist
    """
    if engine not in ENGINES:
        raise ParameterError(f"there is no engine {engine!r}: choose one of {', '.join(ENGINES)}")
    jobs = make_jobs(task, points, runs, seed)
    blocks: dict[int, list[Block]] = {}
    costs = {(job.position, job.number): job.cost for job in jobs}
    total = math.fsum(costs.values())
    remaining = total
    with closing(_finish_blocks(jobs, engine, scheduler, workers, resume)) as finished:
        for block in finished:
            blocks.setdefault(block.position, []).append(block)
            remaining -= costs.pop((block.position, block.number))
            if progress is not None:
                # Rounding adds up over many blocks: the last report is exactly the total.
                progress(total - remaining if costs else total, total)
    return [_join_blocks(job, blocks[job.position]) for job in jobs if job.number == 0]


def _finish_blocks(
    jobs: Sequence[Job],
    engine: str,
    scheduler: str | None,
    workers: int | None,
    resume: str | Path | None,
) -> Generator[Block, None, None]:
    """Yield the blocks in the resume file, then the missing ones as they are computed."""
    missing = {(job.position, job.number): job for job in jobs}
    with ExitStack() as stack:
        journal = None
        if resume is not None:
            journal = stack.enter_context(closing(Journal(Path(resume), jobs)))
            for block in journal.read_blocks():
                # A block that stands in the file twice counts once.
                if missing.pop((block.position, block.number), None) is not None:
                    yield block
        if not missing:
            return
        running = ENGINES[engine](list(missing.values()), scheduler, workers)
        for block in stack.enter_context(closing(running)):
            # Written before anybody sees it: what progress has counted is never lost.
            if journal is not None:
                journal.append(block)
            yield block


def _join_blocks(first: Job, blocks: Sequence[Block]) -> Measured:
    """The blocks of one point, concatenated in the order of their numbers."""
    ordered = sorted(blocks, key=lambda block: block.number)
    names = ordered[0].values.keys()
    # Blocks run in different processes, so this can only be seen here.
    if any(block.values.keys() != names for block in ordered):
        raise ParameterError(
            f"{task_name(first.task)} must return the same statistics every time it is called"
        )
    values = {name: np.concatenate([block.values[name] for block in ordered]) for name in names}
    return Measured(first.point, sum(block.runs for block in blocks), values)
