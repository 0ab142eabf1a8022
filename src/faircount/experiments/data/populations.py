"""The populations of the paper's experiments, ready to draw users from.

Two come from public data (`counts`, with their limits), two are distributions. Each data set has the view used for the
figures, in which no item is so rare that the paper's floor is out of reach, and a full view that shows what breaks.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Ints
from faircount.core.errors import ParameterError
from faircount.core.validation import counts as checked_counts
from faircount.core.validation import integer, same_length
from faircount.experiments.data import published_counts as published

SYNTHETIC_ITEMS = 30
NORMAL_EDGES = tuple(round(-3 + 0.2 * cut, 1) for cut in range(SYNTHETIC_ITEMS + 1))
"""Where the standard normal is cut: 30 intervals of width 0.2 on [-3, 3]; the two outermost also hold the tails."""

RARE = 0.01
"""Cells with a smaller share of the users are left out of the figures' view of Gowalla."""

LOWEST_WAGE, HIGHEST_WAGE = 4, 21
"""Intervals of 100 below the first are merged into one item, those from the second on into another."""

_REPAIRABLE = 10**9 - 1  # NumPy draws without replacement from fewer than 10^9 records


@dataclass(frozen=True)
class Population:
    """Who holds what: one count per item, where it comes from and what it does not show.

    The counts of a `distribution` are weights; those of a data set are records, each of which can be drawn once.
    """

    name: str
    labels: tuple[str, ...]
    counts: tuple[int, ...]
    source: str
    limits: str
    distribution: bool = False

    def __post_init__(self) -> None:
        same_length(labels=self.labels, counts=self.counts)
        checked_counts(self.counts)

    @property
    def users(self) -> int:
        """Records in the data set, or the total weight of a distribution."""
        return sum(self.counts)

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Share of every item; they sum to 1."""
        return np.array(self.counts, dtype=np.float64) / self.users


def population(name: str) -> Population:
    """A population by its name: from the files in use (`using`), else as built in."""
    if name not in MAKERS:
        raise ParameterError(f"there is no population {name!r}: choose one of {', '.join(MAKERS)}")
    return IN_USE.get().get(name) or MAKERS[name]()


IN_USE: ContextVar[Mapping[str, Population]] = ContextVar("IN_USE", default=MappingProxyType({}))
"""The populations that stand in for built-in ones at the moment."""


@contextmanager
def using(replacements: Mapping[str, Population]) -> Iterator[None]:
    """Let these stand in for the built-in populations of the same names, as long as the block runs."""
    unknown = set(replacements) - set(MAKERS)
    if unknown:
        raise ParameterError(f"there are no populations {', '.join(sorted(unknown))} to stand in for")
    token = IN_USE.set(replacements)
    try:
        yield
    finally:
        IN_USE.reset(token)


def sample(people: Population, users: int, rng: np.random.Generator, floor: int = 0) -> Ints:
    """Counts of a group of `users` drawn from a population.

    From a data set records are drawn without replacement, as in the paper; a group larger than the data set, and every
    group from a distribution, is drawn independently from the frequencies. With a `floor` an item with fewer holders
    is raised to it: users picked at random among the other items' holders beyond the floor change their answer.
    """
    size = integer("users", users, least=1)
    if people.distribution or size > people.users:
        drawn = rng.multinomial(size, people.frequencies)
    else:
        drawn = rng.multivariate_hypergeometric(people.counts, size, method="marginals")
    return _raised(drawn.astype(np.int64), integer("floor", floor), rng)


def _raised(drawn: Ints, floor: int, rng: np.random.Generator) -> Ints:
    """The smallest change that gives every item `floor` holders."""
    missing = np.maximum(floor - drawn, 0)
    if not missing.any():
        return drawn
    size = integer("users of a group with a floor", int(drawn.sum()), most=_REPAIRABLE)
    if size < floor * drawn.size:
        raise ParameterError(
            f"{size} users cannot give each of {drawn.size} items {floor} holders: "
            f"the floor may be at most {size // drawn.size}"
        )
    spare = np.maximum(drawn - floor, 0)
    moved = rng.multivariate_hypergeometric(spare, int(missing.sum()), method="marginals")
    return drawn + missing - moved


def gowalla_cells(
    name: str, source: str, limits: str, grid: tuple[int, int], held: tuple[int, ...], least: float = 0.0
) -> Population:
    """Users by most visited cell of the box; cells with a share of the users below `least` are left out."""
    total = sum(held)
    kept = [cell for cell, users in enumerate(held) if users >= least * total]
    labels = cell_labels(grid)
    if len(kept) < len(held):
        share = sum(held[cell] for cell in kept) / total
        limits = (
            f"{limits}; only the {len(kept)} cells with at least {least:.0%} of the users, who are {share:.2%} of them"
        )
    return Population(name, tuple(labels[c] for c in kept), tuple(held[c] for c in kept), source, limits)


def cell_labels(grid: tuple[int, int]) -> tuple[str, ...]:
    """Corner coordinates of every cell, row by row from the south-west: '30..35N 100..95W'."""
    south, north, west, east = published.BOX
    rows, columns = grid
    lats = [south + (north - south) * row / rows for row in range(rows + 1)]
    lons = [-(west + (east - west) * column / columns) for column in range(columns + 1)]
    return tuple(
        f"{lats[row]:g}..{lats[row + 1]:g}N {lons[column]:g}..{lons[column + 1]:g}W"
        for row in range(rows)
        for column in range(columns)
    )


def wages_full(name: str, source: str, limits: str, zero: int, wages: Mapping[int, int]) -> Population:
    """Every interval of 100 up to the highest wage, empty ones too; the first also holds the wages of exactly 0."""
    intervals = range(max(wages, default=0) + 1)
    held = [wages.get(each, 0) for each in intervals]
    held[0] += zero
    labels = tuple(f"{100 * each}..{100 * each + 99}" for each in intervals)
    return Population(name, labels, tuple(held), source, limits)


def wages_merged(name: str, source: str, limits: str, wages: Mapping[int, int]) -> Population:
    """Non-zero wages in 19 items: below 400, intervals of 100 from 400 to 2099, 2100 and more."""
    held = [0] * (HIGHEST_WAGE - LOWEST_WAGE + 2)
    for interval, persons in wages.items():
        held[min(max(interval, LOWEST_WAGE - 1), HIGHEST_WAGE) - LOWEST_WAGE + 1] += persons
    middle = tuple(f"{100 * each}..{100 * each + 99}" for each in range(LOWEST_WAGE, HIGHEST_WAGE))
    labels = (f"below {100 * LOWEST_WAGE}", *middle, f"{100 * HIGHEST_WAGE} and more")
    return Population(name, labels, tuple(held), source, f"{limits}; wages of exactly 0 left out, tails merged")


def _gowalla(name: str, grid: tuple[int, int], held: tuple[int, ...], least: float = 0.0) -> Population:
    return gowalla_cells(name, published.GOWALLA_SOURCE, published.GOWALLA_LIMITS, grid, held, least)


def _census(name: str, make: Callable[..., Population], *counts: Any) -> Population:
    return make(name, published.CENSUS_SOURCE, published.CENSUS_LIMITS, *counts)


def _uniform() -> Population:
    labels = tuple(f"item {each}" for each in range(1, SYNTHETIC_ITEMS + 1))
    return Population("uniform", labels, (1,) * SYNTHETIC_ITEMS, "uniform on 30 items", "synthetic", True)


def _normal() -> Population:
    """Weights to nine digits: the probability of every interval under the standard normal, tails with the outermost."""
    below = [0.0, *(0.5 * math.erfc(-edge / math.sqrt(2)) for edge in NORMAL_EDGES[1:-1]), 1.0]
    weights = tuple(round(1e9 * (high - low)) for low, high in pairwise(below))
    labels = tuple(f"{low:g}..{high:g}" for low, high in pairwise(NORMAL_EDGES))
    source = "standard normal, 30 intervals of width 0.2 on [-3, 3]; the outermost two also hold the tails"
    return Population(
        "normal", labels, weights, source, "synthetic; the paper does not say how it cut the normal", True
    )


MAKERS: dict[str, Callable[[], Population]] = {
    "gowalla": lambda: _gowalla("gowalla", published.CELLS_12, published.GOWALLA_12, RARE),
    "gowalla-12": lambda: _gowalla("gowalla-12", published.CELLS_12, published.GOWALLA_12),
    "gowalla-25": lambda: _gowalla("gowalla-25", published.CELLS_25, published.GOWALLA_25),
    "census": lambda: _census("census", wages_merged, published.WAGES),
    "census-full": lambda: _census("census-full", wages_full, published.WAGE_ZERO, published.WAGES),
    "uniform": _uniform,
    "normal": _normal,
}
"""Every population there is."""
