"""The how-to guides for operators, word for word: two folders are two organizations, and every
command runs in order.

Only the port numbers differ, so that several runs do not meet.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from quick_python import command_for_shell, quick_python

from faircount.cli import main
from faircount.demo.processes import free_port

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
SEQUENCE = ("operate-two-servers.md", "back-up-and-restore.md", "end-a-survey.md")
"""Pages whose commands continue each other."""

PAGES = [
    (HOW_TO / name).read_text(encoding="utf-8")
    for name in (*SEQUENCE, "manage-tokens-and-surveys.md", "deploy.md", "use-the-dashboard.md")
]
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", "\n".join(PAGES), re.MULTILINE | re.DOTALL)
TEXT = re.sub(r"^```.*?^```$", "", "\n".join(PAGES), flags=re.MULTILINE | re.DOTALL)
MAX_SECONDS = 300


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
def test_a_command_in_the_text_exists(line: str) -> None:
    """Commands in blocks are run below; of those in the text, names and options are checked."""
    words = line.split()
    command: click.Command | None = main
    while isinstance(command, click.Group) and words:
        command = command.get_command(click.Context(command), words.pop(0))
    assert command is not None, line
    known = set[str]()
    for parameter in command.params:
        known.update(parameter.opts)
    assert {word for word in words if word.startswith("--")} <= known


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with faircount on its path; servers that are left over are stopped, each by
    its process id.
    """
    program = tmp_path / "bin" / "faircount"
    program.parent.mkdir()
    program.write_text(command_for_shell(quick_python()))
    program.chmod(0o755)
    yield tmp_path
    for file in tmp_path.glob("*/*.pid"):
        number = int(file.read_text())
        if process_exists(number):
            os.kill(number, signal.SIGKILL)


def paste(blocks: list[str], place: Path) -> str:
    """What one terminal shows after all blocks were pasted into it, one after the other.

    The shell reads them from its standard input: a command that asks something would swallow the
    commands after it.
    """
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    typed = place / "typed"
    typed.write_text("".join(blocks))
    # Into a file: a pipe would stay open as long as a server runs.
    with (place / "output").open("w+") as output, typed.open() as source:
        done = subprocess.run(
            ["/bin/bash", "-e", "-v", "-o", "pipefail"],
            cwd=place,
            env={**os.environ, "PATH": path, "HOME": str(place)},
            stdin=source,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=MAX_SECONDS,
            check=False,
        )
        output.seek(0)
        printed = output.read()
    logs = "".join(log.read_text() for log in place.glob("*/*.log"))
    assert done.returncode == 0, f"{printed}\n{logs}"
    return printed


@pytest.mark.slow
def test_two_organizations_follow_the_guides_word_for_word(place: Path) -> None:
    ports = {"8461": str(free_port()), "8462": str(free_port())}
    blocks = [re.sub("8461|8462", lambda found: ports[found[0]], block) for block in BLOCKS]
    everything = paste(blocks, place)
    assert "6 people can be invited" in everything
    assert everything.count("The server has acknowledged your answer.") == 4
    assert "4 of 6 people; the minimum of 3 is reached" in everything
    assert "2 people have not answered yet" in everything
    assert "4 people counted, 3 items" in everything
    assert "counts your answer: this device has checked the proof" in everything
    assert "Closed until its reservations are shown (faircount reopen): customers" in everything
    assert "customers is open again: epsilon 2 of 6 is spent" in everything
    assert "Both servers have removed the survey" in everything
    pids = [int(file.read_text()) for file in place.glob("*/*.pid")]
    end = time.monotonic() + 60
    while any(map(process_exists, pids)) and time.monotonic() < end:
        time.sleep(0.2)
    assert not any(map(process_exists, pids))
