"""No release is lost: files are checked before noise is drawn, and results printed or kept."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faircount.cli import deliver
from faircount.core import figures
from faircount.core.errors import FaircountError

Call = Callable[..., Any]
RUN = "run answers.csv --column city --domain @cities.txt --epsilon 1"
RESULT = {
    "estimates": [{"item": "a", "estimate": 0.5, "low": 0.4, "high": 0.6}],
    "consistent": [0.5],
}
pytestmark = pytest.mark.usefixtures("answers")


@pytest.fixture
def forbid_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on drawing is a failure."""

    def fail(*_: object, **__: object) -> None:
        pytest.fail("noise was drawn")

    monkeypatch.setattr("faircount.analysis.histogram.histogram", fail)


@pytest.mark.usefixtures("forbid_drawing")
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("--out nowhere/a.json", "nowhere/a.json cannot be written: no such file or directory"),
        ("--csv .", "is a directory"),
        ("--plot a.docx", "a plot is a .png, .svg or .pdf file"),
        ("--plot nowhere/a.png", "cannot be written"),
        ("--out a.json --csv a.json", "two of the files are the same"),
        ("--csv answers.csv", "two of the files are the same"),
        ("--csv ./answers.csv", "two of the files are the same"),
    ],
)
def test_what_could_not_be_written_is_refused_before_noise_is_drawn(
    call: Call, more: str, words: str
) -> None:
    done = call(f"{RUN} {more}")
    assert done.exit_code == 2
    assert words in done.stderr


@pytest.mark.usefixtures("forbid_drawing")
def test_a_plot_without_matplotlib_is_refused_before_noise_is_drawn(
    call: Call, monkeypatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "install faircount[plot]" in call(f"{RUN} --plot a.png").stderr
    with pytest.raises(FaircountError, match="plots need matplotlib"):
        figures.check_figure(Path("a.png"))


def test_a_file_that_fails_after_the_draw_does_not_lose_the_result(call: Call, monkeypatch) -> None:
    def fails(*_: object) -> None:
        raise FaircountError("a.csv cannot be written: no space left on device")

    monkeypatch.setattr(deliver, "_write_csv", fails)
    done = call(f"{RUN} --csv a.csv --out a.json --json")
    assert done.exit_code == 2
    assert json.loads(done.stdout) == json.loads(Path("a.json").read_text(encoding="utf-8"))
    assert done.stderr == "faircount: a.csv cannot be written: no space left on device\n"


def fail_to_write() -> None:
    raise OSError(28, "No space left on device")


def test_a_result_that_cannot_be_printed_is_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with pytest.raises(
        FaircountError, match=r"no space left on device; the result is kept in (.*)\.json"
    ):
        deliver.deliver(RESULT, fail_to_write, deliver.Targets(), lambda path: None)
    (kept,) = tmp_path.glob("faircount-result-*.json")
    assert json.loads(kept.read_text()) == RESULT


def test_with_a_file_of_its_own_it_is_not_kept_twice(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    with pytest.raises(
        FaircountError, match=r"standard output cannot be written: no space left on device$"
    ):
        deliver.deliver(
            RESULT, fail_to_write, deliver.Targets(Path("a.json"), Path("a.csv")), lambda path: None
        )
    assert json.loads(Path("a.json").read_text()) == RESULT
    assert Path("a.csv").read_text().splitlines()[1] == "a,0.5,0.4,0.6,0.5"
    assert not list(tmp_path.glob("faircount-result-*"))


def test_where_no_file_can_be_made_the_message_is_the_result(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: fail_to_write())
    with pytest.raises(FaircountError, match=r'the result is \{"estimates"'):
        deliver.deliver(RESULT, fail_to_write, deliver.Targets(), lambda path: None)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["words", "json"])
def test_a_full_device_behind_standard_output(tmp_path: Path, more: list[str]) -> None:
    """In a process of its own, with a device that takes nothing."""
    with Path("/dev/full").open("w") as full:
        arguments = [sys.executable, "-m", "faircount", *RUN.split(), *more]
        done = subprocess.run(
            arguments, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    (kept,) = tmp_path.glob("faircount-result-*.json")
    assert kept.name in done.stderr
    assert json.loads(kept.read_text())["users"] == 600


def test_a_closed_standard_output_is_refused_unless_there_is_a_file(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(FaircountError, match="give --out FILE"):
        deliver.Targets().check()
    deliver.Targets(out=tmp_path / "a.json").check()
