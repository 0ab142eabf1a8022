"""Pages that print computed numbers are what their scripts write today."""

import re
import subprocess
import sys
from pathlib import Path

import page
import pytest
from quick_python import quick_python

DOCS = Path(__file__).parents[2] / "docs"
GENERATE = DOCS / "generate"


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(path.name for path in GENERATE.glob("make_*.py")))
def test_the_page_is_up_to_date(script: str) -> None:
    done = subprocess.run(
        [quick_python(), str(GENERATE / script), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_page_that_differs_is_noticed(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(page, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["make_one.py"])
    page.write("one.md", "old\n")
    monkeypatch.setattr(sys, "argv", ["make_one.py", "--check"])
    with pytest.raises(SystemExit, match="is out of date: run make docs"):
        page.write("one.md", "new\n")
    assert "-old\n+new\n" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        page.write("one.md", "old\n")
    assert end.value.code == 0
    assert (tmp_path / "one.md").read_text() == "old\n"


def test_of_costly_lines_some_are_computed_and_the_others_stand_as_they_are(
    monkeypatch, tmp_path
) -> None:
    monkeypatch.setattr(page, "DOCS", tmp_path)
    (tmp_path / "one.md").write_text(
        "## first part\n| a | 1 |\n| b | 2 |\n## other part\n| a | 3 |\n"
    )
    monkeypatch.setattr(sys, "argv", ["make_one.py", "--check"])

    def text(start: str, *, again: bool) -> str:
        return page.Line("one.md", "other part", start, lambda: "9 |", again).text()

    assert text("| a | ", again=False) == "| a | 3 |"
    assert text("| a | ", again=True) == "| a | 9 |"
    assert text("| b | ", again=False) == "| b | is missing"  # it stands in another part only
    monkeypatch.setattr(sys, "argv", ["make_one.py", "--check", "--whole"])
    assert text("| a | ", again=False) == "| a | 9 |"


@pytest.mark.parametrize("covers", ["users", "population"])
def test_every_mechanism_and_every_n_of_the_coverage_page_is_computed_again_somewhere(
    covers: str,
) -> None:
    import make_coverage

    def columns(lines: list[page.Line]) -> list[set[str]]:  # mechanisms, numbers of users
        return [{line.start.split(" | ")[column] for line in lines} for column in (0, 1)]

    every = make_coverage.lines(covers)
    again = [line for line in every if line.again]
    assert columns(again) == columns(every)
    assert len(again) == len(columns(every)[0])


LINK = re.compile(r"\]\(([^)#\s]+)")


def broken_links(path: Path) -> list[str]:
    """Targets of a page's links to files that do not exist."""
    targets = LINK.findall(path.read_text(encoding="utf-8"))
    return [
        target for target in targets if "://" not in target and not (path.parent / target).exists()
    ]


@pytest.mark.parametrize(
    "path",
    [*DOCS.parent.glob("*.md"), *DOCS.rglob("*.md")],
    ids=lambda path: str(path.relative_to(DOCS.parent)),
)
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []
