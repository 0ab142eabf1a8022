"""Columns of a table, wherever it is: a CSV or Parquet file, a data frame, or plain lists by name."""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from faircount.core.errors import AnswerError, FaircountError

DELIMITERS = ",;\t|"
PARQUET = (".parquet", ".pq")


def columns(table: Any, names: Sequence[str]) -> list[list[object]]:
    """The named columns, row by row alike, of a path, a data frame (anything with `columns`) or a mapping of lists."""
    found = [_values(each) for each in _reader(table)(table, names)]
    if len({len(each) for each in found}) > 1:
        raise AnswerError("the columns differ in length: every row needs a value, or nothing, in each of them")
    if not found[0]:
        raise AnswerError("the table has no rows: one row per user is needed")
    return found


def _reader(table: Any) -> Callable[[Any, Sequence[str]], Iterable[Any]]:
    if isinstance(table, str | Path):
        return _parquet if Path(table).suffix.lower() in PARQUET else _csv
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return _named
    raise AnswerError("a table is a CSV or Parquet file, a data frame, or a mapping from column names to lists")


def _named(table: Any, names: Sequence[str]) -> list[Any]:
    """Mappings, pandas, Polars and Arrow tables all give a column for its name."""
    there = list(table if isinstance(table, Mapping) else getattr(table, "column_names", table.columns))
    return [table[_known(name, there, "the table")] for name in names]


def _values(column: Any) -> list[object]:
    """A column as Python objects."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            listed: list[object] = getattr(column, method)()
            return listed
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise AnswerError("a column must be a list of values, one per row")
    return list(column)


def _known(name: str, there: Sequence[object], where: str) -> str:
    if there.count(name) > 1:
        raise AnswerError(f"{where} has {there.count(name)} columns named {name!r}: rename all but one")
    if name not in there:
        listed = ", ".join(repr(each) for each in there[:12]) + (", ..." if len(there) > 12 else "")
        raise AnswerError(f"{where} has no column {name!r}; it has {listed or 'none'}")
    return name


def _parquet(path: Any, names: Sequence[str]) -> list[Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise FaircountError("reading Parquet needs pyarrow: install faircount[table], or give a CSV file") from None
    try:
        with _opened(Path(path), "rb") as source:
            whole = parquet.ParquetFile(source)
            there = [_known(name, whole.schema_arrow.names, str(path)) for name in names]
            held = whole.read(columns=there)
    except ArrowException as problem:
        raise AnswerError(f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}") from None
    return [held[name] for name in there]


def _csv(path: Any, names: Sequence[str]) -> list[list[object]]:
    with _opened(Path(path), "r", encoding="utf-8-sig", newline="") as lines:
        try:
            return _csv_columns(lines, names, str(path))
        except UnicodeDecodeError:
            raise AnswerError(f"{path} is not UTF-8 text: save it as CSV in UTF-8") from None
        except csv.Error as problem:
            raise AnswerError(f"{path} is not readable as CSV: {problem}") from None


def _opened(path: Path, mode: str, **how: Any) -> Any:
    try:
        return path.open(mode, **how)
    except OSError as problem:
        raise AnswerError(f"{path} cannot be opened: {(problem.strerror or 'unknown reason').lower()}") from None


def _csv_columns(lines: Iterator[str], names: Sequence[str], where: str) -> list[list[object]]:
    head = next(lines, "")
    if not head.strip():
        raise AnswerError(f"{where} is empty: its first line must name the columns")
    reader = csv.reader(chain([head], lines), delimiter=_delimiter(head, names), strict=True)
    header = [each.strip() for each in next(reader)]
    places = [header.index(_known(name, header, where)) for name in names]
    found: list[list[object]] = [[] for _ in names]
    for row in reader:
        if len(row) == len(header):
            for column, place in zip(found, places, strict=True):
                column.append(row[place])
        elif row:  # an empty line is no row
            raise AnswerError(f"line {reader.line_num} of {where} has {len(row)} fields, its header {len(header)}")
    return found


def _delimiter(head: str, names: Sequence[str]) -> str:
    """The first of the usual ones under which the header has all wanted columns; a comma if none is."""
    for each in DELIMITERS:
        header = [field.strip() for field in next(csv.reader([head], delimiter=each), [])]
        if all(name in header for name in names):
            return each
    return ","
