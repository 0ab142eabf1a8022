"""Consoles of every encoding: ASCII where there is no UTF-8, and never a traceback."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import faircount
from faircount.cli.terminal import SPELLINGS

SOURCE = Path(faircount.__file__).parent
RUN = "run answers.csv --column city --domain @cities.txt --epsilon 1 --simulate-seed 1"
PLAN = "plan --users 800 --items 12 --epsilon 1 --delta 1e-6 --target-error 0.02"
CONSOLES = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "LC_ALL=C": {"LC_ALL": "C"},
    "LC_ALL=POSIX, no UTF-8 mode": {
        "LC_ALL": "POSIX",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    },
}
pytestmark = pytest.mark.usefixtures("answers")


def run_process(line: str, folder: Path, settings: dict[str, str]) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and standard error of a process of its own."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("LC_ALL", "LANG", "PYTHONIOENCODING")
    }
    arguments = [sys.executable, "-m", "faircount", *line.split()]
    done = subprocess.run(
        arguments, cwd=folder, env={**kept, **settings}, capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("console", CONSOLES)
def test_without_utf8_everything_is_ascii(tmp_path: Path, console: str) -> None:
    code, out, err = run_process(RUN, tmp_path, CONSOLES[console])
    assert (code, err) == (0, b"")
    shown = out.decode("ascii")
    assert "Z\\xfcrich" in shown
    assert "##########" in shown
    places = {line.index("%") for line in shown.splitlines() if "% to " in line}
    assert len(places) == 1, "the columns are in line although items are written out"


def test_json_is_ascii_too_and_says_the_same(tmp_path: Path) -> None:
    _, unicode, _ = run_process(f"{RUN} --json", tmp_path, {"PYTHONIOENCODING": "utf-8"})
    assert not unicode.isascii()
    for console in ("ascii", "cp1252"):
        _, out, _ = run_process(f"{RUN} --json", tmp_path, CONSOLES[console])
        assert out.isascii()
        assert json.loads(out) == json.loads(unicode)


@pytest.mark.parametrize(
    "line", [PLAN, "costs --users 10 --items 4 --alpha 0.5 --runs 2", "--help", "run --help"]
)
def test_other_commands_too(tmp_path: Path, line: str) -> None:
    code, out, err = run_process(line, tmp_path, CONSOLES["ascii"])
    assert (code, err) == (0, b"")
    assert out.isascii()


def test_errors_too(tmp_path: Path) -> None:
    code, _, err = run_process(
        "run nö.csv --column city --epsilon 1 --domain a,b", tmp_path, CONSOLES["cp1252"]
    )
    assert code == 2
    assert err.startswith(b"faircount: n\\xf6.csv cannot be opened")


def test_with_utf8_nothing_is_replaced(tmp_path: Path) -> None:
    _, out, _ = run_process(RUN, tmp_path, {"PYTHONIOENCODING": "utf-8"})
    assert "Zürich" in out.decode()
    assert "█" in out.decode()


def test_every_sign_of_our_own_has_words_in_ascii() -> None:
    files = [
        *SOURCE.glob("cli/*.py"),
        *SOURCE.glob("planning/*.py"),
        *SOURCE.glob("reproduction/costs/*.py"),
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    signs = {character for character in text if not character.isascii()}
    assert "±" in signs
    assert signs - set(SPELLINGS) == set()
