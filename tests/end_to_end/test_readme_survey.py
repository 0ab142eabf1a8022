"""`faircount serve`, and the README's commands for a survey on one machine.

The commands run as they stand there, except that the ports are free ones. However `faircount serve`
ends, its two servers end with it.
"""

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faircount.demo.processes import Process, free_port

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README[README.index("### Ask a question") : README.index("### Analyse a table")]
SERVE, OWNER = re.findall(r"^```sh\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)

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
def test_a_survey_as_in_the_readme(
    tmp_path: Path, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    serving = start_serving(SERVE.split(), ports, tmp_path / "serve.log")
    try:
        serving.wait_until(Path("trial/servers.json").exists, START_SECONDS, "faircount serve")
        program = tmp_path / "bin" / "faircount"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faircount "$@"\n')
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/bash", "-e", "-c", OWNER],
            env={**os.environ, "PATH": path, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "1 of 300 invited; at least 75 are needed" in done.stdout
        assert "TRIAL: both servers run on this machine" in (tmp_path / "serve.log").read_text()
    finally:
        serving.stop()
    check_servers_end(ports)


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
