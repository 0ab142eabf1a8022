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
from faircount.experiments.data.populations import RARE, Population, gowalla_cells, wages_full, wages_merged
from faircount.experiments.data.published_counts import BOX, CELLS_12, CELLS_25

LINES = 250_000
"""Lines read at a time."""

GRIDS = (CELLS_12, CELLS_25)
"""Cells of 5 x 5 degrees, and a grid of 5 by 5 cells."""

_MOST_WAGE = 10**6
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


def gowalla_views(path: Path) -> dict[str, Population]:
    """The views of Gowalla that the figures use, by name: users by their most visited cell of the paper's box.

    The box is closed; a point on a line between two cells belongs to the northern or eastern one. Of cells that a user
    visited equally often the first counts, row by row from the south-west. Users without a check-in in the box are not
    there.
    """
    literal, other = (tuple(each.tolist()) for each in _favourite_cells(path))
    source, limits = "SNAP loc-gowalla (Cho, Myers, Leskovec, KDD 2011)", f"all check-ins of {path.name}"
    said = "gowalla file", source, limits
    return {
        "gowalla": gowalla_cells(*said, CELLS_12, literal, RARE),
        "gowalla-12": gowalla_cells(*said, CELLS_12, literal),
        "gowalla-25": gowalla_cells(*said, CELLS_25, other),
    }


def census_views(paths: Sequence[Path]) -> dict[str, Population]:
    """The views of Census-Income that the figures use, by name, from one or more parts of it.

    They are persons by wage per hour in intervals of 100: non-zero wages with merged tails, and every interval.
    """
    zero, wages = wage_histogram(*paths)
    said = "census file", "UCI Census-Income (KDD)", f"all rows of {', '.join(path.name for path in paths)}"
    return {"census": wages_merged(*said, wages), "census-full": wages_full(*said, zero, wages)}


GOWALLA_FILES = ("loc-gowalla_totalCheckins.txt", "loc-gowalla_totalCheckins.txt.gz")
CENSUS_FILES = tuple(f"census-income.{part}{end}" for part in ("data", "test") for end in ("", ".gz"))


def original_data(folder: Path) -> dict[str, Population]:
    """The populations that the original files in a folder make, by the names of the built-in ones they stand in for.

    The files keep the names under which they are published. Of Census-Income one part or both may be there.
    """
    gowalla_file = next((folder / name for name in GOWALLA_FILES if (folder / name).is_file()), None)
    parts = [folder / name for name in CENSUS_FILES if (folder / name).is_file()]
    census_files = [path for path in parts if path.suffix != ".gz" or path.with_suffix("") not in parts]
    if gowalla_file is None and not census_files:
        wanted = ", ".join((GOWALLA_FILES[0], "census-income.data", "census-income.test"))
        raise InputError(f"{folder} has none of the original files ({wanted}; plain or .gz): put them there")
    found = gowalla_views(gowalla_file) if gowalla_file is not None else {}
    return found | (census_views(census_files) if census_files else {})


def wage_histogram(*paths: Path) -> tuple[int, dict[int, int]]:
    """How many wages are exactly 0, and the others by interval: entry b holds the wages from 100 b to 100 b + 99."""
    zero, held = 0, np.zeros(_MOST_WAGE // 100 + 1, dtype=np.int64)
    for path in paths:
        for block in _read(path, CENSUS, lambda rows: (rows["wage"] >= 0) & (rows["wage"] <= _MOST_WAGE)):
            wages = block["wage"]
            zero += int(np.count_nonzero(wages == 0))
            held += np.bincount(wages[wages > 0] // 100, minlength=held.size)
    if zero + int(held.sum()) == 0:
        raise InputError("no census file with a single row was given: name census-income.data, .test, or both")
    return zero, {interval: int(count) for interval, count in enumerate(held) if count}


def cells_of(latitude: Floats, longitude: Floats, grid: tuple[int, int]) -> Ints:
    """Cell of every point, -1 outside the box."""
    south, north, west, east = BOX
    rows, columns = grid
    row = np.floor((latitude - south) * rows / (north - south)).clip(-1, rows)
    column = np.floor((longitude - west) * columns / (east - west)).clip(-1, columns)
    inside = (latitude >= south) & (latitude <= north) & (longitude >= west) & (longitude <= east)
    cell = row.clip(max=rows - 1) * columns + column.clip(max=columns - 1)
    return np.where(inside, cell, -1).astype(np.int64)


def _favourite_cells(path: Path) -> list[Ints]:
    """Users by most visited cell, for every grid, in one reading."""
    parts: list[list[tuple[Ints, Ints]]] = [[] for _ in GRIDS]
    for block in _read(path, CHECKINS, _is_checkin):
        for part, grid in zip(parts, GRIDS, strict=True):
            part.append(_keyed(block, grid))
    if not parts[0]:
        raise InputError(f"{path.name} is empty: download it again")
    found = [_favourites(part, rows * columns) for part, (rows, columns) in zip(parts, GRIDS, strict=True)]
    if not found[0].any():
        raise InputError(f"{path.name} has no check-in inside the box {BOX}: is it the file meant?")
    return found


def _keyed(block: NDArray[np.void], grid: tuple[int, int]) -> tuple[Ints, Ints]:
    """User and cell in one number, with the number of visits."""
    cell = cells_of(block["latitude"], block["longitude"], grid)
    key, number = np.unique(block["user"][cell >= 0] * (grid[0] * grid[1]) + cell[cell >= 0], return_counts=True)
    return key, number


def _favourites(parts: Sequence[tuple[Ints, Ints]], cells: int) -> Ints:
    """Users by most visited cell, from numbers of visits; of equals the first cell counts."""
    keys, numbers = (np.concatenate(each) for each in zip(*parts, strict=True))
    key, place = np.unique(keys, return_inverse=True)
    number = np.bincount(place, weights=numbers, minlength=key.size).astype(np.int64)
    user, cell = np.divmod(key, cells)
    order = np.lexsort((cell, -number, user))
    first = np.flatnonzero(np.diff(user[order], prepend=-1))
    return np.bincount(cell[order][first], minlength=cells).astype(np.int64)


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
