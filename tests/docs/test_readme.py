"""The README is short, and its programs run; its survey is run by
`tests/end_to_end/test_readme_survey.py`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MOST_WORDS = 750
"""Code, tables and links included."""


def test_there_is_something_to_run() -> None:
    assert len(PROGRAMS) >= 2


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_readmes_programs_run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_the_readme_is_short_and_shows_both_pages() -> None:
    assert len(TEXT.split()) <= MOST_WORDS
    for command in ("make demo", "make test"):
        assert command in TEXT
    for picture in ("question.png", "dashboard.png"):
        assert f"docs/images/{picture}" in TEXT.split("## Three ways in")[0]


def test_the_errors_in_the_comparison_are_those_of_the_planner() -> None:
    import faircount as fc

    options = {
        option.name: option
        for option in fc.plan(users=800, items=12, epsilon=1.0, delta=1e-6).options
    }
    shown = {"laplace": "±0.70%", "server-laplace": "±0.97%", "oue": "±13%"}
    for name, error in shown.items():
        half_width = 100 * options[name].half_width_95
        assert error in TEXT
        assert float(error[1:-1]) == float(f"{half_width:.2g}")
