"""The populations of the paper's evaluation, and how a group of users is drawn from one of them.

Two populations come from public data sets (`published_counts`, with their limits), two are
synthetic distributions. A data set has one view for the figures, in which no item is so rare that
the paper's minimum count is out of reach, and full views that show what breaks otherwise.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.core.validation import check_counts, check_integer, check_same_length
from faircount.reproduction.data import published_counts as published

SYNTHETIC_ITEMS = 30

# The paper does not say how it cuts the standard normal into 30 items. Here: intervals of width 0.2
# on [-3, 3], of which the two outermost also hold the tails.
NORMAL_EDGES = tuple(round(-3 + 0.2 * cut, 1) for cut in range(SYNTHETIC_ITEMS + 1))

# Cells of Gowalla with a smaller share of the users are not part of the figures' view.
RARE_SHARE = 0.01

# The figures' view of the wages merges all intervals of 100 below the first of these into one item
# and all from the second on into another: beyond them there are too few persons.
LOWEST_WAGE = 4
HIGHEST_WAGE = 21

# NumPy draws without replacement from fewer than 10^9 records.
_MAX_RECORDS = 10**9 - 1


@dataclass(frozen=True)
class Population:
    """How many people choose which item, where the counts come from, and what they do not show.

    The counts of a `distribution` are weights. Those of a data set are records, and a record can be
    drawn only once.
    """

    name: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    source: str
    limits: str
    distribution: bool = False

    def __post_init__(self) -> None:
        check_same_length(labels=self.labels, counts=self.counts)
        check_counts(self.counts)

    @property
    def users(self) -> int:
        """Number of records in the data set, or total weight of a distribution."""
        return sum(self.counts)

    @property
    def frequencies(self) -> Floats:
        """Share of every item; they sum to 1."""
        return np.array(self.counts, dtype=np.float64) / self.users


# Populations from original files that currently replace built-in ones. A context variable, so that
# two reports in one process do not see each other's files.
REPLACEMENTS: ContextVar[Mapping[str, Population]] = ContextVar(
    "REPLACEMENTS", default=MappingProxyType({})
)


def get_population(name: str) -> Population:
    """A population by name: its replacement (`replace_populations`), or else the built-in one."""
    if name not in BUILT_IN:
        raise ParameterError(
            f"there is no population {name!r}: choose one of {', '.join(BUILT_IN)}"
        )
    return REPLACEMENTS.get().get(name) or BUILT_IN[name]()


@contextmanager
def replace_populations(replacements: Mapping[str, Population]) -> Iterator[None]:
    """Use these instead of the built-in populations of the same names while the block runs."""
    unknown = set(replacements) - set(BUILT_IN)
    if unknown:
        raise ParameterError(f"there are no populations {', '.join(sorted(unknown))} to replace")
    token = REPLACEMENTS.set(replacements)
    try:
        yield
    finally:
        REPLACEMENTS.reset(token)


def sample_counts(
    population: Population, users: int, rng: np.random.Generator, floor: int = 0
) -> Ints:
    """Draw a group of `users` and count who chooses which item.

    Records of a data set are drawn without replacement, as in the paper. A group larger than the
    data set, and every group from a distribution, is drawn independently from the frequencies. With
    a `floor`, an item that fewer users have chosen is raised to it: users picked at random among
    those of other items, as far as these stay above the floor, change their answer.
    """
    size = check_integer("users", users, least=1)
    if population.distribution or size > population.users:
        drawn = rng.multinomial(size, population.frequencies)
    else:
        drawn = rng.multivariate_hypergeometric(population.counts, size, method="marginals")
    return _raise_to_floor(drawn.astype(np.int64), check_integer("floor", floor), rng)


def _raise_to_floor(drawn: Ints, floor: int, rng: np.random.Generator) -> Ints:
    """Give every item at least `floor` users with as few changed answers as possible."""
    missing = np.maximum(floor - drawn, 0)
    if not missing.any():
        return drawn
    size = check_integer("users of a group with a floor", int(drawn.sum()), most=_MAX_RECORDS)
    if size < floor * drawn.size:
        raise ParameterError(
            f"{size} users cannot give each of {drawn.size} items {floor} holders: "
            f"the floor may be at most {size // drawn.size}"
        )
    spare = np.maximum(drawn - floor, 0)
    moved = rng.multivariate_hypergeometric(spare, int(missing.sum()), method="marginals")
    return drawn + missing - moved


def build_gowalla(
    name: str,
    source: str,
    limits: str,
    grid: tuple[int, int],
    counts: tuple[int, ...],
    min_share: float = 0.0,
) -> Population:
    """Users by most visited cell; cells with less than `min_share` of the users are left out."""
    total = sum(counts)
    kept = [cell for cell, users in enumerate(counts) if users >= min_share * total]
    kept_counts = tuple(counts[cell] for cell in kept)
    labels = label_cells(grid)
    if len(kept) < len(counts):
        limits = (
            f"{limits}; only the {len(kept)} cells with at least {min_share:.0%} of the users, "
            f"who are {sum(kept_counts) / total:.2%} of them"
        )
    return Population(name, tuple(labels[cell] for cell in kept), kept_counts, source, limits)


def label_cells(grid: tuple[int, int]) -> tuple[str, ...]:
    """The coordinates of every cell, row by row from the south-west: '30..35N 100..95W'."""
    south, north, west, east = published.BOX
    rows, columns = grid
    latitudes = [south + (north - south) * row / rows for row in range(rows + 1)]
    longitudes = [-(west + (east - west) * column / columns) for column in range(columns + 1)]
    labels = []
    for low, high in pairwise(latitudes):
        for left, right in pairwise(longitudes):
            labels.append(f"{low:g}..{high:g}N {left:g}..{right:g}W")
    return tuple(labels)


def build_full_wages(
    name: str, source: str, limits: str, zero: int, wages: Mapping[int, int]
) -> Population:
    """All intervals of 100 up to the highest wage, also empty ones; wages of 0 are in the first."""
    intervals = range(max(wages, default=0) + 1)
    counts = [wages.get(interval, 0) for interval in intervals]
    # The paper has intervals of length 100 without exceptions, so 0 belongs to the first.
    counts[0] += zero
    labels = tuple(map(_label_interval, intervals))
    return Population(name, labels, tuple(counts), source, limits)


def build_merged_wages(name: str, source: str, limits: str, wages: Mapping[int, int]) -> Population:
    """Wages above 0 in 19 items: below 400, intervals of 100 from 400 to 2099, 2100 and more."""
    counts = [0] * (HIGHEST_WAGE - LOWEST_WAGE + 2)
    for interval, persons in wages.items():
        # The first item holds everything below, the last one everything above.
        item = min(max(interval, LOWEST_WAGE - 1), HIGHEST_WAGE) - LOWEST_WAGE + 1
        counts[item] += persons
    middle = map(_label_interval, range(LOWEST_WAGE, HIGHEST_WAGE))
    labels = (f"below {100 * LOWEST_WAGE}", *middle, f"{100 * HIGHEST_WAGE} and more")
    limits = f"{limits}; wages of exactly 0 left out, tails merged"
    return Population(name, labels, tuple(counts), source, limits)


def _label_interval(interval: int) -> str:
    return f"{100 * interval}..{100 * interval + 99}"


def _built_in_gowalla(
    name: str, grid: tuple[int, int], counts: tuple[int, ...], min_share: float = 0.0
) -> Population:
    source = published.GOWALLA_SOURCE
    return build_gowalla(name, source, published.GOWALLA_LIMITS, grid, counts, min_share)


def _built_in_wages() -> Population:
    source = published.CENSUS_SOURCE
    return build_merged_wages("census", source, published.CENSUS_LIMITS, published.WAGES)


def _built_in_full_wages() -> Population:
    return build_full_wages(
        "census-full",
        published.CENSUS_SOURCE,
        published.CENSUS_LIMITS,
        published.WAGE_ZERO,
        published.WAGES,
    )


def _build_uniform() -> Population:
    labels = tuple(f"item {number}" for number in range(1, SYNTHETIC_ITEMS + 1))
    counts = (1,) * SYNTHETIC_ITEMS
    return Population("uniform", labels, counts, "uniform on 30 items", "synthetic", True)


def _build_normal() -> Population:
    """The probability of every interval under the standard normal, as weights of nine digits."""
    # The distribution function at the edges; the outermost items reach to infinity.
    below = [0.0]
    below += [0.5 * math.erfc(-edge / math.sqrt(2)) for edge in NORMAL_EDGES[1:-1]]
    below += [1.0]
    return Population(
        "normal",
        tuple(f"{low:g}..{high:g}" for low, high in pairwise(NORMAL_EDGES)),
        tuple(round(1e9 * (high - low)) for low, high in pairwise(below)),
        "standard normal, 30 intervals of width 0.2 on [-3, 3]; the outermost two also hold the "
        "tails",
        "synthetic; the paper does not say how it cut the normal",
        True,
    )


BUILT_IN: dict[str, Callable[[], Population]] = {
    "gowalla": lambda: _built_in_gowalla(
        "gowalla", published.CELLS_12, published.GOWALLA_12, RARE_SHARE
    ),
    "gowalla-12": lambda: _built_in_gowalla("gowalla-12", published.CELLS_12, published.GOWALLA_12),
    "gowalla-25": lambda: _built_in_gowalla("gowalla-25", published.CELLS_25, published.GOWALLA_25),
    "census": _built_in_wages,
    "census-full": _built_in_full_wages,
    "uniform": _build_uniform,
    "normal": _build_normal,
}
