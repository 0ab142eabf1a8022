"""Read columns from CSV and Parquet files, standard input, data frames, mappings and lists."""

import csv
import gzip
import io
import os
import sys
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from faircount.analysis.coded_column import CodedColumn, read_plain_csv
from faircount.core.errors import AnswerError, FaircountError, ParameterError

DELIMITERS = ",;\t|"
PARQUET = (".parquet", ".pq")
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
STDIN = "-"
UTF8 = "utf-8-sig"  # also reads files that begin with a byte order mark
COLUMNS_IN_ERROR = 12

# How Arrow columns, pandas and Polars series, and NumPy arrays become lists.
LIST_METHODS = ("to_pylist", "to_list", "tolist")


# Files have texts in their header; data frames and mappings may have numbers.
ColumnName = Hashable


class NoColumnError(AnswerError):
    """A table has no column of this name."""

    def __init__(self, name: ColumnName, message: str) -> None:
        super().__init__(message)
        self.name = name


def columns(
    table: Any, names: Sequence[ColumnName | None], encoding: str | None = None
) -> list[Sequence[object]]:
    """The named columns as sequences of equal length.

    A table is the path of a CSV file (also .gz) or Parquet file, "-" for CSV on standard input, a
    data frame or Arrow table, or a mapping of lists. A Series, list or array is one column by
    itself; its name is None.
    """
    found = [_as_sequence(column) for column in _select(table, names, encoding)]
    # Mappings may hold lists of any length. Files and frames cannot fail here.
    if len({len(column) for column in found}) > 1:
        raise AnswerError(
            "the columns differ in length: every row needs a value, or nothing, in each of them"
        )
    if not found[0]:
        raise AnswerError("the table has no rows: one row per user is needed")
    return found


def check_rows_are_people(table: Any) -> None:
    """Refuse a pandas table with repeated row labels where no column tells people apart."""
    # `explode` makes several rows of one person, with the label of the row they come from. Every
    # row would count as another user, and the guarantee would hold for a row and not for a person.
    index = getattr(table, "index", None)
    if getattr(index, "is_unique", True):
        return
    raise AnswerError(
        "several rows of the table have the same index label, as after explode(): if they are the "
        "answers of one person, name the column that identifies people with user=; if every row is "
        "another person, use reset_index(drop=True)"
    )


def _select(table: Any, names: Sequence[ColumnName | None], encoding: str | None) -> Sequence[Any]:
    """The named columns, in whatever type the table has."""
    if isinstance(table, str | os.PathLike):
        titles_in_file = [str(name) for name in _require_names(names)]
        return _select_from_file(Path(table), titles_in_file, encoding)
    if encoding is not None:
        raise ParameterError("encoding is for files: this table is in memory, leave it out")
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        # Mappings, pandas, Polars and Arrow tables all return a column for table[name].
        titles = table
        if not isinstance(table, Mapping):
            titles = getattr(table, "column_names", table.columns)
        header = list(titles)
        wanted = _require_names(names)
        for name in wanted:
            _check_not_index(name, header, table)
            _check_column(name, header, "the table")
        return [table[name] for name in wanted]
    if _is_column(table):
        own_name = getattr(table, "name", None)
        for column in names:
            if column not in (None, own_name):
                raise ParameterError(
                    f"a single list of answers has no column {column!r}: give a data frame or a "
                    "mapping"
                )
        return [table]
    raise AnswerError(
        "a table is a CSV or Parquet file, a data frame, a mapping from column names to lists, or "
        "one list of answers"
    )


def _require_names(names: Sequence[ColumnName | None]) -> list[ColumnName]:
    given = [name for name in names if name is not None]
    if len(given) < len(names):
        raise ParameterError(
            "say which column of the table holds the answers: --column NAME (column= in Python)"
        )
    return given


def _is_column(table: Any) -> bool:
    """Whether this is a list of answers: a list, tuple, Series, array or Arrow column."""
    # Bytes would pass as a list of numbers, and a matrix as a list of rows.
    if isinstance(table, bytes) or getattr(table, "ndim", 1) != 1:
        return False
    return isinstance(table, list | tuple) or any(hasattr(table, name) for name in LIST_METHODS)


def _as_sequence(column: Any) -> Sequence[object]:
    """A column as Python objects."""
    if isinstance(column, CodedColumn):
        return column
    # Their own methods return Python objects: NumPy scalars print differently from numbers.
    for method in LIST_METHODS:
        if hasattr(column, method):
            values: list[object] = getattr(column, method)()
            return values
    if isinstance(column, str) or not isinstance(column, Iterable):
        raise AnswerError("a column must be a list of values, one per row")
    return list(column)


def _check_column(name: ColumnName, header: Sequence[object], source: str) -> None:
    # Nobody can tell which of the columns was meant.
    if header.count(name) > 1:
        raise AnswerError(
            f"{source} has {header.count(name)} columns named {name!r}: rename all but one"
        )
    if name not in header:
        known = ", ".join(map(repr, header[:COLUMNS_IN_ERROR])) or "none"
        if len(header) > COLUMNS_IN_ERROR:
            known += ", ..."
        advice = ""
        for column in header:
            if _read_alike(column, name):
                advice = f"; did you mean {column!r}?"
        raise NoColumnError(name, f"{source} has no column {name!r}; it has {known}{advice}")


def _read_alike(column: object, name: ColumnName) -> bool:
    """Whether two names differ in upper and lower case, blanks, or as 1 and '1' do."""
    return str(column).strip().casefold() == str(name).strip().casefold()


def _check_not_index(name: ColumnName, header: Sequence[object], table: Any) -> None:
    """Refuse the name of a pandas index, which is no column although it prints like one."""
    index_names = getattr(getattr(table, "index", None), "names", ())
    if name in index_names and name not in header:
        raise AnswerError(
            f"{name!r} is the index of the table and not a column: use reset_index(), which makes "
            "it one"
        )


def _select_from_file(path: Path, names: Sequence[str], encoding: str | None) -> Sequence[Any]:
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        if encoding is not None:
            raise ParameterError("encoding is for text: a Parquet file knows its own, leave it out")
        return _read_parquet(path, names)
    if suffix in SPREADSHEETS:
        raise AnswerError(
            f"{path} is a spreadsheet: save its sheet as CSV, or pass pandas.read_excel(...) in "
            "Python"
        )
    return _read_csv(path, names, encoding or UTF8)


def _read_parquet(path: Path, names: Sequence[str]) -> list[Any]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise FaircountError(
            "reading Parquet needs pyarrow: install faircount[table], or give a CSV file"
        ) from None
    try:
        with _open_binary(path) as source:
            file = parquet.ParquetFile(source)
            for name in names:
                _check_column(name, file.schema_arrow.names, str(path))
            table = file.read(columns=list(names))
    except ArrowException as problem:
        raise AnswerError(
            f"{path} cannot be read as Parquet: {str(problem).splitlines()[0]}"
        ) from None
    return [table[name] for name in names]


def _read_csv(path: Path, names: Sequence[str], encoding: str) -> Sequence[Sequence[object]]:
    source = "standard input" if str(path) == STDIN else str(path)
    try:
        content = _read_content(path)
        return _parse_csv(content, names, source, encoding)
    except LookupError:
        raise ParameterError(
            f"there is no encoding {encoding!r}: utf-8, cp1252 and utf-16 are common ones"
        ) from None
    except UnicodeError:
        expected = "UTF-8" if encoding == UTF8 else encoding
        raise AnswerError(
            f"{source} is not {expected} text: name its encoding, as in --encoding cp1252 "
            "(encoding= in Python), or save it as CSV in UTF-8"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise AnswerError(f"{source} cannot be unpacked: it is not a whole .gz file") from None
    except csv.Error as problem:
        raise AnswerError(f"{source} is not readable as CSV: {problem}") from None


def _read_content(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz, or of standard input."""
    if str(path) == STDIN:
        # Bytes, because the encoding of standard input follows the locale and not --encoding.
        content = sys.stdin.buffer.read()
    else:
        with _open_binary(path) as source:
            content = source.read()
    if path.suffix.lower() == ".gz":
        content = gzip.decompress(content)
    return content


def _open_binary(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as problem:
        raise AnswerError(
            f"{path} cannot be opened: {(problem.strerror or 'unknown reason').lower()}"
        ) from None


def _parse_csv(
    content: bytes, names: Sequence[str], source: str, encoding: str
) -> Sequence[Sequence[object]]:
    lines = io.TextIOWrapper(io.BytesIO(content), encoding=encoding, newline="")
    first = next(lines, "")
    delimiter = excel_delimiter(first)
    header_lines = 1
    if delimiter is not None:
        first = next(lines, "")
        header_lines = 2
    if not first.strip():
        raise AnswerError(f"{source} is empty: its first line must name the columns")
    if delimiter is None:
        delimiter = _guess_delimiter(first, names)
    # Strict, so that a quote that is never closed is an error and not one endless cell.
    reader = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    header = [field.strip() for field in next(reader)]
    places: dict[str, int] = {}
    found: dict[str, list[object]] = {}
    for name in names:
        _check_column(name, header, source)
        places[name] = header.index(name)
        found[name] = []
    if encoding == UTF8:
        coded = read_plain_csv(
            content,
            header_lines=header_lines,
            delimiter=delimiter,
            fields=len(header),
            places=list(places.values()),
        )
        if coded is not None:
            return [coded[list(places).index(name)] for name in names]
    for row in _check_rows(reader, len(header), source):
        for name, place in places.items():
            found[name].append(row[place])
    return [found[name] for name in names]


def _check_rows(reader: Any, fields: int, source: str) -> Iterator[list[str]]:
    """The rows below the header of a CSV file, each with this many fields."""
    empty_lines: list[int] = []
    for row in reader:
        if not row:
            empty_lines.append(reader.line_num)
            continue
        # Only what ends the file is no row. Elsewhere an empty line is a person without an answer,
        # who must not vanish from the number of users.
        if empty_lines and fields > 1:
            raise AnswerError(
                f"line {empty_lines[0]} of {source} is empty: remove it, or, if it is a person "
                "without answers, write the delimiters between the empty cells"
            )
        yield from [[""]] * len(empty_lines)
        empty_lines.clear()
        # A row of another length is an error: its cells would land in the wrong columns.
        if len(row) != fields:
            raise AnswerError(
                f"line {reader.line_num} of {source} has {len(row)} fields, but its header has "
                f"{fields}"
            )
        yield row


def excel_delimiter(line: str) -> str | None:
    """The delimiter in the line `sep=;`, which Excel writes above the header."""
    text = line.rstrip("\r\n").strip('"')
    if len(text) == 5 and text.lower().startswith("sep="):
        return text[4]
    return None


def _guess_delimiter(line: str, names: Sequence[str]) -> str:
    """The first usual delimiter under which the header has all wanted columns, else a comma."""
    for delimiter in DELIMITERS:
        header = [field.strip() for field in next(csv.reader([line], delimiter=delimiter), [])]
        if all(name in header for name in names):
            return delimiter
    return ","
