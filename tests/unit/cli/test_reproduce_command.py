"""The `reproduce` command hands its options on and shows progress; what it makes is tested with the experiments."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from faircount.cli.reproduce import WHICH, reproduce


@pytest.fixture
def asked(monkeypatch):
    """What the report was asked for, instead of a report."""
    calls = []

    def stand_in(**options):
        options.pop("progress")(20, 40)
        calls.append(options)

    module = ModuleType("faircount.experiments.report.reproduce")
    module.reproduce = stand_in
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


def test_defaults(asked):
    done = CliRunner().invoke(reproduce, [], catch_exceptions=False)
    assert done.exit_code == 0
    here = {"engine": "local", "scheduler": None, "workers": None}
    assert asked == [{"which": "all", "runs": 20, "out": Path("out"), "seed": 1, **here}]
    assert "20/40 runs" in done.output
    assert "Written to out" in done.output


def test_every_option_is_handed_on(asked):
    options = [
        "--runs",
        "50",
        "--out",
        "there",
        "--engine",
        "dask",
        "--scheduler",
        "tcp://10.0.0.5:8786",
        "--seed",
        "3",
    ]
    assert CliRunner().invoke(reproduce, ["fig3", *options, "--workers", "4"], catch_exceptions=False).exit_code == 0
    there = {"engine": "dask", "scheduler": "tcp://10.0.0.5:8786", "workers": 4}
    assert asked == [{"which": "fig3", "runs": 50, "out": Path("there"), "seed": 3, **there}]


@pytest.mark.parametrize(
    "wrong", [["fig6"], ["--runs", "1"], ["--engine", "spark"], ["--workers", "0"], ["--seed", "-1"], ["fig1", "fig2"]]
)
def test_what_cannot_be_is_refused_before_anything_runs(asked, wrong):
    done = CliRunner().invoke(reproduce, wrong)
    assert done.exit_code == 2
    assert asked == []


def test_every_figure_and_table_can_be_asked_for(asked):
    for each in WHICH:
        assert CliRunner().invoke(reproduce, [each], catch_exceptions=False).exit_code == 0
    assert [call["which"] for call in asked] == ["all", *(f"fig{each}" for each in range(1, 6)), "table1", "table2"]
