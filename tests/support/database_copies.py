"""Copies of both servers' databases and how to restore them, as in `docs/operations.md`.

SQLite has `faircount backup` and `faircount restore FILE`. PostgreSQL has tools of its own,
`pg_dump` and `pg_restore`, which are followed by `faircount restore` without a file.
"""

import asyncio
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from in_process import server_in

from faircount.server.restore import (
    RestoreOutcome,
    back_up,
    restore_aggregator,
    restore_coordinator,
    restore_database,
)
from faircount.storage.anchor import FolderAnchor

ROLES = {"s1": "coordinator", "s2": "aggregator"}


@dataclass(frozen=True)
class Copies(ABC):
    """The databases of both servers, whose other files are in `folder`/s1 and `folder`/s2."""

    folder: Path
    urls: tuple[str, str]

    def url(self, name: str) -> str:
        """The database of s1 or s2."""
        return dict(zip(ROLES, self.urls, strict=True))[name]

    @abstractmethod
    def copy(self, name: str, target: Path) -> None:
        """Copy a database while its server runs."""

    @abstractmethod
    def replace(self, name: str, source: Path) -> None:
        """Replace the database of a stopped server by a copy."""

    def restore(self, name: str, source: Path, *, has_new_anchor: bool = False) -> RestoreOutcome:
        """Do all that `faircount restore` does, while the servers are stopped."""
        self.replace(name, source)
        finish = restore_coordinator if name == "s1" else restore_aggregator

        async def work() -> RestoreOutcome:
            server = await server_in(
                self.folder / name, self.url(name), name, has_new_anchor=has_new_anchor
            )
            try:
                anchor = FolderAnchor(self.folder / name / "anchor") if has_new_anchor else None
                return await finish(server, anchor)
            finally:
                await server.database.close()

        return asyncio.run(work())

    def execute(self, name: str, statement: str, *values: object) -> list[Any]:
        """Execute SQL in the database of a stopped server; the rows, if there are any."""

        async def work() -> list[Any]:
            server = await server_in(self.folder / name, self.url(name), name)
            async with server.database.write() as tx:
                rows = list(await tx.fetch_all(statement, *values))
            await server.database.close()
            return rows

        return asyncio.run(work())


class SqliteCopies(Copies):
    """Copies of SQLite files."""

    def copy(self, name: str, target: Path) -> None:
        """Run `faircount backup`."""
        back_up(self.url(name), target)

    def replace(self, name: str, source: Path) -> None:
        """Run `faircount restore` with a file."""
        restore_database(self.url(name), source, ROLES[name])


@dataclass(frozen=True)
class PostgresqlCopies(Copies):
    """Copies of databases in a PostgreSQL server, made with its `programs`."""

    programs: Path

    def copy(self, name: str, target: Path) -> None:
        """Run `pg_dump`."""
        self._run("pg_dump", "--format=custom", f"--file={target}", self.url(name))
        # `faircount backup` writes copies that others cannot read; `pg_dump` does not.
        target.chmod(0o600)

    def replace(self, name: str, source: Path) -> None:
        """Run `pg_restore`."""
        options = ("--clean", "--if-exists", "--single-transaction", f"--dbname={self.url(name)}")
        self._run("pg_restore", *options, source)

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run([self.programs / program, *arguments], check=True)


def copies_on(kind: str, folder: Path, fresh: Callable[[], str], server: Any) -> Copies:
    """Two empty databases of this kind; `server` starts PostgreSQL if it is needed."""
    urls = (fresh(), fresh())
    if kind == "sqlite":
        return SqliteCopies(folder, urls)
    return PostgresqlCopies(folder, urls, Path(server().bin_path))
