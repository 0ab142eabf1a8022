"""`faircount run`."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from faircount.cli import main
from faircount.cli.run import MECHANISMS
from faircount.cli.show import WIDTH, print_bars
from faircount.core.figures import SUFFIXES
from faircount.estimation.drawing import axis_label
from faircount.estimation.result import SIMULATION, Result
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.registry import frequency_mechanisms

Call = Callable[..., Any]
RUN = "run answers.csv --column city --domain @cities.txt"
pytestmark = pytest.mark.usefixtures("answers")


def test_json_has_the_promised_keys_and_nothing_else_is_printed(call: Call) -> None:
    done = call(f"{RUN} --epsilon 1 --delta 1e-6 --json")
    said = json.loads(done.stdout)
    assert done.stderr == ""
    assert said["mechanism"] == "laplace"
    assert said["n"] == 600
    assert [row["item"] for row in said["estimates"]] == [
        "Aldmoor",
        "Brook, Lower",
        "Zürich",
        "Nowhere",
    ]
    assert set(said["estimates"][0]) == {"item", "estimate", "low", "high"}
    assert said["guarantee"]["epsilon"] == 1.0
    assert said["guarantee"]["condition"] == "each row is another person"
    assert "spends privacy again" in said["again"]
    assert "simulation" not in said


def test_people_see_bars_and_a_guarantee_in_one_sentence(call: Call) -> None:
    shown = call(f"{RUN} --epsilon 1").stdout
    assert "Zürich" in shown
    assert "█" in shown
    assert "Privacy: against any single participant who reads the result, the odds" in shown
    words = " ".join(shown.split())
    assert (
        "provided that each row is another person, assuming that nobody can tell the output"
        in words
    )
    assert "except with probability below 1e-30 (delta)" in words
    assert "whatever the answers are, assuming" in " ".join(
        call(f"{RUN} --epsilon 1 --user id").stdout.split()
    )
    assert "Running again: every further run on the same people spends privacy again" in shown
    assert "SIMULATION" not in shown
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_a_seed_repeats_itself_and_is_no_release(call: Call) -> None:
    first, second = (call(f"{RUN} --epsilon 1 --simulate-seed 3").stdout for _ in range(2))
    assert first == second
    assert first.startswith(SIMULATION.split(":")[0])
    assert (
        json.loads(call(f"{RUN} --epsilon 1 --simulate-seed 3 --json").stdout)["simulation"] is True
    )


def test_files_are_written(call: Call, tmp_path: Path) -> None:
    done = call(f"{RUN} --epsilon 1 --out a.json --csv a.csv --plot a.png --json")
    said = json.loads(done.stdout)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == said
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["item"] for row in rows] == [row["item"] for row in said["estimates"]]
    assert [float(row["estimate"]) for row in rows] == [
        row["estimate"] for row in said["estimates"]
    ]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "Written to a.svg" in call(f"{RUN} --epsilon 1 --plot a.svg --simulate-seed 1").stdout
    assert "simulation" not in rows[0]
    call(f"{RUN} --epsilon 1 --csv b.csv --simulate-seed 1")
    with (tmp_path / "b.csv").open(encoding="utf-8", newline="") as lines:
        assert {row["simulation"] for row in csv.DictReader(lines)} == {"true"}
    assert "simulation" in (tmp_path / "a.svg").read_text(encoding="utf-8").lower()


def test_a_file_that_cannot_be_written_is_told(call: Call) -> None:
    done = call(f"{RUN} --epsilon 1 --out nowhere/a.json")
    assert done.exit_code == 2
    assert "cannot be written: no such file or directory" in done.stderr


def test_a_list_from_the_answers_is_refused_unless_asked_for(call: Call) -> None:
    done = call("run answers.csv --column city --epsilon 1")
    assert done.exit_code == 2
    assert "reveals that somebody gave" in done.stderr
    taken = json.loads(
        call("run answers.csv --column city --epsilon 1 --domain-from-data --json").stdout
    )
    assert "taken from the answers" in taken["guarantee"]["condition"]
    assert (
        "taken from the answers"
        in call("run answers.csv --column city --epsilon 1 --domain-from-data").stdout
    )


def test_a_short_list_in_the_command(call: Call) -> None:
    done = call("run answers.csv --column city --epsilon 1 --domain", "Aldmoor, Zürich")
    assert done.exit_code == 2
    assert "200 of 600 users have an answer outside the list" in done.stderr
    rest = call(
        "run answers.csv --column city --epsilon 1 --other rest --json --domain",
        "Aldmoor,Zürich,rest",
    )
    said = json.loads(rest.stdout)
    assert said["notes"] == ["users with an answer outside the list count as rest"]
    assert said["guarantee"]["condition"] == "each row is another person"
    left = call(
        "run answers.csv --column city --epsilon 1 --outside drop --domain", "Aldmoor,Zürich"
    )
    assert "provided that it is public who has an answer outside the list" in " ".join(
        left.stdout.split()
    )


def test_an_item_with_a_comma_stands_in_quotes(call: Call) -> None:
    done = call(
        "run answers.csv --column city --epsilon 1 --json --domain",
        'Aldmoor, "Brook, Lower",Zürich',
    )
    assert [row["item"] for row in json.loads(done.stdout)["estimates"]] == [
        "Aldmoor",
        "Brook, Lower",
        "Zürich",
    ]
    assert (
        "a quote is opened"
        in call("run answers.csv --column city --epsilon 1 --domain", 'a,"b').stderr
    )


def test_tables_from_standard_input_packed_and_in_other_encodings(
    tmp_path: Path, answers: Path
) -> None:
    held = answers.read_text(encoding="utf-8")
    line = [
        "run",
        "-",
        "--column",
        "city",
        "--domain",
        f"@{tmp_path / 'cities.txt'}",
        "--epsilon",
        "1",
        "--json",
    ]
    piped = CliRunner().invoke(main, line, input=held.encode())
    assert json.loads(piped.stdout)["users"] == 600
    line[1] = str(tmp_path / "packed.csv.gz")
    Path(line[1]).write_bytes(gzip.compress(held.encode("cp1252")))
    assert "name its encoding" in CliRunner().invoke(main, line).stderr
    other = CliRunner().invoke(main, [*line, "--encoding", "cp1252"])
    assert [row["item"] for row in json.loads(other.stdout)["estimates"]][2] == "Zürich"


def test_spellings_that_count_as_no_answer(call: Call, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("city\n" + "a\nb\nNA\n" * 100)
    ask = "run answers.csv --column city --epsilon 1 --domain a,b"
    assert "100 of them look like a missing answer" in call(ask).stderr
    assert "100 of 300 users have no answer" in call(f"{ask} --missing-spellings NA").stderr
    assert (
        json.loads(call(f"{ask} --missing-spellings NA --missing drop --json").stdout)["users"]
        == 200
    )


def test_intervals_can_cover_the_population(call: Call) -> None:
    line = f"{RUN} --epsilon 1 --simulate-seed 1 --json"
    users = json.loads(call(f"{line} --covers users").stdout)
    population = json.loads(call(f"{line} --covers population").stdout)
    assert (users["covers"], population["covers"]) == ("users", "population")
    for narrow, wide in zip(users["estimates"][:3], population["estimates"], strict=False):
        assert wide["high"] - wide["low"] > narrow["high"] - narrow["low"]
    assert "population" in call("run --help").stdout


def test_groups_by_name_and_by_number(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "os.urandom", bytes
    )  # the same noise each time: by chance the groups would seem to differ
    shown = call(f"{RUN} --groups level --public-groups --levels strict=0.5,open=2").stdout
    words = " ".join(shown.split())
    assert "it is right only if the groups answer alike" in words
    assert "A second estimate, with weights by variance (total)" in words
    assert "it is public which group a participant is in" in words
    said = json.loads(call(f"{RUN} --groups budget --public-groups --weights vwa --json").stdout)
    assert [group["epsilon"] for group in said["groups"]] == [1.0, 2.0]
    assert said["weighting"] == "uwa"
    assert said["if_alike"]["weighting"] == "vwa"


def test_each_group_reads_its_own_promise(call: Call) -> None:
    """Members of the strict group read only what the loosest group is promised."""
    shown = call(f"{RUN} --groups level --public-groups --levels strict=0.5,open=2").stdout
    rows = [line.split() for line in shown.splitlines()]
    heads = rows[_row_of(rows, "strict") - 1]
    assert heads[:5] == ["group", "users", "epsilon", "delta", "factor"]
    assert rows[_row_of(rows, "strict")][1:7] == ["300", "0.5", "below", "1e-30", "1.65", "laplace"]
    assert rows[_row_of(rows, "open")][1:7] == ["300", "2", "below", "1e-30", "7.39", "laplace"]
    assert "Privacy of the weakest group (all others have at least as much):" in shown


def _row_of(rows: list[list[str]], group: str) -> int:
    return next(number for number, row in enumerate(rows) if row[:1] == [group])


def test_without_weights_nothing_stands_beside_and_cpa_is_one_survey(call: Call) -> None:
    ask = f"{RUN} --groups level --public-groups --levels strict=0.5,open=2"
    assert "Only if the groups answer alike" not in call(f"{ask} --weights uwa").stdout
    said = json.loads(call(f"{ask} --weights cpa --json").stdout)
    assert "groups" not in said
    assert said["users"] == 600
    assert said["guarantee"]["epsilon"] == 0.5
    assert json.loads(call(f"{ask} --weights owa --json").stdout)["if_alike"]["weighting"] == "owa"


def test_levels_from_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "levels.txt").write_text("strict=0.5\n\nopen = 2\n")
    said = json.loads(
        call(f"{RUN} --groups level --public-groups --levels @levels.txt --json").stdout
    )
    assert [(group["group"], group["epsilon"]) for group in said["groups"]] == [
        ("strict", 0.5),
        ("open", 2.0),
    ]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{RUN}", "give --epsilon"),
        (f"{RUN} --epsilon 1 --groups level", "leave --epsilon out"),
        (f"{RUN} --epsilon 1 --levels strict=1", "give --groups too"),
        (f"{RUN} --epsilon 1 --weights vwa", "name their column with --groups"),
        (f"{RUN} --groups level --public-groups", "'open' is not a positive number"),
        (f"{RUN} --groups level --public-groups --levels strict", "level=epsilon"),
        (f"{RUN} --groups level --levels strict=1,open=2", "declare it with --public-groups"),
        (
            f"{RUN} --groups city --public-groups --levels a=1",
            "cannot be the answers and the groups",
        ),
        (f"{RUN} --epsilon 0.01", "do not run this: laplace has a 95% error"),
        (f"{RUN} --groups level --public-groups --levels strict=1", "'open' has no epsilon"),
        (f"{RUN} --epsilon 1 --confidence 1.5", "confidence must lie strictly between 0 and 1"),
        (
            f"{RUN} --epsilon 1 --mechanism dpds",
            "dpds: needs a floor of 80 holders per item (--floor 80",
        ),
        (f"{RUN} --epsilon 1 --missing other", "name the item: --other ITEM"),
        ("run answers.csv --column town --epsilon 1 --domain a,b", "no column 'town'"),
        ("run nothing.csv --column town --epsilon 1 --domain a,b", "cannot be opened"),
        (
            "run answers.csv --column city --epsilon 1 --domain @nothing.txt",
            "nothing.txt cannot be opened: no such",
        ),
        ("run answers.csv --column city --epsilon 1 --domain a", "at least 2 items"),
        (
            "run answers.csv --column city --epsilon 1 --domain cities.txt",
            "--domain cities.txt is the name of a file: did you mean @cities.txt?",
        ),
        (f"{RUN} --epsilon 1 --user city", "cannot be the answers and the people"),
        (
            "run answers.csv --column city --epsilon 1 --domain ,",
            "--domain lists nothing: write --domain a,b,c",
        ),
        (
            "run answers.csv --column city --groups level --domain a,b --levels ,",
            "--levels lists nothing",
        ),
        (f"{RUN} --epsilon 1e-9", "no mechanism meets the budget; allow a larger epsilon"),
    ],
)
def test_wrong_use_is_one_sentence_and_code_2(call: Call, line: str, words: str) -> None:
    done = call(line)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    ["", "city\n", "city\nAldmoor\n", "city\nAldmoor\n \n"],
    ids=["empty", "header", "one", "gap"],
)
def test_small_and_broken_tables(call: Call, tmp_path: Path, text: str) -> None:
    (tmp_path / "answers.csv").write_text(text)
    done = call(f"{RUN} --epsilon 1")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1


def test_noise_of_servers_is_said_to_be_drawn_without_them(call: Call) -> None:
    shown = " ".join(call(f"{RUN} --epsilon 1 --mechanism server-joint").stdout.split())
    assert "no servers ran: this program drew the noise of both" in shown
    assert "no servers ran" not in call(f"{RUN} --epsilon 1").stdout


def test_a_confidence_in_percent_is_told_how_to_write_it(call: Call) -> None:
    assert "not 95: write 0.95 for 95%" in call(f"{RUN} --epsilon 1 --confidence 95").stderr


@pytest.mark.parametrize("name", ["nofile.txt", "lists/cities"])
def test_a_missing_file_without_its_sign_is_told(call: Call, name: str) -> None:
    said = call(f"run answers.csv --column city --epsilon 1 --domain {name}").stderr
    assert f"write @{name}" in said


def test_the_formats_of_plots_are_all_in_the_help(call: Call) -> None:
    for command in ("run", "plan"):
        shown = call(f"{command} --help").stdout
        assert all(suffix.removeprefix(".").upper() in shown for suffix in SUFFIXES)


def test_mechanisms_are_those_of_the_plan() -> None:
    """A plan refuses tss, and run says why."""
    assert set(MECHANISMS) == {"auto", *frequency_mechanisms()}


def test_items_with_brackets_are_shown_as_they_are(call: Call, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("city\n" + "[bold]x[/bold]\n[y\n" * 50)
    shown = call(
        "run answers.csv --column city --epsilon 1 --domain [bold]x[/bold],[y "
        "--other [y --missing other"
    ).stdout
    assert "[bold]x[/bold]" in shown
    assert "count as [y" in shown


def test_a_list_that_is_no_text_is_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe")
    assert (
        "cannot be read as a list"
        in call("run answers.csv --column city --epsilon 1 --domain @list.txt").stderr
    )


def test_an_epsilon_that_protects_nobody_is_told(call: Call) -> None:
    shown = " ".join(call(f"{RUN} --epsilon 1000").stdout.split())
    assert "Note: an epsilon of 1000 protects next to nothing" in shown
    assert "by at most a factor of e^1000" in shown
    assert "epsilon of 50" in json.loads(call(f"{RUN} --epsilon 50 --json").stdout)["notes"][0]
    assert json.loads(call(f"{RUN} --epsilon 2.9 --json").stdout)["notes"] == []
    levels = json.loads(
        call(f"{RUN} --groups level --public-groups --levels strict=1,open=11 --json").stdout
    )["notes"]
    assert any(
        note.startswith("privacy level 'open': an epsilon of 11 protects") for note in levels
    )


def test_items_that_seem_to_be_below_the_floor_are_named(call: Call) -> None:
    shown = " ".join(
        call(f"{RUN} --epsilon 1 --mechanism dpds --floor 60 --simulate-seed 1").stdout.split()
    )
    assert "needs at least 60 holders of every item, which seems not to hold for Nowhere:" in shown


def test_control_characters_are_shown_and_not_obeyed(call: Call, tmp_path: Path) -> None:
    strange = ["x\x1b[31mred", "\u202edesrever", "👩\u200d🚀"]
    (tmp_path / "answers.csv").write_text(
        "city\n" + "\n".join(strange * 30) + "\n", encoding="utf-8"
    )
    (tmp_path / "cities.txt").write_text("\n".join(strange), encoding="utf-8")
    shown = call(f"{RUN} --epsilon 1 --missing other --other", strange[0]).stdout
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "x\\x1b[31mred" in shown
    assert "count as x\\x1b[31mred" in shown
    assert "👩\u200d🚀" in shown
    assert (
        "\x1b" not in call("run answers.csv --epsilon 1 --domain a,b --column", "\x1b[31m").stderr
    )


def test_odd_items_are_drawn_without_a_warning(call: Call, tmp_path: Path) -> None:
    """Warnings are errors here; a long item is cut."""
    odd = ["東京", "long " * 30, "$x$"]
    (tmp_path / "answers.csv").write_text("city\n" + "\n".join(odd * 30) + "\n", encoding="utf-8")
    (tmp_path / "cities.txt").write_text("\n".join(odd), encoding="utf-8")
    done = call(f"{RUN} --epsilon 1 --plot a.png")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert axis_label(odd[1]) == ("long " * 30)[:39] + "…"
    assert axis_label("a\x1bb$") == r"a\x1bb\$"


def test_a_small_negative_estimate_is_no_negative_zero() -> None:
    def make_result(users: int) -> Result:
        half = users // 2
        return Result(
            Laplace(items=3, users=users, epsilon=1.0),
            np.array([-1, half, users + 1 - half]),
            users,
        )

    out = Console(width=WIDTH, record=True, file=io.StringIO())
    print_bars(out, make_result(2500))  # -0.04%, with one digit
    assert "\n0         0.0%" in out.export_text()
    assert " 0.0000 " in str(make_result(10**6))
    assert "-0.0000" not in str(make_result(10**6))


def test_what_should_not_be_run_is_run_when_told_to(call: Call) -> None:
    done = call(f"{RUN} --epsilon 0.01 --anyway")
    assert done.exit_code == 0
    assert "Note: do not run this" in done.stdout
