"""The owner's interface in Python: the same survey as with commands, and no command without it."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import faircount as fc
from faircount.cli import main
from faircount.cli.survey import SUBCOMMANDS
from faircount.client.participation import connect
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.owner.survey import Survey

PEOPLE = 12


def make_survey(both_apps: Any, folder: Path, **more: Any) -> Survey:
    """A survey of twelve people, created from Python."""
    terms: dict[str, Any] = {
        "question": "Tea or coffee?",
        "items": ["tea", "coffee"],
        "people": [f"p{number}@example.org" for number in range(PEOPLE)],
        "epsilon": 8.0,
        "minimum": "50%",
        "open_for": "2h",
        "owner": "A company",
        "anyway": True,
    }
    return fc.Survey.create(folder, servers=both_apps.servers_file, **{**terms, **more})


def answer_all(survey: Survey, folder: Path, people: int) -> None:
    for place, invitee in enumerate(survey.invitees()[:people]):
        link = invitee.code.link(survey.owner.public_address)
        connect(link, state=folder / f"{place}.device").answer(["tea", "coffee"][place % 2])


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def test_every_command_of_an_owner_is_a_method() -> None:
    # A result of several surveys is no method of one of them.
    functions = {"combine": fc.combine_surveys}
    for name in SUBCOMMANDS:
        method = functions.get(name, getattr(fc.Survey, name.replace("-", "_"), None))
        assert callable(method), name
        assert inspect.getdoc(method), name


def test_a_survey_from_python(both_apps: Any, tmp_path: Path) -> None:
    made = make_survey(both_apps, tmp_path / "survey")
    assert made.advice is not None
    assert made.advice.minimum == 6
    survey = fc.survey(tmp_path / "survey")
    assert repr(survey) == f"<Survey 'Tea or coffee?' in {tmp_path / 'survey'}>"
    assert len(survey.invite()) == PEOPLE
    assert survey.open()["phase"] == "submitting"
    answer_all(survey, tmp_path, 9)
    assert survey.status()["responses"] == 9
    assert [invitee.person for invitee in survey.remind()] == [
        f"p{number}@example.org" for number in (9, 10, 11)
    ]
    assert survey.extend("1h")["extended_seconds"] == 3600
    with pytest.raises(FaircountError, match="not over yet"):
        survey.result()
    survey.close()
    result = survey.result(wait=True)
    assert isinstance(result, QuestionnaireResult)
    record = result.record
    assert record is not None
    assert (record.invited, record.responded, record.counted) == (PEOPLE, 9, 9)
    assert (record.question, record.owner, record.name) == ("Tea or coffee?", "A company", "survey")
    assert record.opened is not None
    assert record.ended is not None
    assert record.opened <= record.ended
    assert list(result.to_frame()["answer"]) == ["tea", "coffee"]
    assert "12 invited, 9 responded (75%), 9 counted" in result._repr_html_()
    assert survey.receipts().exists()


def test_a_result_is_kept_when_the_servers_have_deleted_it(both_apps: Any, tmp_path: Path) -> None:
    survey = make_survey(both_apps, tmp_path / "survey")
    survey.invite()
    survey.open()
    answer_all(survey, tmp_path, 8)
    survey.close()
    first = survey.result(wait=True)
    survey.delete()
    with pytest.raises(FaircountError, match="no such survey"):
        survey.ending()
    again = fc.survey(tmp_path / "survey").result()
    assert again.cells.tolist() == first.cells.tolist()
    assert again.record == first.record
    kept = survey.folder.statement_file.read_bytes()
    survey.folder.statement_file.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    with pytest.raises(RefusedError, match="has not signed"):
        survey.result()
    survey.folder.statement_file.write_bytes(kept)
    survey.folder.record_file.write_text("{}")
    with pytest.raises(FaircountError, match=r"record\.json is damaged"):
        survey.result()


def test_a_survey_without_a_result_is_refused_with_its_reason(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = make_survey(both_apps, tmp_path / "survey")
    survey.invite()
    survey.open()
    survey.abort("a mistake")
    for _ in range(2):  # from the servers, then from the folder
        with pytest.raises(RefusedError, match="the owner ended the survey: a mistake"):
            survey.result(wait=True)


def test_wrong_words_are_refused(both_apps: Any, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="a survey has no 'purpos'"):
        make_survey(both_apps, tmp_path / "survey", purpos="x")
    with pytest.raises(ParameterError, match=r"\(people= or users= in Python\)"):
        make_survey(both_apps, tmp_path / "survey", people=None)
    assert not (tmp_path / "survey").exists()


def test_the_command_writes_every_file(both_apps: Any, tmp_path: Path) -> None:
    survey = make_survey(both_apps, tmp_path / "survey")
    survey.invite()
    survey.open()
    answer_all(survey, tmp_path, 8)
    survey.close()
    files = {kind: tmp_path / f"out.{kind}" for kind in ("csv", "xlsx", "html")} | {
        "plot": tmp_path / "out.png"
    }
    options = [text for kind, path in files.items() for text in (f"--{kind}", path)]
    done = run("survey", "result", survey.folder.path, "--wait", "--covers", "population", *options)
    assert done.exit_code == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "12 invited, 8 responded (67%), 8 counted" in text
    assert "Tea or coffee?" in text
    assert survey.params.survey.hex() in text
    assert "the draw of these users" in text
    for path in files.values():
        assert path.stat().st_size > 500
        assert f"Written to {path}" in done.stdout
    printed = json.loads(run("survey", "result", survey.folder.path, "--json").stdout)
    assert printed["record"]["invited"] == PEOPLE
    wrong = run("survey", "result", survey.folder.path, "--xlsx", tmp_path / "out.csv")
    assert "--xlsx writes a file that ends in .xlsx, not out.csv" in wrong.stderr


def finish(survey: Survey, folder: Path, people: int = 8) -> None:
    """Invite, open, answer and close a survey, and read its result."""
    survey.invite()
    survey.open()
    answer_all(survey, folder, people)
    survey.close()
    survey.result(wait=True)


def test_a_survey_is_repeated_among_the_same_people_and_compared(
    both_apps: Any, tmp_path: Path
) -> None:
    people = tmp_path / "people.csv"
    rows = "".join(f"Zoë {number},p{number}@example.org\n" for number in range(PEOPLE))
    people.write_text(f"Name,Mail\n{rows}")
    first = make_survey(
        both_apps, tmp_path / "mood", people=people, population="staff", budget=(16.0, 1e-5)
    )
    finish(first, tmp_path / "one")
    printed = run("survey", "repeat", tmp_path / "mood", "--json")
    assert printed.exit_code == 0, printed.stderr
    folder = Path(json.loads(printed.stdout)["folder"])
    assert folder.name == "mood-2"
    second = fc.survey(folder)
    assert second.params.survey != first.params.survey
    assert second.params.keys != first.params.keys
    assert second.params.population == "staff"
    second.invite()
    early = run("survey", "trend", tmp_path / "mood", folder)
    assert early.exit_code == 2
    assert "mood-2 is not over yet: close it, or wait" in " ".join(early.stderr.split())
    finish(second, tmp_path / "two")
    assert [invitee.columns for invitee in second.invitees()] == [
        invitee.columns for invitee in first.invitees()
    ]
    assert {invitee.code.text for invitee in second.invitees()}.isdisjoint(
        invitee.code.text for invitee in first.invitees()
    )
    spent = first.servers.budget("staff")
    assert len(spent["surveys"]) == 2
    refused = run("survey", "repeat", tmp_path / "mood-2", tmp_path / "third")
    assert refused.exit_code == 2
    assert "does not allow another survey of epsilon 8: epsilon 16 of 16 is spent" in refused.stderr
    assert not (tmp_path / "third").exists()
    table = tmp_path / "trend.csv"
    figure = tmp_path / "trend.svg"
    done = run("survey", "trend", tmp_path / "mood", folder, "--csv", table, "--plot", figure)
    assert done.exit_code == 0, done.stderr
    assert "From mood to mood-2:" in done.stdout
    assert "may be noise" in done.stdout
    assert len(table.read_text().splitlines()) == 1 + 2 * 2
    assert "mood-2: (" in figure.read_text()
    plain = json.loads(run("survey", "trend", tmp_path / "mood", folder, "--json").stdout)
    assert [change["to"] for change in plain["changes"]] == ["mood-2"]


def test_a_survey_with_a_budget_of_its_own_is_not_repeated_once_it_is_spent(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = make_survey(both_apps, tmp_path / "mood")
    again = survey.repeat(tmp_path / "before", question="And now?", open_for="5h")
    assert again.params.questionnaire.text == "And now?"
    assert again.params.phase_seconds == (5 * 3600,)
    assert again.folder.people() == survey.folder.people()
    finish(survey, tmp_path / "devices")
    with pytest.raises(RefusedError, match="create the first survey with --population"):
        survey.repeat()
