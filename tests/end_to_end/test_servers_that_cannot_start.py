"""Servers that cannot start say why in one sentence, and change nothing.

Every program here is a real process on this machine; each test stops what it has started.
"""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from quick_python import quick_processes, quick_python

from faircount.demo.processes import Process, free_port

SECONDS = 90


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    """What these tests start is forked from a process that has loaded its modules."""
    with quick_processes():
        yield


@contextmanager
def busy_port() -> Iterator[str]:
    """A port on which a program listens that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield str(listener.getsockname()[1])


def fail(folder: Path, *arguments: str) -> str:
    """The one sentence that a command prints before it ends with an error."""
    done = subprocess.run(
        [quick_python(), "-m", "faircount", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert "listening" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("faircount: ")
    return line


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("role", ["coordinator", "aggregator"])
@pytest.mark.parametrize("which", ["--port", "--private-port"])
def test_a_server_whose_port_is_used(tmp_path: Path, role: str, which: str) -> None:
    other = "--private-port" if which == "--port" else "--port"
    with busy_port() as port:
        line = fail(tmp_path, role, "--data", "data", which, port, other, str(free_port()))
    assert f"the {role} cannot listen on 127.0.0.1 port {port}: address already in use" in line
    assert names_in(tmp_path) == set()


def test_a_server_whose_folder_another_one_uses(tmp_path: Path) -> None:
    first = ("--data", str(tmp_path / "data"), "--private-port", "-1")
    running = Process.start(
        ("faircount", "aggregator", *first, "--port", str(free_port())), tmp_path / "log"
    )
    try:
        running.wait_until(lambda: "listening" in (tmp_path / "log").read_text(), SECONDS, "it")
        before = (tmp_path / "data" / "owner-token").read_bytes()
        line = fail(tmp_path, "aggregator", *first, "--port", str(free_port()))
        assert "another program works with" in line
        assert (tmp_path / "data" / "owner-token").read_bytes() == before
    finally:
        running.stop()


@pytest.mark.parametrize("which", ["--s1-port", "--s2-port"])
def test_a_trial_whose_port_is_used(tmp_path: Path, which: str) -> None:
    other = "--s2-port" if which == "--s1-port" else "--s1-port"
    with busy_port() as port:
        line = fail(tmp_path, "serve", "trial", which, port, other, str(free_port()))
    assert f"cannot listen on port {port}: address already in use" in line
    assert names_in(tmp_path) == set()


def test_a_trial_in_a_folder_that_another_one_uses_and_without_its_token(tmp_path: Path) -> None:
    def ports() -> tuple[str, ...]:
        return ("--s1-port", str(free_port()), "--s2-port", str(free_port()))

    folder = tmp_path / "trial"
    serving = Process.start(("faircount", "serve", str(folder), *ports()), tmp_path / "log")
    try:
        serving.wait_until((folder / "servers.json").exists, SECONDS, "faircount serve")
        before = (folder / "servers.json").read_bytes()
        assert "another program works with" in fail(tmp_path, "serve", "trial", *ports())
        assert (folder / "servers.json").read_bytes() == before
    finally:
        serving.stop()
    (folder / "s1" / "owner-token").unlink()
    line = fail(tmp_path, "serve", "trial", *ports())
    assert "faircount coordinator --data trial/s1 --add-token owner > trial/s1/owner-token" in line
    assert (folder / "servers.json").read_bytes() == before


def test_a_dashboard_whose_port_or_folder_is_used_or_whose_token_is_missing(
    tmp_path: Path,
) -> None:
    access = {"address": "http://127.0.0.1:9", "token": "secret"}
    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"s1": access, "s2": access}))
    start = ("dashboard", str(tmp_path / "surveys"), "--servers", str(servers))
    with busy_port() as port:
        assert "address already in use" in fail(tmp_path, *start, "--port", port)
    assert names_in(tmp_path) == {"servers.json"}
    running = Process.start(("faircount", *start, "--port", "0"), tmp_path / "log")
    try:
        running.wait_until(lambda: "http://" in (tmp_path / "log").read_text(), SECONDS, "it")
        assert "another program works with" in fail(tmp_path, *start, "--port", "0")
    finally:
        running.stop()
    for token in ({}, {"token": ""}):
        without = {"address": "http://127.0.0.1:9", **token}
        servers.write_text(json.dumps({"s1": without, "s2": access}))
        assert "servers.json must be JSON" in fail(tmp_path, *start, "--port", "0")
