"""Transactions on SQLite or PostgreSQL, behind one interface.

Statements are written once, in the SQL that both databases understand, with ? for values. Times are
whole milliseconds. When the block of a writing transaction ends, everything in it is on disk; if
the block or its commit fails, nothing of it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol

from faircount.core.errors import ParameterError


class Record(Protocol):
    """One row of a query result, whose values are read by column name."""

    def __getitem__(self, key: str) -> Any: ...


StateLine = tuple[bytes, str, bytes, bytes, bytes | None, bytes | None]
"""A line of the table `state_rows`: survey, store, key, hash, what is kept, and the value."""


class Query(NamedTuple):
    """A SELECT statement and its values."""

    statement: str
    values: Sequence[Any]


class Transaction(ABC):
    """The statements of one transaction."""

    for_update: str
    """Appended to a SELECT whose rows this transaction will change: other transactions wait."""
    skip_locked: str
    """Appended instead to skip the rows that another transaction has locked."""

    @abstractmethod
    async def fetch_all(self, statement: str, *values: Any) -> Sequence[Record]:
        """Return all rows of a query, without locking them."""

    @abstractmethod
    async def execute(self, statement: str, *values: Any) -> int:
        """Execute a change and return how many rows it affected."""

    @abstractmethod
    async def execute_many(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Execute the same change for many rows.

        It may be executed as late as the end of the block, so an error may only appear there.
        """

    @abstractmethod
    async def lock(self, name: bytes) -> None:
        """Wait until no other transaction has this name, and keep it until this one ends.

        For what has no row yet that could be locked.
        """

    @abstractmethod
    async def try_lock(self, name: bytes) -> bool:
        """Take the lock of this name as `lock` does, unless another transaction has it."""

    @abstractmethod
    async def share(self, name: bytes, own: bytes) -> None:
        """Take a shared lock on `name`, and an exclusive one on `own`.

        Each caller chooses another `own`. A waiting `lock` goes before later shares.
        """

    @abstractmethod
    async def insert_new_rows(self, lines: Sequence[StateLine]) -> int:
        """Insert those lines of `state_rows` whose keys are not there yet; return how many.

        In this order. It waits for other transactions that insert the same keys.
        """

    async def fetch_in_turn(self, queries: Sequence[Query]) -> list[Sequence[Record]]:
        """Return all rows of several queries, of which each sees what is there when it begins."""
        return [await self.fetch_all(query.statement, *query.values) for query in queries]

    async def fetch_one(self, statement: str, *values: Any) -> Record | None:
        """Return the first row of a query, without locking it, or None."""
        rows = await self.fetch_all(statement, *values)
        return rows[0] if rows else None

    async def fetch_one_for_update(self, statement: str, *values: Any) -> Record | None:
        """Return the first row and lock it until this transaction ends."""
        return await self.fetch_one(statement + self.for_update, *values)

    async def fetch_skipping_locked(self, statement: str, *values: Any) -> Sequence[Record]:
        """Return and lock all rows that no other transaction has locked."""
        return await self.fetch_all(statement + self.skip_locked, *values)


class Database(ABC):
    """An open database."""

    has_workers: bool
    """Whether several processes can write at the same time."""

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a block that only reads."""

    @abstractmethod
    def write(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a block that is committed as a whole when it ends, or not at all."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""


def marks(values: Sequence[object]) -> str:
    """Return the placeholders (?, ?, ...) for this many values."""
    return f"({', '.join('?' * len(values))})"


async def connect(url: str, role: str) -> Database:
    """Open the database of a role and create or upgrade its schema.

    A database with an unknown schema is refused before anything in it is changed.
    """
    from faircount.storage.migrate import prepare

    # Before any connection of ours: a database that is refused must not be changed.
    await prepare(url, role)
    # Drivers are imported here, so that a server on SQLite does not need asyncpg.
    if url.startswith("sqlite:///"):
        from faircount.storage.sqlite import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"))
    if url.startswith("postgresql://"):
        from faircount.storage.postgresql import PostgresqlDatabase

        return await PostgresqlDatabase.connect(url)
    raise ParameterError(
        "the address of a database is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"
    )
