"""The command line as a whole: what it lists, how it fails, how light it is."""

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from faircount.cli import COMMANDS, main
from faircount.cli.show import _make_line_reporter, format_number
from faircount.cli.survey import SUBCOMMANDS


def test_commands_come_in_the_order_in_which_they_are_needed() -> None:
    first = ["plan", "run", "budget", "survey", "dashboard", "answer"]
    assert list(COMMANDS)[: len(first)] == first
    assert list(COMMANDS)[-5:] == ["privacy", "audit", "costs", "reproduce", "demo"]
    shown = CliRunner().invoke(main, ["--help"]).output
    places = [shown.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", [*COMMANDS, *(f"survey {name}" for name in SUBCOMMANDS)])
def test_every_command_and_option_has_help(name: str) -> None:
    command: click.Command | None = main
    for word in name.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    assert command.help
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
    shown = CliRunner().invoke(main, [*name.split(), "--help"])
    assert shown.exit_code == 0
    assert max(map(len, shown.output.splitlines())) <= 80


def test_an_unknown_command_is_refused() -> None:
    done = CliRunner().invoke(main, ["nonsense"])
    assert done.exit_code == 2
    assert "No such command" in done.stderr


def test_errors_of_ours_are_one_line_on_standard_error() -> None:
    done = CliRunner().invoke(
        main, ["plan", "--users", "1", "--items", "3", "--epsilon", "1", "--delta", "1e-6"]
    )
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("faircount: 1 user is too few")
    assert done.stderr.count("\n") == 1


def test_the_demo_refuses_before_it_says_anything() -> None:
    done = CliRunner().invoke(main, ["demo", "--in-memory", "--epsilon", "0"])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "epsilon must be above 0" in done.stderr


def test_help_loads_nothing_heavy() -> None:
    """In a process of its own, by the real entry point."""
    code = (
        "import sys\nsys.argv = ['faircount', '--help']\nfrom faircount.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'dp_accounting', 'pyarrow', 'rich'}\n"
        "assert heavy.isdisjoint(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "plan" in done.stdout


def test_numbers_read_well() -> None:
    assert [format_number(value) for value in (None, 5, 1234567, 0.123456, 1e-9, 2.0)] == [
        "-", "5", "1,234,567", "0.1235", "1e-09", "2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "plan --users 800 --items 12 --epsilon 1",
        "privacy laplace --epsilon 1",
        "audit grr --epsilon 1 --runs 200",
        "costs --users 10 --items 4 --alpha 0.5 --runs 2",
    ],
)
def test_json_carries_its_version(line: str) -> None:
    assert json.loads(CliRunner().invoke(main, [*line.split(), "--json"]).stdout)["version"] == 1


def test_delta_means_the_same_everywhere() -> None:
    for name in ("plan", "run", "privacy", "audit"):
        command = main.get_command(click.Context(main), name)
        assert command is not None
        (delta,) = (option for option in command.params if option.name == "delta")
        assert isinstance(delta, click.Option)
        assert str(delta.help).startswith("Probability that the privacy loss exceeds epsilon")
        assert (delta.default == 1e-6) == (name in ("plan", "run"))


def test_groups_is_a_column_wherever_it_is_documented() -> None:
    assert "--groups COLUMN" in CliRunner().invoke(main, ["run", "--help"]).output
    asked = CliRunner().invoke(main, ["plan", "--help"]).output
    assert "--groups-file FILE" in asked
    assert "--groups " not in asked


@pytest.mark.parametrize(
    ("words", "found"), [("faircount pl", "plan"), ("faircount run --col", "--column")]
)
def test_the_shell_completes_commands_and_options(words: str, found: str) -> None:
    asked = {
        "_FAIRCOUNT_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    code = "import sys; sys.argv[0] = 'faircount'; from faircount.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"plain,{found}" in done.stdout.splitlines()


def test_histogram_is_the_name_of_run_in_python_and_here() -> None:
    context = click.Context(main)
    assert main.get_command(context, "histogram") is main.get_command(context, "run")


@pytest.mark.parametrize("command", ["run table.csv", "audit laplace"])
def test_a_seed_is_called_simulate_seed(command: str) -> None:
    shown = CliRunner().invoke(main, [*command.split(), "--seed", "3"]).stderr
    assert "Did you mean '--simulate-seed'?" in shown
    assert "--repeated" not in shown


def test_progress_is_a_line_now_and_then_without_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds = iter([0.0, 10.0, 31.0, 40.0, 62.0])
    report = _make_line_reporter("runs", 100, lambda: next(seconds))
    for done in (10, 25, 30, 100):
        report(done)
    assert capsys.readouterr().err.splitlines() == [
        "faircount: runs: 25 of 100, about 1.6 more minutes",
        "faircount: runs: 100 of 100",
    ]
