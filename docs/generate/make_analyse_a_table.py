"""Runs everything that docs/how-to/analyse-a-table.md shows and writes the output into it.
`--check` fails if the page is out of date.

    ```console   each line that begins with `$ faircount` is run, and what follows it is replaced by its output
    ```python    is run as a program; the ```text block right after it, if any, is replaced by its output

All of it happens in one temporary folder, top to bottom, so a block may use the files of an earlier
one.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from page import DOCS, write

NAME = "how-to/analyse-a-table.md"

BLOCK = re.compile(r"^```(console|python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FAILURE = "Traceback (most recent call last)"


def output_of(arguments: list[str], folder: Path) -> str:
    """What a program prints, first to standard output and then to standard error, without blanks at
    line ends.
    """
    source = DOCS.parent / "src"
    paths = os.pathsep.join(filter(None, (str(source), os.environ.get("PYTHONPATH"))))
    settings = {**os.environ, "PYTHONPATH": paths, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=settings,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if FAILURE in done.stderr:
        raise SystemExit(f"{shlex.join(arguments)} fails:\n{done.stderr}")
    lines = [line.rstrip() for line in (done.stdout + done.stderr).rstrip().splitlines()]
    return "".join(f"{line}\n" for line in lines)


def console(text: str, folder: Path) -> str:
    """A transcript with every command's output as it is today."""
    shown = []
    for command in commands(text):
        words = shlex.split(command.replace("\\\n", " "))
        if words[:2] != ["$", "faircount"]:
            raise SystemExit(f"only faircount commands can be shown: {command}")
        shown.append(f"{command}\n{output_of(['-m', 'faircount', *words[2:]], folder)}")
    return "\n".join(shown)


def commands(text: str) -> list[str]:
    """The commands of a transcript, each with its continued lines."""
    return re.findall(r"^\$ (?:.*\\\n)*.*$", text, re.MULTILINE)


def render(page: str, folder: Path) -> str:
    """The page with all output made again."""
    printed: str | None = None  # of the program just above
    parts, end = [], 0
    for block in BLOCK.finditer(page):
        kind, text = block.groups()
        between = page[end : block.start()]
        if kind == "console":
            text, printed = console(text, folder), None
        elif kind == "python":
            printed = output_of(["-c", text], folder)
        elif printed is not None and not between.strip():
            text, printed = printed, None
        parts.append(f"{between}```{kind}\n{text}```")
        end = block.end()
    return "".join([*parts, page[end:]])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(NAME, render((DOCS / NAME).read_text(encoding="utf-8"), Path(folder)))
