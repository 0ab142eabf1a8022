"""The original data files, processed as the paper says, into populations.

    SNAP  loc-gowalla_totalCheckins.txt   user <tab> time <tab> latitude <tab> longitude <tab> place
    UCI   census-income.data, .test       42 columns, comma separated; the sixth is the wage per hour in cents

Plain or gzipped. Files are read in blocks of lines, so that millions of lines need little memory; a line that cannot be
read stops the loading with its number, because a damaged file should not quietly become a smaller population.
"""

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import InputError
from faircount.experiments.data.populations import Population, gowalla_cells, wages_full, wages_merged
from faircount.experiments.data.published_counts import BOX, CELLS_12

LINES = 250_000
"""Lines read at a time."""

_MOST_USERS = 2**40  # user numbers below this leave room for the cell in one 64-bit key


@dataclass(frozen=True, slots=True)
class Layout:
    """What a line looks like: its separator, how many columns it has, and which of them are read."""

    name: str
    separator: str
    columns: int
    fields: tuple[tuple[str, int, type[np.int64] | type[np.float64]], ...]

    @property
    def dtype(self) -> np.dtype[np.void]:
        """One named field per column that is read."""
        return np.dtype([(name, kind) for name, _, kind in self.fields])


CHECKINS = Layout(
    "SNAP loc-gowalla_totalCheckins", "\t", 5,
    (("user", 0, np.int64), ("latitude", 2, np.float64), ("longitude", 3, np.float64)),
)  # fmt: skip
CENSUS = Layout("UCI census-income", ",", 42, (("wage", 5, np.int64),))


def gowalla(path: str | Path, grid: tuple[int, int] = CELLS_12, *, least: float = 0.0) -> Population:
    """Users by their most visited cell of the paper's box, from loc-gowalla_totalCheckins.

    `grid` is rows and columns: `CELLS_12` (cells of 5 x 5 degrees) or `CELLS_25` (5 by 5 cells). The box is closed; a
    point on a line between two cells belongs to the northern or eastern one. Of cells that a user visited equally often
    the first counts, row by row from the south-west. Users without a check-in in the box are not there; cells with a
    share of the users below `least` are left out (1% makes the view used for the figures).
    """
    held = favourites(_visits(Path(path), grid), grid[0] * grid[1])
    if not held.any():
        raise InputError(f"{Path(path).name} has no check-in inside the box {BOX}: is it the file meant?")
    limits = f"all check-ins of {Path(path).name}"
    source = "SNAP loc-gowalla (Cho, Myers, Leskovec, KDD 2011)"
    return gowalla_cells("gowalla file", grid, tuple(held.tolist()), least=least, source=source, limits=limits)


def census(*paths: str | Path, merged: bool = True) -> Population:
    """Persons by wage per hour in intervals of 100, from one or more parts of census-income.

    `merged` gives the view used for the figures (non-zero wages, tails merged); without it every interval is kept.
    """
    zero, wages = wage_histogram(*paths)
    said = {
        "source": "UCI Census-Income (KDD)",
        "limits": f"all rows of {', '.join(Path(path).name for path in paths)}",
    }
    return wages_merged("census file", wages, **said) if merged else wages_full("census file", zero, wages, **said)


def wage_histogram(*paths: str | Path) -> tuple[int, dict[int, int]]:
    """How many wages are exactly 0, and the others by interval: entry b holds the wages from 100 b to 100 b + 99."""
    zero, held = 0, np.zeros(0, dtype=np.int64)
    for path in paths:
        for block in _read(Path(path), CENSUS, lambda rows: (rows["wage"] >= 0) & (rows["wage"] <= 10**6)):
            wages = block["wage"]
            zero += int(np.count_nonzero(wages == 0))
            held = _added(held, np.bincount(wages[wages > 0] // 100))
    if zero + int(held.sum()) == 0:
        raise InputError("no census file with a single row was given: name census-income.data, .test, or both")
    return zero, {interval: int(count) for interval, count in enumerate(held) if count}


def _added(first: Ints, second: Ints) -> Ints:
    total = np.zeros(max(first.size, second.size), dtype=np.int64)
    total[: first.size] += first
    total[: second.size] += second
    return total


def cells_of(latitude: Floats, longitude: Floats, grid: tuple[int, int]) -> Ints:
    """Cell of every point, -1 outside the box."""
    south, north, west, east = BOX
    rows, columns = grid
    row = np.floor((latitude - south) * rows / (north - south)).clip(-1, rows)
    column = np.floor((longitude - west) * columns / (east - west)).clip(-1, columns)
    inside = (latitude >= south) & (latitude <= north) & (longitude >= west) & (longitude <= east)
    cell = row.clip(max=rows - 1) * columns + column.clip(max=columns - 1)
    return np.where(inside, cell, -1).astype(np.int64)


def favourites(visits: tuple[Ints, Ints, Ints], cells: int) -> Ints:
    """Users by most visited cell, from (user, cell, number of visits); of equals the first cell counts."""
    user, cell, number = visits
    order = np.lexsort((cell, -number, user))
    first = np.flatnonzero(np.diff(user[order], prepend=-1))
    return np.bincount(cell[order][first], minlength=cells).astype(np.int64)


def _visits(path: Path, grid: tuple[int, int]) -> tuple[Ints, Ints, Ints]:
    """Number of visits for every user and cell that occurs."""
    cells, keys, numbers = grid[0] * grid[1], [], []
    for block in _read(path, CHECKINS, _is_checkin):
        cell = cells_of(block["latitude"], block["longitude"], grid)
        key, number = np.unique(block["user"][cell >= 0] * cells + cell[cell >= 0], return_counts=True)
        keys.append(key)
        numbers.append(number)
    if not keys:
        raise InputError(f"{path.name} is empty: download it again")
    key, place = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.bincount(place, weights=np.concatenate(numbers), minlength=key.size).astype(np.int64)
    return key // cells, key % cells, total


def _is_checkin(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """Finite coordinates (impossible ones lie outside the box anyway) and a user number that fits into a key."""
    usable = (rows["user"] >= 0) & (rows["user"] < _MOST_USERS)
    return np.asarray(usable & np.isfinite(rows["latitude"]) & np.isfinite(rows["longitude"]))


def _read(
    path: Path, layout: Layout, fits: Callable[[NDArray[np.void]], NDArray[np.bool_]]
) -> Iterator[NDArray[np.void]]:
    """The columns of a file, block by block; the first line that cannot be read is an error with its number."""
    with _opened(path) as file:
        before = 0
        while lines := _next_lines(file, path):
            rows = _parsed(lines, layout)
            if rows is None or not fits(rows).all():
                raise _complaint(path, lines, before, layout, fits)
            if rows.size:
                yield rows
            before += len(lines)


def _parsed(lines: Sequence[str], layout: Layout) -> NDArray[np.void] | None:
    """The block as an array, blank lines left out; None if some line does not fit."""
    kept = [line for line in lines if not line.isspace()]
    if not kept:
        return np.zeros(0, dtype=layout.dtype)
    if sum(line.count(layout.separator) != layout.columns - 1 for line in kept):
        return None
    used = [column for _, column, _ in layout.fields]
    try:
        return np.loadtxt(kept, dtype=layout.dtype, delimiter=layout.separator, usecols=used, comments=None, ndmin=1)
    except ValueError:
        return None


def _complaint(path: Path, lines: Sequence[str], before: int, layout: Layout, fits: Callable[[Any], Any]) -> InputError:
    """Which line it was; the fast reader only knows that there is one."""
    for number, line in enumerate(lines, start=before + 1):
        rows = _parsed([line], layout)
        if rows is None or not fits(rows).all():
            return InputError(f"{path.name}, line {number}: {_reason(line, layout)}. {_advice(layout)}")
    return InputError(f"{path.name}: lines {before + 1} to {before + len(lines)} cannot be read. {_advice(layout)}")


def _reason(line: str, layout: Layout) -> str:
    found = line.count(layout.separator) + 1
    if found != layout.columns:
        return f"{found} columns instead of {layout.columns}"
    values = line.rstrip("\n").split(layout.separator)
    return "not usable: " + ", ".join(f"{name} {values[column].strip()!r:.40}" for name, column, _ in layout.fields)


def _advice(layout: Layout) -> str:
    return f"The file must be {layout.name} as published, plain or gzipped: download it again, or remove the line"


def _opened(path: Path) -> TextIO:
    """Plain or gzipped text, told apart by the first two bytes rather than by the name."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the path") from error
    return gzip.open(path, "rt", encoding="latin-1") if zipped else path.open(encoding="latin-1")


def _next_lines(file: TextIO, path: Path) -> list[str]:
    try:
        return list(islice(file, LINES))
    except (EOFError, OSError) as error:
        raise InputError(f"{path.name} is cut short or damaged ({error}): download it again") from error
