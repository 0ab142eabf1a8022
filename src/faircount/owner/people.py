"""The people of a survey, as they come: a spreadsheet, or a file with one person a line.

A table (CSV, or XLSX with the extra) has a header, and one column tells people apart: their
address. All other columns are kept and come back beside the invitations, so that a mail merge can
use them.
"""

import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faircount.analysis.read import DELIMITERS, excel_delimiter
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.files import read_file

TABLES = (".csv", ".tsv")
SPREADSHEETS = (".xlsx", ".xlsm")
OTHER_SPREADSHEETS = (".xls", ".ods", ".numbers")
MAX_UNPACKED = 64 * 1024 * 1024
"""Bytes of a spreadsheet when it is unpacked: a table of 100,000 people takes half of it."""
MAX_CELLS = 20_000_000
"""Cells of a spreadsheet, with the empty ones between others, that are looked at."""
MAX_ROWS = 1 << 20
"""Rows of a spreadsheet; no program writes more."""
COLUMNS_IN_ERROR = 12
LINES_IN_ERROR = 5

# Enough to tell an address from a name; whether it exists only its mail server knows. No character
# that a mail's header could read as the end of the address.
_EMAIL = re.compile(r"[^@\s,;:<>()\"\\]+@[^@\s,;:<>()\"\\.]+(\.[^@\s,;:<>()\"\\.]+)+")

_Rows = list[tuple[int, list[str]]]
"""Cells of every row, with its line in the file."""


def is_email(text: str) -> bool:
    """Whether a text looks like one e-mail address."""
    return text.isprintable() and _EMAIL.fullmatch(text) is not None


@dataclass(frozen=True)
class People:
    """Who is invited, in the order of the owner's table.

    names: what tells them apart: an e-mail address, a name, a number
    header: titles of the owner's columns; empty where there was only a list
    rows: the cells of every person, as many as there are titles
    note: how the file was read, where the owner should know
    """

    names: tuple[str, ...]
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_names(cls, names: Iterable[str]) -> "People":
        """People of whom only the names are known."""
        found = tuple(names)
        return cls(found, (), ((),) * len(found))

    def columns_of(self, place: int) -> tuple[tuple[str, str], ...]:
        """Titles and cells of one person."""
        return tuple(zip(self.header, self.rows[place], strict=True))

    def encode(self) -> bytes:
        """As JSON, for the survey's folder."""
        content = {"version": 1, "names": self.names, "header": self.header, "rows": self.rows}
        return json.dumps(content, ensure_ascii=False).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> "People":
        """From JSON."""
        try:
            content: dict[str, Any] = json.loads(data)
            rows = tuple(tuple(row) for row in content["rows"])
            return cls(tuple(content["names"]), tuple(content["header"]), rows)
        except (ValueError, KeyError, TypeError):
            message = "people.json is damaged: restore it from a copy"
            raise FaircountError(message).with_code("file_damaged", file="people.json") from None


def read_people(path: Path, column: str | None = None) -> People:
    """The people in a file: a table with a header, or one person a line.

    path: a .csv, .tsv or .xlsx file is a table; any other file has one person a line
    column: title of the column with their addresses; by default the only one with e-mail addresses
    """
    return parse_people(path, read_file(path, "give a file with one row per person"), column)


def parse_people(path: Path, data: bytes, column: str | None = None) -> People:
    """The people in the content of a file; its name tells what it is."""
    suffix = path.suffix.lower()
    if suffix in OTHER_SPREADSHEETS:
        message = f"{path} cannot be read: save it as .xlsx or as CSV"
        raise ParameterError(message).with_code("sheet_format", file=str(path))
    if suffix in SPREADSHEETS:
        return _people_of(_read_xlsx(path, data), path, column)
    if suffix in TABLES:
        rows, note = _read_csv(path, data)
        return _people_of(rows, path, column, note)
    if column is not None:
        message = f"{path} has one person a line and no columns: give a .csv or .xlsx"
        raise ParameterError(message).with_code("sheet_no_columns", file=str(path))
    text, note = _decode_text(data, path)
    people = People.from_names(filter(None, map(str.strip, text.splitlines())))
    return replace(people, note=note)


def table_titles(path: Path, data: bytes) -> tuple[str, ...]:
    """The titles of the columns of a table; none of a file with one person a line."""
    suffix = path.suffix.lower()
    rows: _Rows = []
    if suffix in SPREADSHEETS:
        rows = _read_xlsx(path, data)
    elif suffix in TABLES:
        rows, _ = _read_csv(path, data)
    first = next((row for _, row in rows if any(row)), [])
    return tuple(_check_header(first, path)) if first else ()


def _read_csv(path: Path, data: bytes) -> tuple[_Rows, str]:
    text, note = _decode_text(data, path)
    lines = text.splitlines(keepends=True)
    delimiter = excel_delimiter(lines[0]) if lines else None
    before = 0
    if delimiter is not None:
        before = 1
        lines = lines[1:]
    else:
        delimiter = _guess_delimiter(next(filter(str.strip, lines), ""))
    # Strict, so that a quote that is never closed is an error and not one endless cell.
    source = io.StringIO("".join(lines), newline="")
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    try:
        rows = [(before + reader.line_num, list(map(str.strip, row))) for row in reader]
    except csv.Error as problem:
        message = f"{path} is not readable as CSV: {problem}"
        raise ParameterError(message).with_code("sheet_csv", file=str(path)) from None
    return rows, note


def _decode_text(data: bytes, path: Path) -> tuple[str, str]:
    """The text of a file in one of the encodings that spreadsheets write, and a note on a guess."""
    encodings = ["utf-8-sig", "cp1252"]
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        encodings = ["utf-16"]
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeError:
            continue
        if "\0" in text:
            break
        if encoding != "cp1252":
            return text, ""
        return text, (
            f"{path} is not UTF-8 and was read as Windows-1252, as Excel writes it: check that "
            "names look right, or save it as CSV UTF-8"
        )
    message = f"{path} is not text: save the sheet as CSV UTF-8, or give the .xlsx file"
    raise ParameterError(message).with_code("sheet_encoding", file=str(path))


def _guess_delimiter(header: str) -> str:
    """The usual delimiter that splits the header into most columns; a comma if none does."""

    def count(delimiter: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=delimiter), []))
        # Without this delimiter the whole line is one cell, which may be too long.
        except csv.Error:
            return 0

    return max(DELIMITERS, key=count)


def _read_xlsx(path: Path, data: bytes) -> _Rows:
    try:
        import openpyxl
    except ImportError:
        message = "a spreadsheet needs openpyxl: pip install 'faircount[xlsx]', or save it as CSV"
        raise FaircountError(message).with_code("no_xlsx") from None
    try:
        _check_unpacked_size(path, data)
        # Values and not formulas, and without loading pictures and styles.
        book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheet = book.worksheets[0]
        # What a file says about its own size makes empty cells of all that it does not contain.
        sheet.reset_dimensions()
        rows = _fill_rows(path, sheet.iter_rows(values_only=True))
        book.close()
    except ParameterError:
        raise
    # The file may be anything: what goes wrong inside the library is the file's fault.
    except Exception as problem:
        kind = type(problem).__name__
        message = f"{path} cannot be read as a spreadsheet ({kind})"
        raise ParameterError(message).with_code("sheet_unreadable", file=str(path)) from None
    return rows


def _check_unpacked_size(path: Path, data: bytes) -> None:
    """Refuse a spreadsheet that is small only because it is compressed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    # check: sheet-unpacked - a small file takes all memory of the owner's computer
    if unpacked > MAX_UNPACKED:
        raise _too_large(path)


def _fill_rows(path: Path, table: Iterable[Sequence[object]]) -> _Rows:
    """The cells of a sheet as text, without the empty ones at the end of a row."""
    rows = []
    cells = 0
    for number, row in enumerate(table, start=1):
        cells += len(row)
        # check: sheet-cells - one cell far away makes a million rows of empty ones before it
        if cells > MAX_CELLS or number > MAX_ROWS:
            raise _too_large(path)
        texts = [_cell_text(value) for value in row]
        while texts and not texts[-1]:
            texts.pop()
        if texts:
            rows.append((number, texts))
    return rows


def _too_large(path: Path) -> ParameterError:
    message = f"{path} is too large for a list of people: give a table with one row per person"
    return ParameterError(message).with_code("sheet_too_large", file=str(path))


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    # A spreadsheet keeps whole numbers as floats: a person's number 12 must not become "12.0".
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _people_of(rows: _Rows, path: Path, column: str | None, note: str = "") -> People:
    """The people of a table whose first row that is not empty is the header."""
    filled = [(line, row) for line, row in rows if any(row)]
    if not filled:
        message = f"{path} is empty: its first line must name the columns"
        raise ParameterError(message).with_code("sheet_empty", file=str(path))
    header = _check_header(filled[0][1], path)
    body = [(line, _fit(row, len(header), line, path)) for line, row in filled[1:]]
    if not body:
        message = f"{path} has a header and no people below it"
        raise ParameterError(message).with_code("sheet_no_people", file=str(path))
    place = _address_column(header, body, path, column)
    _check_addresses(header[place], [(line, row[place]) for line, row in body], path)
    names = tuple(row[place] for _, row in body)
    return People(names, tuple(header), tuple(tuple(row) for _, row in body), note)


def _check_header(row: list[str], path: Path) -> list[str]:
    """The titles of the columns, without empty columns at the right."""
    header = list(row)
    while header and not header[-1]:
        header.pop()
    # Without a header the first person would silently not be invited.
    if any(is_email(title) for title in header):
        raise ParameterError(
            f"the first line of {path} has an e-mail address: put a line above it that names the "
            "columns"
        ).with_code("sheet_no_header", file=str(path))
    if not all(header):
        missing = header.index("") + 1
        message = f"column {missing} of {path} has no title: name it in the first line"
        raise ParameterError(message).with_code("sheet_no_title", file=str(path), column=missing)
    title, times = Counter(header).most_common(1)[0]
    if times > 1:
        message = f"{path} has {times} columns named {title!r}: rename all but one"
        raise ParameterError(message).with_code("sheet_title_twice", file=str(path), title=title)
    return header


def _fit(row: list[str], columns: int, line: int, path: Path) -> list[str]:
    """A row with as many cells as the header; Excel leaves out empty ones at the end."""
    if any(row[columns:]):
        raise ParameterError(
            f"line {line} of {path} has {len(row)} cells, but the header has {columns}: quote a "
            "cell that contains the delimiter"
        ).with_code("sheet_cells", file=str(path), line=line, columns=columns)
    return (row + [""] * columns)[:columns]


def _address_column(header: Sequence[str], body: _Rows, path: Path, column: str | None) -> int:
    """The place of the column with the addresses: the one named, or the obvious one."""
    if column is not None:
        if column not in header:
            message = f"{path} has no column {column!r}; it has {_join_titles(header)}"
            raise ParameterError(message).with_code("sheet_no_column", column=column)
        return header.index(column)
    found = []
    for place in range(len(header)):
        cells = [row[place] for _, row in body]
        if _holds_emails(cells):
            found.append(place)
    if len(found) == 1:
        return found[0]
    several = [header[place] for place in found]
    reason = f"several have e-mail addresses: {_join_titles(several)}"
    if not found:
        reason = f"no column of {path} has e-mail addresses; it has {_join_titles(header)}"
    raise ParameterError(
        f"name the column that tells people apart with --address-column (column= in Python): "
        f"{reason}"
    ).with_code("sheet_which_column", columns=_join_titles(several or header))


def _holds_emails(cells: Sequence[str]) -> bool:
    """Whether most of the cells that are not empty are e-mail addresses."""
    filled = [cell for cell in cells if cell]
    return 2 * sum(map(is_email, filled)) > len(filled)


def _check_addresses(title: str, cells: Sequence[tuple[int, str]], path: Path) -> None:
    """Refuse people without an address, with a broken one, or named twice."""
    empty = [line for line, cell in cells if not cell]
    if empty:
        raise ParameterError(
            f"{path} has people without {title!r}, in {_lines(empty)}: fill it in, or remove them"
        ).with_code("sheet_address_missing", title=title, lines=_numbers(empty))
    # One broken address among good ones is a typing error, and its person would hear nothing.
    if _holds_emails([cell for _, cell in cells]):
        broken = [line for line, cell in cells if not is_email(cell)]
        if broken:
            raise ParameterError(
                f"{title!r} of {path} has no e-mail address in {_lines(broken)}: correct it"
            ).with_code("sheet_address_broken", title=title, lines=_numbers(broken))
    first_lines: dict[str, int] = {}
    for line, cell in cells:
        # Mail servers ignore case, so a second spelling would be a second vote.
        key = cell.casefold()
        if key in first_lines:
            message = (
                f"{path} names {cell!r} twice, in lines {first_lines[key]} and {line}: write one "
                "line per person"
            )
            places = {"first": first_lines[key], "second": line}
            raise ParameterError(message).with_code("sheet_person_twice", **places)
        first_lines[key] = line


def _join_titles(titles: Sequence[str]) -> str:
    known = ", ".join(map(repr, titles[:COLUMNS_IN_ERROR]))
    return f"{known}, ..." if len(titles) > COLUMNS_IN_ERROR else known


def _lines(lines: Sequence[int]) -> str:
    """Some lines of a file, to be put into a sentence."""
    shown = ", ".join(map(str, lines[:LINES_IN_ERROR]))
    if len(lines) > LINES_IN_ERROR:
        shown += f" and {len(lines) - LINES_IN_ERROR} more"
    return f"line {shown}" if len(lines) == 1 else f"lines {shown}"


def _numbers(lines: Sequence[int]) -> str:
    """The same in numbers alone, for a sentence in any language."""
    shown = ", ".join(map(str, lines[:LINES_IN_ERROR]))
    return f"{shown}, ..." if len(lines) > LINES_IN_ERROR else shown
