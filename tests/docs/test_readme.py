"""The README is short, and its blocks run as they are pasted, in an empty folder."""

import re
import subprocess
from pathlib import Path

import pytest
from page_blocks import LONGEST, SERVE, put_on_path, run_block, served_trial, shell_settings

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MAX_WORDS = 750
"""Code, tables and links included."""


def split_first(blocks: list[tuple[str, str]]) -> tuple[str, list[tuple[str, str]]]:
    """The commands after the installation, and the other blocks."""
    (kind, first), *others = blocks
    install, _, commands = first.partition("\n")
    assert (kind, install) == ("sh", "python -m pip install '.[service,plot]' pandas")
    return commands, others


def test_the_page_comes_first() -> None:
    commands, _ = split_first(BLOCKS)
    assert commands.split("#")[0].strip() == "faircount demo --page"


@pytest.mark.slow
def test_the_demo_runs_as_pasted(tmp_path: Path) -> None:
    """Whoever presses Enter without an answer still reads the result of the others."""
    commands, _ = split_first(BLOCKS)
    put_on_path(tmp_path)
    done = subprocess.run(
        ["/bin/bash", "-e", "-c", commands],
        cwd=tmp_path,
        env=shell_settings(tmp_path),
        input="\n\n",
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "119 people are counted" in " ".join(done.stdout.split())


@pytest.mark.slow
def test_the_blocks_run_as_pasted_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`faircount serve` runs beside them, as in its terminal; only its ports differ."""
    monkeypatch.chdir(tmp_path)
    _, ((kind, serve), *blocks) = split_first(BLOCKS)
    assert (kind, serve) == ("sh", SERVE)
    assert [kind for kind, _ in blocks] == ["sh", "python", "sh"]
    with served_trial(tmp_path):
        printed = [run_block(kind, block, tmp_path) for kind, block in blocks]
    survey, histogram, commands = (" ".join(text.split()) for text in printed)
    assert "119 simulated people have answered." in survey
    assert "120 people counted, 3 items" in survey
    assert "Brackwater" in histogram
    assert "laplace, 800 users, 4 items" in commands
    assert "800 users, 4 items, epsilon 1" in commands
    assert "Recommendation: run laplace" in commands
    serving = " ".join((tmp_path / "serve.log").read_text().split())
    assert "TRIAL: both servers run on this machine" in serving


def test_the_readme_is_short_and_shows_both_pages() -> None:
    assert len(TEXT.split()) <= MAX_WORDS
    for command in ("make demo", "make test"):
        assert command in TEXT
    for picture in ("question.png", "dashboard.png"):
        assert f"docs/images/{picture}" in TEXT.split("## Three ways in")[0]


def test_the_errors_in_the_comparison_are_those_of_the_planner() -> None:
    from faircount.planning.plan import compare_mechanisms

    options = {
        option.name: option
        for option in compare_mechanisms(users=800, items=12, epsilon=1.0, delta=1e-6).options
    }
    shown = {"laplace": "±0.70%", "server-joint": "±0.88%", "oue": "±13%"}
    for name, error in shown.items():
        half_width = 100 * options[name].half_width_95
        assert error in TEXT
        assert float(error[1:-1]) == float(f"{half_width:.2g}")
