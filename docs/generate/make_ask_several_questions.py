"""Runs everything that docs/how-to/ask-several-questions.md shows and writes the output into it.
`--check` fails if the page is out of date.

The page's first ```toml block is the file staff.toml of all that follows; everything else is as in
`make_analyse_a_table.py`.
"""

import re
import tempfile
from pathlib import Path

from make_analyse_a_table import render
from page import DOCS, write

NAME = "how-to/ask-several-questions.md"
FORM = re.compile(r"^```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    page = (DOCS / NAME).read_text(encoding="utf-8")
    form = FORM.search(page)
    if form is None:
        raise SystemExit(f"{NAME} shows no questionnaire")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "staff.toml").write_text(form.group(1), encoding="utf-8")
        write(NAME, render(page, Path(folder)))
