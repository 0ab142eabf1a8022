"""A sweep gives the same numbers on every engine, for any number of workers, interrupted or not."""

import importlib
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from faircount.core.errors import InputError, ParameterError
from faircount.sweep import blocks, engines
from faircount.sweep.blocks import BLOCK_RUNS, Load, generator, jobs_of
from faircount.sweep.sweep import Measured, sweep

FALSE_ALARM = 1e-6

# In a module of its own, because workers in other processes must be able to import it.
TASKS = '''
import numpy as np

HELD = np.array([400, 300, 200, 100])
CALLS = []


def squared_error(point, rng, runs):
    """DPDS at count level: summed squared error of the estimated frequencies."""
    CALLS.append((point["epsilon"], runs))
    p = -np.expm1(-point["epsilon"])
    held = HELD * point.get("scale", 1)
    estimates = rng.binomial(held, p, size=(runs, held.size)) / (p * held.sum())
    return {"error": ((estimates - held / held.sum()) ** 2).sum(axis=1), "first": rng.random(runs)}


def changing(point, rng, runs):
    return {f"name {runs}": np.zeros(runs)}


def misshapen(point, rng, runs):
    return {"error": np.zeros((runs, 2))}


def meddling(point, rng, runs):
    point["epsilon"] = -1
    return {"error": np.zeros(runs)}
'''
POINTS = [{"epsilon": 0.1}, {"epsilon": 0.5}, {"epsilon": 1.0}]
RUNS = 2 * BLOCK_RUNS + 300


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    (tmp_path / "sweep_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("sweep_tasks")
    yield module
    del sys.modules["sweep_tasks"]


def same(first, second):
    """Equal to the last bit, points and names included."""
    return [row.point for row in first] == [row.point for row in second] and all(
        one.values.keys() == two.values.keys()
        and all(one.values[name].tobytes() == two.values[name].tobytes() for name in one.values)
        for one, two in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("how", [{"workers": 2}, {"workers": 3}, {"engine": "dask", "workers": 2}], ids=str)
def test_every_engine_gives_the_same_numbers(tasks, how):
    alone = sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, workers=1)
    assert [row.runs for row in alone] == [RUNS] * 3
    assert same(alone, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, **how))


def test_large_work_takes_more_processes_by_itself(tasks, monkeypatch):
    alone = sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7)
    assert len(tasks.CALLS) == 9
    monkeypatch.setattr(engines, "PATIENCE", 0.0)
    assert same(alone, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7))
    assert len(tasks.CALLS) == 10  # one block here, the others in two processes


def test_numbers_depend_on_seed_and_point_only(tasks):
    rows = sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7)
    assert same(rows[::-1], sweep(tasks.squared_error, POINTS[::-1], runs=RUNS, seed=7))
    assert same(rows[1:2], sweep(tasks.squared_error, [{"epsilon": np.float64(0.5)}], runs=RUNS, seed=7))
    assert not same(rows, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=8))
    more = sweep(tasks.squared_error, POINTS, runs=RUNS + BLOCK_RUNS, seed=7)
    for row, longer in zip(rows, more, strict=True):
        whole = 2 * BLOCK_RUNS
        np.testing.assert_array_equal(row.values["first"][:whole], longer.values["first"][:whole])


def test_every_block_has_a_stream_of_its_own():
    points = [{"a": 1}, {"a": 1.0}, {"a": "1"}, {"b": 1}, {"a": 1, "b": 1}, {"a": -1}]
    first = {
        generator(seed, point, number).integers(2**63) for seed in (0, 1) for point in points for number in range(50)
    }
    assert len(first) == 2 * len(points) * 50
    assert generator(3, {"a": 1, "b": 2}, 4).random() == generator(3, {"b": 2, "a": 1}, 4).random()


def test_the_key_of_a_block_is_fixed():
    """What a seed means may not change unnoticed: resume files and published numbers rest on it.

    The words are the first 16 bytes, little endian, of the SHA-256 of {"epsilon":0.5,"users":1000}.
    """
    state = generator(7, {"epsilon": 0.5, "users": 1000}, 2).bit_generator.seed_seq
    assert state.spawn_key == (3737821251, 4146985537, 258152353, 2903667691, 2)
    assert state.entropy == 7


def test_a_sweep_measures_what_theory_says(tasks):
    """Mean over 10^5 runs, of 1,000 and of 10^8 users, against (1-p)/(p n); a theory that is off by 3% is rejected."""
    points = [*POINTS, {"epsilon": 0.5, "scale": 10**5}]
    rows = sweep(tasks.squared_error, points, runs=100_000, seed=9)
    limit = stats.norm.isf(FALSE_ALARM / (2 * len(rows)))
    for row in rows:
        users = tasks.HELD.sum() * row.point.get("scale", 1)
        theory = 1 / np.expm1(row.point["epsilon"]) / users
        assert abs(row.mean("error") - theory) < limit * row.standard_error("error")
        assert abs(row.mean("error") - 1.03 * theory) > limit * row.standard_error("error")


def test_measured_numbers():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    row = Measured({"epsilon": 1}, 4, {"error": values})
    assert row.mean("error") == 4
    assert row.standard_error("error") == pytest.approx(stats.sem(values))
    assert row.interval("error", 0.9) == pytest.approx(stats.t.interval(0.9, 3, 4, stats.sem(values)))
    with pytest.raises(ParameterError, match="there are error"):
        row.mean("bias")
    with pytest.raises(ParameterError, match="at least 2 runs"):
        Measured({}, 1, {"error": values[:1]}).interval("error")
    with pytest.raises(ParameterError, match="level"):
        row.interval("error", 1.5)


def test_progress_counts_runs(tasks, tmp_path):
    seen = []
    sweep(
        tasks.squared_error,
        POINTS,
        runs=RUNS,
        seed=7,
        progress=lambda *each: seen.append(each),
        resume=tmp_path / "kept",
    )
    assert [total for _, total in seen] == [3 * RUNS] * 9
    assert [done for done, _ in seen][-1] == 3 * RUNS
    assert np.all(np.diff([done for done, _ in seen]) > 0)
    again = []
    sweep(
        tasks.squared_error,
        POINTS,
        runs=RUNS,
        seed=7,
        progress=lambda *each: again.append(each),
        resume=tmp_path / "kept",
    )
    assert again == seen


class StopHereError(Exception):
    pass


def stop_after(runs):
    def progress(done, total):
        if done >= runs:
            raise StopHereError

    return progress


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_sweep_goes_on(tasks, tmp_path, workers):
    kept = tmp_path / "new" / "kept.sweep"
    with pytest.raises(StopHereError):
        sweep(
            tasks.squared_error,
            POINTS,
            runs=RUNS,
            seed=7,
            workers=workers,
            progress=stop_after(2 * BLOCK_RUNS),
            resume=kept,
        )
    finished = kept.read_bytes().count(b"\n") - 1
    assert 2 <= finished < 9
    tasks.CALLS.clear()
    resumed = sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, workers=1, resume=kept)
    assert len(tasks.CALLS) == 9 - finished
    assert same(resumed, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7))
    assert [each.name for each in kept.parent.iterdir()] == [kept.name]


def cut_line(content):
    return content[:-40]


def flip_a_number(content):
    lines = content.splitlines(keepends=True)
    lines[3] = lines[3].replace(b"A", b"B", 1)
    return b"".join(lines)


def add_zeros(content):
    return content + bytes(4096)


def repeat_a_line(content):
    return content + content.splitlines(keepends=True)[1]


@pytest.mark.parametrize("damage", [cut_line, flip_a_number, add_zeros, repeat_a_line])
def test_a_damaged_resume_file_gives_no_wrong_numbers(tasks, tmp_path, damage):
    kept = tmp_path / "kept"
    whole = sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=kept)
    kept.write_bytes(damage(kept.read_bytes()))
    assert same(whole, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=kept))
    tasks.CALLS.clear()
    assert same(whole, sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=kept))
    assert tasks.CALLS == []  # it was mended, and nothing is left to do


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 8}, r"different seed \(7 there\)"),
        ({"runs": RUNS + 1}, "different runs"),
        ({"points": POINTS[:2]}, "different points"),
        ({"points": POINTS[::-1]}, "different points"),
        ({"task": "meddling"}, r"different task \(sweep_tasks.squared_error there\)"),
    ],
)
def test_a_resume_file_of_another_sweep_is_refused(tasks, tmp_path, change, said):
    kept = tmp_path / "kept"
    sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=kept)
    before = kept.read_bytes()
    given = {"task": "squared_error", "points": POINTS, "runs": RUNS, "seed": 7} | change
    with pytest.raises(InputError, match=said):
        sweep(getattr(tasks, given.pop("task")), given.pop("points"), **given, resume=kept)
    assert kept.read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"", b"item,count\na,1\n", b"[1]\n", json.dumps({"format": "other"}).encode() + b"\n"]
)
def test_a_file_that_is_something_else_is_left_alone(tasks, tmp_path, content):
    other = tmp_path / "answers.csv"
    other.write_bytes(content)
    with pytest.raises(InputError, match=r"answers\.csv is not a resume file"):
        sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=other)
    assert other.read_bytes() == content


def test_what_cannot_be_swept_is_refused(tasks):
    for wrong in (lambda point, rng, runs: {}, object(), stop_after(1)):
        with pytest.raises(ParameterError, match="top of a module"):
            sweep(wrong, POINTS, runs=10, seed=1)
    with pytest.raises(ParameterError, match="at least one point"):
        sweep(tasks.squared_error, [], runs=10, seed=1)
    with pytest.raises(ParameterError, match="are the same"):
        sweep(tasks.squared_error, [{"epsilon": 0.5}, {"epsilon": np.float64(0.5)}], runs=10, seed=1)
    for point in ({"epsilon": True}, {"epsilon": float("nan")}, {"epsilon": None}, {3: 1}, 0.5):
        with pytest.raises(ParameterError, match="point"):
            sweep(tasks.squared_error, [point], runs=10, seed=1)
    with pytest.raises(ParameterError, match="runs"):
        sweep(tasks.squared_error, POINTS, runs=0, seed=1)
    with pytest.raises(ParameterError, match="seed"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=-1)
    with pytest.raises(ParameterError, match="named arrays of 10 numbers"):
        sweep(tasks.misshapen, POINTS, runs=10, seed=1)
    with pytest.raises(ParameterError, match="the same statistics every time"):
        sweep(tasks.changing, POINTS, runs=RUNS, seed=1)


def test_engines_that_cannot_work_are_refused(tasks):
    with pytest.raises(ParameterError, match="choose one of local, dask"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=1, engine="spark")
    with pytest.raises(ParameterError, match="engine='dask'"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=1, scheduler="tcp://127.0.0.1:1")
    with pytest.raises(ParameterError, match="workers"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=1, workers=0)
    with pytest.raises(ParameterError, match="leave workers out"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=1, engine="dask", scheduler="tcp://127.0.0.1:1", workers=2)


def test_engines_without_dask_say_what_to_install(tasks, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ParameterError, match=r"faircount\[cluster\]"):
        sweep(tasks.squared_error, POINTS, runs=10, seed=1, engine="dask")


def test_a_task_cannot_change_the_points(tasks):
    assert sweep(tasks.meddling, POINTS, runs=10, seed=1)[0].point == {"epsilon": 0.1}


def test_a_parcel_holds_neighbours_and_nothing_is_lost(tasks, monkeypatch):
    jobs = jobs_of(tasks.squared_error, POINTS, RUNS, 7)
    monkeypatch.setattr(engines, "PARCELS", 4)
    assert [len(parcel) for parcel in engines._parcels(jobs)] == [3, 3, 3]
    assert [job for parcel in engines._parcels(jobs) for job in parcel] == jobs
    assert [len(parcel) for parcel in engines._parcels(jobs[:2])] == [1, 1]


def test_blocks_do_not_depend_on_what_runs_them(tasks):
    """The block's size is one constant; every job carries all that decides its numbers."""
    jobs = jobs_of(tasks.squared_error, POINTS, RUNS, 7)
    assert [job.runs for job in jobs] == [BLOCK_RUNS, BLOCK_RUNS, 300] * 3
    first, second = (blocks.work(jobs[4]) for _ in range(2))
    assert all(first.values[name].tobytes() == second.values[name].tobytes() for name in first.values)


def of_its_own(point):
    """Long runs at one point: fewer of them, in blocks of two, each as dear as a hundred others."""
    return Load(5, block=2, cost=100.0) if point["epsilon"] == 0.5 else Load(RUNS)


def test_points_can_have_runs_and_blocks_of_their_own(tasks, tmp_path):
    seen = []
    rows = sweep(
        tasks.squared_error,
        POINTS,
        runs=of_its_own,
        seed=7,
        progress=lambda *work: seen.append(work),
        resume=tmp_path / "kept",
        workers=1,
    )
    assert [row.runs for row in rows] == [RUNS, 5, RUNS]
    assert [runs for epsilon, runs in tasks.CALLS if epsilon == 0.5] == [2, 2, 1]
    assert {total for _, total in seen} == {2 * RUNS + 500}
    assert [done - before for (before, _), (done, _) in pairwise(seen)][2:5] == [200, 200, 100]
    assert same(rows, sweep(tasks.squared_error, POINTS, runs=of_its_own, seed=7, workers=2))
    with pytest.raises(InputError, match="different blocks"):
        sweep(tasks.squared_error, POINTS, runs=RUNS, seed=7, resume=tmp_path / "kept")


def test_progress_ends_at_the_whole_whatever_the_costs(tasks):
    seen = []
    points = [{"epsilon": 0.1 * step} for step in range(1, 12)]
    sweep(
        tasks.squared_error,
        points,
        runs=lambda point: Load(3, block=1, cost=point["epsilon"] / 3),
        seed=7,
        progress=lambda *work: seen.append(work),
    )
    assert seen[-1][0] == seen[-1][1]


def test_a_resume_file_with_other_blocks_is_refused(tasks, tmp_path):
    """The same runs in other blocks are other numbers."""
    sweep(tasks.squared_error, POINTS, runs=lambda _: Load(6, block=2), seed=7, resume=tmp_path / "kept")
    with pytest.raises(InputError, match="different blocks"):
        sweep(tasks.squared_error, POINTS, runs=lambda _: Load(6, block=3), seed=7, resume=tmp_path / "kept")


@pytest.mark.parametrize("wrong", [{"runs": 0}, {"runs": 2, "block": 0}, {"runs": 2, "cost": 0.0}])
def test_a_load_that_is_none_is_refused(wrong):
    with pytest.raises(ParameterError, match=r"at least 1|positive"):
        Load(**wrong)


def test_heavy_packages_are_not_loaded():
    code = "import sys, faircount.sweep.sweep; print({'distributed', 'dask', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
