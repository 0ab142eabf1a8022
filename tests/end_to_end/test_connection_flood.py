"""A real coordinator with few open files, while one address holds all the connections it gets."""

import resource
import socket
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

from faircount.demo.processes import Process, free_port

FILES = 256
CALLERS = 260
MAX_LOG = 200_000


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def is_served(port: int, sender: str) -> bool:
    transport = httpx.HTTPTransport(local_address=sender)
    with httpx.Client(transport=transport, timeout=30) as client:
        return client.get(f"http://127.0.0.1:{port}/page.json").status_code == 200


@pytest.mark.slow
def test_one_address_that_sends_nothing_keeps_nobody_out(tmp_path: Path) -> None:
    port = free_port()
    private = free_port()
    log = tmp_path / "log"
    ports = ("--port", str(port), "--private-port", str(private))
    command = ("faircount", "coordinator", "--data", str(tmp_path / "s1"), *ports)
    process = Process.start(command, log)
    # Long before it listens: it takes a second to load.
    resource.prlimit(process.running.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    callers = list[socket.socket]()
    try:
        process.wait_until(partial(is_ready, private), 120, "the coordinator")
        for _ in range(CALLERS):
            callers.append(socket.create_connection(("127.0.0.1", port), timeout=30))
        began = time.monotonic()
        assert is_served(port, "127.0.0.2")
        assert is_ready(private)
        print(f"somebody else waits {time.monotonic() - began:.3f} s")
        # After the time for headers all of them are closed, and their address is served again.
        for caller in callers:
            try:
                assert caller.recv(1) == b""
            except ConnectionError:
                continue
        print(f"all are closed after {time.monotonic() - began:.1f} s")
        assert is_served(port, "127.0.0.1")
    finally:
        for caller in callers:
            caller.close()
        process.stop()
    print(f"the log has {log.stat().st_size} bytes")
    assert log.stat().st_size < MAX_LOG
