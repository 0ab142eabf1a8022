"""Runs every cell of docs/pandas.md and writes the output into it. `--check` fails if the page is out of date."""

from pathlib import Path

from cells import render
from page import write

if __name__ == "__main__":
    write("pandas.md", render(Path(__file__).with_name("pandas.md").read_text(encoding="utf-8")))
