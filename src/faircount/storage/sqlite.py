"""SQLite: one thread writes and another one reads; write-ahead log, every commit synced to disk."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from faircount.core.errors import DiskFullError, StorageError
from faircount.storage.database import Database, Query, Record, StateLine, Transaction

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], object]
BUSY_SECONDS = 30
"""How long a statement waits for another process that writes."""

MAX_PENDING_ROWS = 1000
"""Rows that may wait for the next statement; beyond that they are written, to bound memory."""


class _Connection:
    """A connection and the one thread that uses it."""

    def __init__(self, path: str, name: str) -> None:
        # A single thread also keeps the statements of a transaction in order.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"sqlite-{name}")
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function with the connection, in its thread."""
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._thread, self._run_with_connection, work
            )
        except sqlite3.Error as problem:
            is_full = getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            kind = DiskFullError if is_full else StorageError
            raise kind(
                f"the database does not work now: {problem}; nothing was changed"
            ) from problem

    def _run_with_connection(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            # Opened on first use, in the thread that uses it.
            self._connection = open_connection(self._path)
            self._file = _file_identity(self._path)
        return work(self._connection)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit the transaction, unless the database file is no longer the one we opened."""
        # SQLite keeps writing to a file that was moved or deleted, where nobody would find it.
        if _file_identity(self._path) != self._file:
            raise sqlite3.OperationalError(
                "the file of the database was moved or replaced: put it back"
            )
        connection.execute("COMMIT")

    async def close(self) -> None:
        if self._connection is not None:
            await self.call(sqlite3.Connection.close)
        self._thread.shutdown(wait=False)


def _file_identity(path: str) -> tuple[int, int] | None:
    """Return device and inode of the file that has this name now, or None."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_connection(path: str) -> sqlite3.Connection:
    """Open a connection with our settings; transactions are begun and ended by statements."""
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    for setting in (
        "journal_mode = WAL",
        # With NORMAL a power failure could undo a commit that was acknowledged already.
        "synchronous = FULL",
        "foreign_keys = ON",
        # Deleted rows are overwritten, although they are encrypted.
        "secure_delete = ON",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


class SqliteTransaction(Transaction):
    """A transaction of one connection. There is a single writer, so rows need no locks.

    Passing work to the connection's thread costs more than most statements do. So BEGIN, and
    changes whose row count nobody asks for, wait for the next statement or for the commit and are
    executed in one call with it.
    """

    for_update = ""
    skip_locked = ""

    def __init__(self, connection: _Connection, begin: str) -> None:
        self._connection = connection
        self._pending: list[Work] = [lambda database: database.execute(begin)]
        self._pending_rows = 0

    async def fetch_all(self, statement: str, *values: Any) -> Sequence[Record]:
        """Return all rows of a query."""
        return await self._call(lambda database: database.execute(statement, values).fetchall())

    async def fetch_in_turn(self, queries: Sequence[Query]) -> list[Sequence[Record]]:
        """Return all rows of several queries, in one call to the thread."""
        return await self._call(
            lambda database: [
                database.execute(query.statement, query.values).fetchall() for query in queries
            ]
        )

    async def execute(self, statement: str, *values: Any) -> int:
        """Execute a change and return how many rows it affected."""
        return await self._call(lambda database: database.execute(statement, values).rowcount)

    async def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute the same change for many rows, now or with the next statement."""
        self._pending.append(lambda database: database.executemany(statement, rows))
        self._pending_rows += len(rows)
        if self._pending_rows > MAX_PENDING_ROWS:
            await self._call(lambda _: None)

    async def lock(self, name: bytes) -> None:
        """Nothing to do: nobody else writes while a writing transaction is open."""

    async def try_lock(self, name: bytes) -> bool:
        """Nothing to do."""
        return True

    async def share(self, name: bytes, own: bytes) -> None:
        """Nothing to do."""

    async def insert_new_rows(self, lines: Sequence[StateLine]) -> int:
        """Insert those lines of `state_rows` whose keys are not there yet; return how many."""
        statement = (
            "INSERT INTO state_rows (survey, store, key, hash, kept, encrypted) "
            "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        return await self._call(lambda database: database.executemany(statement, lines).rowcount)

    async def commit(self) -> None:
        """Commit: everything in the block is on disk when this returns."""
        await self._call(self._connection.commit)

    async def rollback(self) -> None:
        """Undo everything in the block."""
        # What still waits was never executed and needs no rollback.
        self._pending.clear()
        await self._connection.call(_roll_back)

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        pending = self._pending
        self._pending = []
        self._pending_rows = 0

        def run_together(database: sqlite3.Connection) -> T:
            for pending_work in pending:
                pending_work(database)
            return work(database)

        return await self._connection.call(run_together)


class SqliteDatabase(Database):
    """A database file, with one connection for writing and one for reading."""

    has_workers = False

    def __init__(self, path: str) -> None:
        # In WAL mode a reader with a connection of its own does not wait for the writer.
        self._writer = _Connection(path, "writer")
        self._reader = _Connection(path, "reader")
        self._write_lock = asyncio.Lock()
        self._read_lock = asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Open a block that sees the database as it is at its first statement."""
        transaction = SqliteTransaction(self._reader, "BEGIN")
        async with self._read_lock, _commit_or_roll_back(transaction):
            yield transaction

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Open a block in which nobody else writes."""
        # IMMEDIATE takes the write lock at once: a later upgrade could fail in the middle.
        transaction = SqliteTransaction(self._writer, "BEGIN IMMEDIATE")
        async with self._write_lock, _commit_or_roll_back(transaction):
            yield transaction

    async def close(self) -> None:
        """Close both connections."""
        await self._writer.close()
        await self._reader.close()


@asynccontextmanager
async def _commit_or_roll_back(transaction: SqliteTransaction) -> AsyncIterator[None]:
    """End the transaction in any case, so that the next block finds none open."""
    try:
        yield
        await transaction.commit()
    except BaseException:
        # Shielded: the request may have been cancelled, and the rollback must still happen.
        await asyncio.shield(transaction.rollback())
        raise


def _roll_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
