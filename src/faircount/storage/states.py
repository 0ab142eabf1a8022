"""Surveys in the database: one row with public columns, the encrypted state, and encrypted rows.

    load a state with a reader of rows -> make a step -> save the step, all in one transaction

Three kinds of readers keep memory small:

    a group of participants' messages   only the rows that these messages need (`find_with_rows`)
    the aggregator, and `servers`       one page at a time while the step runs (`storage.pages`)
    the coordinator of other topologies all rows: there are a few thousand participants at most

A survey has two keys (`RowKeys`). What stays when it is over is encrypted under the second one
from the beginning, as far as it is known then, so that little is left to do at the end: the result
and other rows that stay are encrypted again, messages are deleted, and their hashes stay. Once that
is committed the first key is destroyed (`destroy_old_key`), and with it everything that the
database and its backups contained while the survey ran. In the other order a crash could lose the
result.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
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
    decode_state,
    encode_row,
    encode_state,
)
from faircount.protocol.roles.coordinator import RowAddress
from faircount.protocol.roles.rows import (
    ACKNOWLEDGED_TABLES,
    AGGREGATOR_TABLES,
    COORDINATOR_TABLES,
    LASTING_TABLES,
    RowSink,
    StoredRow,
)
from faircount.protocol.roles.stored import forms_of
from faircount.protocol.survey.phases import FINAL
from faircount.storage.database import Database, Query, Record, StateLine, Transaction, marks
from faircount.storage.keys import LAST, LIVE, NONCE, KeyFolder, RowKey, state_key_name
from faircount.storage.pages import (
    PAGE,
    SELECT_ROWS,
    PagedRows,
    SendersRows,
    page_from,
    pages_of,
)

S = TypeVar("S", bound=Coordinator | Aggregator)
FIRST_MESSAGES = "first_messages"
"""The coordinator's table with a row for everybody who has enrolled or responded."""

WITHDRAWN = "withdrawn"
"""The coordinator's table with a row for everybody who has withdrawn."""

MAC_KEYS = "mac_keys"
"""The aggregator's table with a row for everybody who is invited."""

MAIN_ROW = "main"
"""The table whose only row is the state itself.

It can be large, so it is not a column of `surveys`, whose row is written with every message.
"""

PAGE_SECONDS = 60.0
"""How long a step may wait for a page of rows."""

ROWS_AT_ONCE = 20_000
"""Rows that one statement deletes: the time that a database takes for a statement is limited."""

MAX_WORKERS = 16
"""How many workers of a survey are known by name."""

MAX_CACHED_STATES = 8
"""Number of decoded states that the coordinator keeps in memory."""


@dataclass(frozen=True)
class SurveyRow:
    """A row of `surveys`; `schema` describes its columns."""

    id: bytes
    params: bytes
    owner: bytes
    operators: bytes
    # None before the survey has a state.
    main_nonce: bytes | None
    generation: int
    version: int
    main_version: int
    phase: str
    attempt: int
    participants: int
    withdrawn: int
    invited: int
    opened_at: int | None
    due_at: int | None
    held_since: int | None
    since: int
    extended: int
    # How many workers take reports of this survey under the shared lock.
    workers: int = 0

    @property
    def has_state(self) -> bool:
        """Whether the survey has a state: at the coordinator, whether it was opened."""
        return self.main_nonce is not None

    @property
    def responses(self) -> int:
        """How many have enrolled or responded, without those who have withdrawn since."""
        return self.participants - self.withdrawn

    @classmethod
    def of(cls, record: Record) -> "SurveyRow":
        """The row in a query result."""
        return cls(*(record[name] for name in _FIELDS))


_FIELDS = tuple(SurveyRow.__dataclass_fields__)
_COLUMNS = tuple(name for name in _FIELDS if name != "workers")
_OF_WORKERS = "FROM worker_counts WHERE worker_counts.survey = surveys.id"
# Computed where they are read: workers under the shared lock do not write the survey's row.
_COMPUTED = {
    "participants": f"participants + (SELECT CAST(COALESCE(SUM(worker_counts.participants), 0) "
    f"AS BIGINT) {_OF_WORKERS}) AS participants",
    "workers": f"(SELECT COUNT(*) {_OF_WORKERS}) AS workers",
}
_SELECTED = ", ".join(_COMPUTED.get(name, name) for name in _FIELDS)
_SELECT = f"SELECT {_SELECTED} FROM surveys"  # noqa: S608 - names of our own columns


async def find(tx: Transaction, survey: bytes, *, for_update: bool = False) -> SurveyRow | None:
    """Find a survey; `for_update` locks it for others until this transaction ends.

    A transaction that changes a survey takes this lock before any other lock that concerns it, so
    that no two of them wait for each other.
    """
    if for_update:
        # check: survey-lock - a report would be acknowledged after the manifest is fixed
        await tx.lock(survey)
    fetch = tx.fetch_one_for_update if for_update else tx.fetch_one
    found = await fetch(f"{_SELECT} WHERE id = ?", survey)
    return None if found is None else SurveyRow.of(found)


async def find_with_rows(
    tx: Transaction, survey: bytes, wanted: Sequence[RowAddress], worker: bytes | None = None
) -> tuple[SurveyRow | None, Sequence[Record]]:
    """Find a survey and these rows of it, as they are behind a lock on the survey.

    worker: the worker that takes the shared lock; None for the exclusive lock
    """
    if worker is None:
        # check: alone-lock - a withdrawal would not see the report that another worker takes
        await tx.lock(survey)
    else:
        # check: shared-lock - a report would be acknowledged after the manifest is fixed
        await tx.share(survey, survey + worker)
    # In statements of their own, which see what was committed before the lock was given.
    queries = [Query(f"{_SELECT} WHERE id = ?", (survey,))]
    # Many users have rows in the same tables: one query for all of these tables.
    keys_in = defaultdict[str, list[bytes]](list)
    for table, key in wanted:
        keys_in[table].append(key)
    tables_with = defaultdict[tuple[bytes, ...], list[str]](list)
    for table, table_keys in keys_in.items():
        tables_with[tuple(table_keys)].append(table)
    statements = list[str]()
    values = list[Any]()
    for keys, tables in tables_with.items():
        padded = _pad(keys)
        # The index begins with the table: without it the database would search the whole survey.
        statements.append(f"{SELECT_ROWS} AND store IN {marks(tables)} AND key IN {marks(padded)}")
        values += (survey, *tables, *padded)
    if statements:
        queries.append(Query(" UNION ALL ".join(statements), values))
    surveys, *found = await tx.fetch_in_turn(queries)
    row = SurveyRow.of(surveys[0]) if surveys else None
    return row, list(chain.from_iterable(found))


async def add_worker(tx: Transaction, survey: bytes, worker: bytes) -> None:
    """Let a worker take reports under the shared lock; this needs the exclusive lock.

    At `MAX_WORKERS` all others lose their rows, whose counts go to the survey's row: workers that
    have ended are forgotten in this way, and those that run are added again.
    """
    found = await tx.fetch_all(
        "SELECT worker, participants FROM worker_counts WHERE survey = ?", survey
    )
    if any(bytes(record["worker"]) == worker for record in found):
        return
    if len(found) >= MAX_WORKERS:
        counted = sum(int(record["participants"]) for record in found)
        await tx.execute(
            "UPDATE surveys SET participants = participants + ? WHERE id = ?", counted, survey
        )
        await tx.execute("DELETE FROM worker_counts WHERE survey = ?", survey)
    await tx.execute("INSERT INTO worker_counts VALUES (?, ?, 0)", survey, worker)


async def insert(tx: Transaction, row: SurveyRow) -> None:
    """Write the row of a new survey."""
    values = tuple(getattr(row, name) for name in _COLUMNS)
    names = ", ".join(_COLUMNS)
    statement = f"INSERT INTO surveys ({names}) VALUES {marks(values)}"  # noqa: S608 - as above
    await tx.execute(statement, *values)


async def update(tx: Transaction, survey: bytes, **change: Any) -> None:
    """Change columns of a survey."""
    names = ", ".join(f"{name} = ?" for name in change)
    values = (*change.values(), survey)
    statement = f"UPDATE surveys SET {names} WHERE id = ?"  # noqa: S608 - as above
    await tx.execute_many(statement, [values])


async def count_rows(tx: Transaction, survey: bytes, store: str) -> int:
    """Count the rows of one table of a survey."""
    found = await tx.fetch_one(
        "SELECT COUNT(*) AS rows_found FROM state_rows WHERE survey = ? AND store = ?",
        survey,
        store,
    )
    return 0 if found is None else int(found["rows_found"])


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A state as it was read, with a reader of its rows that lasts as long as the transaction.

    Attributes:
        row: the survey's row
        keys: encrypt the survey's rows
        state: the state
        rows: reads rows
        sink: writes rows at once, where a step makes too many to keep them in memory
    """

    row: SurveyRow
    keys: "RowKeys"
    state: S
    rows: RowReader
    sink: RowSink | None = None


class States(Generic[S]):
    """Loads and saves the states of one role.

    Args:
        kind: `Coordinator` or `Aggregator`
        keys: the keys of all surveys
    """

    def __init__(self, kind: type[S], keys: KeyFolder) -> None:
        self._kind = kind
        self._keys = keys
        self._cached_states: dict[bytes, tuple[bytes, S]] = {}
        is_coordinator = issubclass(kind, Coordinator)
        self._tables = COORDINATOR_TABLES if is_coordinator else AGGREGATOR_TABLES

    async def load(
        self,
        tx: Transaction,
        row: SurveyRow,
        ledger: Ledger | None = None,
        found: Sequence[Record] | None = None,
    ) -> Loaded[S]:
        """Load a state and a reader of its rows.

        Args:
            tx: the transaction in which the step will be saved
            row: the survey's row
            ledger: the ledger of the population, for the aggregator
            found: the rows that the step needs (`find_with_rows`); None if it may need all. Then
                make the step in a thread: the reader waits for the database
        """
        keys = RowKeys.read(self._keys, row)
        state = await self._load_main_row(tx, row, keys, ledger)
        paged = self._page_reader(tx, row, keys)
        if found is not None:
            return Loaded(row, keys, state, _decode_rows(SendersRows(paged), keys, found))
        if isinstance(state, Coordinator) and not state.rules.reads_in_order:
            records = await tx.fetch_all(
                f"{SELECT_ROWS} AND store <> ? ORDER BY store, key", row.id, MAIN_ROW
            )
            # In a thread: decrypting many rows would block the event loop.
            all_rows = await asyncio.to_thread(_decode_rows, MemoryRows(), keys, records)
            return Loaded(row, keys, state, all_rows)
        return Loaded(row, keys, state, paged, self._page_sink(tx, keys, paged))

    def _page_reader(self, tx: Transaction, row: SurveyRow, keys: "RowKeys") -> PagedRows:
        loop = asyncio.get_running_loop()

        def read(table: str, first: bytes) -> dict[bytes, StoredRow]:
            # Called by a step in its thread. The event loop is free, and runs the query.
            page = page_from(tx, row.id, table, first)
            records = asyncio.run_coroutine_threadsafe(page, loop).result(PAGE_SECONDS)
            read_value = forms_of(table).read_value
            rows = dict[bytes, StoredRow]()
            for record in records:
                stored = keys.decrypt_row(record)
                rows[stored.key] = StoredRow(read_value(stored.value), stored.hash, stored.kept)
            return rows

        return PagedRows(read, {FIRST_MESSAGES: row.participants, MAC_KEYS: row.invited})

    def _page_sink(self, tx: Transaction, keys: "RowKeys", paged: PagedRows) -> RowSink:
        loop = asyncio.get_running_loop()

        def sink(write: RowWrite) -> None:
            # Called by a step in its thread, like `read` above.
            written = _write_rows(tx, keys, [encode_row(write)])
            asyncio.run_coroutine_threadsafe(written, loop).result(PAGE_SECONDS)
            # A page in memory may lack the new row.
            paged.forget(write.table)

        return sink

    async def _load_main_row(
        self, tx: Transaction, row: SurveyRow, keys: "RowKeys", ledger: Ledger | None
    ) -> S:
        """Load the state itself. The coordinator caches it, since participants connect all day."""
        known = self._cached_states.get(row.id)
        # Compared by nonce, which is never used twice; after a restore, versions are.
        if known is not None and known[0] == row.main_nonce:
            return known[1]
        found = await tx.fetch_one(_SELECT_MAIN_ROW, row.id, MAIN_ROW, b"")
        if found is None:
            raise StorageError("the state of a survey is missing: restore a copy")
        encrypted = bytes(found["encrypted"])
        state = await asyncio.to_thread(self._decode_main_row, row, keys, ledger, encrypted)
        if isinstance(state, Coordinator) and row.main_nonce is not None:
            self._cached_states[row.id] = (row.main_nonce, state)
            # The oldest goes first: dictionaries keep the order of insertion.
            while len(self._cached_states) > MAX_CACHED_STATES:
                self._cached_states.pop(next(iter(self._cached_states)))
        return state

    def _decode_main_row(
        self, row: SurveyRow, keys: "RowKeys", ledger: Ledger | None, encrypted: bytes
    ) -> S:
        data = keys.current.decrypt(_main_row_context(row.id, row.generation), encrypted)
        return decode_state(self._kind, data, None, ledger)

    async def save(self, tx: Transaction, before: Loaded[S], step: Step[S]) -> SurveyRow:
        """Write a step, and return the survey's row after it."""
        row = before.row
        has_changed = step.state is not before.state
        if not step.rows and not has_changed:
            return row
        await _write_rows(tx, before.keys, [encode_row(write) for write in step.rows])
        # The number of participants is a column, so that nobody has to count rows.
        new_users = _count_new(step)
        withdrawn = _count_withdrawn(step)
        await tx.execute_many(_ADD_COUNTS, [(new_users, withdrawn, row.version + 1, row.id)])
        row = replace(
            row,
            participants=row.participants + new_users,
            withdrawn=row.withdrawn + withdrawn,
            version=row.version + 1,
        )
        # The step that ends the survey also changes the key.
        if step.state.phase in FINAL and row.generation == LIVE:
            return await self._scrub(tx, before.keys, row, step)
        if has_changed:
            row = await self._write_survey(tx, before.keys.current, row, step.state)
        return row

    async def save_shared(
        self, tx: Transaction, before: Loaded[S], step: Step[S], worker: bytes
    ) -> bool:
        """Write a step under the shared lock, and return whether that was possible.

        If not, the transaction must be rolled back, and the step made again with the exclusive
        lock.
        """
        # check: shared-writes - a worker would overwrite what another one writes at the same time
        if step.state is not before.state or not all(map(_is_new_report, step.rows)):
            return False
        if not step.rows:
            return True
        lines = [before.keys.encrypt_row(encode_row(write)) for write in step.rows]
        # In one order at all workers: otherwise two of them could wait for each other.
        lines.sort(key=lambda line: line[1:3])
        # check: shared-reports - two workers would acknowledge two reports of one person
        if await tx.insert_new_rows(lines) != len(lines):
            return False
        counted = await tx.execute(
            "UPDATE worker_counts SET participants = participants + ? "
            "WHERE survey = ? AND worker = ?",
            _count_new(step), before.row.id, worker,
        )  # fmt: skip
        # check: counted-worker - places that a worker fills would not be counted
        return counted == 1

    async def begin(self, tx: Transaction, row: SurveyRow, state: S) -> SurveyRow:
        """Write the first state of a survey."""
        # Both keys are on disk before anything is encrypted with them.
        key = self._keys.create(state_key_name(row.id, LIVE))
        self._keys.create(state_key_name(row.id, LAST))
        return await self._write_survey(tx, key, row, state)

    async def add(self, tx: Transaction, row: SurveyRow, writes: Iterable[RowWrite]) -> None:
        """Write rows of a survey that has a state, one page at a time."""
        keys = RowKeys.read(self._keys, row)
        # A generator: the list of the invited may not fit into memory.
        waiting = (encode_row(write) for write in writes)
        while page := list(islice(waiting, PAGE)):
            await _write_rows(tx, keys, page)

    async def _scrub(
        self, tx: Transaction, keys: "RowKeys", row: SurveyRow, step: Step[S]
    ) -> SurveyRow:
        """Leave of a survey that is over only what its second key encrypts."""
        for table in self._tables:
            if table in LASTING_TABLES:
                continue
            if table not in step.scrubbed:
                await self._encrypt_again(tx, keys, table)
                continue
            # Of messages the acknowledged hashes stay, of other tables nothing.
            change = _DELETE_MESSAGES if table in ACKNOWLEDGED_TABLES else _DELETE_ROWS
            for first, end in _key_ranges(max(row.participants, row.invited)):
                await tx.execute(change, row.id, table, first, end)
        last = replace(row, generation=LAST)
        return await self._write_survey(tx, keys.last, last, step.state)

    async def _encrypt_again(self, tx: Transaction, keys: "RowKeys", table: str) -> None:
        """Encrypt the rows of a table under the second key, one page at a time."""
        after = replace(keys, generation=LAST, current=keys.last)
        # A row keeps its key while it is encrypted again, so paging is not disturbed.
        async for page in pages_of(tx, keys.survey, table):
            await _write_rows(tx, after, [keys.decrypt_row(record) for record in page])

    async def _write_survey(
        self, tx: Transaction, key: RowKey, row: SurveyRow, state: S
    ) -> SurveyRow:
        """Write the state, and the survey's row."""
        # In the same transaction as the survey's row, whose nonce names this ciphertext.
        encrypted = key.encrypt(_main_row_context(row.id, row.generation), encode_state(state))
        await tx.execute_many(_PUT_ROW, [(row.id, MAIN_ROW, b"", b"", None, encrypted)])
        change: dict[str, Any] = {
            "version": row.version + 1,
            "main_nonce": encrypted[:NONCE],
            "generation": row.generation,
            "main_version": row.main_version + 1,
            "phase": str(state.phase),
            "attempt": state.attempt if isinstance(state, Coordinator) else 0,
        }
        await update(tx, row.id, **change)
        return replace(row, **change)

    async def destroy_old_key(self, database: Database, survey: bytes) -> None:
        """Destroy the first key of a survey that is over, after its final statement is committed.

        Then nobody can read any more what was stored while the survey ran.
        """
        async with database.read() as tx:
            row = await find(tx, survey)
        # Generation 1 is committed, so nothing is encrypted under the first key any more.
        if row is not None and row.generation == LAST:
            await asyncio.to_thread(self._keys.destroy, state_key_name(row.id, LIVE))


def _count_new(step: Step[S]) -> int:
    """How many enrol or respond in this step for the first time."""
    return sum(write.table == FIRST_MESSAGES and write.is_new for write in step.rows)


def _is_new_report(write: RowWrite) -> bool:
    """Whether this is the row of a report that was not there."""
    return write.is_new and write.table == FIRST_MESSAGES


def _count_withdrawn(step: Step[S]) -> int:
    """How many who had enrolled or responded withdraw in this step.

    Somebody who was only invited may withdraw, too, and was never counted.
    """
    new = {write.key for write in step.rows if write.table == WITHDRAWN and write.is_new}
    # Most steps withdraw nothing.
    if not new:
        return 0
    # A withdrawal deletes the first message, except on a roster, which stays as it was confirmed.
    known = {
        write.key for write in step.rows if write.table == FIRST_MESSAGES and write.value is None
    }
    if isinstance(step.state, Coordinator):
        known.update(entry.user for entry in step.state.roster)
    return len(new & known)


# A ciphertext is bound to where it is stored, so that nobody who can write to the database can move
# it.


def _main_row_context(survey: bytes, generation: int) -> bytes:
    return b"main" + survey + bytes((generation,))


def _row_context(survey: bytes, generation: int, store: str, key: bytes) -> bytes:
    return b"row" + survey + bytes((generation, len(store))) + store.encode() + key


def _kept_context(survey: bytes, store: str, key: bytes) -> bytes:
    return b"kept" + survey + bytes((len(store),)) + store.encode() + key


@dataclass(frozen=True)
class RowKeys:
    """The keys of one survey's rows.

    Attributes:
        survey: the survey's id
        generation: `LIVE` while the survey runs, then `LAST`
        current: the key of this generation
        last: the key of what stays when the survey is over
    """

    survey: bytes
    generation: int
    current: RowKey
    last: RowKey

    @classmethod
    def read(cls, folder: KeyFolder, row: SurveyRow) -> "RowKeys":
        """The keys of a survey, from the key folder."""
        last = folder.get(state_key_name(row.id, LAST))
        is_over = row.generation == LAST
        current = last if is_over else folder.get(state_key_name(row.id, row.generation))
        return cls(row.id, row.generation, current, last)

    def of_table(self, table: str) -> tuple[RowKey, int]:
        """The key of a table's rows, and its generation."""
        if table in LASTING_TABLES:
            return self.last, LAST
        return self.current, self.generation

    def decrypt_row(self, record: Record) -> Row:
        """A row of the database."""
        table = record["store"]
        key = record["key"]
        value = kept = b""
        if record["encrypted"] is not None:
            row_key, generation = self.of_table(table)
            place = _row_context(self.survey, generation, table, key)
            value = row_key.decrypt(place, record["encrypted"])
        if record["kept"] is not None:
            kept = self.last.decrypt(_kept_context(self.survey, table, key), record["kept"])
        return Row(table, key, value, record["hash"], kept)

    def encrypt_row(self, row: Row) -> StateLine:
        """A row for the database: survey, table, key, hash, what is kept, and the value."""
        encrypted = kept = None
        # A message that was deleted leaves its row, its hash, and what is kept of it.
        if row.value:
            row_key, generation = self.of_table(row.table)
            place = _row_context(self.survey, generation, row.table, row.key)
            encrypted = row_key.encrypt(place, row.value)
        if row.kept:
            kept = self.last.encrypt(_kept_context(self.survey, row.table, row.key), row.kept)
        return self.survey, row.table, row.key, row.hash, kept, encrypted


def _key_ranges(people: int) -> Iterator[tuple[bytes, bytes]]:
    """Ranges that contain every key, each about `ROWS_AT_ONCE` keys of people.

    Ids of people are random, so ranges of one width have about as many of them each.
    """
    count = min(1 + people // ROWS_AT_ONCE, 1 << 16)
    bounds = [(number << 16) // count for number in range(count)]
    # No key is above the end: keys have at most 64 bytes.
    ends = [bound.to_bytes(2, "big") for bound in bounds[1:]] + [b"\xff" * 64]
    starts = [b"", *ends[:-1]]
    return zip(starts, ends, strict=True)


def _pad(keys: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The keys, with the last one repeated up to a power of two.

    So there are few different statements, and the database prepares each of them once.
    """
    size = 1 << (len(keys) - 1).bit_length()
    return keys + keys[-1:] * (size - len(keys))


R = TypeVar("R", bound=MemoryRows)


def _decode_rows(rows: R, keys: RowKeys, records: Sequence[Record]) -> R:
    """Put the rows of these records where a step reads them."""
    for record in records:
        stored = keys.decrypt_row(record)
        forms = forms_of(stored.table)
        found = StoredRow(forms.read_value(stored.value), stored.hash, stored.kept)
        rows.table(stored.table)[forms.read_key(stored.key)] = found
    return rows


async def _write_rows(tx: Transaction, keys: RowKeys, rows: Sequence[Row]) -> None:
    if rows:
        await tx.execute_many(_PUT_ROW, [keys.encrypt_row(row) for row in rows])


_ADD_COUNTS = (
    "UPDATE surveys SET participants = participants + ?, withdrawn = withdrawn + ?, version = ? "
    "WHERE id = ?"
)
_SELECT_MAIN_ROW = "SELECT encrypted FROM state_rows WHERE survey = ? AND store = ? AND key = ?"
_PUT_ROW = (
    "INSERT INTO state_rows (survey, store, key, hash, kept, encrypted) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (survey, store, key) DO UPDATE SET hash = excluded.hash, kept = excluded.kept, "
    "encrypted = excluded.encrypted"
)
_DELETE_ROWS = "DELETE FROM state_rows WHERE survey = ? AND store = ? AND key >= ? AND key < ?"
_DELETE_MESSAGES = (
    "UPDATE state_rows SET encrypted = NULL WHERE survey = ? AND store = ? AND key >= ? AND key < ?"
)
