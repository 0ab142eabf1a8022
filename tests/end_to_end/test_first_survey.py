"""The tutorial "Your first survey" runs as it is written; only the ports differ."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from faircount.demo.processes import Process, free_port

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "first-survey.md"
BLOCKS = re.findall(
    r"^```(sh|python)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
LONGEST = 300


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder with faircount on its path, where both servers run until the test is over."""
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "bin" / "faircount"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faircount "$@"\n')
    program.chmod(0o755)
    _, serve = BLOCKS[0]
    assert serve == "faircount serve trial\n"
    ports = ("--s1-port", str(free_port()), "--s2-port", str(free_port()))
    serving = Process.start((*serve.split(), *ports), tmp_path / "serve.log")
    try:
        serving.wait_until(Path("trial/servers.json").exists, 120, "faircount serve")
        yield tmp_path
    finally:
        serving.stop()


def run(kind: str, block: str, place: Path) -> str:
    command = (
        ["/bin/bash", "-e", "-o", "pipefail", "-c", block]
        if kind == "sh"
        else [sys.executable, "-c", block]
    )
    settings = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place)}
    done = subprocess.run(
        command, env=settings, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_first_survey_goes_as_the_tutorial_says(place: Path) -> None:
    printed = "\n".join(run(kind, block, place) for kind, block in BLOCKS[1:])
    assert "117 of 120 invited" in printed
    assert "117 people counted, 3 items" in printed
    assert "counts your answer" in printed
