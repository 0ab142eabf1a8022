"""The rows of a store a page at a time, in the order of their keys: a step over all users holds few of them."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from faircount.storage.database import Record, Transaction

PAGE = 500
"""Rows of a page."""

KEPT, NOTES = "kept", "notes"
"""Stores with the parts of a claim, and with S2's notes about them. A row is about thousands of users: it is a page."""


def page_rows(store: str) -> int:
    """Rows of a page of this store."""
    return 1 if store in (KEPT, NOTES) else PAGE


SELECT_ROWS = "SELECT store, key, hash, sealed FROM state_rows WHERE survey = ?"
"""Rows of a survey as they are stored."""


async def page_from(tx: Transaction, survey: bytes, store: str, first: bytes) -> Sequence[Record]:
    """The page that begins with this key, or with the next one that there is."""
    most = page_rows(store)
    return await tx.all(f"{SELECT_ROWS} AND store = ? AND key >= ? ORDER BY key LIMIT ?", survey, store, first, most)


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


Entry = tuple[Any, bytes]
"""What stands under a key, and the hash that its sender was given."""


@dataclass
class PagedStore:
    """One store, of which the last page that was asked for is in memory; `read` gives the page from a key on."""

    store: str
    read: Callable[[bytes], dict[bytes, Entry]]
    _page: dict[bytes, Entry] = field(default_factory=dict)
    _first: bytes = b""
    _last: bytes | None = b""  # b"": nothing was read yet; None: nothing is behind the page

    def find(self, key: bytes) -> Entry | None:
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
        return self._first <= key and (self._last is None or key <= self._last) and self._last != b""

    def _turn_to(self, first: bytes) -> None:
        self._page = self.read(first)
        full = len(self._page) == page_rows(self.store)
        self._first, self._last = first, next(reversed(self._page)) if full else None


class PagedKeys(Mapping[bytes, bytes]):
    """User id -> sealing key, read a page at a time."""

    def __init__(self, store: PagedStore, count: int) -> None:
        self._store, self._count = store, count

    def __getitem__(self, user: bytes) -> bytes:
        found = self._store.find(user)
        if found is None:
            raise KeyError(user)
        return bytes(found[0])

    def __iter__(self) -> Iterator[bytes]:
        return self._store.keys()

    def __len__(self) -> int:
        return self._count
