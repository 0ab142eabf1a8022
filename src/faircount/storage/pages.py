"""Rows one page at a time, in the order of their keys, so that no step needs all of them in memory.

A step runs in a thread. When it asks for a row that is not in memory, the page that begins with
this row is read. Steps ask for rows in ascending order, so every page is read once.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from faircount.protocol.roles.rows import (
    PART_TABLES,
    MemoryRows,
    RowFinder,
    RowReader,
    StoredRow,
)
from faircount.protocol.roles.stored import encode_key
from faircount.storage.database import Record, Transaction

PAGE = 500
"""The largest number of rows in a page."""

MANIFEST_TABLES = ("manifest_parts", "recorded_parts")
"""The tables with parts of a manifest."""


def page_rows(store: str) -> int:
    """The largest number of rows in a page of this table."""
    # A row about a part is about thousands of participants, so it is a page by itself.
    return 1 if store in PART_TABLES else PAGE


SELECT_ROWS = "SELECT store, key, hash, kept, encrypted FROM state_rows WHERE survey = ?"
"""Selects rows of a survey; conditions and order are appended."""


async def page_from(tx: Transaction, survey: bytes, store: str, first: bytes) -> Sequence[Record]:
    """Read the page that begins with this key, or with the next key that exists."""
    # By key and not by OFFSET: the index finds the place at once, and rows that are written or
    # deleted meanwhile shift nothing.
    select_page = f"{SELECT_ROWS} AND store = ? AND key >= ? ORDER BY key LIMIT ?"
    return await tx.fetch_all(select_page, survey, store, first, page_rows(store))


async def pages_of(tx: Transaction, survey: bytes, store: str) -> AsyncIterator[Sequence[Record]]:
    """Read all pages of a table, one after the other."""
    page = await page_from(tx, survey, store, b"")
    while page:
        yield page
        if len(page) < page_rows(store):
            return
        page = await page_from(tx, survey, store, next_key(bytes(page[-1]["key"])))


def next_key(key: bytes) -> bytes:
    """The smallest key that is larger than this one."""
    # Nothing lies between a key and the same one with a zero byte at its end.
    return key + b"\0"


@dataclass
class PagedStore:
    """One table, of which one page is in memory.

    Attributes:
        store: the name of the table
        read: reads the page that begins with a key
    """

    store: str
    read: Callable[[bytes], dict[bytes, StoredRow]]
    # The page in memory covers the keys from `_first` to `_last`; a `_last` of None means all
    # further keys, since the page was the last one. At first it covers nothing.
    _page: dict[bytes, StoredRow] = field(default_factory=dict)
    _is_read: bool = False
    _first: bytes = b""
    _last: bytes | None = None

    def find(self, key: bytes) -> StoredRow | None:
        """The row under a key, or None."""
        if not self._covers(key):
            self._read_from(key)
        return self._page.get(key)

    def forget(self) -> None:
        """Drop the page in memory, since something was written."""
        self._page = {}
        self._is_read = False

    def keys(self) -> Iterator[bytes]:
        """All keys, ascending."""
        self._read_from(b"")
        while self._page:
            # Whoever uses the keys may call `find` meanwhile, which may read another page.
            last = self._last
            # A copy: `find` may replace the page while the caller works through it.
            yield from list(self._page)
            if last is None:
                return
            self._read_from(next_key(last))

    def _covers(self, key: bytes) -> bool:
        if not self._is_read or key < self._first:
            return False
        return self._last is None or key <= self._last

    def _read_from(self, first: bytes) -> None:
        self._page = self.read(first)
        self._is_read = True
        self._first = first
        # A page that is not full was the last one. A full one may be too: then the next read finds
        # nothing, which costs one query.
        is_full = len(self._page) == page_rows(self.store)
        self._last = next(reversed(self._page)) if is_full else None


PageReader = Callable[[str, bytes], dict[bytes, StoredRow]]
"""Reads the page of a table, given by name, that begins with a key."""


class PagedRows(RowReader):
    """All rows of a survey, with one page of each table in memory.

    For a step in a thread, while its transaction lasts.

    Args:
        read: reads a page
        counts: the number of rows of the tables that are counted in the survey's row
    """

    def __init__(self, read: PageReader, counts: Mapping[str, int]) -> None:
        self._read = read
        self._counts = counts
        self._tables: dict[str, PagedStore] = {}

    def _table(self, name: str) -> PagedStore:
        if name not in self._tables:
            self._tables[name] = PagedStore(name, partial(self._read, name))
        return self._tables[name]

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        return self._table(table).find(encode_key(table, key))

    def keys(self, table: str) -> Iterator[bytes]:
        """All keys of a table, ascending."""
        return self._table(table).keys()

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return self._counts[table]

    def forget(self, table: str) -> None:
        """Drop the page of a table, since something was written."""
        self._table(table).forget()


class SendersRows(MemoryRows):
    """The rows of the participants whose messages a step handles, read before the step.

    Parts of the manifest are read when they are needed.

    Args:
        paged: all rows, for parts of the manifest and for counts
    """

    def __init__(self, paged: PagedRows) -> None:
        super().__init__()
        self._paged = paged

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        # Inclusion proofs are made from parts, and only after the survey is over.
        if table in MANIFEST_TABLES:
            return self._paged.find(table, key)
        return super().find(table, key)

    def finder(self, table: str) -> RowFinder:
        """`find` for one table."""
        if table in MANIFEST_TABLES:
            return partial(self._paged.find, table)
        return super().finder(table)

    def count(self, table: str) -> int:
        """How many rows a table has in all."""
        return self._paged.count(table)
