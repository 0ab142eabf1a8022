"""The README's commands for a survey on one machine run as they stand there; only the ports are others."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from faircount.service.processes import Process, free_port

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PART = README[README.index("## Run a survey") : README.index("## In Python")]
SERVE, OWNER = re.findall(r"^```sh\n(.*?)^```$", PART, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_a_trial_as_the_readme_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = (*SERVE.split(), "--s1-port", str(free_port()), "--s2-port", str(free_port()))
    serving = Process.start(arguments, tmp_path / "serve.log")
    try:
        serving.wait_until(Path("trial/servers.json").exists, 120, "faircount serve")
        program = tmp_path / "bin" / "faircount"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faircount "$@"\n')
        program.chmod(0o755)
        settings = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(
            ["/bin/bash", "-e", "-c", OWNER], env=settings, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "1 of 300 invited; at least 285 are needed" in done.stdout
        assert "TRIAL: both servers run on this machine" in (tmp_path / "serve.log").read_text()
    finally:
        serving.stop()
    end = time.monotonic() + 30
    while _listening(tmp_path) and time.monotonic() < end:
        time.sleep(0.2)
    assert not _listening(tmp_path)  # the servers ended with the command that started them


def _listening(folder: Path) -> bool:
    import json
    import socket

    known = json.loads((folder / "trial" / "servers.json").read_text())
    for each in known.values():
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", int(each["address"].rsplit(":", 1)[1]))) == 0:
                return True
    return False
