"""A state of the protocol in the database: a sealed head and sealed rows, each written when it has changed.

    load -> a role's step -> save, all in one transaction; the answers go out after it

Where a step needs only the rows of those who have sent something (`wanted`), no others are read, and their number is
known from a counter. A step of S2, and one of `servers` over all users, reads one page of rows after the other while it
runs, in a thread of its own. Only S1 in topologies whose users hold each other's shares, a few thousand at most, reads
all rows at once.

When the last word is said, what is left is written under a new key; destroy the old one once that is committed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from faircount.core.errors import StorageError
from faircount.protocol import Aggregator, Coordinator, Ledger, Row, add_row, decode_head, encode_head
from faircount.protocol.roles.coordinator import Place, backup
from faircount.protocol.roles.stored import (
    entries_of,
    entry_of,
    held_elsewhere,
    is_scrubbed,
    row_of,
    rows_of,
    stores_of,
)
from faircount.protocol.roles.write_once import Elsewhere
from faircount.protocol.survey.states import FINAL
from faircount.storage.database import Record, Transaction, marks
from faircount.storage.keys import NONCE, KeyFolder, RowKey, survey_key
from faircount.storage.pages import KEPT, NOTES, PAGE, SELECT_ROWS, Entry, PagedKeys, PagedStore, page_from, pages_of

S = TypeVar("S", bound=Coordinator | Aggregator)
USERS = "bodies"
"""The store of S1 with a row for everybody who has answered."""

PEOPLE = "mac_keys"
"""The store of S2 with a row for everybody who is invited."""

HEAD = "head"
"""The one row with the state itself. It can be long, and the line of a survey is written with every group of users."""

PAGE_SECONDS = 60.0
"""How long a step may wait for a page of rows."""

MOST_HEADS = 8
"""Heads that are kept in memory as read."""


@dataclass(frozen=True)
class SurveyRow:
    """A line of `surveys`."""

    id: bytes
    params: bytes
    owner: bytes
    sealed: bytes | None  # the nonce of the head, if there is one
    generation: int
    version: int
    head_version: int
    state: str
    attempt: int
    users: int
    people: int
    opened_at: int | None
    due_at: int | None
    since: int
    extended: int

    @classmethod
    def of(cls, record: Record) -> "SurveyRow":
        """From what the database said."""
        return cls(**{name: record[name] for name in _COLUMNS})


_COLUMNS = tuple(SurveyRow.__dataclass_fields__)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM surveys"  # noqa: S608 - names of our own columns


async def find(tx: Transaction, survey: bytes, *, change: bool = False) -> SurveyRow | None:
    """A survey; with `change` nobody else changes it before this transaction ends."""
    found = await (tx.held if change else tx.one)(f"{_SELECT} WHERE id = ?", survey)
    return None if found is None else SurveyRow.of(found)


async def insert(tx: Transaction, row: SurveyRow) -> None:
    """A new survey."""
    values = tuple(getattr(row, name) for name in _COLUMNS)
    await tx.run(f"INSERT INTO surveys ({', '.join(_COLUMNS)}) VALUES {marks(values)}", *values)  # noqa: S608 - as above


async def update(tx: Transaction, survey: bytes, **change: Any) -> None:
    """Change columns of a survey."""
    names = ", ".join(f"{name} = ?" for name in change)
    values = (*change.values(), survey)
    await tx.run_many(f"UPDATE surveys SET {names} WHERE id = ?", [values])  # noqa: S608 - as above


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A state as it was read: what `save` compares with."""

    row: SurveyRow
    state: S
    entries: Mapping[tuple[str, Any], Any]
    older: bool = False  # of an older version, whose head held what is in rows now: written anew, whatever changes


class States(Generic[S]):
    """The states of one role."""

    def __init__(self, kind: type[S], keys: KeyFolder) -> None:
        self._kind, self._keys = kind, keys
        self._heads: dict[bytes, tuple[bytes, Coordinator]] = {}

    async def load(
        self, tx: Transaction, row: SurveyRow, ledger: Ledger | None = None, wanted: Sequence[Place] | None = None
    ) -> Loaded[S]:
        """The state, with all of its rows or with those wanted; of a survey that has a head.

        The state may read rows while the transaction lasts: where all are wanted, use it in another thread.
        """
        key = self._keys.get(survey_key(row.id, row.generation))
        state = await self._head(tx, row, key, ledger)
        in_head = {(store, at) for store, at, _, _ in entries_of(state)}
        if wanted is None:
            found = await self._with_all(tx, row, key, state)
        else:
            rows = await _rows(tx, row.id, wanted)
            found = self._filled(row, key, state, rows)
            held_elsewhere(found.state, USERS, Elsewhere(row.users - sum(each["store"] == USERS for each in rows)))
            held_elsewhere(found.state, KEPT, Elsewhere(find=self._paged(tx, row, key, KEPT).find))
        if not in_head:
            return found
        stored = {at: value for at, value in found.entries.items() if at not in in_head}
        return replace(found, entries=stored, older=True)

    async def _with_all(self, tx: Transaction, row: SurveyRow, key: RowKey, state: S) -> Loaded[S]:
        """A state that can be asked for any row."""
        kept = self._paged(tx, row, key, KEPT)
        if isinstance(state, Aggregator):
            held_elsewhere(state, KEPT, Elsewhere(find=kept.find))
            held_elsewhere(state, NOTES, Elsewhere(find=self._paged(tx, row, key, NOTES).find))
            people = PagedKeys(self._paged(tx, row, key, PEOPLE), row.people)
            return Loaded(row, replace(state, mac_keys=people), {})
        if not state.rules.in_order:  # many rows: others need not wait while they are opened
            return await asyncio.to_thread(self._filled, row, key, state, await _rows(tx, row.id, None))
        for store in stores_of(self._kind).keys() - {KEPT}:
            paged = self._paged(tx, row, key, store)
            held_elsewhere(state, store, Elsewhere(row.users if store == USERS else 0, paged.keys, paged.find))
        loop = asyncio.get_running_loop()

        def keep(name: bytes, part: Any) -> None:
            """Write a part of a claim as soon as it is made; called by a step in its thread, like `_page`."""
            written = _write_rows(tx, key, row, [row_of(self._kind, KEPT, name, part, b"")])
            asyncio.run_coroutine_threadsafe(written, loop).result(PAGE_SECONDS)
            kept.forget()

        held_elsewhere(state, KEPT, Elsewhere(find=kept.find, keep=keep))
        return Loaded(row, state, {})

    def _paged(self, tx: Transaction, row: SurveyRow, key: RowKey, store: str) -> PagedStore:
        return PagedStore(store, partial(self._page, tx, row, key, asyncio.get_running_loop(), store))

    def _page(
        self, tx: Transaction, row: SurveyRow, key: RowKey, loop: asyncio.AbstractEventLoop, store: str, first: bytes
    ) -> dict[bytes, Entry]:
        """A page of a store, from a key on; called by a step in its thread, while the loop of the server is free."""
        records = asyncio.run_coroutine_threadsafe(page_from(tx, row.id, store, first), loop).result(PAGE_SECONDS)
        rows = (_opened(key, row, each) for each in records)
        return {each.key: (entry_of(self._kind, each)[1], each.hash) for each in rows}

    def _filled(self, row: SurveyRow, key: RowKey, state: S, rows: Sequence[Record]) -> Loaded[S]:
        for each in rows:
            add_row(state, _opened(key, row, each))
        return Loaded(row, state, {(store, at): value for store, at, value, _ in entries_of(state)})

    async def _head(self, tx: Transaction, row: SurveyRow, key: RowKey, ledger: Ledger | None) -> S:
        """The state with empty stores. S1 reads a head once: users come all day."""
        known = self._heads.get(row.id)
        if known is not None and known[0] == row.sealed:  # not the version: a restore gives it out again
            return cast(S, backup(known[1]))
        found = await tx.one(_HEAD, row.id, HEAD, b"")
        if found is None:
            raise StorageError("the state of a survey is missing: restore a copy")
        state = await asyncio.to_thread(self._decoded, row, key, ledger, bytes(found["sealed"]))
        if isinstance(state, Coordinator) and row.sealed is not None:
            self._heads[row.id] = row.sealed, backup(state)
            while len(self._heads) > MOST_HEADS:
                self._heads.pop(next(iter(self._heads)))
        return state

    def _decoded(self, row: SurveyRow, key: RowKey, ledger: Ledger | None, sealed: bytes) -> S:
        return decode_head(self._kind, key.open(_head_place(row.id, row.generation), sealed), None, ledger)

    async def save(self, tx: Transaction, before: Loaded[S], after: S) -> SurveyRow:
        """Write what the step has changed; the line of the survey as it stands now."""
        row = before.row
        if after.state in FINAL and row.generation == 0:
            if before.older:
                await self.add(tx, row, rows_of(before.state))
            taken_over = entries_of(after, (KEPT,))  # S1 may have taken over S2's claim in this very step
            await self.add(tx, row, (row_of(self._kind, *each) for each in taken_over))
            return await self._scrub(tx, row, after)
        s2 = isinstance(after, Aggregator)
        stores = (KEPT, NOTES) if s2 else stores_of(self._kind)  # S2's people come from the owner
        written = tuple(entries_of(after, stores))
        changed = [
            row_of(self._kind, store, key, value, given)
            for store, key, value, given in written
            if (store, key) not in before.entries or before.entries[store, key] is not value
        ]
        new_users = sum(store == USERS and (store, key) not in before.entries for store, key, _, _ in written)
        if not changed and after is before.state:
            return row
        key = self._keys.get(survey_key(row.id, row.generation))
        await _write_rows(tx, key, row, changed)
        head = None if after is before.state and not before.older else after
        return await self._write_survey(tx, key, replace(row, users=row.users + new_users), head)

    async def begin(self, tx: Transaction, row: SurveyRow, state: S) -> SurveyRow:
        """Write the first state of a survey; its key is on the disk before."""
        key = self._keys.create(survey_key(row.id, row.generation))
        await _write_rows(tx, key, row, [row_of(self._kind, *each) for each in entries_of(state)])
        return await self._write_survey(tx, key, row, state)

    async def add(self, tx: Transaction, row: SurveyRow, rows: Iterable[Row]) -> None:
        """Rows of a state that was begun, a page at a time."""
        key = self._keys.get(survey_key(row.id, row.generation))
        waiting = iter(rows)
        while page := list(islice(waiting, PAGE)):
            await _write_rows(tx, key, row, page)

    async def _scrub(self, tx: Transaction, row: SurveyRow, after: S) -> SurveyRow:
        """The survey is over: what is left of it, under another key. Seals of invitations are needed no more."""
        last = replace(row, generation=1)
        key = self._keys.create(survey_key(row.id, last.generation))
        if isinstance(after, Aggregator):
            await tx.run("DELETE FROM state_rows WHERE survey = ? AND store <> ?", row.id, KEPT)
        for store in (KEPT,) if isinstance(after, Aggregator) else stores_of(self._kind):
            await self._seal_again(tx, row, last, key, store, hashes=is_scrubbed(after, store))
        return await self._write_survey(tx, key, last, after)

    async def _seal_again(
        self, tx: Transaction, row: SurveyRow, last: SurveyRow, key: RowKey, store: str, *, hashes: bool
    ) -> None:
        """The rows of a store under another key, a page at a time; of a scrubbed one the hashes alone."""
        old = self._keys.get(survey_key(row.id, row.generation))
        async for page in pages_of(tx, row.id, store):
            rows = [_opened(old, row, each) for each in page]
            await _write_rows(tx, key, last, [replace(each, value=b"") if hashes else each for each in rows])

    async def _write_survey(self, tx: Transaction, key: RowKey, row: SurveyRow, head: S | None) -> SurveyRow:
        change: dict[str, Any] = {"users": row.users, "version": row.version + 1}
        if head is not None:
            sealed = key.seal(_head_place(row.id, row.generation), encode_head(head))
            await tx.run_many(_PUT_ROW, [(row.id, HEAD, b"", b"", sealed)])
            change |= {
                "sealed": sealed[:NONCE],
                "generation": row.generation,
                "head_version": row.head_version + 1,
                "state": str(head.state),
                "attempt": head.attempt if isinstance(head, Coordinator) else 0,
            }
        await update(tx, row.id, **change)
        return replace(row, **change)

    def forget_old_key(self, row: SurveyRow) -> None:
        """After the commit: destroy the key of the live state of a survey that is over."""
        if row.generation:
            self._keys.destroy(survey_key(row.id, 0))


def _head_place(survey: bytes, generation: int) -> bytes:
    return b"head" + survey + bytes((generation,))


def _row_place(row: SurveyRow, store: str, key: bytes) -> bytes:
    return b"row" + row.id + bytes((row.generation, len(store))) + store.encode() + key


async def _rows(tx: Transaction, survey: bytes, wanted: Sequence[Place] | None) -> Sequence[Record]:
    if wanted is None:
        return await tx.all(f"{SELECT_ROWS} AND store <> ? ORDER BY store, key", survey, HEAD)
    if not wanted:
        return ()
    places = set(wanted)
    stores, keys = sorted({store for store, _ in places}), _padded({key for _, key in places})
    in_both = f"{SELECT_ROWS} AND store IN {marks(stores)} AND key IN {marks(keys)}"  # both, or the index is of no use
    found = await tx.all(in_both, survey, *stores, *keys)
    return [each for each in found if (each["store"], bytes(each["key"])) in places]


def _padded(keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """So many keys, the last one repeated, that there are few statements in all: a database prepares each once."""
    found = tuple(keys)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))


def _opened(key: RowKey, row: SurveyRow, each: Record) -> Row:
    place = _row_place(row, each["store"], each["key"])
    value = b"" if each["sealed"] is None else key.open(place, each["sealed"])
    return Row(each["store"], each["key"], value, each["hash"])


async def _write_rows(tx: Transaction, key: RowKey, row: SurveyRow, rows: Sequence[Row]) -> None:
    lines = [
        (row.id, each.store, each.key, each.hash,
         key.seal(_row_place(row, each.store, each.key), each.value) if each.value else None)
        for each in rows
    ]  # fmt: skip
    if lines:
        await tx.run_many(_PUT_ROW, lines)


_HEAD = "SELECT sealed FROM state_rows WHERE survey = ? AND store = ? AND key = ?"
_PUT_ROW = (
    "INSERT INTO state_rows (survey, store, key, hash, sealed) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (survey, store, key) DO UPDATE SET hash = excluded.hash, sealed = excluded.sealed"
)
