"""Columns of a table, wherever it is: a file, standard input, a data frame, plain lists by name, or one list alone."""

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from faircount.core.errors import AnswerError, FaircountError, ParameterError

DELIMITERS = ",;\t|"
PARQUET = (".parquet", ".pq")
SHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
STDIN = "-"
UTF8 = "utf-8-sig"


def columns(table: Any, names: Sequence[str | None], encoding: str | None = None) -> list[list[object]]:
    """The named columns, row by row alike.

    A table is a path of a CSV file (also .gz) or Parquet file, "-" for CSV on standard input, a data frame or Arrow
    table, or a mapping of lists. A Series, list or array is one column by itself; its name is None.
    """
    found = [_values(each) for each in _found(table, names, encoding)]
    if len({len(each) for each in found}) > 1:
        raise AnswerError("the columns differ in length: every row needs a value, or nothing, in each of them")
    if not found[0]:
        raise AnswerError("the table has no rows: one row per user is needed")
    return found


def _found(table: Any, names: Sequence[str | None], encoding: str | None) -> Iterable[Any]:
    if isinstance(table, str | os.PathLike):
        path = Path(table)
        parquet = path.suffix.lower() in PARQUET
        if parquet and encoding is not None:
            raise ParameterError("encoding is for text: a Parquet file knows its own, leave it out")
        return _parquet(path, _named(names)) if parquet else _csv(path, _named(names), encoding or UTF8)
    if encoding is not None:
        raise ParameterError("encoding is for files: this table is in memory, leave it out")
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return _by_name(table, _named(names))
    if _is_column(table):
        return _alone(table, names)
    raise AnswerError(
        "a table is a CSV or Parquet file, a data frame, a mapping from column names to lists, or one list of answers"
    )


def _named(names: Sequence[str | None]) -> list[str]:
    if None in names:
        raise ParameterError("say which column of the table holds the answers: --column NAME (column= in Python)")
    return [str(each) for each in names]


def _is_column(table: Any) -> bool:
    """Whether this is a list of answers: a list, a tuple, a Series, an array or an Arrow column."""
    one_dimensional = getattr(table, "ndim", 1) == 1
    listed = isinstance(table, list | tuple) or any(hasattr(table, each) for each in _LISTING)
    return listed and one_dimensional and not isinstance(table, bytes)


def _alone(column: Any, names: Sequence[str | None]) -> list[Any]:
    """One list of answers has no other columns."""
    strange = [each for each in names if each not in (None, getattr(column, "name", None))]
    if strange:
        raise ParameterError(f"a single list of answers has no column {strange[0]!r}: give a data frame or a mapping")
    return [column]


def _by_name(table: Any, names: Sequence[str]) -> list[Any]:
    """Mappings, pandas, Polars and Arrow tables all give a column for its name."""
    there = list(table if isinstance(table, Mapping) else getattr(table, "column_names", table.columns))
    return [table[_known(name, there, "the table")] for name in names]


_LISTING = ("to_pylist", "to_list", "tolist")


def _values(column: Any) -> list[object]:
    """A column as Python objects."""
    for method in _LISTING:
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


def _csv(path: Path, names: Sequence[str], encoding: str) -> list[list[object]]:
    if path.suffix.lower() in SHEETS:
        raise AnswerError(
            f"{path} is a spreadsheet: save its sheet as CSV, or give pandas.read_excel(...) to the function"
        )
    where = "standard input" if str(path) == STDIN else str(path)
    try:
        with _text(path, encoding) as lines:
            return _csv_columns(lines, names, where)
    except LookupError:
        raise ParameterError(f"there is no encoding {encoding!r}: utf-8, cp1252 and utf-16 are common ones") from None
    except UnicodeError:
        known = "UTF-8" if encoding == UTF8 else encoding
        advice = "name its encoding, as in --encoding cp1252 (encoding= in Python), or save it as CSV in UTF-8"
        raise AnswerError(f"{where} is not {known} text: {advice}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise AnswerError(f"{where} cannot be unpacked: it is not a whole .gz file") from None
    except csv.Error as problem:
        raise AnswerError(f"{where} is not readable as CSV: {problem}") from None


def _text(path: Path, encoding: str) -> Any:
    """The lines of a file, unpacked if it is a .gz file, or of standard input."""
    if str(path) == STDIN:
        held = sys.stdin.buffer.read()
    else:
        with _opened(path, "rb") as source:
            held = source.read()
    if path.suffix.lower() == ".gz":
        held = gzip.decompress(held)
    return io.TextIOWrapper(io.BytesIO(held), encoding=encoding, newline="")


def _opened(path: Path, mode: str) -> Any:
    try:
        return path.open(mode)
    except OSError as problem:
        raise AnswerError(f"{path} cannot be opened: {(problem.strerror or 'unknown reason').lower()}") from None


def _csv_columns(lines: Iterator[str], names: Sequence[str], where: str) -> list[list[object]]:
    head = next(lines, "")
    stated = _stated_delimiter(head)
    if stated is not None:
        head = next(lines, "")
    if not head.strip():
        raise AnswerError(f"{where} is empty: its first line must name the columns")
    reader = csv.reader(chain([head], lines), delimiter=stated or _delimiter(head, names), strict=True)
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


def _stated_delimiter(head: str) -> str | None:
    """Excel's first line `sep=;`, which names the delimiter and is no row."""
    words = head.rstrip("\r\n").strip('"')
    return words[4] if words.lower().startswith("sep=") and len(words) == 5 else None


def _delimiter(head: str, names: Sequence[str]) -> str:
    """The first of the usual ones under which the header has all wanted columns; a comma if none is."""
    for each in DELIMITERS:
        header = [field.strip() for field in next(csv.reader([head], delimiter=each), [])]
        if all(name in header for name in names):
            return each
    return ","
