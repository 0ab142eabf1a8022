"""Copies of both servers' databases and the way back from them, as `docs/operations.md` says for each kind.

SQLite has `faircount backup` and `faircount restore FILE`. PostgreSQL has tools of its own, `pg_dump` and `pg_restore`,
and after them `faircount restore` without a file.
"""

import asyncio
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from in_process import server_in

from faircount.service.restore import Restored, back_up, put_back, restored_s1, restored_s2

ROLES = {"s1": "coordinator", "s2": "aggregator"}


@dataclass(frozen=True)
class Copies(ABC):
    """The databases of S1 and S2, whose other folders are `folder`/s1 and `folder`/s2."""

    folder: Path
    urls: tuple[str, str]

    def url(self, name: str) -> str:
        """The database of s1 or s2."""
        return dict(zip(ROLES, self.urls, strict=True))[name]

    @abstractmethod
    def copy(self, name: str, target: Path) -> None:
        """Copy a database while its server runs."""

    @abstractmethod
    def put(self, name: str, source: Path) -> None:
        """Put a copy in the place of a database whose server was stopped."""

    def restored(self, name: str, source: Path) -> Restored:
        """All that `faircount restore` does, while the servers are stopped."""
        self.put(name, source)

        async def mend() -> Restored:
            server = await server_in(self.folder / name, self.url(name), name)
            try:
                return await (restored_s1 if name == "s1" else restored_s2)(server)
            finally:
                await server.database.close()

        return asyncio.run(mend())

    def written(self, name: str, statement: str, *values: object) -> list[Any]:
        """Lines of an answer, or nothing of a change, in the database of a server that is stopped."""

        async def work() -> list[Any]:
            server = await server_in(self.folder / name, self.url(name), name)
            async with server.database.write() as tx:
                found = list(await tx.all(statement, *values))
            await server.database.close()
            return found

        return asyncio.run(work())


class SqliteCopies(Copies):
    """Files."""

    def copy(self, name: str, target: Path) -> None:
        """`faircount backup`."""
        back_up(self.url(name), target)

    def put(self, name: str, source: Path) -> None:
        """`faircount restore` with a file."""
        put_back(self.url(name), source, ROLES[name])


@dataclass(frozen=True)
class PostgresqlCopies(Copies):
    """Databases of one server."""

    programs: Path

    def copy(self, name: str, target: Path) -> None:
        """`pg_dump`."""
        self._run("pg_dump", "--format=custom", f"--file={target}", self.url(name))
        target.chmod(0o600)

    def put(self, name: str, source: Path) -> None:
        """`pg_restore`."""
        self._run("pg_restore", "--clean", "--if-exists", "--single-transaction", f"--dbname={self.url(name)}", source)

    def _run(self, program: str, *arguments: str | Path) -> None:
        subprocess.run([self.programs / program, *arguments], check=True)


def copies_on(kind: str, folder: Path, fresh: Callable[[], str], server: Any) -> Copies:
    """Both databases, empty, on this kind; the server is that of PostgreSQL."""
    urls = fresh(), fresh()
    return SqliteCopies(folder, urls) if kind == "sqlite" else PostgresqlCopies(folder, urls, Path(server().bin_path))
