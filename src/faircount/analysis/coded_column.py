"""A column of a table as its distinct cells, and a fast reader of plain CSV that makes such ones.

A million answers repeat a dozen cells. Where pyarrow is installed, its reader finds them several
times as fast as Python's csv module, without an object for every row.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from faircount.core.arrays import Ints

# Below this many bytes the csv module is done before pyarrow is imported.
LEAST_BYTES = 2**21

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, eq=False)
class CodedColumn(Sequence[object]):
    """The cells of a column, each of which occurs in many rows.

    distinct: the different cells
    codes:    for every row the position of its cell among them
    """

    distinct: list[object]
    codes: Ints

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> object: ...

    @overload
    def __getitem__(self, row: slice) -> "CodedColumn": ...

    def __getitem__(self, row: int | slice) -> object:
        if isinstance(row, slice):
            return CodedColumn(self.distinct, self.codes[row])
        return self.distinct[self.codes[row]]

    def __iter__(self) -> Iterator[object]:
        return map(self.distinct.__getitem__, self.codes.tolist())

    def take(self, rows: Ints) -> "CodedColumn":
        """The cells of these rows."""
        return CodedColumn(self.distinct, self.codes[rows])


def take(column: Sequence[object], rows: Ints) -> Sequence[object]:
    """The cells of these rows, in whatever form the column has."""
    if isinstance(column, CodedColumn):
        return column.take(rows)
    return [column[row] for row in rows.tolist()]


def read_plain_csv(
    content: bytes, *, header_lines: int, delimiter: str, fields: int, places: Sequence[int]
) -> list[CodedColumn] | None:
    """The columns at these places below the header, or None where the csv module has to decide.

    content:      the file
    header_lines: lines above the first row
    fields:       number of columns
    """
    # Quotes, lone carriage returns and overlong cells mean something to the csv module that another
    # reader may not share, and its errors name lines. All such files are left to it, so that
    # results and errors are the same with and without pyarrow.
    if len(content) < LEAST_BYTES or not delimiter.isascii() or not _is_plain(content):
        return None
    # Empty lines at the end are no rows. Others are people without an answer where there is one
    # column, and an error where there are more.
    body = content.removeprefix(BYTE_ORDER_MARK).rstrip(b"\r\n")
    if fields > 1 and (b"\n\n" in body or b"\n\r\n" in body):
        return None
    try:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv
    except ImportError:
        return None
    names = [str(place) for place in range(fields)]
    wanted = [names[place] for place in places]
    as_codes = pa.dictionary(pa.int32(), pa.string())
    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            read_options=arrow_csv.ReadOptions(skip_rows=header_lines, column_names=names),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, quote_char=False, ignore_empty_lines=False
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, as_codes),
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    return [_as_coded(table[name]) for name in wanted]


def _as_coded(column: Any) -> CodedColumn:
    """A column of Arrow dictionaries, one per block of the file, as one of ours."""
    whole = column.unify_dictionaries().combine_chunks()
    indices = whole.indices
    # From the buffer itself: pyarrow's own conversion imports pandas, which takes half a second.
    numbers = np.frombuffer(indices.buffers()[1], dtype=np.int32)
    codes = numbers[indices.offset : indices.offset + len(indices)]
    return CodedColumn(whole.dictionary.to_pylist(), codes.astype(np.int64))


def _is_plain(content: bytes) -> bool:
    """Whether every reader splits this text in the same way, at line ends and delimiters."""
    if b'"' in content or b"\0" in content:
        return False
    if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
        return False
    # The csv module refuses a cell that is longer than its limit.
    ends = np.flatnonzero(np.frombuffer(content, dtype=np.uint8) == ord("\n"))
    if np.diff(ends, prepend=0, append=len(content)).max() > csv.field_size_limit():
        return False
    try:
        # Bytes that are no UTF-8 are an error, wherever they stand.
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
