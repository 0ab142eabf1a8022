"""Pages that scripts of this folder write: `--check` shows what would change instead, and fails if
anything would.
"""

import difflib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[1]


def write(name: str, text: str) -> None:
    """Write docs/NAME, or with `--check` on the command line compare it with what stands there, and
    end the program.
    """
    page = DOCS / name
    if "--check" not in sys.argv[1:]:
        page.write_text(text, encoding="utf-8")
        return
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    sys.stdout.writelines(
        difflib.unified_diff(before.splitlines(True), text.splitlines(True), name, "today")
    )
    sys.exit(0 if before == text else f"docs/{name} is out of date: run make docs")


def is_partial_check() -> bool:
    """Whether only a part of what takes long is computed again: `--check` without `--whole`."""
    return "--check" in sys.argv[1:] and "--whole" not in sys.argv[1:]


@dataclass(frozen=True)
class Line:
    """A line of a table that takes long to compute. `--check` computes it only if `again`, or with
    `--whole`.

    page:    the page that it belongs to
    heading: words of the heading of its section
    start:   its first columns, by which it is found there
    numbers: computes the rest
    again:   whether `--check` computes it; if not, it stands in what is compared as it stands on the page
    """

    page: str
    heading: str
    start: str
    numbers: Callable[[], str]
    again: bool

    def text(self) -> str:
        """The line; what stands on the page where it is not computed."""
        if is_partial_check() and not self.again:
            return self._standing()
        return self.start + self.numbers()

    def _standing(self) -> str:
        inside = False
        for line in (DOCS / self.page).read_text(encoding="utf-8").splitlines():
            inside = self.heading in line if line.startswith("## ") else inside
            if inside and line.startswith(self.start):
                return line
        return f"{self.start}is missing"


def numbers_of(line: str) -> list[float]:
    """The columns of a line that are numbers."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return [float(cell) for cell in cells if re.fullmatch(r"-?[0-9.]+", cell)]
