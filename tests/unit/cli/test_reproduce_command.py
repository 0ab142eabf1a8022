"""The `reproduce` command passes its options on and shows progress."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from faircount.cli.reproduce import WHICH, reproduce


@pytest.fixture
def asked(monkeypatch):
    """The options that the report would have been written with; nothing is run."""
    calls = []

    def stand_in(**options):
        options.pop("progress")(40, 40)
        calls.append(options)

    module = ModuleType("faircount.reproduction.report.reproduce")
    module.reproduce = stand_in
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_defaults(asked):
    done = CliRunner().invoke(reproduce, [], catch_exceptions=False)
    assert done.exit_code == 0
    here = {"engine": "local", "scheduler": None, "workers": None, "data": None, "network": None}
    assert asked == [{"which": "all", "runs": 20, "out": Path("out"), "seed": 1, **here}]
    assert "all: runs done" in done.output
    assert "Written to out" in done.output


def test_every_option_is_passed_on(asked, tmp_path):
    scheduler = "tcp://10.0.0.5:8786"
    options = f"fig3 --data {tmp_path} --runs 50 --out there --engine dask --seed 3 --workers 4"
    arguments = [*options.split(), "--scheduler", scheduler, "--network", "60"]
    done = CliRunner().invoke(reproduce, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    there = {
        "engine": "dask",
        "scheduler": scheduler,
        "workers": 4,
        "data": tmp_path,
        "network": 60,
    }
    assert asked == [{"which": "fig3", "runs": 50, "out": Path("there"), "seed": 3, **there}]


@pytest.mark.parametrize(
    "wrong",
    [
        ["fig6"],
        ["--runs", "1"],
        ["--engine", "spark"],
        ["--workers", "0"],
        ["--seed", "-1"],
        ["fig1", "fig2"],
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(asked, wrong):
    done = CliRunner().invoke(reproduce, wrong)
    assert done.exit_code == 2
    assert asked == []


def test_every_figure_and_table_can_be_asked_for(asked):
    for name in WHICH:
        assert CliRunner().invoke(reproduce, [name], catch_exceptions=False).exit_code == 0
    names = [options["which"] for options in asked]
    assert names == ["all", "fig1", "fig2", "fig3", "fig4", "fig5", "table1", "table2"]


def test_progress_has_lines_where_there_is_no_terminal(monkeypatch, capsys):
    from faircount.cli import reproduce as command
    from faircount.cli.show import console

    monkeypatch.setattr("time.monotonic", iter([0.0, 4.0, 12.0, 13.0, 20.0]).__next__)
    with command._show_lines(console(), "fig1") as progress:
        for done in (1.0, 3.0, 3.5, 4.0):
            progress(done, 4.0)
    assert capsys.readouterr().out.splitlines() == [
        "fig1: 75% of the runs, 4 s left",
        "fig1: runs done, drawing",
    ]


@pytest.mark.usefixtures("without_pictures")
def test_a_contradiction_is_an_exit_code(monkeypatch, tmp_path):
    """Planted error: every draw of DPDS has three times its deviation."""
    from faircount.cli import main
    from faircount.reproduction.studies import squared_errors

    draw_sums = squared_errors._draw_sums

    def triple(channel, counts, rng):
        return 3 * draw_sums(channel, counts, rng) - 2 * counts * channel.hit

    monkeypatch.setattr(squared_errors, "_draw_sums", triple)
    done = CliRunner().invoke(main, ["reproduce", "fig2", "--out", str(tmp_path), "--workers", "1"])
    assert done.exit_code == 1
    assert "the runs contradict the theory in fig2" in done.output
    assert (tmp_path / "report.html").exists()
