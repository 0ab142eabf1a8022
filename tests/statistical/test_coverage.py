"""Every interval at every n: coverage by enumeration, and width against an oracle.

The numbers are those of docs/explanation/coverage.md, of which `tests/docs/test_pages.py` computes a part again, and
`make coverage` all of it.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "coverage.md"


@dataclass(frozen=True)
class Line:
    """A line of a table: its words, and the numbers in the columns after them."""

    words: tuple[str, ...]
    numbers: tuple[float, ...]


def lines(header: str, words: int) -> list[Line]:
    """The lines of all tables of the page that begin with this header; the first columns are words."""
    found, inside = [], False
    for line in PAGE.read_text().splitlines():
        inside = line.startswith(header) or (inside and line.startswith("|"))
        cells = [cell.strip().strip("*") for cell in line.strip("|").split("|")]
        if inside and not line.startswith((header, "|---")):
            found.append(Line(tuple(cells[:words]), tuple(map(float, cells[words:]))))
    return found


@pytest.fixture(scope="module")
def rows() -> list[Line]:
    return lines("| mechanism | n | coverage |", 2)


def test_every_interval_covers(rows: list[Line]) -> None:
    assert min(row.numbers[0] for row in rows) >= 0.94
    exact = [row for row in rows if not row.words[0].startswith("PM")]
    assert min(row.numbers[0] for row in exact) >= 0.95
    assert {row.words[1] for row in rows} == {"50", "300", "1000", "5000"}
    # Covers, n, mechanisms for frequencies, ratios, mechanisms for means; the five whose counts are
    # fitted to the total have no line for a population of the largest n.
    assert len(rows) == 2 * 4 * (19 + 3 + 4) - 5


def test_coverage_is_not_bought_with_width(rows: list[Line]) -> None:
    """Within 10% of an oracle that knows the variance from n = 1000 on; 3% at n = 5000, but for Laplace's steps."""
    frequency = [row for row in rows if not row.words[0].startswith(("PM", "Duchi"))]
    assert max(row.numbers[3] for row in frequency if int(row.words[1]) >= 1000) < 1.10
    smooth = [
        row
        for row in frequency
        if row.words[1] == "5000" and not row.words[0].startswith("Laplace")
    ]
    assert max(row.numbers[3] for row in smooth) < 1.03


def test_intervals_of_groups_cover_and_are_not_bought_with_width() -> None:
    """A single holder, 1/12 and 30% of 80 users in two groups."""
    rows = lines("| mechanisms | weights |", 2)
    assert min(row.numbers[0] for row in rows) >= 0.95
    assert max(row.numbers[4] for row in rows if row.words[1] == "total") < 1.35
    assert max(row.numbers[5] for row in rows) < 1.15
