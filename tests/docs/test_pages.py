"""Pages that print computed numbers are what their scripts write today."""

import subprocess
import sys
from pathlib import Path

import page
import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(each.name for each in DOCS.glob("make_*.py")))
def test_the_page_is_up_to_date(script: str) -> None:
    done = subprocess.run([sys.executable, str(DOCS / script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def test_a_page_that_differs_is_noticed(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(page, "HERE", tmp_path)
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


def test_of_costly_lines_some_are_computed_and_the_others_stand_as_they_are(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(page, "HERE", tmp_path)
    (tmp_path / "one.md").write_text("## first part\n| a | 1 |\n| b | 2 |\n## other part\n| a | 3 |\n")
    monkeypatch.setattr(sys, "argv", ["make_one.py", "--check"])

    def text(start: str, *, again: bool) -> str:
        return page.Line("one.md", "other part", start, lambda: "9 |", again).text()

    assert text("| a | ", again=False) == "| a | 3 |"
    assert text("| a | ", again=True) == "| a | 9 |"
    assert text("| b | ", again=False) == "| b | is missing"  # it stands in another part only
    monkeypatch.setattr(sys, "argv", ["make_one.py", "--check", "--whole"])
    assert text("| a | ", again=False) == "| a | 9 |"


@pytest.mark.parametrize("covers", ["users", "population"])
def test_every_mechanism_and_every_n_of_the_coverage_page_is_computed_again_somewhere(covers: str) -> None:
    import make_coverage

    def columns(lines: list[page.Line]) -> list[set[str]]:  # mechanisms, numbers of users
        return [{each.start.split(" | ")[column] for each in lines} for column in (0, 1)]

    every = make_coverage.lines(covers)
    again = [each for each in every if each.again]
    assert columns(again) == columns(every)
    assert len(again) == len(every) / len(make_coverage.USERS)


def test_links_between_pages_lead_somewhere() -> None:
    import re

    root = DOCS.parent
    broken = []
    for each_page in [*root.glob("*.md"), *DOCS.rglob("*.md")]:
        targets = [each for each in re.findall(r"\]\(([^)#\s]+)", each_page.read_text()) if "://" not in each]
        broken += [
            f"{each_page.relative_to(root)} -> {each}" for each in targets if not (each_page.parent / each).exists()
        ]
    assert not broken
