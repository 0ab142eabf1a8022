"""Sweeps whose processes are killed finish, or continue later, with the same numbers.

Every process started here is stopped by its own process id.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from distributed import Client

from faircount.core.errors import FaircountError
from faircount.reproduction.sweep import engines
from faircount.reproduction.sweep.blocks import BLOCK_RUNS
from faircount.reproduction.sweep.sweep import sweep

SOURCE = Path(__file__).parents[2] / "src"

# How long anything here may take before the test fails.
TIMEOUT_SECONDS = 60

# A task that takes a moment for every block, and leaves a file named after the process that did it.
TASKS = """
import os
import time
from pathlib import Path

import numpy as np


def slow(point, rng, runs):
    Path(os.environ["SWEEP_PIDS"], str(os.getpid())).touch()
    time.sleep(float(os.environ["SWEEP_PAUSE"]))
    return {"draw": rng.random(runs)}


def suicidal(point, rng, runs):
    if os.environ["SWEEP_KILL"] == "yes" and point["epsilon"] == 3:
        os.kill(os.getpid(), 9)
    return slow(point, rng, runs)
"""
SCRIPT = """
import sys
from slow_tasks import slow
from faircount.reproduction.sweep.sweep import sweep

if __name__ == "__main__":
    points = [{"epsilon": epsilon} for epsilon in range(5)]
    sweep(slow, points, runs=4000, seed=3, workers=int(sys.argv[1]), resume=sys.argv[2])
"""
POINTS = [{"epsilon": epsilon} for epsilon in range(5)]
RUNS = 4 * BLOCK_RUNS


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    (tmp_path / "pids").mkdir()
    (tmp_path / "slow_tasks.py").write_text(TASKS)
    (tmp_path / "script.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("SWEEP_PIDS", str(tmp_path / "pids"))
    monkeypatch.setenv("SWEEP_KILL", "no")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(SOURCE)]))
    monkeypatch.setenv("SWEEP_PAUSE", "0")
    yield importlib.import_module("slow_tasks")
    del sys.modules["slow_tasks"]


@pytest.fixture
def expected(tasks):
    return bits(sweep(tasks.slow, POINTS, runs=RUNS, seed=3, workers=1))


def bits(results):
    """Points and numbers of a sweep, to compare them to the last bit."""
    return [(result.point, result.values["draw"].tobytes()) for result in results]


def workers_seen(folder):
    return {int(path.name) for path in folder.iterdir()} - {os.getpid()}


def eventually(condition, what):
    end = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {TIMEOUT_SECONDS} s for {what}"
        time.sleep(0.05)


def is_gone(pid):
    """Whether a process has ended; a zombie has, although its parent did not collect it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@contextmanager
def process(*command, cwd):
    """A process of this test, killed by its id whatever happens."""
    slow = os.environ | {"SWEEP_PAUSE": "0.15"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = subprocess.Popen([sys.executable, *command], cwd=cwd, env=slow, **quiet)
    try:
        yield started
    finally:
        started.kill()
        started.wait(TIMEOUT_SECONDS)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_sweep_continues_with_the_same_results(tasks, expected, tmp_path, workers):
    kept = tmp_path / "kept.sweep"
    with process("script.py", str(workers), str(kept), cwd=tmp_path) as running:
        eventually(lambda: kept.exists() and kept.read_bytes().count(b"\n") > 4, "the first blocks")
        os.kill(running.pid, signal.SIGKILL)
        running.wait(TIMEOUT_SECONDS)
    finished = kept.read_bytes().count(b"\n") - 1
    assert 4 <= finished < 20
    orphans = workers_seen(tmp_path / "pids")
    assert len(orphans) == workers
    eventually(lambda: all(map(is_gone, orphans)), "the pool's processes to end after their parent")
    reported = []
    resumed = sweep(
        tasks.slow,
        POINTS,
        runs=RUNS,
        seed=3,
        progress=lambda *work: reported.append(work),
        resume=kept,
    )
    assert bits(resumed) == expected
    # Every block was reported once, whether it was read or computed.
    assert len(reported) == 20


def test_a_killed_worker_of_the_pool_is_an_error_that_can_be_resumed(
    tasks, expected, tmp_path, monkeypatch
):
    kept = tmp_path / "kept.sweep"
    monkeypatch.setenv("SWEEP_KILL", "yes")
    monkeypatch.setenv("SWEEP_PAUSE", "0.1")
    with pytest.raises(FaircountError, match="a worker process died"):
        sweep(tasks.suicidal, POINTS, runs=RUNS, seed=3, workers=2, resume=kept)
    assert kept.read_bytes().count(b"\n") > 4
    monkeypatch.setenv("SWEEP_KILL", "no")
    monkeypatch.setenv("SWEEP_PAUSE", "0")
    resumed = sweep(tasks.suicidal, POINTS, runs=RUNS, seed=3, workers=2, resume=kept)
    assert bits(resumed) == expected


@contextmanager
def cluster(folder):
    """A scheduler and two workers on the loopback interface.

    The workers have no nanny process, which would start a killed one again.
    """
    where = folder / "scheduler.json"
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(where)]
    member = ["-m", "distributed.cli.dask_worker", *common, "--nthreads", "1", "--no-nanny"]
    with process("-m", "distributed.cli.dask_scheduler", *common, "--port", "0", cwd=folder):
        eventually(where.exists, "the scheduler")
        address = json.loads(where.read_text())["address"]
        with process(*member, cwd=folder) as first, process(*member, cwd=folder) as second:
            with Client(address, set_as_default=False) as client:
                client.wait_for_workers(2, timeout=TIMEOUT_SECONDS)
            yield address, [first.pid, second.pid]


def test_a_killed_dask_worker_changes_nothing(tasks, expected, tmp_path):
    killed = []
    with cluster(tmp_path) as (address, pids):

        def kill_one(done, total):
            both_work = workers_seen(tmp_path / "pids") == set(pids)
            if not killed and both_work and done >= total // 5:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(done / total)

        results = sweep(
            tasks.slow,
            POINTS,
            runs=RUNS,
            seed=3,
            engine="dask",
            scheduler=address,
            progress=kill_one,
        )
        assert is_gone(pids[0])
        assert not is_gone(pids[1])
    assert len(killed) == 1
    assert killed[0] < 1
    assert bits(results) == expected


def test_a_scheduler_that_is_not_there_is_named(tasks, monkeypatch):
    monkeypatch.setattr(engines, "SCHEDULER_TIMEOUT", 1)
    with pytest.raises(FaircountError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
        sweep(tasks.slow, POINTS, runs=RUNS, seed=3, engine="dask", scheduler="tcp://127.0.0.1:1")
