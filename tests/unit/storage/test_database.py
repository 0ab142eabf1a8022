"""SQLite and PostgreSQL behave the same behind the interface of the storage."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from made_up_schema import know_second_schema
from sqlalchemy import create_engine

from faircount.core.errors import ParameterError, SchemaError, StorageError
from faircount.storage.database import Database, connect, marks
from faircount.storage.migrate import REVISIONS, migration_config, prepare
from faircount.storage.postgresql import number_placeholders
from faircount.storage.schema import TABLES

Fresh = Callable[[], str]
PUT = "INSERT INTO rejections (survey, reason, count) VALUES (?, ?, ?)"
GET = "SELECT reason, count FROM rejections WHERE survey = ? ORDER BY reason"


def on(url: str, work: Callable[[Database], Awaitable[None]]) -> None:
    async def run() -> None:
        database = await connect(url, "coordinator")
        try:
            await work(database)
        finally:
            await database.close()

    asyncio.run(run())


async def fail_after_change(database: Database) -> None:
    async with database.write() as tx:
        await tx.execute("UPDATE rejections SET count = 9")
        raise ZeroDivisionError


async def insert_twice(database: Database) -> None:
    async with database.write() as tx:
        await tx.execute(PUT, b"a", "early", 1)
        await tx.execute(PUT, b"a", "late", 1)


def test_a_block_is_committed_as_a_whole_or_not_at_all(fresh_database: Fresh) -> None:
    async def work(database: Database) -> None:
        async with database.write() as tx:
            assert await tx.execute(PUT, b"a", "late", 1) == 1
            await tx.execute_many(PUT, [(b"a", "early", 2), (b"a", "full", 3)])
        with pytest.raises(ZeroDivisionError):
            await fail_after_change(database)
        async with database.read() as tx:
            assert [(row["reason"], row["count"]) for row in await tx.fetch_all(GET, b"a")] == [
                ("early", 2),
                ("full", 3),
                ("late", 1),
            ]
            assert await tx.fetch_one(GET, b"b") is None

    on(fresh_database(), work)


def test_what_was_committed_is_there_after_the_database_was_opened_again(
    fresh_database: Fresh,
) -> None:
    url = fresh_database()

    async def write(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute(PUT, b"a", "late", 7)

    async def read(database: Database) -> None:
        async with database.read() as tx:
            found = await tx.fetch_one(GET, b"a")
        assert found is not None
        assert found["count"] == 7

    on(url, write)
    on(url, read)


def test_two_transactions_that_change_one_row_run_one_after_the_other(
    fresh_database: Fresh,
) -> None:
    async def work(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute(PUT, b"a", "late", 0)

        async def add() -> None:
            async with database.write() as tx:
                found = await tx.fetch_one_for_update(
                    "SELECT count FROM rejections WHERE survey = ?", b"a"
                )
                assert found is not None
                await asyncio.sleep(0.002)
                await tx.execute(
                    "UPDATE rejections SET count = ? WHERE survey = ?", found["count"] + 1, b"a"
                )

        await asyncio.gather(*(add() for _ in range(20)))
        async with database.read() as tx:
            found = await tx.fetch_one(GET, b"a")
        assert found is not None
        assert found["count"] == 20

    on(fresh_database(), work)


def test_a_failing_statement_raises_our_error_and_changes_nothing(fresh_database: Fresh) -> None:
    async def work(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute(PUT, b"a", "late", 1)
        with pytest.raises(StorageError):
            await insert_twice(database)
        async with database.read() as tx:
            assert len(await tx.fetch_all(GET, b"a")) == 1

    on(fresh_database(), work)


def test_a_row_that_another_transaction_has_locked_is_skipped(fresh_database: Fresh) -> None:
    async def work(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute_many(PUT, [(b"a", "late", 1), (b"b", "late", 1)])
        async with database.write() as first:
            await first.fetch_one_for_update("SELECT survey FROM rejections WHERE survey = ?", b"a")
            if not first.skip_locked:
                return  # SQLite has one writer: no second block can be open
            async with database.write() as second:
                found = await second.fetch_skipping_locked(
                    "SELECT survey FROM rejections ORDER BY survey"
                )
                assert [bytes(row["survey"]) for row in found] == [b"b"]

    on(fresh_database(), work)


def test_another_role_is_refused(fresh_database: Fresh) -> None:
    url = fresh_database()
    asyncio.run(prepare(url, "coordinator"))
    with pytest.raises(SchemaError, match="database of the coordinator"):
        asyncio.run(prepare(url, "aggregator"))


def test_an_unknown_schema_is_refused_untouched(fresh_database: Fresh) -> None:
    url = fresh_database()

    async def from_the_future(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute("UPDATE alembic_version SET version_num = ?", "9999")

    on(url, from_the_future)
    file = Path(url.removeprefix("sqlite:///"))
    before = file.read_bytes() if file.exists() else b""
    with pytest.raises(SchemaError, match="9999"):
        asyncio.run(connect(url, "coordinator"))
    assert before == (file.read_bytes() if file.exists() else b"")


def test_tables_of_another_program_are_refused(fresh_database: Fresh) -> None:
    url = fresh_database()

    async def spoil(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute("DROP TABLE alembic_version")

    on(url, spoil)
    with pytest.raises(SchemaError, match="tables of another program"):
        asyncio.run(connect(url, "coordinator"))


def test_the_migrations_make_the_tables_of_the_schema(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/made.sqlite"
    asyncio.run(prepare(url, "coordinator"))
    engine = create_engine(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), TABLES) == []
    engine.dispose()


def test_every_migration_is_listed_in_revisions() -> None:
    scripts = ScriptDirectory.from_config(migration_config())
    assert (
        tuple(script.revision for script in reversed(list(scripts.walk_revisions()))) == REVISIONS
    )


def test_a_database_of_an_older_schema_is_brought_up_to_date_with_what_is_in_it(
    fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = fresh_database()

    async def old(database: Database) -> None:
        async with database.write() as tx:
            await tx.execute(PUT, b"a", "late", 7)

    async def new(database: Database) -> None:
        async with database.read() as tx:
            (found,) = await tx.fetch_all("SELECT count, note FROM rejections")
        assert (found["count"], found["note"]) == (7, "none")

    on(url, old)
    know_second_schema(monkeypatch, tmp_path)
    on(url, new)
    on(url, new)  # nothing is left to do


def test_several_workers_may_create_the_schema_at_once(fresh_database: Fresh) -> None:
    url = fresh_database()

    async def work() -> None:
        databases = await asyncio.gather(*(connect(url, "coordinator") for _ in range(3)))
        for database in databases:
            await database.close()

    asyncio.run(work())


def test_other_urls_and_databases_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises((ParameterError, StorageError)):
        asyncio.run(connect("mysql://localhost/x", "coordinator"))
    with pytest.raises(StorageError, match="cannot be opened"):
        asyncio.run(connect(f"sqlite:///{tmp_path}/none/x.sqlite", "coordinator"))
    with pytest.raises(StorageError):
        asyncio.run(connect(f"postgresql://nobody@/x?host={tmp_path}", "coordinator"))


def test_question_marks_become_numbered_placeholders() -> None:
    assert number_placeholders("SELECT ? WHERE x = ?") == "SELECT $1 WHERE x = $2"
    assert marks([1, 2, 3]) == "(?, ?, ?)"
