"""What every figure is made of: points to run, a task that measures squared errors there, and the theory beside it.

Errors are squared differences of frequencies, SUMMED over the items: what the paper prints. Its definition has 1/N;
`Line` gives both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.experiments.data.populations import Population, population, sample
from faircount.sweep.sweep import Measured, Point

Value = str | int | float
Task = Callable[[Point, np.random.Generator, int], dict[str, Floats]]

DATA = ("gowalla", "census", "uniform")
"""The three data sets of Figures 1 to 4, in the paper's order."""

TITLES = {"gowalla": "Gowalla", "census": "Census-Income", "uniform": "Synthetic (uniform)", "normal": "normal"}
USERS = 1000
FLOOR_SHARE = 0.01
"""The paper's beta, which it does not print: every item is held by at least this share of the users drawn."""

LEVEL = 0.95
"""Confidence of every interval shown."""

DATA_SEED = 1729
"""Which users are drawn from the data sets: the same ones whatever the seed of the runs."""

COUNTS, ACTING = "counts", "users"
"""How a point is run: the law of the opened sum is drawn directly, or every user acts (real shares, real reports)."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Theory of a squared error: its mean and, where they are known, deviation and skewness from run to run.

    A deviation of 0 says that chance has no part in it; None, that the deviation is not known.
    """

    mean: float
    deviation: float | None = None
    skewness: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One measured error beside its theory; `against` says what the estimate is compared with."""

    study: str
    point: Point
    method: str
    against: str
    items: int
    runs: int
    mean: float
    standard_error: float
    low: float
    high: float
    expected: Expected

    @property
    def error_of_mean(self) -> float:
        """Standard error of the average: by theory where it knows the deviation, else as measured."""
        known = self.expected.deviation
        return self.standard_error if known is None else known / math.sqrt(self.runs)

    @property
    def z(self) -> float:
        """Measured minus theory, in standard errors."""
        gap, error = self.mean - self.expected.mean, self.error_of_mean
        if math.isclose(self.mean, self.expected.mean, rel_tol=1e-12):
            return 0.0
        return gap / error if error else math.copysign(math.inf, gap)

    def record(self) -> dict[str, Value]:
        """One row of the CSV: the point, then measured and expected in both normalizations."""
        row = {**self.point, "method": self.method, "against": self.against, "items": self.items, "runs": self.runs}
        values = {"mse": self.mean, "low": self.low, "high": self.high, "theory": self.expected.mean}
        for name, divisor in (("summed", 1), ("per_item", self.items)):
            row |= {f"{key}_{name}": value / divisor for key, value in values.items()}
        return row | {"standard_error_summed": self.standard_error, "z": self.z}


def usual_seconds(point: Point) -> float:
    """About how long a run takes: everybody makes shares for everybody, or one draw from the law of the sum."""
    return 1e-7 * int(point["users"]) ** 2 if point["how"] == ACTING else 1e-3


@dataclass(frozen=True)
class Study:
    """A figure or table: what the paper shows, what is run here, and how the two differ."""

    name: str
    title: str
    paper: str
    ours: str
    points: Callable[[], list[Point]]
    task: Task
    theory: Callable[[Point], dict[str, Expected]]
    items: Callable[[Point], int]
    seconds: Callable[[Point], float] = usual_seconds
    """Of one run, roughly, on one processor. It decides the size of blocks, so changing it changes numbers."""

    def named(self) -> list[Point]:
        """The points with the study's name, so that points of several studies can be run in one sweep."""
        return [{"study": self.name, **point} for point in self.points()]


def lines_of(study: Study, measured: Measured) -> list[Line]:
    """The lines of one point; a task's keys are "against", or "method|against" where it measures several methods."""
    theory, lines = study.theory(measured.point), []
    for key in measured.values:
        name, _, against = key.rpartition("|")
        method = name or str(measured.point["method"])
        low, high = measured.interval(key, LEVEL)
        figures = (measured.mean(key), measured.standard_error(key), low, high)
        items = study.items(measured.point)
        lines.append(Line(study.name, measured.point, method, against, items, measured.runs, *figures, theory[key]))
    return lines


def select(lines: list[Line], **wanted: Value) -> list[Line]:
    """Lines whose point (or method, or against) has all the wanted values."""
    return [line for line in lines if all(_value(line, name) == value for name, value in wanted.items())]


def one(lines: list[Line], **wanted: Value) -> Line:
    """The one line that has all the wanted values."""
    found = select(lines, **wanted)
    if len(found) != 1:
        raise ParameterError(f"{len(found)} lines have {wanted}: name the one that is meant")
    return found[0]


def _value(line: Line, name: str) -> object:
    return getattr(line, name) if name in {"method", "against"} else line.point.get(name)


def holders(data: str, users: int = USERS, floor_share: float = FLOOR_SHARE) -> tuple[int, ...]:
    """How many of the users drawn once and for all from a data set hold each item."""
    return _drawn(population(data), data, users, floor_share)


def people(point: Point, floor_share: float = FLOOR_SHARE) -> tuple[int, ...]:
    """How many of the users at a point hold each item."""
    return holders(str(point["data"]), int(point["users"]), floor_share)


@lru_cache(maxsize=64)
def _drawn(people: Population, data: str, users: int, floor_share: float) -> tuple[int, ...]:
    rng = np.random.default_rng([DATA_SEED, users, *data.encode()])
    return tuple(sample(people, users, rng, math.ceil(floor_share * users)).tolist())
