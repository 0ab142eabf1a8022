"""Create or upgrade the schema of a database, or refuse the database before anything is changed.

A database is refused if it was written by a newer faircount, if it belongs to the other server, or
if it contains tables of another program. A server whose database is up to date reads three values
at its start and does not load the migration libraries.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircount.core.errors import SchemaError, StorageError
from faircount.core.files import make_private_file

if TYPE_CHECKING:
    from sqlalchemy import Connection

REVISIONS = ("0001",)
"""All schema revisions that this program knows, the newest last: one file each in `migrations`."""

NEWEST = REVISIONS[-1]

# Identifies the advisory lock that lets one migration at a time run on a PostgreSQL server.
_LOCK = 0x66616972
_OWN_TABLES = frozenset({"alembic_version", "meta"})
_VERSION = "SELECT version_num FROM alembic_version"
_ROLE = "SELECT value FROM meta WHERE name = 'role'"


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """The tables of a database, its schema revision and the server that it belongs to."""

    tables: frozenset[str]
    version: str = ""
    role: str = ""

    def is_current(self, role: str) -> bool:
        """Whether there is nothing to do. Raises `SchemaError` for a database that is not ours."""
        if not self.tables:
            return False
        if not self.tables >= _OWN_TABLES:
            raise SchemaError(
                "this database contains tables of another program: give faircount a database of "
                "its own"
            )
        # check: schema-version - a newer program has changed the meaning of what is read
        if self.version not in REVISIONS:
            raise SchemaError(
                f"this database has schema {self.version}, and this faircount knows "
                f"{', '.join(REVISIONS)}: use the faircount that wrote it, or a newer one"
            )
        # check: database-role - two servers in one database hold both shares of every response
        if self.role != role:
            raise SchemaError(
                f"this is the database of the {self.role}: the {role} needs one of its own"
            )
        return self.version == NEWEST


async def prepare(url: str, role: str) -> None:
    """Create the schema for a role, or upgrade it."""
    if url.startswith("sqlite:"):
        is_current = _inspect_sqlite(url).is_current(role)
        _close_to_others(Path(url.removeprefix("sqlite:///")))
        if not is_current:
            _upgrade_sqlite(url, role)
    elif not (await _inspect_postgresql(url)).is_current(role):
        await _upgrade_postgresql(url, role)


def _close_to_others(path: Path) -> None:
    """Let only this user read a database; SQLite gives new files beside it the same rights."""
    beside = [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm")]
    try:
        for file in (path, *(file for file in beside if file.exists())):
            make_private_file(file)
    except StorageError as problem:
        raise StorageError(f"the database cannot be opened: {problem}") from None


def _inspect_sqlite(url: str) -> DatabaseInfo:
    path = Path(url.removeprefix("sqlite:///"))
    if not path.exists():
        return DatabaseInfo(frozenset())
    try:
        # Read-only: a database that is refused must not be touched.
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = frozenset(name for (name,) in rows)
            if not tables >= _OWN_TABLES:
                return DatabaseInfo(tables)
            (version,) = database.execute(_VERSION).fetchone()
            (role,) = database.execute(_ROLE).fetchone()
    except (sqlite3.Error, TypeError) as problem:
        raise StorageError(f"the database cannot be opened: {problem}") from problem
    return DatabaseInfo(tables, version, role)


async def _inspect_postgresql(url: str) -> DatabaseInfo:
    import asyncpg

    try:
        database = await asyncpg.connect(url)
        try:
            rows = await database.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
            )
            tables = frozenset(row["tablename"] for row in rows)
            if not tables >= _OWN_TABLES:
                return DatabaseInfo(tables)
            version = await database.fetchval(_VERSION)
            role = await database.fetchval(_ROLE)
            return DatabaseInfo(tables, version, role)
        finally:
            await database.close()
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError) as problem:
        # The name of the error only: its text may quote the address with the password.
        raise StorageError(f"the database cannot be opened: {type(problem).__name__}") from problem


def _upgrade_sqlite(url: str, role: str) -> None:
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def own_transactions(connection: Any, _: Any) -> None:
        # Otherwise the driver commits before every CREATE TABLE, and a crash leaves half a schema.
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with engine.begin() as connection:
            bring_up_to_date(connection, role)
    except SQLAlchemyError as problem:
        cause = getattr(problem, "orig", problem)
        raise StorageError(f"the database cannot be opened: {cause}") from problem


async def _upgrade_postgresql(url: str, role: str) -> None:
    import asyncpg
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    async def create_connection() -> Any:
        return await asyncpg.connect(url)

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=create_connection, poolclass=NullPool
    )
    async with engine.begin() as connection:
        # Several workers may start at once; those who wait find nothing left to do.
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        await connection.run_sync(bring_up_to_date, role)
    await engine.dispose()


def bring_up_to_date(connection: "Connection", role: str) -> None:
    """Run the missing migrations in the caller's transaction, if another worker has not yet."""
    from alembic.command import upgrade
    from sqlalchemy import inspect, text

    config = migration_config()
    config.attributes["connection"] = connection
    # Looked at under the lock: of several workers that start, one writes the role.
    is_new = not inspect(connection).get_table_names()
    upgrade(config, NEWEST)
    if is_new:
        connection.execute(
            text("INSERT INTO meta (name, value) VALUES ('role', :role)"), {"role": role}
        )


def migration_config() -> Any:
    """Return alembic's configuration, which says where the migrations are."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "faircount.storage:migrations")
    return config
