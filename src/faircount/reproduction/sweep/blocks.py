"""The unit of work of a sweep: a block of runs at one point, with its own random generator.

The numbers of a block depend on the seed, the point, the number of the block and its size, and on
nothing else. Engine, number of workers, order of the work and the other points have no influence,
so a sweep can be interrupted, moved to a cluster or extended and still give the same numbers.
(Another version of NumPy may draw different ones.)
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
from faircount.core.validation import check_integer, check_real

Point = Mapping[str, str | int | float]
Task = Callable[[Point, np.random.Generator, int], Mapping[str, NDArray[Any]]]

# Runs in a block, unless the point's `Load` says otherwise. Every block has its own generator, so
# this number is part of what a seed means: changing it changes every result.
BLOCK_RUNS = 1000


@dataclass(frozen=True, slots=True)
class Load:
    """The work of a point: how many runs, how many of them in a block, and what a run costs.

    The cost is relative to the runs of other points. A killed sweep loses the blocks under way, so
    a point with long runs should have small blocks.
    """

    runs: int
    block: int = BLOCK_RUNS
    cost: float = 1.0

    def __post_init__(self) -> None:
        check_integer("runs", self.runs, least=1)
        check_integer("runs of a block", self.block, least=1)
        if check_real("cost of a run", self.cost) <= 0:
            raise ParameterError(f"the cost of a run must be positive, not {self.cost}")


Loads = Callable[[Point], Load]


@dataclass(frozen=True, slots=True)
class Job:
    """A block that is still to be computed. It can be sent to any worker.

    position: index of the point in the sweep
    number: index of the block at that point
    cost: of the whole block, to estimate the remaining time
    """

    task: Task
    point: Point
    seed: int
    runs: int
    position: int
    number: int
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Block:
    """A finished block: the statistics of its runs."""

    position: int
    number: int
    values: dict[str, Floats]

    @property
    def runs(self) -> int:
        """How many runs it holds."""
        return len(next(iter(self.values.values())))


def make_jobs(task: Task, points: Iterable[Point], runs: int | Loads, seed: int) -> list[Job]:
    """Split a sweep into blocks; the last block of a point may be shorter than the others."""
    task_name(task)
    valid_seed = check_integer("seed", seed)
    plain_points = [normalize_point(point) for point in points]
    if not plain_points:
        raise ParameterError("a sweep needs at least one point")
    # Two equal points would have equal generators and therefore the same "random" numbers.
    if len(set(map(encode_point, plain_points))) < len(plain_points):
        raise ParameterError(
            "two points of the sweep are the same, and would give the same numbers: remove one"
        )
    jobs = []
    for position, point in enumerate(plain_points):
        load = runs(point) if callable(runs) else Load(runs)
        for number, start in enumerate(range(0, load.runs, load.block)):
            size = min(load.block, load.runs - start)
            cost = size * load.cost
            jobs.append(Job(task, point, valid_seed, size, position, number, cost))
    return jobs


def run_job(job: Job) -> Block:
    """Compute a block, in whatever process the engine has chosen."""
    rng = make_generator(job.seed, job.point, job.number)
    # The task gets a copy of the point, so that it cannot change what the sweep reports.
    values = job.task(dict(job.point), rng, job.runs)
    return Block(job.position, job.number, _require_arrays(values, job))


def make_generator(seed: int, point: Point, number: int) -> np.random.Generator:
    """The generator of one block, keyed by a hash of the point and by the number of the block."""
    # A hash instead of the point's position: adding or reordering points changes no other point.
    digest = hashlib.sha256(encode_point(point)).digest()
    words = np.frombuffer(digest[:16], dtype="<u4")
    spawn_key = (*map(int, words), number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=spawn_key))


def encode_point(point: Point) -> bytes:
    """A point as bytes that do not depend on the order of its names."""
    return json.dumps(dict(point), sort_keys=True, separators=(",", ":")).encode()


def normalize_point(point: Point) -> Point:
    """A point of plain strings, integers and finite floats; NumPy's numbers become Python's."""
    if not isinstance(point, Mapping) or not all(isinstance(name, str) for name in point):
        raise ParameterError(
            "a point must map names to values, such as {'epsilon': 0.5, 'users': 1000}"
        )
    return {name: _normalize_value(name, value) for name, value in point.items()}


def _normalize_value(name: str, value: object) -> str | int | float:
    if isinstance(value, str):
        return str(value)
    # bool is an int for Python; `integer` refuses it.
    if isinstance(value, (int, np.integer)):
        return check_integer(f"the point's {name}", value, least=-(2**63))
    return check_real(f"the point's {name}", value)


def task_name(task: Task) -> str:
    """Module and name of a task; refused unless another process could import it by that name."""
    name = getattr(task, "__qualname__", "<no name>")
    # "<locals>" and "<lambda>" mark functions that no other process can import.
    if "<" in name:
        raise ParameterError(
            "the task of a sweep must be a function at the top of a module, so that every worker "
            "can import it: put what it needs into the points"
        )
    return f"{task.__module__}.{name}"


def _require_arrays(values: Mapping[str, NDArray[Any]], job: Job) -> dict[str, Floats]:
    """The statistics of a block as float arrays with one number for every run."""
    arrays: dict[str, Floats] = {}
    for name, statistic in values.items():
        arrays[str(name)] = np.asarray(statistic, dtype=np.float64)
    shapes = {name: array.shape for name, array in arrays.items()}
    if not arrays or set(shapes.values()) != {(job.runs,)}:
        raise ParameterError(
            f"{task_name(job.task)} must return named arrays of {job.runs} numbers, not {shapes}"
        )
    return arrays
