"""The ledger of `faircount run` under real processes: two at once, and one that is killed before it prints."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from quick_python import quick_python

from faircount.analysis.ledger_file import LedgerFile
from faircount.protocol.survey.budget import Status

RUN = ["run", "answers.csv", "--column", "city", "--domain", "a,b", "--epsilon", "0.25"]
CHARGED = [*RUN, "--ledger", "people.ledger", "--population", "people", "--json"]

STOPS_BEFORE_PRINTING = """
import sys, time
import faircount.cli.show as show

def hang(said):
    print("drawn", file=sys.stderr, flush=True)
    time.sleep(600)

show.print_json = hang
from faircount.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "answers.csv").write_text("city\n" + "a\nb\n" * 200)
    LedgerFile(tmp_path / "people.ledger").create("people", 1.0, 1e-6)
    return tmp_path


def started(folder: Path, *command: str, python: str = sys.executable) -> "subprocess.Popen[str]":
    source = Path(__file__).parents[2] / "src"
    known = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.Popen(
        [python, *command],
        cwd=folder,
        env=known,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def statuses(folder: Path) -> list[Status]:
    return [
        charge.status for charge in LedgerFile(folder / "people.ledger").ledger("people").charges
    ]


def test_runs_at_once_never_spend_more_than_there_is(folder: Path) -> None:
    """Six runs of 0.25 start together; four fit, whatever their order."""
    run = ("-m", "faircount", *CHARGED)
    running = [started(folder, *run, python=quick_python()) for _ in range(6)]
    ended = [(process.communicate(timeout=300), process.returncode) for process in running]
    codes = sorted(code for _, code in ended)
    assert codes == [0, 0, 0, 0, 2, 2]
    for (out, err), code in ended:
        if code == 0:
            assert json.loads(out)["n"] == 400
        else:
            assert "does not cover this run" in err
            assert out == ""
    assert statuses(folder) == [Status.SPENT] * 4


def test_a_run_that_is_killed_before_it_prints_stays_charged(folder: Path) -> None:
    killed = started(folder, "-c", STOPS_BEFORE_PRINTING, *CHARGED)
    assert killed.stderr is not None
    assert killed.stderr.readline() == "drawn\n"
    assert statuses(folder) == [Status.RESERVED]
    killed.send_signal(signal.SIGKILL)
    assert killed.communicate(timeout=60)[0] == ""
    assert killed.returncode == -signal.SIGKILL
    shown = started(folder, "-m", "faircount", "budget", "people.ledger").communicate(timeout=60)[0]
    assert "epsilon 0.25 of 1" in shown
    assert "spent, no result" in shown
    again = started(folder, "-m", "faircount", *CHARGED)
    again.communicate(timeout=120)
    assert again.returncode == 0
    assert statuses(folder) == [Status.RESERVED, Status.SPENT]


CHARGES_UNTIL_KILLED = """
import os, signal, time
from pathlib import Path
from faircount.analysis.ledger_file import Account, LedgerFile

file, acknowledged = LedgerFile(Path("many.ledger")), 0
for turn in range(30):
    heard, said = os.pipe()
    writer = os.fork()
    if writer == 0:
        account = Account(file, "many")
        while True:
            account.reserve(1e-3, 0.0, "x")
            os.write(said, b".")
            account.settle()
    os.close(said)
    assert os.read(heard, 1) == b"."
    time.sleep(0.001 * turn)
    os.kill(writer, signal.SIGKILL)
    os.waitpid(writer, 0)
    acknowledged += 1 + len(os.read(heard, 65536))
    os.close(heard)
    assert len(file.ledger("many").charges) >= acknowledged
print("charged", acknowledged)
"""


def test_a_writer_that_is_killed_at_any_moment_leaves_a_whole_ledger(folder: Path) -> None:
    """Killed thirty times at arbitrary moments: every charge that was acknowledged is there, and the file opens."""
    LedgerFile(folder / "many.ledger").create("many", 100.0, 0.0)
    out, problem = started(folder, "-c", CHARGES_UNTIL_KILLED).communicate(timeout=300)
    assert not problem
    assert int(out.removeprefix("charged ")) >= 30
