"""`faircount serve` killed in the middle: its two servers end by themselves."""

import socket
import time
from pathlib import Path

import pytest

from faircount.service.processes import Process, free_port

LONGEST = 60.0


def listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_servers_end_when_the_command_that_started_them_is_killed(tmp_path: Path) -> None:
    folder, ports = tmp_path / "trial", (free_port(), free_port())
    named = ("--s1-port", str(ports[0]), "--s2-port", str(ports[1]))
    serving = Process.start(("faircount", "serve", str(folder), *named), tmp_path / "log")
    try:
        serving.wait_until((folder / "servers.json").exists, 120, "faircount serve")
        assert all(map(listens, ports))
    finally:
        serving.kill()
    end = time.monotonic() + LONGEST
    while any(map(listens, ports)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not any(map(listens, ports))
