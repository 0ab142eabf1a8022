"""Files of a server: closed to others, and not restored while the server runs."""

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from faircount.cli import main
from faircount.core.files import lock_file
from faircount.demo.processes import Process, free_port
from faircount.server.common.settings import CoordinatorSettings
from faircount.server.run import open_server


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def open_and_write(settings: CoordinatorSettings) -> dict[str, int]:
    """The rights of all files of a database while it is open."""
    server = await open_server(settings)
    async with server.database.write() as tx:
        await tx.execute("UPDATE meta SET value = value WHERE name = 'role'")
    found = {path.name: mode(path) for path in settings.folder.glob("database.sqlite*")}
    await server.database.close()
    return found


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that was there before and that everybody can enter."""
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def test_a_database_is_private_also_in_a_folder_that_is_not(open_folder: Path) -> None:
    settings = CoordinatorSettings(data=str(open_folder))
    modes = asyncio.run(open_and_write(settings))
    assert set(modes) == {"database.sqlite", "database.sqlite-wal", "database.sqlite-shm"}
    assert set(modes.values()) == {0o600}
    # One that an earlier version left open to others is closed.
    (open_folder / "database.sqlite").chmod(0o644)
    assert set(asyncio.run(open_and_write(settings)).values()) == {0o600}


def test_a_database_that_is_refused_is_not_touched(open_folder: Path) -> None:
    file = open_folder / "database.sqlite"
    with closing(sqlite3.connect(file)) as foreign:
        foreign.execute("CREATE TABLE other (id)")
    file.chmod(0o644)
    with pytest.raises(Exception, match="another program"):
        asyncio.run(open_and_write(CoordinatorSettings(data=str(open_folder))))
    assert mode(file) == 0o644


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_a_restore_is_refused_however_the_running_server_got_its_port(tmp_path: Path) -> None:
    """The port is on the command line of the server, where `restore` cannot read it."""
    data = tmp_path / "data"
    private = free_port()
    ports = ("--port", str(free_port()), "--private-port", str(private))
    command = ("faircount", "coordinator", "--data", str(data), *ports)
    process = Process.start(command, tmp_path / "log")
    backup = tmp_path / "backup.sqlite"
    try:
        process.wait_until(partial(is_ready, private), 120, "the coordinator")
        invoke = CliRunner().invoke
        assert (
            invoke(main, ["backup", "coordinator", str(backup), "--data", str(data)]).exit_code == 0
        )
        restore = ["restore", "coordinator", str(backup), "--data", str(data)]
        refused = invoke(main, restore)
        assert refused.exit_code != 0
        assert "stop it first" in refused.output
    finally:
        process.stop()
    assert invoke(main, restore).exit_code == 0


def test_servers_share_a_lock_that_a_restore_does_not(tmp_path: Path) -> None:
    file = tmp_path / "database"
    with (
        lock_file(file, shared=True),
        lock_file(file, shared=True),
        pytest.raises(Exception, match="another program"),
        lock_file(file),
    ):
        pass
    with lock_file(file):
        pass
