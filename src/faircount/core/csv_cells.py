"""CSV files that a spreadsheet shows and does not execute.

A spreadsheet takes a cell that begins with = + - @ or a tab for a formula, and a formula can send
other cells away or start a program. Names and items come from other people, so no cell that
faircount writes begins like that: a text gets an apostrophe in front, as people type it in a
spreadsheet, and a negative number a space, which programs skip when they read a number.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# Also their full-width forms, which some spreadsheets read alike, and line ends, which they skip.
_FORMULA = re.compile("'*[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]")


def encode_cell(value: object) -> str:
    """A value as the text of a cell that is no formula; None is an empty cell."""
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, int | float):
        return f" {text}" if text.startswith("-") else text
    # check: formula-cell - a name such as =HYPERLINK(...) would run in the owner's spreadsheet
    if _FORMULA.match(text):
        # Apostrophes before such a sign count too, so that `decode_cell` finds the text again.
        return f"'{text}"
    return text


def decode_cell(cell: str) -> str:
    """The text that `encode_cell` was given."""
    if cell.startswith("'") and _FORMULA.match(cell):
        return cell[1:]
    return cell


def write_csv(header: Sequence[object], rows: Iterable[Sequence[object]]) -> bytes:
    """A CSV file in UTF-8 with these columns."""
    lines = [_write_line(header)]
    lines += [_write_line(row) for row in rows]
    return "".join(lines).encode()


def _write_line(values: Sequence[object]) -> str:
    out = io.StringIO()
    # The writer quotes a text that contains a character of its line end. With \n alone, a text with
    # \r stood without quotes, and what followed was the first cell of a new row: a formula again.
    # check: quoted-line-ends - a name such as "x\r=HYPERLINK(...)" would run in a spreadsheet
    line_end = "\r\n"
    csv.writer(out, lineterminator=line_end).writerow([encode_cell(value) for value in values])
    return out.getvalue().removesuffix(line_end) + "\n"
