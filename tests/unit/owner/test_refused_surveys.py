"""A survey that must fail is refused when it is created, before anybody is invited."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import ParameterError, RefusedError, UnreachableError
from faircount.dashboard.surveys import Surveys
from faircount.owner.survey import Survey

TERMS: dict[str, Any] = {
    "question": "Which city?",
    "items": ["Aldmoor", "Carrow"],
    "users": 4,
    "minimum": 2,
    "anyway": True,
}


def create(both_apps: Any, folder: Path, **others: Any) -> Survey:
    return Survey.create(folder, servers=both_apps.servers_file, **{**TERMS, **others})


def run_create(servers: Path, folder: Path, *more: str) -> Result:
    command = ["survey", "create", str(folder), "--servers", str(servers)]
    terms = ["--question", "Which city?", "--items", "Aldmoor,Carrow", "--users", "400"]
    return CliRunner().invoke(main, [*command, *terms, *more], catch_exceptions=False)


def spend(survey: Survey, folder: Path) -> None:
    """Everybody answers, and the result is published."""
    for number, invitee in enumerate(survey.invite()):
        if number == 0:
            survey.open()
        link = invitee.code.link(survey.owner.public_address)
        connect(link, state=folder / str(number)).answer("Carrow")
    survey.close()
    survey.result(wait=True)


def test_a_budget_that_is_spent(both_apps: Any, tmp_path: Path) -> None:
    among = {"population": "staff"}
    first = create(both_apps, tmp_path / "first", **among, budget=(1.5, 1e-5))
    spend(first, tmp_path / "devices")
    with pytest.raises(RefusedError, match=r"epsilon 1 of 1\.5 is spent"):
        create(both_apps, tmp_path / "second", **among)
    refused = run_create(both_apps.servers_file, tmp_path / "third", "--population", "staff")
    assert refused.exit_code == 2
    assert "does not allow another survey of epsilon 1:" in refused.stderr
    assert not (tmp_path / "second").exists()
    assert not (tmp_path / "third").exists()
    # What is left is enough for this one, and the budget need not be repeated.
    rest = create(both_apps, tmp_path / "rest", **among, epsilon=0.5)
    assert rest.owner.budget == (1.5, 1e-5)
    assert len(rest.invite()) == 4


def test_the_dashboard_refuses_it_too(both_apps: Any, tmp_path: Path) -> None:
    first = create(both_apps, tmp_path / "first", population="staff")
    spend(first, tmp_path / "devices")
    form = {
        "name": "next",
        "questions": [{"kind": "one", "text": "Again?", "items": "a\nb"}],
        "users": 400,
        "open_for": 24,
        "unit": "hours",
        "epsilon": 1,
        "delta": 1e-6,
        "population": "staff",
        "budget_epsilon": 5,
        "budget_delta": 1e-5,
    }
    with pytest.raises(RefusedError) as refusal:
        Surveys(tmp_path / "surveys", both_apps.servers_file).create(form)
    assert refusal.value.code == "budget_spent"


def test_a_budget_that_differs_or_is_too_small(both_apps: Any, tmp_path: Path) -> None:
    create(both_apps, tmp_path / "a", population="staff", budget=(3.0, 1e-5)).invite()
    with pytest.raises(RefusedError, match="which is never changed: leave --budget out"):
        create(both_apps, tmp_path / "b", population="staff", budget=(5.0, 1e-5))
    with pytest.raises(RefusedError, match=r"epsilon 0\.5 and delta 1e-05 is too small"):
        create(both_apps, tmp_path / "c", budget=(0.5, 1e-5))


@pytest.mark.parametrize("swapped", ["entries", "addresses"])
def test_servers_that_are_interchanged(both_apps: Any, tmp_path: Path, swapped: str) -> None:
    known = json.loads(both_apps.servers_file.read_text())
    if swapped == "entries":
        known = {"s1": known["s2"], "s2": known["s1"]}
    else:
        known["s1"]["address"], known["s2"]["address"] = "http://s2", "http://s1"
    file = tmp_path / "swapped.json"
    file.write_text(json.dumps(known))
    words = "coordinator and aggregator are interchanged: http://s2 is the aggregator"
    for number, more in enumerate(((), ("--population", "staff"))):
        refused = run_create(file, tmp_path / f"survey-{number}", *more)
        assert refused.exit_code == 2
        assert words in refused.stderr


def test_one_server_in_both_roles(both_apps: Any, tmp_path: Path) -> None:
    known = json.loads(both_apps.servers_file.read_text())
    file = tmp_path / "one.json"
    file.write_text(json.dumps({"s1": known["s1"], "s2": known["s1"]}))
    refused = run_create(file, tmp_path / "survey")
    assert refused.exit_code == 2
    assert "http://s1 is the address of both servers" in refused.stderr


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Aldmoor", "Aldmoor"),
        ("Aldmoor", "ALDMOOR"),
        ("Upper  Carrow", "Upper\u00a0Carrow"),
        ("Straße", "STRASSE"),
        ("Caf\u00e9", "Cafe\u0301"),
        ("Aldmoor", "Ald\u200bmoor"),
        ("Aldmoor", " Aldmoor "),
    ],
)
def test_answers_that_nobody_can_tell_apart(
    both_apps: Any, tmp_path: Path, first: str, second: str
) -> None:
    with pytest.raises(ParameterError, match="could not tell the answers") as refusal:
        create(both_apps, tmp_path / "survey", items=[first, "Carrow", second])
    assert refusal.value.code == "same_items"
    assert create(both_apps, tmp_path / "survey", items=["Aldmoor", "Altmoor"]).params


def test_an_answer_that_shows_nothing(both_apps: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="an answer to choose from is empty"):
        create(both_apps, tmp_path / "survey", items=["Aldmoor", "\u200b "])


@pytest.mark.parametrize("question", ["", "  ", "\u200b\n"])
def test_a_question_that_asks_nothing(both_apps: Any, tmp_path: Path, question: str) -> None:
    with pytest.raises(ParameterError, match="the question is empty"):
        create(both_apps, tmp_path / "survey", question=question)
    survey = create(both_apps, tmp_path / "first")
    with pytest.raises(ParameterError, match="the question is empty"):
        survey.repeat(tmp_path / "second", question=question)


def test_an_option_that_is_given_twice(both_apps: Any, tmp_path: Path) -> None:
    refused = run_create(both_apps.servers_file, tmp_path / "survey", "--question", "Which town?")
    assert refused.exit_code == 2
    assert "--question is given 2 times: give it once" in refused.stderr
    assert not (tmp_path / "survey").exists()


def test_an_aggregator_that_cannot_be_asked(both_apps: Any, tmp_path: Path) -> None:
    """Without its keys there is no survey, so nothing is written and the budget waits."""
    known = json.loads(both_apps.servers_file.read_text())
    known["s2"]["address"] = "http://nowhere"
    file = tmp_path / "away.json"
    file.write_text(json.dumps(known))
    away = {**TERMS, "population": "staff"}
    with pytest.raises(UnreachableError, match="The aggregator at http://nowhere"):
        Survey.create(tmp_path / "survey", servers=file, **away)
    assert not (tmp_path / "survey").exists()
