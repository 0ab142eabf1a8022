"""A sweep gives the same numbers on every engine, for any number of workers, interrupted or not."""

import importlib
import json
import subprocess
import sys
from itertools import chain, pairwise, product

import numpy as np
import pytest
from scipy import stats

from faircount.core.errors import InputError, ParameterError
from faircount.reproduction.sweep import blocks, engines
from faircount.reproduction.sweep.blocks import BLOCK_RUNS, Load, make_generator, make_jobs
from faircount.reproduction.sweep.sweep import Measured, sweep

FALSE_ALARM = 1e-6

# In a module of its own, because workers in other processes must be able to import it.
TASKS = '''
import numpy as np

COUNTS = np.array([400, 300, 200, 100])
# Calls in other processes do not arrive here.
CALLS = []


def squared_error(point, rng, runs):
    """DPDS at count level: summed squared error of the estimated frequencies."""
    CALLS.append((point["epsilon"], runs))
    p = -np.expm1(-point["epsilon"])
    counts = COUNTS * point.get("scale", 1)
    estimates = rng.binomial(counts, p, size=(runs, counts.size)) / (p * counts.sum())
    errors = ((estimates - counts / counts.sum()) ** 2).sum(axis=1)
    return {"error": errors, "first": rng.random(runs)}


def changing(point, rng, runs):
    return {f"name {runs}": np.zeros(runs)}


def misshapen(point, rng, runs):
    return {"error": np.zeros((runs, 2))}


def meddling(point, rng, runs):
    point["epsilon"] = -1
    return {"error": np.zeros(runs)}
'''
POINTS = [{"epsilon": 0.1}, {"epsilon": 0.5}, {"epsilon": 1.0}]

# Three blocks at every point, the last of them shorter.
RUNS = 2 * BLOCK_RUNS + 300


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    (tmp_path / "sweep_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("sweep_tasks")
    yield module
    del sys.modules["sweep_tasks"]


def sweep_errors(tasks, points=POINTS, runs=RUNS, seed=7, **options):
    return sweep(tasks.squared_error, points, runs=runs, seed=seed, **options)


def bits(results):
    """Points and numbers of a sweep, to compare them to the last bit."""
    exact = []
    for measured in results:
        values = {name: array.tobytes() for name, array in measured.values.items()}
        exact.append((measured.point, values))
    return exact


@pytest.mark.parametrize(
    "options", [{"workers": 2}, {"workers": 3}, {"engine": "dask", "workers": 2}], ids=str
)
def test_every_engine_gives_the_same_numbers(tasks, options):
    alone = sweep_errors(tasks, workers=1)
    assert [measured.runs for measured in alone] == [RUNS] * 3
    assert bits(sweep_errors(tasks, **options)) == bits(alone)


def test_large_work_takes_more_processes_by_itself(tasks, monkeypatch):
    alone = sweep_errors(tasks)
    assert len(tasks.CALLS) == 9
    monkeypatch.setattr(engines, "POOL_THRESHOLD_SECONDS", 0.0)
    assert bits(sweep_errors(tasks)) == bits(alone)
    # One block in this process, the others in a pool.
    assert len(tasks.CALLS) == 10


def test_numbers_depend_on_seed_and_point_only(tasks):
    results = sweep_errors(tasks)
    assert bits(sweep_errors(tasks, POINTS[::-1])) == bits(results[::-1])
    # NumPy's numbers are the same points as Python's.
    assert bits(sweep_errors(tasks, [{"epsilon": np.float64(0.5)}])) == bits(results[1:2])
    assert bits(sweep_errors(tasks, seed=8)) != bits(results)

    # More runs leave the full blocks as they are.
    whole = 2 * BLOCK_RUNS
    more = sweep_errors(tasks, runs=RUNS + BLOCK_RUNS)
    for measured, longer in zip(results, more, strict=True):
        expected = measured.values["first"][:whole]
        np.testing.assert_array_equal(longer.values["first"][:whole], expected)


def test_every_block_has_a_stream_of_its_own():
    points = [{"a": 1}, {"a": 1.0}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 1}, {"a": -1}]
    # The values 1, 1.0 and "1" are different points.
    first_draws = set()
    for seed, point, number in product((0, 1), points, range(50)):
        first_draws.add(make_generator(seed, point, number).integers(2**63))
    assert len(first_draws) == 2 * len(points) * 50
    # The order of the names in a point does not matter.
    ordered = make_generator(3, {"a": 1, "b": 2}, 4).random()
    assert make_generator(3, {"b": 2, "a": 1}, 4).random() == ordered


def test_the_key_of_a_block_is_fixed():
    """What a seed means may not change unnoticed: resume files and published numbers rest on it.

    The words are the first 16 bytes, little endian, of the SHA-256 of {"epsilon":0.5,"users":1000}.
    """
    state = make_generator(7, {"epsilon": 0.5, "users": 1000}, 2).bit_generator.seed_seq
    assert state.spawn_key == (3737821251, 4146985537, 258152353, 2903667691, 2)
    assert state.entropy == 7


def test_a_sweep_measures_what_theory_says(tasks):
    """Mean of 10^5 runs, with 1,000 and 10^8 users, against (1-p)/(p n).

    The same test rejects a theory that is off by 3%.
    """
    points = [*POINTS, {"epsilon": 0.5, "scale": 10**5}]
    results = sweep_errors(tasks, points, runs=100_000, seed=9)
    limit = stats.norm.isf(FALSE_ALARM / (2 * len(results)))
    for measured in results:
        users = tasks.COUNTS.sum() * measured.point.get("scale", 1)
        theory = 1 / np.expm1(measured.point["epsilon"]) / users
        tolerance = limit * measured.standard_error("error")
        assert abs(measured.mean("error") - theory) < tolerance
        assert abs(measured.mean("error") - 1.03 * theory) > tolerance


def test_mean_standard_error_and_interval():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    measured = Measured({"epsilon": 1}, 4, {"error": values})
    assert measured.mean("error") == 4
    assert measured.standard_error("error") == pytest.approx(stats.sem(values))
    expected = stats.t.interval(0.9, 3, 4, stats.sem(values))
    assert measured.interval("error", 0.9) == pytest.approx(expected)
    with pytest.raises(ParameterError, match="there are error"):
        measured.mean("bias")
    with pytest.raises(ParameterError, match="at least 2 runs"):
        Measured({}, 1, {"error": values[:1]}).interval("error")
    with pytest.raises(ParameterError, match="confidence"):
        measured.interval("error", 1.5)


class Recorder:
    """Keeps what a sweep reports about its progress."""

    def __init__(self):
        self.done = []
        self.totals = []

    def __call__(self, done, total):
        self.done.append(done)
        self.totals.append(total)


def test_progress_counts_runs(tasks, tmp_path):
    first = Recorder()
    sweep_errors(tasks, progress=first, resume=tmp_path / "kept")
    assert first.totals == [3 * RUNS] * 9
    assert first.done[-1] == 3 * RUNS
    assert np.all(np.diff(first.done) > 0)
    # Blocks from the resume file count like computed ones.
    again = Recorder()
    sweep_errors(tasks, progress=again, resume=tmp_path / "kept")
    assert again.done == first.done


class StopHereError(Exception):
    pass


def stop_after(runs):
    def progress(done, total):
        if done >= runs:
            raise StopHereError

    return progress


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_sweep_continues(tasks, tmp_path, workers):
    kept = tmp_path / "new" / "kept.sweep"
    with pytest.raises(StopHereError):
        sweep_errors(tasks, workers=workers, progress=stop_after(2 * BLOCK_RUNS), resume=kept)
    finished = kept.read_bytes().count(b"\n") - 1
    # The pool may have finished more blocks than were reported.
    assert 2 <= finished < 9
    tasks.CALLS.clear()
    resumed = sweep_errors(tasks, workers=1, resume=kept)
    assert len(tasks.CALLS) == 9 - finished
    assert bits(resumed) == bits(sweep_errors(tasks))
    # No temporary file is left beside it.
    assert list(kept.parent.iterdir()) == [kept]


def cut_line(content):
    return content[:-40]


def flip_a_number(content):
    lines = content.splitlines(keepends=True)
    # One character of a number; the checksum notices.
    lines[3] = lines[3].replace(b"A", b"B", 1)
    return b"".join(lines)


def add_zeros(content):
    return content + bytes(4096)


def repeat_a_line(content):
    return content + content.splitlines(keepends=True)[1]


@pytest.mark.parametrize("damage", [cut_line, flip_a_number, add_zeros, repeat_a_line])
def test_a_damaged_resume_file_gives_no_wrong_numbers(tasks, tmp_path, damage):
    kept = tmp_path / "kept"
    whole = bits(sweep_errors(tasks, resume=kept))
    kept.write_bytes(damage(kept.read_bytes()))
    assert bits(sweep_errors(tasks, resume=kept)) == whole
    # The file was repaired: the next sweep has nothing left to compute.
    tasks.CALLS.clear()
    assert bits(sweep_errors(tasks, resume=kept)) == whole
    assert tasks.CALLS == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 8}, r"different seed \(7 there\)"),
        ({"runs": RUNS + 1}, "different runs"),
        ({"points": POINTS[:2]}, "different points"),
        ({"points": POINTS[::-1]}, "different points"),
        ({"task": "meddling"}, r"different task \(sweep_tasks.squared_error there\)"),
    ],
)
def test_a_resume_file_of_another_sweep_is_refused(tasks, tmp_path, change, message):
    kept = tmp_path / "kept"
    sweep_errors(tasks, resume=kept)
    before = kept.read_bytes()
    options = {"task": "squared_error", "points": POINTS, "runs": RUNS, "seed": 7} | change
    task = getattr(tasks, options.pop("task"))
    with pytest.raises(InputError, match=message):
        sweep(task, **options, resume=kept)
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [b"", b"item,count\na,1\n", b"[1]\n", json.dumps({"format": "other"}).encode() + b"\n"],
)
def test_a_file_that_is_something_else_is_left_alone(tasks, tmp_path, content):
    other = tmp_path / "answers.csv"
    other.write_bytes(content)
    with pytest.raises(InputError, match=r"answers\.csv is not the resume file"):
        sweep_errors(tasks, resume=other)
    assert other.read_bytes() == content


def test_what_cannot_be_swept_is_refused(tasks):
    # Neither lambdas nor closures nor objects can be imported by another process.
    for wrong in (lambda point, rng, runs: {}, object(), stop_after(1)):
        with pytest.raises(ParameterError, match="top of a module"):
            sweep(wrong, POINTS, runs=10, seed=1)
    with pytest.raises(ParameterError, match="at least one point"):
        sweep_errors(tasks, [])
    with pytest.raises(ParameterError, match="are the same"):
        sweep_errors(tasks, [{"epsilon": 0.5}, {"epsilon": np.float64(0.5)}])
    for point in ({"epsilon": True}, {"epsilon": float("nan")}, {"epsilon": None}, {3: 1}, 0.5):
        with pytest.raises(ParameterError, match="point"):
            sweep_errors(tasks, [point])
    with pytest.raises(ParameterError, match="runs"):
        sweep_errors(tasks, runs=0)
    with pytest.raises(ParameterError, match="seed"):
        sweep_errors(tasks, seed=-1)
    with pytest.raises(ParameterError, match="named arrays of 10 numbers"):
        sweep(tasks.misshapen, POINTS, runs=10, seed=1)
    with pytest.raises(ParameterError, match="the same statistics every time"):
        sweep(tasks.changing, POINTS, runs=RUNS, seed=1)


NO_SCHEDULER = "tcp://127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "choose one of local, dask"),
        ({"scheduler": NO_SCHEDULER}, "engine='dask'"),
        ({"workers": 0}, "workers"),
        ({"engine": "dask", "scheduler": NO_SCHEDULER, "workers": 2}, "leave workers out"),
    ],
)
def test_engines_that_cannot_work_are_refused(tasks, options, message):
    with pytest.raises(ParameterError, match=message):
        sweep_errors(tasks, runs=10, **options)


def test_engines_without_dask_say_what_to_install(tasks, monkeypatch):
    # As if Dask were not installed.
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match=r"faircount\[cluster\]"):
        sweep_errors(tasks, runs=10, engine="dask")


def test_a_task_cannot_change_the_points(tasks):
    assert sweep(tasks.meddling, POINTS, runs=10, seed=1)[0].point == {"epsilon": 0.1}


def test_a_parcel_holds_neighbours_and_nothing_is_lost(tasks, monkeypatch):
    jobs = make_jobs(tasks.squared_error, POINTS, RUNS, 7)
    monkeypatch.setattr(engines, "MAX_PARCELS", 4)
    parcels = engines._make_parcels(jobs)
    # Nine blocks in at most four parcels.
    assert list(map(len, parcels)) == [3, 3, 3]
    assert list(chain.from_iterable(parcels)) == jobs
    assert list(map(len, engines._make_parcels(jobs[:2]))) == [1, 1]


def test_blocks_do_not_depend_on_what_runs_them(tasks):
    """The size of a block is one constant; a job carries everything that decides its numbers."""
    jobs = make_jobs(tasks.squared_error, POINTS, RUNS, 7)
    assert [job.runs for job in jobs] == [BLOCK_RUNS, BLOCK_RUNS, 300] * 3
    first = blocks.run_job(jobs[4])
    second = blocks.run_job(jobs[4])
    for name, array in first.values.items():
        assert second.values[name].tobytes() == array.tobytes()


def uneven_load(point):
    """Long runs at one point: fewer of them, in blocks of two, costing as much as a hundred."""
    return Load(5, block=2, cost=100.0) if point["epsilon"] == 0.5 else Load(RUNS)


def test_points_can_have_runs_and_blocks_of_their_own(tasks, tmp_path):
    kept = tmp_path / "kept"
    progress = Recorder()
    results = sweep_errors(tasks, runs=uneven_load, progress=progress, resume=kept, workers=1)
    assert [measured.runs for measured in results] == [RUNS, 5, RUNS]
    assert [runs for epsilon, runs in tasks.CALLS if epsilon == 0.5] == [2, 2, 1]
    # Progress is measured in costs: 500 for the point with five long runs.
    assert set(progress.totals) == {2 * RUNS + 500}
    steps = [after - before for before, after in pairwise(progress.done)]
    assert steps[2:5] == [200, 200, 100]
    assert bits(sweep_errors(tasks, runs=uneven_load, workers=2)) == bits(results)
    with pytest.raises(InputError, match="different blocks"):
        sweep_errors(tasks, resume=kept)


def test_progress_ends_at_the_total_whatever_the_costs(tasks):
    progress = Recorder()
    points = [{"epsilon": 0.1 * step} for step in range(1, 12)]

    # Costs whose sum is not exact in floating point.
    def odd_load(point):
        return Load(3, block=1, cost=point["epsilon"] / 3)

    sweep_errors(tasks, points, runs=odd_load, progress=progress)
    assert progress.done[-1] == progress.totals[-1]


def test_a_resume_file_with_other_blocks_is_refused(tasks, tmp_path):
    """The same runs in other blocks are other numbers."""
    kept = tmp_path / "kept"
    sweep_errors(tasks, runs=lambda _: Load(6, block=2), resume=kept)
    with pytest.raises(InputError, match="different blocks"):
        sweep_errors(tasks, runs=lambda _: Load(6, block=3), resume=kept)


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"runs": 2, "block": 0}, {"runs": 2, "cost": 0.0}])
def test_an_empty_load_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"at least 1|positive"):
        Load(**wrong)


def test_heavy_packages_are_not_loaded():
    code = (
        "import sys, faircount.reproduction.sweep.sweep; "
        "print({'distributed', 'dask', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
