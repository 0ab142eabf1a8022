"""What every figure and table is made of: points to run, a task that runs them, and a theory.

An error is a squared difference of frequencies, SUMMED over the items: that is what the paper
prints, although its definition divides by N. `Line` has both.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.reproduction.data.populations import Population, get_population, sample_counts
from faircount.reproduction.sweep.sweep import Measured, Point

Value = str | int | float
Task = Callable[[Point, np.random.Generator, int], dict[str, Floats]]

# The data sets of Figures 1 to 4, in the paper's order.
DATA = ("gowalla", "census", "uniform")

TITLES = {
    "gowalla": "Gowalla",
    "census": "Census-Income",
    "uniform": "Synthetic (uniform)",
    "normal": "normal",
}

# Number of users in the paper's evaluation, unless a figure says otherwise.
USERS = 1000

# The paper's beta, which it does not print: at least this share of the users chooses every item.
FLOOR_SHARE = 0.01

# Confidence of every interval shown.
LEVEL = 0.95

# Decides which users are drawn from the data sets. It is not the seed of the runs: with every seed
# the same users take part, as in the paper.
DATA_SEED = 1729

# How a point is run: the revealed sum is drawn directly from its distribution, or every user is
# simulated with real shares and reports. The values are part of the points, and with them of every
# seed.
COUNT_LEVEL = "counts"
USER_LEVEL = "users"


@dataclass(frozen=True, slots=True)
class Expected:
    """Theory of a squared error: its mean and, where known, its deviation and skewness over runs.

    A deviation of 0 means that the value is not random, None that the deviation is not known.
    """

    mean: float
    deviation: float | None = None
    skewness: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One measured error beside its theory; `against` names what the estimate is compared with."""

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
        """Standard error of the average: from theory if it knows the deviation, else measured."""
        deviation = self.expected.deviation
        if deviation is None:
            return self.standard_error
        return deviation / math.sqrt(self.runs)

    @property
    def z(self) -> float:
        """Measured minus expected, in standard errors."""
        # Counts that are not random agree only up to the rounding of their formulas.
        if math.isclose(self.mean, self.expected.mean, rel_tol=1e-12):
            return 0.0
        difference = self.mean - self.expected.mean
        if not self.error_of_mean:
            return math.copysign(math.inf, difference)
        return difference / self.error_of_mean

    def record(self) -> dict[str, Value]:
        """A row of the CSV file: the point, then measured and expected in both normalizations."""
        row: dict[str, Value] = {
            **self.point,
            "method": self.method,
            "against": self.against,
            "items": self.items,
            "runs": self.runs,
        }
        for name, divisor in (("summed", 1), ("per_item", self.items)):
            row[f"mse_{name}"] = self.mean / divisor
            row[f"low_{name}"] = self.low / divisor
            row[f"high_{name}"] = self.high / divisor
            row[f"theory_{name}"] = self.expected.mean / divisor
        row["standard_error_summed"] = self.standard_error
        row["z"] = self.z
        return row


def estimate_seconds(point: Point) -> float:
    """About how long a run takes on one processor."""
    # At user level every user makes a share for every user; otherwise it is one draw.
    if point["how"] == USER_LEVEL:
        return 1e-7 * int(point["users"]) ** 2
    return 1e-3


@dataclass(frozen=True)
class Study:
    """A figure or table: what the paper shows, what is run here, and how the two differ.

    seconds: of one run, roughly. It decides the size of the blocks, so changing it changes numbers
    """

    name: str
    title: str
    paper: str
    ours: str
    points: Callable[[], list[Point]]
    task: Task
    theory: Callable[[Point], dict[str, Expected]]
    items: Callable[[Point], int]
    seconds: Callable[[Point], float] = estimate_seconds

    def named_points(self) -> list[Point]:
        """The points with the study's name, so that one sweep can run several studies."""
        return [{"study": self.name, **point} for point in self.points()]


def add_user_level(points: list[Point], is_chosen: Callable[[Point], bool]) -> list[Point]:
    """The points, then the chosen ones again with every user simulated."""
    return points + [{**point, "how": USER_LEVEL} for point in points if is_chosen(point)]


def compare_with_theory(study: Study, measured: Measured) -> list[Line]:
    """Every statistic of one point beside its theory.

    A task names a statistic "against", or "method|against" where it measures several methods.
    """
    theory = study.theory(measured.point)
    lines = []
    for key in measured.values:
        method, _, against = key.rpartition("|")
        low, high = measured.interval(key, LEVEL)
        line = Line(
            study=study.name,
            point=measured.point,
            method=method or str(measured.point["method"]),
            against=against,
            items=study.items(measured.point),
            runs=measured.runs,
            mean=measured.mean(key),
            standard_error=measured.standard_error(key),
            low=low,
            high=high,
            expected=theory[key],
        )
        lines.append(line)
    return lines


def select(lines: list[Line], **wanted: Value) -> list[Line]:
    """Lines whose point (or method, or against) has all the wanted values."""
    return [line for line in lines if _matches(line, wanted)]


def find_line(lines: list[Line], **wanted: Value) -> Line:
    """The only line that has all the wanted values."""
    found = select(lines, **wanted)
    if len(found) != 1:
        raise ParameterError(f"{len(found)} lines have {wanted}: describe exactly one")
    return found[0]


def _matches(line: Line, wanted: dict[str, Value]) -> bool:
    known = {**line.point, "method": line.method, "against": line.against}
    return all(known.get(name) == value for name, value in wanted.items())


def sampled_counts(
    data: str, users: int = USERS, floor_share: float = FLOOR_SHARE
) -> tuple[int, ...]:
    """How many of the users drawn from a data set choose each item; the same in every run."""
    return _sample(get_population(data), data, users, floor_share)


def counts_at(point: Point, floor_share: float = FLOOR_SHARE) -> tuple[int, ...]:
    """How many of the users at a point choose each item."""
    return sampled_counts(str(point["data"]), int(point["users"]), floor_share)


@lru_cache(maxsize=64)
def _sample(population: Population, data: str, users: int, floor_share: float) -> tuple[int, ...]:
    # Data set and size are part of the seed, so that no two samples share their draws.
    rng = np.random.default_rng([DATA_SEED, users, *data.encode()])
    floor = math.ceil(floor_share * users)
    return tuple(sample_counts(population, users, rng, floor).tolist())


def draw_stream(rng: np.random.Generator) -> SeededStream:
    """The randomness of one simulated survey, from the generator of its block."""
    return SeededStream(int(rng.integers(2**63)))
