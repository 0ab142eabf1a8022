"""The rows of a store a page at a time, in the order of their keys: a step over all users holds few of them."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from faircount.storage.database import Record, Transaction

PAGE = 500
"""Rows of a page."""

SELECT_ROWS = "SELECT store, key, hash, sealed FROM state_rows WHERE survey = ?"
"""Rows of a survey as they are stored."""


async def page_from(tx: Transaction, survey: bytes, store: str, first: bytes) -> Sequence[Record]:
    """The page that begins with this key, or with the next one that there is."""
    return await tx.all(f"{SELECT_ROWS} AND store = ? AND key >= ? ORDER BY key LIMIT ?", survey, store, first, PAGE)


async def pages_of(tx: Transaction, survey: bytes, store: str) -> AsyncIterator[Sequence[Record]]:
    """All pages, one after the other."""
    page = await page_from(tx, survey, store, b"")
    while page:
        yield page
        if len(page) < PAGE:
            return
        page = await page_from(tx, survey, store, after(bytes(page[-1]["key"])))


def after(key: bytes) -> bytes:
    """The first key behind this one."""
    return key + b"\0"


Entry = tuple[Any, bytes]
"""What stands under a key, and the hash that its sender was given."""


@dataclass
class PagedStore:
    """One store, of which the last page that was asked for is in memory; `read` gives the page from a key on."""

    read: Callable[[bytes], dict[bytes, Entry]]
    _page: dict[bytes, Entry] = field(default_factory=dict)
    _first: bytes = b""
    _last: bytes | None = b""  # None: there is nothing behind the page

    def find(self, key: bytes) -> Entry | None:
        """What stands under a key, if anything does."""
        if not self._covers(key):
            self._turn_to(key)
        return self._page.get(key)

    def keys(self) -> Iterator[bytes]:
        """All keys, ascending."""
        self._turn_to(b"")
        while self._page:
            yield from list(self._page)
            if self._last is None:
                return
            self._turn_to(after(self._last))

    def _covers(self, key: bytes) -> bool:
        return self._first <= key and (self._last is None or key <= self._last) and self._last != b""

    def _turn_to(self, first: bytes) -> None:
        self._page = self.read(first)
        self._first, self._last = first, next(reversed(self._page)) if len(self._page) == PAGE else None
