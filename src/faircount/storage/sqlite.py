"""SQLite: one thread writes, another one reads; write-ahead log, every commit forced to the disk."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from faircount.core.errors import DiskFullError, StorageError
from faircount.storage.database import Database, Record, Transaction

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], object]
BUSY_SECONDS = 30
"""How long a statement waits for another process that writes."""

MOST_WAITING = 1000
"""Lines to write that wait for the next statement; more are written at once, so that memory does not grow."""


class _Connection:
    """A connection and the one thread that uses it."""

    def __init__(self, path: str, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"sqlite-{name}")
        self._path = path
        self._open: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    async def call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something with the connection in its thread."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._with, work)
        except sqlite3.Error as problem:
            full = getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            kind = DiskFullError if full else StorageError
            raise kind(f"the database does not work now: {problem}; nothing was changed") from problem

    def _with(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._open is None:
            self._open, self._file = opened(self._path), _file_at(self._path)
        return work(self._open)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Write the transaction; not into a file that was moved or deleted, where nobody would find it again."""
        if _file_at(self._path) != self._file:
            raise sqlite3.OperationalError("the file of the database was moved or replaced: put it back")
        connection.execute("COMMIT")

    async def close(self) -> None:
        if self._open is not None:
            await self.call(sqlite3.Connection.close)
        self._thread.shutdown(wait=False)


def _file_at(path: str) -> tuple[int, int] | None:
    """Which file is under this name now."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def opened(path: str) -> sqlite3.Connection:
    """A connection as this package uses it: transactions are begun and ended by us."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    for setting in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {setting}")
    return connection


class SqliteTransaction(Transaction):
    """A transaction of one connection. The writer is alone, so that no line needs a lock.

    Every call of the connection's thread costs more than most statements do. So the beginning, and changes whose
    outcome nobody asks for, wait for the next statement, or for the end, and are done in one call with it.
    """

    for_update = ""
    skip_locked = ""

    def __init__(self, connection: _Connection, begin: str) -> None:
        self._connection = connection
        self._waiting: list[Work] = [lambda open_: open_.execute(begin)]
        self._lines = 0

    async def all(self, statement: str, *values: Any) -> Sequence[Record]:
        """All lines of an answer."""
        return await self._call(lambda open_: open_.execute(statement, values).fetchall())

    async def run(self, statement: str, *values: Any) -> int:
        """Change something; how many lines were changed."""
        return await self._call(lambda open_: open_.execute(statement, values).rowcount)

    async def run_many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        """The same change for many lines."""
        self._waiting.append(lambda open_: open_.executemany(statement, lines))
        self._lines += len(lines)
        if self._lines > MOST_WAITING:
            await self._call(lambda _: None)

    async def commit(self) -> None:
        """The end of the block: all of it is on the disk."""
        await self._call(self._connection.commit)

    async def take_back(self) -> None:
        """The end of a block that failed; nothing of it happens."""
        self._waiting.clear()
        await self._connection.call(_take_back)

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        first, self._waiting, self._lines = self._waiting, [], 0

        def together(open_: sqlite3.Connection) -> T:
            for each in first:
                each(open_)
            return work(open_)

        return await self._connection.call(together)


class SqliteDatabase(Database):
    """A file."""

    def __init__(self, path: str) -> None:
        self._writer, self._reader = _Connection(path, "writer"), _Connection(path, "reader")
        self._writes, self._reads = asyncio.Lock(), asyncio.Lock()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A block that sees the database as it is at its first statement."""
        async with self._reads, _ended(SqliteTransaction(self._reader, "BEGIN")) as made:
            yield made

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """A block with nobody else writing."""
        async with self._writes, _ended(SqliteTransaction(self._writer, "BEGIN IMMEDIATE")) as made:
            yield made

    async def close(self) -> None:
        """Close both connections."""
        await self._writer.close()
        await self._reader.close()


@asynccontextmanager
async def _ended(made: SqliteTransaction) -> AsyncIterator[SqliteTransaction]:
    """Commit or take back: whatever happens, the next block finds no transaction open."""
    try:
        yield made
        await made.commit()
    except BaseException:
        await asyncio.shield(made.take_back())
        raise


def _take_back(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")
