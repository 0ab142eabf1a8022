"""The schema of a database: made, brought up to date, or refused before anything is touched.

Refused are a database of a newer faircount, one of the other role, and one with tables that are not ours. A server that
starts with a database that is up to date reads three lines of it and loads none of the libraries for migrations.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircount.core.errors import SchemaError, StorageError

if TYPE_CHECKING:
    from sqlalchemy import Connection

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Every schema that this program knows, the newest one last; `migrations/versions` has a file for each."""

NEWEST = REVISIONS[-1]

_LOCK = 0x66616972  # one migration at a time on a PostgreSQL server
_VERSION = "SELECT version_num FROM alembic_version"
_ROLE = "SELECT value FROM meta WHERE name = 'role'"


@dataclass(frozen=True, slots=True)
class Found:
    """What a database says about itself."""

    tables: frozenset[str]
    version: str = ""
    role: str = ""

    def is_current(self, role: str) -> bool:
        """Whether there is nothing to do; raises `SchemaError` for a database that is not ours to touch."""
        if not self.tables:
            return False
        if not {"alembic_version", "meta"} <= self.tables:
            raise SchemaError("this database has tables that are not faircount's: give it one of its own")
        if self.version not in REVISIONS:
            raise SchemaError(
                f"this database has schema {self.version}, and this faircount knows {', '.join(REVISIONS)}: use the "
                "faircount that wrote it, or a newer one"
            )
        if self.role != role:
            raise SchemaError(f"this is the database of the {self.role}: the {role} needs one of its own")
        return self.version == NEWEST


async def prepare(url: str, role: str) -> None:
    """Make the schema of a role, or bring it up to date."""
    if url.startswith("sqlite:"):
        if not _look_sqlite(url).is_current(role):
            _bring_up_sqlite(url, role)
    elif not (await _look_postgresql(url)).is_current(role):
        await _bring_up_postgresql(url, role)


def _look_sqlite(url: str) -> Found:
    path = Path(url.removeprefix("sqlite:///"))
    if not path.exists():
        return Found(frozenset())
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not {"alembic_version", "meta"} <= tables:
                return Found(frozenset(tables))
            (version,), (role,) = database.execute(_VERSION).fetchone(), database.execute(_ROLE).fetchone()
    except (sqlite3.Error, TypeError) as problem:
        raise StorageError(f"the database cannot be opened: {problem}") from problem
    return Found(frozenset(tables), version, role)


async def _look_postgresql(url: str) -> Found:
    import asyncpg

    try:
        database = await asyncpg.connect(url)
        try:
            named = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            tables = frozenset(each["tablename"] for each in named)
            if not {"alembic_version", "meta"} <= tables:
                return Found(tables)
            return Found(tables, await database.fetchval(_VERSION), await database.fetchval(_ROLE))
        finally:
            await database.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as problem:
        raise StorageError(f"the database cannot be opened: {type(problem).__name__}") from problem


def _bring_up_sqlite(url: str, role: str) -> None:
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def own_transactions(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver would commit before every CREATE TABLE

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            bring_up_to_date(connection, role)
    except SQLAlchemyError as problem:
        raise StorageError(f"the database cannot be opened: {getattr(problem, 'orig', problem)}") from problem


async def _bring_up_postgresql(url: str, role: str) -> None:
    import asyncpg
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    async def connection_made() -> Any:
        return await asyncpg.connect(url)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connection_made, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        await connection.run_sync(bring_up_to_date, role)
    await engine.dispose()


def bring_up_to_date(connection: "Connection", role: str) -> None:
    """Run the migrations that are missing, in the caller's transaction; none, if another worker came first."""
    from alembic.command import upgrade
    from sqlalchemy import inspect, text

    config = migration_config()
    config.attributes["connection"] = connection
    fresh = not inspect(connection).get_table_names()
    upgrade(config, NEWEST)
    if fresh:
        connection.execute(text("INSERT INTO meta (name, value) VALUES ('role', :role)"), {"role": role})


def migration_config() -> Any:
    """Where alembic finds the migrations."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "faircount.storage:migrations")
    return config
