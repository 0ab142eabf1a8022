"""The commands and programs of a page, run as they stand beside both servers of a trial.

They run in a fresh Python, or with `quick_python()` in processes that have their modules already.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from quick_python import command_for_shell

from faircount.demo.processes import Process, free_port

DOCS = Path(__file__).parents[2] / "docs"
SERVE = "faircount serve trial\n"
LONGEST = 300


def blocks_of(page: str) -> list[tuple[str, str]]:
    """Kind and content of every block of a page that is run; the first starts the servers."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def put_on_path(folder: Path, python: str = sys.executable) -> None:
    """Make `faircount` a command of this folder, for `shell_settings`."""
    program = folder / "bin" / "faircount"
    program.parent.mkdir()
    program.write_text(command_for_shell(python))
    program.chmod(0o755)


def shell_settings(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of somebody who works in this folder."""
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(folder), **settings}


@contextmanager
def served_trial(folder: Path, python: str = sys.executable) -> Iterator[None]:
    """Run both servers in a folder that has faircount on its path; only the ports differ."""
    put_on_path(folder, python)
    ports = ("--s1-port", str(free_port()), "--s2-port", str(free_port()))
    with patch.object(sys, "executable", python):
        serving = Process.start((*SERVE.split(), *ports), folder / "serve.log")
    try:
        serving.wait_until(Path("trial/servers.json").exists, 120, "faircount serve")
        yield
    finally:
        serving.stop()


def run_block(
    kind: str, block: str, place: Path, python: str = sys.executable, **settings: str
) -> str:
    """What a block prints; it must succeed."""
    command = [python, "-c", block]
    if kind == "sh":
        command = ["/bin/bash", "-e", "-o", "pipefail", "-c", block]
    done = subprocess.run(
        command,
        env=shell_settings(place, **settings),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout
