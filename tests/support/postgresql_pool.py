"""Empty databases of one PostgreSQL, used again by the next test.

A new database takes 300 files, which are made, and removed at the end of all tests; emptying one
takes a few milliseconds.
"""

import asyncio
import threading
from dataclasses import dataclass, field
from typing import Any

import asyncpg

# A test that has failed may have left connections, which would keep their locks.
_DISCONNECT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
_EMPTY = ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


@dataclass
class DatabasePool:
    """The databases of a server: those that are empty, and those that a test uses."""

    server: Any
    idle: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    def take(self) -> str:
        """The URL of an empty database."""
        if not self.idle:
            name = f"test_{len(self.used)}"
            _execute(self.server.get_uri("postgres"), f"CREATE DATABASE {name}")
            self.idle.append(name)
        name = self.idle.pop()
        self.used.append(name)
        return str(self.server.get_uri(name))

    def empty(self) -> None:
        """Empty what the last test has used."""
        for name in self.used:
            _execute(self.server.get_uri(name), _DISCONNECT, *_EMPTY)
        self.idle += self.used
        self.used.clear()


def _execute(url: str, *statements: str) -> None:
    """Execute statements in a thread of their own: the caller may be inside an event loop."""
    problems = list[Exception]()

    async def work() -> None:
        connection = await asyncpg.connect(url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    def run() -> None:
        try:
            asyncio.run(work())
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    for problem in problems:
        raise problem
