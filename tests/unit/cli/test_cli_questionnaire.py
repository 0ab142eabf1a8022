"""`faircount run --questionnaire` and `faircount plan --questionnaire`."""

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from faircount.cli import main

FORM = """
title = "Working here"

[[question]]
kind = "one"
text = "Which site?"
items = ["North", "South", "East"]
column = "site"
target = 4

[[question]]
kind = "number"
text = "Years?"
low = 0
high = 50
column = "years"
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    form = tmp_path / "staff.toml"
    form.write_text(FORM)
    table = tmp_path / "staff.csv"
    sites = ("North", "South", "East")
    lines = ["site,years", *(f"{sites[row % 3]},{row % 51}" for row in range(300))]
    table.write_text("\n".join(lines) + "\n")
    return str(form), str(table)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_a_table_per_question_is_printed(files: tuple[str, str], tmp_path: Path) -> None:
    form, table = files
    out = tmp_path / "result.csv"
    done = call("run", "--questionnaire", form, table, "--epsilon", "1", "--csv", str(out))
    assert done.exit_code == 0, done.output
    assert "Working here: 300 users, 2 questions" in done.output
    assert "1. Which site?" in done.output
    assert "mean" in done.output
    assert "for all answers of a person" in done.output
    with out.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["answer"] for row in rows] == ["North", "South", "East", ""]
    assert rows[-1]["measure"] == "mean"


def test_json_has_all_questions(files: tuple[str, str]) -> None:
    form, table = files
    done = call(
        "run", "--questionnaire", form, table, "--epsilon", "1", "--json", "--simulate-seed", "1"
    )
    document = json.loads(done.output)
    assert [question["number"] for question in document["questions"]] == [1, 2]
    assert document["simulation"] is True
    assert document["guarantee"]["epsilon"] == 1.0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--column", "site", "--epsilon", "1"], "--column is not for a questionnaire"),
        (["--covers", "population", "--epsilon", "1"], "--covers is not for a questionnaire"),
        ([], "give --epsilon"),
        (["--epsilon", "1", "--confidence", "2"], "confidence must lie"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    files: tuple[str, str], extra: list[str], message: str
) -> None:
    form, table = files
    done = call("run", "--questionnaire", form, table, *extra)
    assert done.exit_code == 2
    assert message in done.output


def test_a_column_or_a_questionnaire_is_needed(files: tuple[str, str]) -> None:
    done = call("run", files[1], "--epsilon", "1")
    assert done.exit_code == 2
    assert "--column NAME, or --questionnaire FILE" in done.output


def test_a_ledger_is_charged_and_settled(files: tuple[str, str], tmp_path: Path) -> None:
    form, table = files
    ledger = str(tmp_path / "staff.ledger")
    call("budget", ledger, "--population", "staff", "--epsilon", "1.5", "--delta", "1e-6")
    charged = ("run", "--questionnaire", form, table, "--epsilon", "1")
    done = call(*charged, "--ledger", ledger, "--population", "staff")
    assert "Budget of staff: epsilon 1 and delta below 1e-30 spent" in done.output
    again = call(*charged, "--ledger", ledger, "--population", "staff")
    assert again.exit_code == 2
    assert "does not cover this run" in again.output


@pytest.mark.parametrize("purpose", ["survey", "table"])
def test_a_plan_advises_against_questions_about_which_nothing_is_learned(
    files: tuple[str, str], purpose: str
) -> None:
    asked = ("plan", "--for", purpose, "--questionnaire", files[0], "--users", "20")
    done = call(*asked, "--epsilon", "0.1")
    text = " ".join(done.output.split())
    assert done.exit_code == 3
    assert "Verdict: do not run this: with 95% certainty question 1 has an error of ±" in text
    assert "ask more people or fewer questions" in text
    found = call(*asked, "--epsilon", "0.1", "--json")
    assert found.exit_code == 3
    document = json.loads(found.output)
    assert not document["worthwhile"]
    assert document["verdict"].startswith("do not run this: ")
    useful = call(*asked[:-1], "300", "--epsilon", "1", "--json")
    assert useful.exit_code == 0
    assert json.loads(useful.output)["worthwhile"]


def test_a_plan_advises_against_a_minimum_that_is_not_expected(files: tuple[str, str]) -> None:
    asked = ("plan", "--questionnaire", files[0], "--users", "300", "--epsilon", "1")
    done = call(*asked, "--minimum", "200", "--response-rate", "50%")
    assert done.exit_code == 3
    assert "do not run this: 150 people are expected to respond, fewer than" in " ".join(
        done.output.split()
    )


def test_a_table_about_which_nothing_is_learned_is_refused(
    files: tuple[str, str], tmp_path: Path
) -> None:
    form, table = files
    few = tmp_path / "few.csv"
    few.write_text("".join(Path(table).read_text().splitlines(keepends=True)[:21]))
    ledger = ("--ledger", str(tmp_path / "staff.ledger"), "--population", "staff")
    call("budget", ledger[1], "--population", "staff", "--epsilon", "1", "--delta", "1e-6")
    asked = ("run", "--questionnaire", form, str(few), "--epsilon", "0.1", *ledger)
    done = call(*asked)
    assert done.exit_code == 2
    assert "do not run this: with 95% certainty question 1" in done.output
    assert "use --anyway (anyway=True in Python)" in " ".join(done.output.split())
    # What was refused has cost nothing; what is wanted nevertheless is noted with the result.
    budget = json.loads(call("budget", ledger[1], "--json").output)
    assert budget["populations"][0]["spent"]["epsilon"] == 0
    nevertheless = call(*asked, "--anyway")
    assert nevertheless.exit_code == 0, nevertheless.output
    assert "note: do not run this" in " ".join(nevertheless.output.split()).lower()


def test_the_plan_has_a_line_per_question(files: tuple[str, str]) -> None:
    form, _ = files
    asked = ("--questionnaire", form, "--users", "300", "--epsilon", "1")
    done = call("plan", "--for", "table", *asked)
    assert done.exit_code == 0, done.output
    assert "1. Which site?" in done.output
    assert "one of 3" in done.output
    assert "number 0 to 50" in done.output
    found = call("plan", "--for", "table", *asked, "--json")
    document = json.loads(found.output)
    assert len(document["questions"]) == 2
    assert document["questions"][0]["is_met"] is True
    assert document["least_epsilon"] < 1
    # By default the plan is for a survey, to which both servers add noise.
    survey = call("plan", *asked)
    assert survey.exit_code == 0, survey.output
    text = " ".join(survey.output.split())
    assert "The minimum number of responses is 75 of 300 invited people" in text
    assert "if 285 people answer; if 75 do, the errors are 3.8 times as large" in text
    assert "proven to be one sheet of possible answers. Mechanism: server-joint" in text
    assert "This covers all your answers together" in text
    planned = json.loads(call("plan", *asked, "--json").output)
    for line, alone in zip(planned["questions"], document["questions"], strict=True):
        # Two noises on fewer people.
        assert 1.3 < line["half_width"] / alone["half_width"] < 1.7
    fewer = json.loads(call("plan", *asked, "--json", "--response-rate", "50%").output)
    assert fewer["responses"] == 150
    missing = call("plan", "--questionnaire", form, "--epsilon", "1")
    assert missing.exit_code == 2
    assert "give --users" in missing.output
    other = call(
        "plan", "--questionnaire", form, "--users", "300", "--epsilon", "1", "--items", "3"
    )
    assert "--items is not for a questionnaire" in other.output
