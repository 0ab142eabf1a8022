"""The schema of a database: made, brought up to date, or refused before anything is touched.

Refused are a database of a newer faircount, one of the other role, and one with tables that are not ours.
"""

from typing import TYPE_CHECKING, Any

from faircount.core.errors import SchemaError, StorageError

if TYPE_CHECKING:
    from alembic.script import ScriptDirectory
    from sqlalchemy import Connection

_LOCK = 0x66616972  # one migration at a time on a PostgreSQL server


async def prepare(url: str, role: str) -> None:
    """Make the schema of a role, or bring it up to date."""
    from sqlalchemy.exc import SQLAlchemyError

    try:
        if url.startswith("sqlite:"):
            _prepare_sqlite(url, role)
        else:
            await _prepare_postgresql(url, role)
    except (SQLAlchemyError, OSError) as problem:
        raise StorageError(f"the database cannot be opened: {_first_line(problem)}") from problem


def _first_line(problem: Exception) -> str:
    cause = getattr(problem, "orig", None) or problem
    return str(cause).splitlines()[0] if str(cause) else type(cause).__name__


def _prepare_sqlite(url: str, role: str) -> None:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    engine = create_engine(url, poolclass=NullPool)

    @event.listens_for(engine, "connect")
    def own_transactions(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # the driver would commit before every CREATE TABLE

    @event.listens_for(engine, "begin")
    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    reading = True
    with engine.connect() as connection:
        done = is_current(connection, role)
    if not done:
        reading = False
        with engine.begin() as connection:
            bring_up_to_date(connection, role)


async def _prepare_postgresql(url: str, role: str) -> None:
    import asyncpg
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool

    async def connection_made() -> Any:
        return await asyncpg.connect(url)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connection_made, poolclass=NullPool)
    async with engine.begin() as connection:
        await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
        if not await connection.run_sync(is_current, role):
            await connection.run_sync(bring_up_to_date, role)
    await engine.dispose()


def is_current(connection: "Connection", role: str) -> bool:
    """Whether there is nothing to do; raises `SchemaError` for a database that is not ours to touch."""
    from sqlalchemy import inspect, text

    tables = set(inspect(connection).get_table_names())
    if not tables:
        return False
    if not {"alembic_version", "meta"} <= tables:
        raise SchemaError("this database has tables that are not faircount's: give it one of its own")
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    known = {each.revision for each in _scripts().walk_revisions()}
    if found not in known:
        raise SchemaError(
            f"this database has schema {found}, and this faircount knows {', '.join(sorted(known))}: use the faircount "
            "that wrote it, or a newer one"
        )
    whose = connection.execute(text("SELECT value FROM meta WHERE name = 'role'")).scalar()
    if whose != role:
        raise SchemaError(f"this is the database of the {whose}: the {role} needs one of its own")
    return bool(found == _scripts().get_current_head())


def bring_up_to_date(connection: "Connection", role: str) -> None:
    """Run the migrations that are missing, in the caller's transaction."""
    from alembic.command import upgrade
    from sqlalchemy import inspect, text

    config = _config()
    config.attributes["connection"] = connection
    fresh = not inspect(connection).get_table_names()
    upgrade(config, "head")
    if fresh:
        connection.execute(text("INSERT INTO meta (name, value) VALUES ('role', :role)"), {"role": role})


def _config() -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "faircount.storage:migrations")
    return config


def _scripts() -> "ScriptDirectory":
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())
