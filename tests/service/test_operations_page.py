"""docs/operations.md, word for word: two folders are two organizations, and every command runs in its order.

Only the port numbers are others, so that several runs do not meet.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from faircount.cli import main
from faircount.service.processes import free_port

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
TEXT = re.sub(r"^```.*?^```$", "", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
LONGEST = 300


def process_exists(number: int) -> bool:
    """Whether a process of this id runs."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@pytest.mark.parametrize("line", re.findall(r"`faircount ([^`]*)`", TEXT))
def test_a_command_in_the_text_is_one_that_there_is(line: str) -> None:
    """Blocks of commands are run below; these are not, but their names and options are right."""
    words = line.split()
    command: click.Command | None = main
    while isinstance(command, click.Group):
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, line
    known = {option for each in command.params for option in each.opts}
    assert {each for each in words if each.startswith("--")} <= known


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with faircount on its path; servers that are left over are stopped, each by its process id."""
    program = tmp_path / "bin" / "faircount"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faircount "$@"\n')
    program.chmod(0o755)
    yield tmp_path
    for each in tmp_path.glob("*/*.pid"):
        number = int(each.read_text())
        if process_exists(number):
            os.kill(number, signal.SIGKILL)


def run(block: str, place: Path) -> str:
    settings = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}", "HOME": str(place)}
    with (place / "output").open("w+") as output:  # a file: a pipe would stay open as long as a server runs
        done = subprocess.run(
            ["/bin/bash", "-e", "-o", "pipefail", "-c", block],
            cwd=place, env=settings, stdout=output, stderr=subprocess.STDOUT, timeout=LONGEST, check=False,
        )  # fmt: skip
        output.seek(0)
        said = output.read()
    logs = "".join(each.read_text() for each in place.glob("*/*.log"))
    assert done.returncode == 0, f"{block}\n{said}\n{logs}"
    return said


@pytest.mark.slow
def test_two_organizations_follow_the_page_word_for_word(place: Path) -> None:
    ports = {"8461": str(free_port()), "8462": str(free_port())}
    said = [run(re.sub("8461|8462", lambda found: ports[found[0]], block), place) for block in BLOCKS]
    everything = "\n".join(said)
    assert "6 people can be invited" in everything
    assert everything.count("The server has acknowledged what you sent.") == 4
    assert "4 of 6 invited; at least 3 are needed" in everything
    assert "2 people have not answered yet" in everything
    assert "4 people counted, 3 items" in everything
    assert "counts your answer: this device has checked the proof" in everything
    assert "Closed until its receipts are shown (faircount reopen): customers" in everything
    assert "customers is open again: epsilon 2 of 6 is spent" in everything
    assert "Both servers have removed the survey" in everything
    pids = [int(each.read_text()) for each in place.glob("*/*.pid")]
    end = time.monotonic() + 60
    while any(map(process_exists, pids)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not any(map(process_exists, pids))
