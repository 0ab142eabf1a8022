"""The unit of a sweep: a block of runs of one point, with a random generator that belongs to it alone.

A block's numbers depend on the seed, the point, the block's number and size, and on nothing else: not on the engine,
the number of workers, the order of the work or the other points. (Another version of NumPy may draw other numbers.)
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.validation import integer, real

Point = Mapping[str, str | int | float]
Task = Callable[[Point, np.random.Generator, int], Mapping[str, NDArray[Any]]]

BLOCK_RUNS = 1000
"""Runs in a block, on every engine, unless its `Load` says otherwise. It is part of what a seed means: changing it
changes every number."""


@dataclass(frozen=True, slots=True)
class Load:
    """The work of a point: its runs, how many of them make a block, and what a run costs beside those of other points.

    What is lost when a sweep is killed is the blocks under way, so a point with long runs has small blocks.
    """

    runs: int
    block: int = BLOCK_RUNS
    cost: float = 1.0

    def __post_init__(self) -> None:
        integer("runs", self.runs, least=1)
        integer("runs of a block", self.block, least=1)
        if real("cost of a run", self.cost) <= 0:
            raise ParameterError(f"the cost of a run must be positive, not {self.cost}")


Loads = Callable[[Point], Load]


@dataclass(frozen=True, slots=True)
class Job:
    """One block to be done, small enough to be sent to any worker."""

    task: Task
    point: Point
    seed: int
    runs: int
    position: int
    number: int
    cost: float = 1.0
    """Of the whole block, for the time that is left."""


@dataclass(frozen=True, slots=True)
class Block:
    """One block that is done: the statistics of its runs."""

    position: int
    number: int
    values: dict[str, Floats]

    @property
    def runs(self) -> int:
        """How many runs it holds."""
        return len(next(iter(self.values.values())))


def jobs_of(task: Task, points: Iterable[Point], runs: int | Loads, seed: int) -> list[Job]:
    """All blocks of a sweep; the last one of a point may be shorter."""
    task_name(task)
    whole, clean = integer("seed", seed), [clean_point(point) for point in points]
    if not clean:
        raise ParameterError("a sweep needs at least one point")
    if len({canonical(point) for point in clean}) < len(clean):
        raise ParameterError("two points of the sweep are the same, and would give the same numbers: remove one")
    jobs = []
    for position, point in enumerate(clean):
        load = runs(point) if callable(runs) else Load(runs)
        for number, start in enumerate(range(0, load.runs, load.block)):
            size = min(load.block, load.runs - start)
            jobs.append(Job(task, point, whole, size, position, number, size * load.cost))
    return jobs


def work(job: Job) -> Block:
    """Do a block. Runs wherever the engine puts it."""
    values = job.task(dict(job.point), generator(job.seed, job.point, job.number), job.runs)
    return Block(job.position, job.number, _checked(values, job))


def generator(seed: int, point: Point, number: int) -> np.random.Generator:
    """The block's own generator: its key is a hash of the point and the block's number."""
    words = np.frombuffer(hashlib.sha256(canonical(point)).digest()[:16], dtype="<u4")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(*map(int, words), number)))


def canonical(point: Point) -> bytes:
    """A point as bytes, the same for any order of its names."""
    return json.dumps(dict(point), sort_keys=True, separators=(",", ":")).encode()


def clean_point(point: Point) -> Point:
    """A point of plain strings, integers and finite floats (NumPy's numbers become Python's)."""
    if not isinstance(point, Mapping) or not all(isinstance(name, str) for name in point):
        raise ParameterError("a point must map names to values, such as {'epsilon': 0.5, 'users': 1000}")
    return {name: _plain(name, value) for name, value in point.items()}


def _plain(name: str, value: object) -> str | int | float:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, np.integer)):
        return integer(f"the point's {name}", value, least=-(2**63))
    return real(f"the point's {name}", value)


def task_name(task: Task) -> str:
    """Where the task lives. Only a function of a module can be found again by another process."""
    name = getattr(task, "__qualname__", "<no name>")
    if "<" in name:
        raise ParameterError(
            "a sweep's task must be a function defined at the top of a module, so that every worker can find it: "
            "put what it needs into the points"
        )
    return f"{task.__module__}.{name}"


def _checked(values: Mapping[str, NDArray[Any]], job: Job) -> dict[str, Floats]:
    arrays = {str(name): np.asarray(each, dtype=np.float64) for name, each in values.items()}
    if not arrays or any(each.shape != (job.runs,) for each in arrays.values()):
        shapes = {name: each.shape for name, each in arrays.items()}
        raise ParameterError(f"{task_name(job.task)} must return named arrays of {job.runs} numbers, not {shapes}")
    return arrays
