"""Runs every cell of docs/tutorials/first-histogram.md and writes the output into it.

`--check` fails if the page is out of date.
"""

from cells import render
from page import DOCS, write

NAME = "tutorials/first-histogram.md"

if __name__ == "__main__":
    write(NAME, render((DOCS / NAME).read_text(encoding="utf-8")))
