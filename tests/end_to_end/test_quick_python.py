"""The Python of most guides, which is forked, does what a fresh one does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from quick_python import quick_python

PROGRAMS = {
    "arguments": "import sys; print(sys.argv, sys.path[0])",
    "folder": "import os; print(os.getcwd(), oct(os.umask(0)), os.environ['WORD'])",
    "input": "import sys; print(sys.stdin.read()); print('é', file=sys.stderr)",
    "code": "import sys; print('before'); sys.exit(7)",
    "words": "raise SystemExit('no such survey')",
    "own main": "import __main__, threading\nx = 1\nprint(__main__.x, __name__)\n"
    "threading.Timer(0.05, print, ['later']).start()",
    "exit": "import atexit; atexit.register(print, 'at the end')",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same(name: str, tmp_path: Path) -> None:
    found = []
    for python in (sys.executable, quick_python()):
        done = subprocess.run(
            [python, "-c", PROGRAMS[name], "one", "two words"],
            cwd=tmp_path,
            env={**os.environ, "WORD": name},
            umask=0o027,
            input="typed",
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        found.append((done.returncode, done.stdout, done.stderr))
    assert found[0] == found[1]


def test_an_error_is_shown() -> None:
    run = [quick_python(), "-c", "1 / 0"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback (most recent call last)")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_process_and_not_only_the_program_that_waits(number: int) -> None:
    run = [quick_python(), "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        process = int(started.stdout.readline())
        started.send_signal(number)
        assert started.wait(30) == -number
        # Its end of the pipe is closed when it is gone.
        assert started.stdout.read() == ""
    end = time.monotonic() + 30
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
