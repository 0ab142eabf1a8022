"""PostgreSQL by asyncpg: several workers, each with a few connections."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import asyncpg

from faircount.core.errors import DiskFullError, StorageError
from faircount.storage.database import Database, Record, Transaction

CONNECTIONS = 8
"""At most, per worker."""

_TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


@lru_cache(maxsize=1024)
def numbered(statement: str) -> str:
    """The statement with $1, $2, ... for its question marks: no text in our statements has one."""
    first, *others = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, 1))


class PostgresqlTransaction(Transaction):
    """A transaction of one connection."""

    for_update = " FOR UPDATE"
    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def all(self, statement: str, *values: Any) -> Sequence[Record]:
        """All lines of an answer."""
        found: Sequence[Record] = await self._connection.fetch(numbered(statement), *values)
        return found

    async def run(self, statement: str, *values: Any) -> int:
        """Change something; how many lines were changed."""
        said: str = await self._connection.execute(numbered(statement), *values)
        count = said.rsplit(" ", 1)[-1]
        return int(count) if count.isdigit() else 0

    async def run_many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        """The same change for many lines."""
        await self._connection.executemany(numbered(statement), lines)


class PostgresqlDatabase(Database):
    """A pool of connections."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    @classmethod
    async def connect(cls, url: str) -> "PostgresqlDatabase":
        """Open the first connection."""
        try:
            return cls(await asyncpg.create_pool(url, min_size=1, max_size=CONNECTIONS, command_timeout=60))
        except _TROUBLE as problem:
            raise StorageError(f"the database cannot be reached: {type(problem).__name__}") from problem

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Transaction]:
        """A block that sees the database as it is at its first statement."""
        async with self._block("repeatable_read") as found:
            yield found

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """A block that holds the lines it has asked for with `for_update`."""
        async with self._block("read_committed") as found:
            yield found

    @asynccontextmanager
    async def _block(self, isolation: str) -> AsyncIterator[Transaction]:
        try:
            async with self._pool.acquire() as connection, connection.transaction(isolation=isolation):
                yield PostgresqlTransaction(connection)
        except _TROUBLE as problem:
            kind = DiskFullError if isinstance(problem, asyncpg.DiskFullError) else StorageError
            raise kind(f"the database does not work now: {type(problem).__name__}") from problem

    async def close(self) -> None:
        """Let go of all connections."""
        await self._pool.close()
