"""Runs the commands that docs/explanation/reproduction.md shows and writes the output into it.
`--check` fails if the page is out of date.

Only ```console blocks are run, as in `make_analyse_a_table.py`.
"""

import tempfile
from pathlib import Path

from make_analyse_a_table import render
from page import DOCS, write

NAME = "explanation/reproduction.md"


if __name__ == "__main__":
    page = (DOCS / NAME).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        write(NAME, render(page, Path(folder)))
