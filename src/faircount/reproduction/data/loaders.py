"""Populations from the original data files, processed as the paper describes.

    SNAP  loc-gowalla_totalCheckins.txt  user <tab> time <tab> latitude <tab> longitude <tab> place
    UCI   census-income.data, .test      42 columns, comma separated; the sixth is the wage per
                                         hour in cents

Files may be plain or gzipped. They are read in blocks of lines, so that millions of lines need
little memory. A line that cannot be read stops the loading with its number: a damaged file should
not quietly become a smaller population.
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
from faircount.reproduction.data.populations import (
    RARE_SHARE,
    Population,
    build_full_wages,
    build_gowalla,
    build_merged_wages,
)
from faircount.reproduction.data.published_counts import BOX, CELLS_12, CELLS_25

LINES_PER_BLOCK = 250_000

# Both readings of the paper's "cells of 5 x 5": 5 x 5 degrees, and a grid of 5 by 5 cells.
GRIDS = (CELLS_12, CELLS_25)

# In cents per hour. A larger number is a damaged line rather than a wage.
_MAX_WAGE = 10**6

# User and cell share one 64-bit key. Numbers below this, times 25 cells, stay within 63 bits.
_MAX_USERS = 2**40


@dataclass(frozen=True, slots=True)
class Layout:
    """What a line looks like: its separator, how many columns it has, and which ones are read."""

    name: str
    separator: str
    columns: int
    fields: tuple[tuple[str, int, type[np.int64] | type[np.float64]], ...]

    @property
    def dtype(self) -> np.dtype[np.void]:
        """One named field for every column that is read."""
        return np.dtype([(name, kind) for name, _, kind in self.fields])


CHECKINS = Layout(
    "SNAP loc-gowalla_totalCheckins",
    "\t",
    5,
    (("user", 0, np.int64), ("latitude", 2, np.float64), ("longitude", 3, np.float64)),
)
CENSUS = Layout("UCI census-income", ",", 42, (("wage", 5, np.int64),))

Rows = NDArray[np.void]
IsUsable = Callable[[Rows], NDArray[np.bool_]]

GOWALLA_FILES = ("loc-gowalla_totalCheckins.txt", "loc-gowalla_totalCheckins.txt.gz")
CENSUS_FILES = (
    "census-income.data",
    "census-income.data.gz",
    "census-income.test",
    "census-income.test.gz",
)


def load_original_data(folder: Path) -> dict[str, Population]:
    """The populations in a folder of original files, by the names of those that they replace.

    The files must have the names under which they are published. Either data set may be missing,
    and one of the two parts of Census-Income.
    """
    checkins = [folder / name for name in GOWALLA_FILES if (folder / name).is_file()]
    parts = [folder / name for name in CENSUS_FILES if (folder / name).is_file()]
    # A part that is there both plain and gzipped is read once.
    census = [path for path in parts if path.suffix != ".gz" or path.with_suffix("") not in parts]
    if not checkins and not census:
        wanted = ", ".join((GOWALLA_FILES[0], "census-income.data", "census-income.test"))
        raise InputError(
            f"{folder} has none of the original files ({wanted}; plain or .gz): put them there"
        )
    populations: dict[str, Population] = {}
    if checkins:
        populations |= load_gowalla(checkins[0])
    if census:
        populations |= load_census(census)
    return populations


def load_gowalla(path: Path) -> dict[str, Population]:
    """The views of Gowalla that the figures use: users by their most visited cell of the box.

    The box is closed. A point on the line between two cells belongs to the northern or eastern one.
    Of equally visited cells the first counts, row by row from the south-west. Users without a
    check-in in the box are left out.
    """
    cells_12, cells_25 = _count_users_by_cell(path)
    source = "SNAP loc-gowalla (Cho, Myers, Leskovec, KDD 2011)"
    limits = f"all check-ins of {path.name}"
    origin = ("gowalla file", source, limits)
    return {
        "gowalla": build_gowalla(*origin, CELLS_12, cells_12, RARE_SHARE),
        "gowalla-12": build_gowalla(*origin, CELLS_12, cells_12),
        "gowalla-25": build_gowalla(*origin, CELLS_25, cells_25),
    }


def load_census(paths: Sequence[Path]) -> dict[str, Population]:
    """The views of Census-Income that the figures use, from one or more parts of it.

    They count persons by wage per hour in intervals of 100: wages above 0 with merged tails, and
    every interval.
    """
    zero, wages = count_wages(*paths)
    limits = f"all rows of {', '.join(path.name for path in paths)}"
    origin = ("census file", "UCI Census-Income (KDD)", limits)
    return {
        "census": build_merged_wages(*origin, wages),
        "census-full": build_full_wages(*origin, zero, wages),
    }


def count_wages(*paths: Path) -> tuple[int, dict[int, int]]:
    """How many wages are exactly 0, and the others by interval of 100: entry b starts at 100 b."""
    zero = 0
    counts = np.zeros(_MAX_WAGE // 100 + 1, dtype=np.int64)
    for path in paths:
        for rows in _read_rows(path, CENSUS, _is_wage):
            wages = rows["wage"]
            zero += int(np.count_nonzero(wages == 0))
            counts += np.bincount(wages[wages > 0] // 100, minlength=counts.size)
    if zero + int(counts.sum()) == 0:
        raise InputError(
            "no census file with a single row was given: name census-income.data, .test, or both"
        )
    return zero, {int(interval): int(counts[interval]) for interval in np.flatnonzero(counts)}


def locate_cells(latitude: Floats, longitude: Floats, grid: tuple[int, int]) -> Ints:
    """The cell of every point, -1 outside the box."""
    south, north, west, east = BOX
    rows, columns = grid
    row = np.floor((latitude - south) * rows / (north - south)).clip(-1, rows)
    column = np.floor((longitude - west) * columns / (east - west)).clip(-1, columns)
    in_latitude = (latitude >= south) & (latitude <= north)
    in_longitude = (longitude >= west) & (longitude <= east)
    # The northern and eastern edges of the box belong to its last cells.
    cell = row.clip(max=rows - 1) * columns + column.clip(max=columns - 1)
    return np.where(in_latitude & in_longitude, cell, -1).astype(np.int64)


def _count_users_by_cell(path: Path) -> list[tuple[int, ...]]:
    """Users by most visited cell, for every grid, in one pass over the file."""
    visits: list[list[tuple[Ints, Ints]]] = [[] for _ in GRIDS]
    for rows in _read_rows(path, CHECKINS, _is_checkin):
        for collected, grid in zip(visits, GRIDS, strict=True):
            collected.append(_count_visits(rows, grid))
    if not visits[0]:
        raise InputError(f"{path.name} is empty: download it again")
    found = []
    for collected, (rows_of_grid, columns) in zip(visits, GRIDS, strict=True):
        found.append(_count_favourites(collected, rows_of_grid * columns))
    if not found[0].any():
        raise InputError(f"{path.name} has no check-in inside the box {BOX}: is it the right file?")
    return [tuple(counts.tolist()) for counts in found]


def _count_visits(rows: Rows, grid: tuple[int, int]) -> tuple[Ints, Ints]:
    """Pairs of a user and a cell, as one key each, and how often they occur."""
    cell = locate_cells(rows["latitude"], rows["longitude"], grid)
    inside = cell >= 0
    # Only pairs that occur are kept: memory grows with visits, not with users times cells.
    pairs = rows["user"][inside] * (grid[0] * grid[1]) + cell[inside]
    keys, visits = np.unique(pairs, return_counts=True)
    return keys, visits


def _count_favourites(parts: Sequence[tuple[Ints, Ints]], cells: int) -> Ints:
    """Users by most visited cell, from the visits of all blocks."""
    keys = np.concatenate([part_keys for part_keys, _ in parts])
    visits = np.concatenate([part_visits for _, part_visits in parts])
    key, index = np.unique(keys, return_inverse=True)
    # Weighted bins are floats: exact for fewer than 2^53 visits.
    total = np.bincount(index, weights=visits, minlength=key.size).astype(np.int64)
    user, cell = np.divmod(key, cells)
    # For every user, most visits first and, among equals, the first cell.
    order = np.lexsort((cell, -total, user))
    first = np.flatnonzero(np.diff(user[order], prepend=-1))
    return np.bincount(cell[order][first], minlength=cells).astype(np.int64)


def _is_checkin(rows: Rows) -> NDArray[np.bool_]:
    """Finite coordinates (impossible ones are outside the box) and a user that fits into a key."""
    has_user = (rows["user"] >= 0) & (rows["user"] < _MAX_USERS)
    return np.asarray(has_user & np.isfinite(rows["latitude"]) & np.isfinite(rows["longitude"]))


def _is_wage(rows: Rows) -> NDArray[np.bool_]:
    return np.asarray((rows["wage"] >= 0) & (rows["wage"] <= _MAX_WAGE))


def _read_rows(path: Path, layout: Layout, is_usable: IsUsable) -> Iterator[Rows]:
    """The columns of a file, block by block; the first unusable line is an error."""
    with _open_text(path) as file:
        lines_before = 0
        while lines := _read_lines(file, path):
            rows = _parse(lines, layout)
            if rows is None or not is_usable(rows).all():
                raise _explain_bad_line(path, lines, lines_before, layout, is_usable)
            # A block of blank lines has no rows.
            if rows.size:
                yield rows
            lines_before += len(lines)


def _parse(lines: Sequence[str], layout: Layout) -> Rows | None:
    """The lines as an array without blank ones; None if some line does not fit."""
    kept = [line for line in lines if not line.isspace()]
    if not kept:
        return np.zeros(0, dtype=layout.dtype)
    # loadtxt accepts lines with more columns than it reads, so they are counted here.
    if any(line.count(layout.separator) != layout.columns - 1 for line in kept):
        return None
    columns = [column for _, column, _ in layout.fields]
    try:
        return np.loadtxt(
            kept,
            dtype=layout.dtype,
            delimiter=layout.separator,
            usecols=columns,
            comments=None,
            ndmin=1,
        )
    except ValueError:
        return None


def _explain_bad_line(
    path: Path,
    lines: Sequence[str],
    lines_before: int,
    layout: Layout,
    is_usable: Callable[[Any], Any],
) -> InputError:
    """An error with the number of the line; the fast reader knows only that there is one."""
    advice = (
        f"The file must be {layout.name} as published, plain or gzipped: "
        "download it again, or remove the line"
    )
    for number, line in enumerate(lines, start=lines_before + 1):
        rows = _parse([line], layout)
        if rows is None or not is_usable(rows).all():
            reason = _explain(line, layout)
            return InputError(f"{path.name}, line {number}: {reason}. {advice}")
    last = lines_before + len(lines)
    return InputError(f"{path.name}: lines {lines_before + 1} to {last} cannot be read. {advice}")


def _explain(line: str, layout: Layout) -> str:
    found = line.count(layout.separator) + 1
    if found != layout.columns:
        return f"{found} columns instead of {layout.columns}"
    values = line.rstrip("\n").split(layout.separator)
    # At most 40 characters of a value: a damaged file may have very long ones.
    shown = [f"{name} {values[column].strip()!r:.40}" for name, column, _ in layout.fields]
    return "not usable: " + ", ".join(shown)


def _open_text(path: Path) -> TextIO:
    """Plain or gzipped text, told apart by the first two bytes and not by the name."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(2) == b"\x1f\x8b"
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the path") from error
    # Latin-1 never fails to decode; a line with odd bytes then fails as a line with its number.
    if is_gzip:
        return gzip.open(path, "rt", encoding="latin-1")
    return path.open(encoding="latin-1")


def _read_lines(file: TextIO, path: Path) -> list[str]:
    try:
        return list(islice(file, LINES_PER_BLOCK))
    except (EOFError, OSError) as error:
        raise InputError(
            f"{path.name} is cut short or damaged ({error}): download it again"
        ) from error
