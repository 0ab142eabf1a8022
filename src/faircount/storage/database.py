"""Transactions on SQLite or PostgreSQL, behind one interface.

Statements are written once, in the SQL that both understand, with ? for values; times are whole milliseconds. What a
writing transaction has done is on the disk when its block ends, and nothing of it if the block or the end fails.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from faircount.core.errors import ParameterError


class Record(Protocol):
    """One line of an answer, by name of its column."""

    def __getitem__(self, key: str) -> Any: ...


class Transaction(ABC):
    """What can be done inside one transaction."""

    for_update: str
    """Added to a SELECT whose lines this transaction is going to change: others wait."""
    skip_locked: str
    """Added instead where lines that another worker holds are to be passed over."""

    @abstractmethod
    async def all(self, statement: str, *values: Any) -> Sequence[Record]:
        """All lines of an answer."""

    @abstractmethod
    async def run(self, statement: str, *values: Any) -> int:
        """Change something; how many lines were changed."""

    @abstractmethod
    async def run_many(self, statement: str, lines: Sequence[tuple[Any, ...]]) -> None:
        """The same change for many lines, at the latest when the block ends: what fails may only be known then."""

    async def one(self, statement: str, *values: Any) -> Record | None:
        """The first line of an answer, if there is one."""
        found = await self.all(statement, *values)
        return found[0] if found else None

    async def held(self, statement: str, *values: Any) -> Record | None:
        """The same, and nobody else changes that line before this transaction ends."""
        return await self.one(statement + self.for_update, *values)

    async def free(self, statement: str, *values: Any) -> Sequence[Record]:
        """All lines that no other worker holds; now this transaction holds them."""
        return await self.all(statement + self.skip_locked, *values)


class Database(ABC):
    """An open database."""

    @abstractmethod
    def read(self) -> AbstractAsyncContextManager[Transaction]:
        """A block that only reads."""

    @abstractmethod
    def write(self) -> AbstractAsyncContextManager[Transaction]:
        """A block that is written as a whole at its end, or not at all."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of it."""


def marks(values: Sequence[object]) -> str:
    """The (?, ?, ...) of an IN with so many values."""
    return f"({', '.join('?' * len(values))})"


async def connect(url: str, role: str) -> Database:
    """Open the database of a role, with its schema made or brought up to date; an unknown one is refused untouched."""
    from faircount.storage.migrate import prepare

    await prepare(url, role)
    if url.startswith("sqlite:///"):
        from faircount.storage.sqlite import SqliteDatabase

        return SqliteDatabase(url.removeprefix("sqlite:///"))
    if url.startswith("postgresql://"):
        from faircount.storage.postgresql import PostgresqlDatabase

        return await PostgresqlDatabase.connect(url)
    raise ParameterError("a database is sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME")
