"""A survey in the database: its encrypted state and its encrypted rows, as steps write them.

    load: state and reader -> a role's step -> save the step, all in one transaction; then answer

Where a step needs only the rows of those who have sent something (`wanted`), no others are read,
and their number is known from a counter. A step of the aggregator, and one of `servers` over all
participants, reads one page of rows after the other while it runs, in a thread of its own. Only the
coordinator in topologies whose participants hold each other's shares, a few thousand at most, reads
all rows at once.

When the final statement is said, what is left is written under a new key; destroy the old one once
that is committed.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from faircount.core.errors import StorageError
from faircount.protocol import (
    Aggregator,
    Coordinator,
    Ledger,
    MemoryRows,
    Row,
    RowReader,
    RowWrite,
    Step,
    decode_row,
    decode_state,
    encode_row,
    encode_state,
)
from faircount.protocol.roles.coordinator import Place
from faircount.protocol.roles.rows import (
    ACKNOWLEDGED_TABLES,
    AGGREGATOR_TABLES,
    COORDINATOR_TABLES,
    RowSink,
    StoredRow,
)
from faircount.protocol.survey.phases import FINAL
from faircount.storage.database import Database, Record, Transaction, marks
from faircount.storage.keys import NONCE, KeyFolder, RowKey, state_key_name
from faircount.storage.pages import (
    PAGE,
    SELECT_ROWS,
    PagedRows,
    SendersRows,
    page_from,
    pages_of,
)

S = TypeVar("S", bound=Coordinator | Aggregator)
USERS = "first_messages"
"""The table of the coordinator with a row for everybody who has answered."""

PEOPLE = "mac_keys"
"""The table of the aggregator with a row for everybody who is invited."""

HEAD = "head"
"""The one row with the state itself. It can be long, and the line of a survey is written with every
group of messages.
"""

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
    head_nonce: bytes | None  # none before the survey has a state
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
    found = await (tx.fetch_one_for_update if change else tx.fetch_one)(
        f"{_SELECT} WHERE id = ?", survey
    )
    return None if found is None else SurveyRow.of(found)


async def insert(tx: Transaction, row: SurveyRow) -> None:
    """A new survey."""
    values = tuple(getattr(row, name) for name in _COLUMNS)
    await tx.execute(f"INSERT INTO surveys ({', '.join(_COLUMNS)}) VALUES {marks(values)}", *values)  # noqa: S608 - as above


async def update(tx: Transaction, survey: bytes, **change: Any) -> None:
    """Change columns of a survey."""
    names = ", ".join(f"{name} = ?" for name in change)
    values = (*change.values(), survey)
    await tx.execute_many(f"UPDATE surveys SET {names} WHERE id = ?", [values])  # noqa: S608 - as above


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A state as it was read, and where a step reads its rows while the transaction lasts.

    `sink` takes rows of a step at once where they are too many to be held.
    """

    row: SurveyRow
    state: S
    rows: RowReader
    sink: RowSink | None = None


class States(Generic[S]):
    """The states of one role."""

    def __init__(self, kind: type[S], keys: KeyFolder) -> None:
        self._kind = kind
        self._keys = keys
        self._heads: dict[bytes, tuple[bytes, S]] = {}
        is_coordinator = issubclass(kind, Coordinator)
        self._tables = COORDINATOR_TABLES if is_coordinator else AGGREGATOR_TABLES

    async def load(
        self,
        tx: Transaction,
        row: SurveyRow,
        ledger: Ledger | None = None,
        wanted: Sequence[Place] | None = None,
    ) -> Loaded[S]:
        """The state of a survey that has one, with a reader of all of its rows or of those wanted.

        Where all are wanted, make the step in another thread: the reader waits for the database.
        """
        key = self._keys.get(state_key_name(row.id, row.generation))
        state = await self._head(tx, row, key, ledger)
        paged = self._paged(tx, row, key)
        if wanted is not None:
            rows = _decoded_rows(row, key, await _rows(tx, row.id, wanted))
            return Loaded(row, state, SendersRows(rows, paged))
        if isinstance(state, Coordinator) and not state.rules.reads_in_order:
            found = await _rows(tx, row.id, None)
            # There are many: others need not wait while they are decrypted.
            return Loaded(row, state, await asyncio.to_thread(_decoded_rows, row, key, found))
        return Loaded(row, state, paged, self._sink(tx, row, key, paged))

    def _paged(self, tx: Transaction, row: SurveyRow, key: RowKey) -> PagedRows:
        loop = asyncio.get_running_loop()

        def read(table: str, first: bytes) -> dict[bytes, StoredRow]:
            """Called by a step in its thread, while the loop of the server is free."""
            page = page_from(tx, row.id, table, first)
            records = asyncio.run_coroutine_threadsafe(page, loop).result(PAGE_SECONDS)
            stored = [_decrypt_row(key, row, record) for record in records]
            decoded = [decode_row(found) for found in stored]
            return {
                found.key: StoredRow(line.value, line.hash)
                for found, line in zip(stored, decoded, strict=True)
            }

        return PagedRows(read, {USERS: row.users, PEOPLE: row.people})

    def _sink(self, tx: Transaction, row: SurveyRow, key: RowKey, paged: PagedRows) -> RowSink:
        loop = asyncio.get_running_loop()

        def sink(write: RowWrite) -> None:
            """Called by a step in its thread, like `read`."""
            written = _write_rows(tx, key, row, [encode_row(write)])
            asyncio.run_coroutine_threadsafe(written, loop).result(PAGE_SECONDS)
            paged.forget(write.table)

        return sink

    async def _head(self, tx: Transaction, row: SurveyRow, key: RowKey, ledger: Ledger | None) -> S:
        """The state alone. The coordinator reads it once: participants come all day."""
        known = self._heads.get(row.id)
        # Known by its nonce: a restore gives versions out again.
        if known is not None and known[0] == row.head_nonce:
            return known[1]
        found = await tx.fetch_one(_HEAD, row.id, HEAD, b"")
        if found is None:
            raise StorageError("the state of a survey is missing: restore a copy")
        state = await asyncio.to_thread(self._decoded, row, key, ledger, bytes(found["encrypted"]))
        if isinstance(state, Coordinator) and row.head_nonce is not None:
            self._heads[row.id] = row.head_nonce, state
            while len(self._heads) > MOST_HEADS:
                self._heads.pop(next(iter(self._heads)))
        return state

    def _decoded(self, row: SurveyRow, key: RowKey, ledger: Ledger | None, encrypted: bytes) -> S:
        data = key.decrypt(_head_place(row.id, row.generation), encrypted)
        return decode_state(self._kind, data, None, ledger)

    async def save(self, tx: Transaction, before: Loaded[S], step: Step[S]) -> SurveyRow:
        """Write a step; the line of the survey as it stands now."""
        row = before.row
        has_changed = step.state is not before.state
        if not step.rows and not has_changed:
            return row
        key = self._keys.get(state_key_name(row.id, row.generation))
        await _write_rows(tx, key, row, [encode_row(write) for write in step.rows])
        new_users = sum(write.table == USERS and write.is_new for write in step.rows)
        row = replace(row, users=row.users + new_users)
        if step.state.phase in FINAL and row.generation == 0:
            return await self._scrub(tx, row, step)
        return await self._write_survey(tx, key, row, step.state if has_changed else None)

    async def begin(self, tx: Transaction, row: SurveyRow, state: S) -> SurveyRow:
        """Write the first state of a survey; its key is on the disk before."""
        key = self._keys.create(state_key_name(row.id, row.generation))
        return await self._write_survey(tx, key, row, state)

    async def add(self, tx: Transaction, row: SurveyRow, writes: Iterable[RowWrite]) -> None:
        """Rows of a survey that was begun, a page at a time."""
        key = self._keys.get(state_key_name(row.id, row.generation))
        waiting = (encode_row(write) for write in writes)
        while page := list(islice(waiting, PAGE)):
            await _write_rows(tx, key, row, page)

    async def _scrub(self, tx: Transaction, row: SurveyRow, step: Step[S]) -> SurveyRow:
        """The survey is over: what is left of it, under another key."""
        last = replace(row, generation=1)
        key = self._keys.create(state_key_name(row.id, last.generation))
        for table in self._tables:
            is_scrubbed = table in step.scrubbed
            if is_scrubbed and table not in ACKNOWLEDGED_TABLES:
                await tx.execute(
                    "DELETE FROM state_rows WHERE survey = ? AND store = ?", row.id, table
                )
            else:
                await self._encrypt_again(tx, row, last, key, table, only_hashes=is_scrubbed)
        return await self._write_survey(tx, key, last, step.state)

    async def _encrypt_again(
        self,
        tx: Transaction,
        row: SurveyRow,
        last: SurveyRow,
        key: RowKey,
        table: str,
        *,
        only_hashes: bool,
    ) -> None:
        """The rows of a table under another key, a page at a time; of a scrubbed one the hashes."""
        old = self._keys.get(state_key_name(row.id, row.generation))
        async for page in pages_of(tx, row.id, table):
            rows = [_decrypt_row(old, row, record) for record in page]
            left = [replace(found, value=b"") if only_hashes else found for found in rows]
            await _write_rows(tx, key, last, left)

    async def _write_survey(
        self, tx: Transaction, key: RowKey, row: SurveyRow, head: S | None
    ) -> SurveyRow:
        change: dict[str, Any] = {"users": row.users, "version": row.version + 1}
        if head is not None:
            encrypted = key.encrypt(_head_place(row.id, row.generation), encode_state(head))
            await tx.execute_many(_PUT_ROW, [(row.id, HEAD, b"", b"", encrypted)])
            change |= {
                "head_nonce": encrypted[:NONCE],
                "generation": row.generation,
                "head_version": row.head_version + 1,
                "state": str(head.phase),
                "attempt": head.attempt if isinstance(head, Coordinator) else 0,
            }
        await update(tx, row.id, **change)
        return replace(row, **change)

    async def destroy_old_key(self, database: Database, survey: bytes) -> None:
        """After the last word is committed: nobody can read any more what was live in the
        survey.
        """
        async with database.read() as tx:
            row = await find(tx, survey)
        if row is not None and row.generation:
            await asyncio.to_thread(self._keys.destroy, state_key_name(row.id, 0))


def _head_place(survey: bytes, generation: int) -> bytes:
    return b"head" + survey + bytes((generation,))


def _row_place(row: SurveyRow, store: str, key: bytes) -> bytes:
    return b"row" + row.id + bytes((row.generation, len(store))) + store.encode() + key


async def _rows(tx: Transaction, survey: bytes, wanted: Sequence[Place] | None) -> Sequence[Record]:
    if wanted is None:
        return await tx.fetch_all(f"{SELECT_ROWS} AND store <> ? ORDER BY store, key", survey, HEAD)
    if not wanted:
        return ()
    places = set(wanted)
    stores = sorted({store for store, _ in places})
    keys = _padded({key for _, key in places})
    # Both are given, or the index is of no use.
    in_both = f"{SELECT_ROWS} AND store IN {marks(stores)} AND key IN {marks(keys)}"
    found = await tx.fetch_all(in_both, survey, *stores, *keys)
    return [record for record in found if (record["store"], bytes(record["key"])) in places]


def _padded(keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """So many keys, the last one repeated, that there are few statements in all, each prepared
    once.
    """
    found = tuple(keys)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))


def _decoded_rows(row: SurveyRow, key: RowKey, records: Sequence[Record]) -> MemoryRows:
    return MemoryRows(decode_row(_decrypt_row(key, row, record)) for record in records)


def _decrypt_row(key: RowKey, row: SurveyRow, record: Record) -> Row:
    place = _row_place(row, record["store"], record["key"])
    value = b"" if record["encrypted"] is None else key.decrypt(place, record["encrypted"])
    return Row(record["store"], record["key"], value, record["hash"])


async def _write_rows(tx: Transaction, key: RowKey, row: SurveyRow, rows: Sequence[Row]) -> None:
    lines = [
        (row.id, stored.table, stored.key, stored.hash, _encrypt_value(key, row, stored))
        for stored in rows
    ]
    if lines:
        await tx.execute_many(_PUT_ROW, lines)


def _encrypt_value(key: RowKey, row: SurveyRow, stored: Row) -> bytes | None:
    if not stored.value:
        return None
    return key.encrypt(_row_place(row, stored.table, stored.key), stored.value)


_HEAD = "SELECT encrypted FROM state_rows WHERE survey = ? AND store = ? AND key = ?"
_PUT_ROW = (
    "INSERT INTO state_rows (survey, store, key, hash, encrypted) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (survey, store, key) DO UPDATE SET hash = excluded.hash, encrypted = "
    "excluded.encrypted"
)
