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
