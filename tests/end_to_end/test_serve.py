"""However `faircount serve` ends, its two servers end with it."""

import socket
import time
from pathlib import Path

import pytest

from faircount.cli.servers import _wait_for_failure
from faircount.core.errors import FaircountError
from faircount.demo.processes import Process, free_port
from faircount.demo.trial import Trial

START_SECONDS = 120.0
STOP_SECONDS = 60.0


@pytest.fixture
def ports() -> tuple[int, int]:
    return free_port(), free_port()


def start_serving(command: list[str], ports: tuple[int, int], log: Path) -> Process:
    options = ("--s1-port", str(ports[0]), "--s2-port", str(ports[1]))
    return Process.start((*command, *options), log)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def check_servers_end(ports: tuple[int, int]) -> None:
    end = time.monotonic() + STOP_SECONDS
    while any(map(is_listening, ports)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(is_listening, ports))


@pytest.mark.slow
def test_the_servers_end_when_serve_is_killed(tmp_path: Path, ports: tuple[int, int]) -> None:
    folder = tmp_path / "trial"
    serving = start_serving(["faircount", "serve", str(folder)], ports, tmp_path / "log")
    try:
        serving.wait_until((folder / "servers.json").exists, START_SECONDS, "faircount serve")
        assert all(map(is_listening, ports))
    finally:
        serving.kill()
    check_servers_end(ports)


def test_a_server_that_ends_is_named_with_what_to_do(tmp_path: Path) -> None:
    ended = Process.start(("faircount", "--version"), tmp_path / "s1.log")
    running = Trial(tmp_path, (1, 2), ended, ended)
    with pytest.raises(FaircountError, match=r"the coordinator has stopped.* again\..*s1\.log"):
        _wait_for_failure(running)
    ended.stop()  # releases its standard input
