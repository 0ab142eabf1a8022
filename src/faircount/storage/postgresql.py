"""PostgreSQL by asyncpg: several workers, each with a few connections."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import sha256
from typing import Any

import asyncpg

from faircount.core.errors import DiskFullError, StorageError
from faircount.storage.database import Database, Record, StateLine, Transaction

CONNECTIONS = 8
"""The largest number of connections per worker."""

_DATABASE_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


@lru_cache(maxsize=1024)
def number_placeholders(statement: str) -> str:
    """Replace the question marks by $1, $2, ...; no literal in our statements contains one."""
    first, *others = statement.split("?")
    return first + "".join(f"${number}{text}" for number, text in enumerate(others, 1))


class PostgresqlTransaction(Transaction):
    """A transaction of one connection."""

    for_update = " FOR UPDATE"
    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def fetch_all(self, statement: str, *values: Any) -> Sequence[Record]:
        """Return all rows of a query."""
        rows: Sequence[Record] = await self._connection.fetch(
            number_placeholders(statement), *values
        )
        return rows

    async def execute(self, statement: str, *values: Any) -> int:
        """Execute a change and return how many rows it affected."""
        # PostgreSQL answers with a command tag such as "UPDATE 3" or "CREATE TABLE".
        tag: str = await self._connection.execute(number_placeholders(statement), *values)
        count = tag.rsplit(" ", 1)[-1]
        return int(count) if count.isdigit() else 0

    async def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute the same change for many rows."""
        await self._connection.executemany(number_placeholders(statement), rows)

    async def lock(self, name: bytes) -> None:
        """Take an advisory lock, which PostgreSQL releases at the end of the transaction."""
        await self._connection.execute("SELECT pg_advisory_xact_lock($1)", _lock_number(name))

    async def try_lock(self, name: bytes) -> bool:
        """Take an advisory lock, unless another transaction has it."""
        number = _lock_number(name)
        return bool(await self._connection.fetchval("SELECT pg_try_advisory_xact_lock($1)", number))

    async def share(self, name: bytes, own: bytes) -> None:
        """Take two advisory locks, the first of them shared."""
        # Not FOR SHARE on a row: those who share it would come before whoever waits to change the
        # row, for as long as they keep coming. Advisory locks are given in the order of requests.
        await self._connection.execute(
            "SELECT pg_advisory_xact_lock_shared($1), pg_advisory_xact_lock($2)",
            _lock_number(name),
            _lock_number(own),
        )

    async def insert_new_rows(self, lines: Sequence[StateLine]) -> int:
        """Insert those lines of `state_rows` whose keys are not there yet; return how many."""
        # One statement for all lines: each statement costs more than the line that it writes.
        columns = [list(column) for column in zip(*lines, strict=True)]
        return await self.execute(
            "INSERT INTO state_rows (survey, store, key, hash, kept, encrypted) SELECT * FROM "
            "unnest(?::bytea[], ?::text[], ?::bytea[], ?::bytea[], ?::bytea[], ?::bytea[]) "
            "ON CONFLICT DO NOTHING",
            *columns,
        )


def _lock_number(name: bytes) -> int:
    """The number of an advisory lock."""
    # PostgreSQL names these locks by 64 bits. Two names that share a number only wait for each
    # other; nobody chooses them, since the number comes from a hash.
    return int.from_bytes(sha256(name).digest()[:8], "big", signed=True)


class PostgresqlDatabase(Database):
    """A pool of connections."""

    has_workers = True

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def connect(cls, url: str) -> "PostgresqlDatabase":
        """Open the first connection."""
        try:
            # A statement that waits a minute for a lock fails, and its request is repeated later.
            pool = await asyncpg.create_pool(
                url, min_size=1, max_size=CONNECTIONS, command_timeout=60
            )
        except _DATABASE_ERRORS as problem:
            raise StorageError(
                f"the database cannot be reached: {type(problem).__name__}"
            ) from problem
        return cls(pool)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """Open a block that sees the database as it is at its first statement."""
        async with self._transaction("repeatable_read") as transaction:
            yield transaction

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Open a block whose rows are protected by the locks it takes with `for_update`."""
        # Not serializable: writers lock the rows they change, so no transaction must be repeated.
        async with self._transaction("read_committed") as transaction:
            yield transaction

    @asynccontextmanager
    async def _transaction(self, isolation: str) -> AsyncIterator[Transaction]:
        try:
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation=isolation),
            ):
                yield PostgresqlTransaction(connection)
        except _DATABASE_ERRORS as problem:
            kind = DiskFullError if isinstance(problem, asyncpg.DiskFullError) else StorageError
            raise kind(f"the database does not work now: {type(problem).__name__}") from problem

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()
