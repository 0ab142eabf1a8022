from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from faircount.cli import main

Call = Callable[..., Result]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs a command in an empty folder; a bug shows as its own exception."""
    monkeypatch.chdir(tmp_path)

    def invoke(line: str, *more: str) -> Result:
        return CliRunner().invoke(main, [*line.split(), *more], catch_exceptions=False)

    return invoke


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """600 answers of 6 cities, one of them with a comma, one that nobody gave."""
    rows = [
        '"Brook, Lower"' if i % 3 == 1 else "Zürich" if i % 5 else "Aldmoor" for i in range(600)
    ]
    lines = [
        f"{i},{city},{'strict' if i % 2 else 'open'},{1 + i % 2}" for i, city in enumerate(rows)
    ]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["id,city,level,budget", *lines]) + "\n", encoding="utf-8")
    (tmp_path / "cities.txt").write_text(
        "Aldmoor\nBrook, Lower\nZürich\nNowhere\n", encoding="utf-8"
    )
    return path
