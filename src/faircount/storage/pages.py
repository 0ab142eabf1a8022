"""Rows a page at a time, in the order of their keys: a step over all participants holds few of
them.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from faircount.protocol.roles.rows import MemoryRows, RowReader, StoredRow
from faircount.protocol.roles.stored import encode_key
from faircount.storage.database import Record, Transaction

PAGE = 500
"""Rows of a page."""

MANIFEST_PARTS = "manifest_parts"
PART_VERDICTS = "part_verdicts"
"""Tables with the parts of a manifest, and with the aggregator's verdicts about them.

A row is about thousands of participants, so it is a page by itself.
"""


def page_rows(store: str) -> int:
    """Rows of a page of this table."""
    return 1 if store in (MANIFEST_PARTS, PART_VERDICTS) else PAGE


SELECT_ROWS = "SELECT store, key, hash, encrypted FROM state_rows WHERE survey = ?"
"""Rows of a survey as they are stored."""


async def page_from(tx: Transaction, survey: bytes, store: str, first: bytes) -> Sequence[Record]:
    """The page that begins with this key, or with the next one that there is."""
    most = page_rows(store)
    return await tx.fetch_all(
        f"{SELECT_ROWS} AND store = ? AND key >= ? ORDER BY key LIMIT ?", survey, store, first, most
    )


async def pages_of(tx: Transaction, survey: bytes, store: str) -> AsyncIterator[Sequence[Record]]:
    """All pages, one after the other."""
    page = await page_from(tx, survey, store, b"")
    while page:
        yield page
        if len(page) < page_rows(store):
            return
        page = await page_from(tx, survey, store, after(bytes(page[-1]["key"])))


def after(key: bytes) -> bytes:
    """The first key behind this one."""
    return key + b"\0"


@dataclass
class PagedStore:
    """One table, of which the last page that was asked for is in memory; `read` gives the page
    from a key on.
    """

    store: str
    read: Callable[[bytes], dict[bytes, StoredRow]]
    _page: dict[bytes, StoredRow] = field(default_factory=dict)
    _first: bytes = b""
    _last: bytes | None = b""  # b"": nothing was read yet; None: nothing is behind the page

    def find(self, key: bytes) -> StoredRow | None:
        """What stands under a key, if anything does."""
        if not self._covers(key):
            self._turn_to(key)
        return self._page.get(key)

    def forget(self) -> None:
        """Read again whatever is asked for next: something was written."""
        self._page, self._first, self._last = {}, b"", b""

    def keys(self) -> Iterator[bytes]:
        """All keys, ascending."""
        self._turn_to(b"")
        while self._page:
            yield from list(self._page)
            if self._last is None:
                return
            self._turn_to(after(self._last))

    def _covers(self, key: bytes) -> bool:
        return (
            self._first <= key and (self._last is None or key <= self._last) and self._last != b""
        )

    def _turn_to(self, first: bytes) -> None:
        self._page = self.read(first)
        full = len(self._page) == page_rows(self.store)
        self._first, self._last = first, next(reversed(self._page)) if full else None


PageReader = Callable[[str, bytes], dict[bytes, StoredRow]]
"""Reads the page of a table that begins with a key."""


class PagedRows(RowReader):
    """All rows of a survey, a page of every table in memory.

    A step asks for them in a thread of its own, while the transaction of the step lasts. `counts`
    are known from the line of the survey.
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
        """Read the table again when it is asked for next: something was written."""
        self._table(table).forget()


class SendersRows(RowReader):
    """The rows of those whose messages a step takes, read before it; and parts of the manifest."""

    def __init__(self, rows: MemoryRows, paged: PagedRows) -> None:
        self._rows = rows
        self._paged = paged

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        # Only a survey that is over reads parts: its inclusion proofs are made from them.
        return (self._paged if table == MANIFEST_PARTS else self._rows).find(table, key)

    def keys(self, table: str) -> list[Any]:
        """The keys that were read, ascending."""
        return self._rows.keys(table)

    def count(self, table: str) -> int:
        """How many rows a table has in all."""
        return self._paged.count(table)
