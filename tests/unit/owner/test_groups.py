"""Public groups: one survey for each department, and their results side by side."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import faircount as fc
from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.owner.group_results import MAX_ERROR
from faircount.owner.membership import split_people
from faircount.owner.people import People
from faircount.owner.survey import Survey

SIZES = {"Lab": 24, "Sales & more": 30, "Board": 3}
FORM: list[dict[str, Any]] = [
    {"kind": "yes", "text": "Would you recommend us?", "group": "all"},
    {"kind": "one", "text": "Which site?", "items": ["N", "S", "E"], "group": "all"},
]
EPSILON = 2.0


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def run_json(*arguments: object) -> Any:
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = ["mail,department"]
    for name, count in SIZES.items():
        lines += [f"{name[0].lower()}{number}@example.org,{name}" for number in range(count)]
    path.write_text("\n".join(lines))
    return path


def create(both_apps: Any, folder: Path, people: Path, **more: Any) -> fc.GroupedSurvey:
    terms = {"epsilon": EPSILON, "anyway": True, "purpose": "a better canteen.", **more}
    servers = both_apps.servers_file
    return fc.GroupedSurvey.create(
        folder, "department", servers=servers, people=people, questionnaire=FORM, **terms
    )


def test_people_who_were_asked_as_a_whole_are_not_asked_in_groups(
    both_apps: Any, tmp_path: Path, people: Path
) -> None:
    """The budget of everybody would not know what people lose in their groups."""
    terms = {"servers": both_apps.servers_file, "people": people, "population": "staff"}
    whole = Survey.create(
        tmp_path / "all", questionnaire=FORM, epsilon=EPSILON, anyway=True, **terms
    )
    # Only the aggregator's ledger counts: a folder alone has charged nobody.
    create(both_apps, tmp_path / "before", people, population="staff")
    whole.invite()
    with pytest.raises(RefusedError, match="has a budget for surveys of everybody"):
        create(both_apps, tmp_path / "after", people, population="staff")
    assert not (tmp_path / "after").exists()


def answer_all(survey: Survey, folder: Path, count: int, yes: int) -> None:
    for number, invitee in enumerate(survey.invitees()[:count]):
        link = invitee.code.link(survey.owner.public_address)
        part = connect(link, state=folder / f"{invitee.user}.device")
        part.answer(["yes" if number < yes else "no", "N"])


def test_every_group_has_a_survey_of_its_own_and_reads_about_it(
    both_apps: Any, people: Path, tmp_path: Path
) -> None:
    made = create(both_apps, tmp_path / "staff", people)
    assert [group.name for group in made.groups] == list(SIZES)
    folders = sorted(path.name for path in (tmp_path / "staff").iterdir() if path.is_dir())
    assert folders == ["board", "lab", "sales-more"]
    populations = set()
    for group in made.groups:
        params = group.survey.params
        assert (params.n_max, params.epsilon) == (SIZES[group.name], EPSILON)
        assert params.purpose == (
            "a better canteen. The result is published for this group by itself: department "
            f"{group.name}, {SIZES[group.name]} people. Whoever invited you knows who is in it."
        )
        populations.add(params.population)
    assert len(populations) == 3
    # Again, as after an interruption: nothing is made twice.
    again = create(both_apps, tmp_path / "staff", people)
    assert [group.survey.params for group in again.groups] == [
        group.survey.params for group in made.groups
    ]
    with pytest.raises(RefusedError, match="already contains another survey"):
        create(both_apps, tmp_path / "staff", people, epsilon=1.0)
    german = create(both_apps, tmp_path / "de", people, language="de", population="alle")
    assert "Wer Sie eingeladen hat, weiß, wer dazugehört." in german.groups[0].survey.params.purpose
    assert german.groups[0].survey.params.population == "alle, lab"


def test_a_survey_in_groups_with_commands(both_apps: Any, people: Path, tmp_path: Path) -> None:
    folder = tmp_path / "staff"
    form = tmp_path / "form.toml"
    form.write_text(
        '[[question]]\nkind = "yes"\ntext = "Would you recommend us?"\n'
        '[[question]]\nkind = "one"\ntext = "Which site?"\nitems = ["N", "S", "E"]\n'
    )
    asked = (
        *("survey", "create", folder, "--servers", both_apps.servers_file, "--people", people),
        *("--group-column", "department", "--questionnaire", form, "--epsilon", EPSILON),
    )
    refused = run(*asked)
    assert refused.exit_code == 2
    text = " ".join(refused.stderr.split())
    assert "these groups are too small to show anything: Board (3 people, at best ±" in text
    assert not folder.exists()
    created = run(*asked, "--anyway")
    assert created.exit_code == 0, created.output
    text = " ".join(created.stdout.split())
    assert "2 too few to show" in text
    assert "it is public which groups there are, how many people each has" in text
    invited = run_json("survey", "invite", folder)
    assert {name: facts["invited"] for name, facts in invited["groups"].items()} == SIZES
    assert run("survey", "open", folder).exit_code == 0
    mailed = run("survey", "mail", folder, "--from", "hr@example.org", "--dry-run")
    assert mailed.exit_code == 0, mailed.output
    assert (folder / "lab" / "mail").is_dir()
    for name, place, yes in (
        ("Lab", "lab", 20),
        ("Sales & more", "sales-more", 5),
        ("Board", "board", 1),
    ):
        answer_all(Survey.at(folder / place), tmp_path / "devices", SIZES[name], yes)
    status = run("survey", "status", folder)
    assert "department: Sales & more" in status.stdout
    assert "24 of 24 people" in status.stdout
    early = run("survey", "result", folder)
    assert early.exit_code == 2
    assert "no group is over yet" in early.stderr
    assert run("survey", "close", folder / "lab").exit_code == 0
    closed = run("survey", "close", folder)
    assert "Not done" not in closed.stdout or "department: Lab" in closed.stdout
    table = tmp_path / "groups.csv"
    done = run("survey", "result", folder, "--wait", "--csv", table)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "Lab (24 of 24)" in text
    assert "Board (3 of 3)" in text
    assert "too few to show" in text
    assert "Board: with 3 people counted, the error of question 1 is ±" in text
    found = run_json("survey", "result", folder)
    lab, sales, board = found["groups"]
    assert [question["shown"] for question in board["questions"]] == [False, False]
    assert board["questions"][0]["estimates"] == []
    for group in (lab, sales):
        for question in group["questions"]:
            assert question["shown"] == (question["half_width"] <= MAX_ERROR)
            assert question["estimates"]
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {row["department"] for row in rows} == set(SIZES)
    assert [row["note"] for row in rows if row["department"] == "Board"] == ["too few to show"] * 2
    html = run("survey", "result", folder, "--html", tmp_path / "x.html")
    assert "--html is for one group" in html.stderr
    one = run("survey", "result", folder / "lab")
    assert "24 people counted" in one.stdout
    lost = run("survey", "reissue", folder, "l1@example.org")
    assert "holds the surveys of several groups: give the folder of one" in lost.stderr


def test_a_group_without_a_result_says_why(both_apps: Any, people: Path, tmp_path: Path) -> None:
    made = create(both_apps, tmp_path / "staff", people)
    made.invite()
    made.open()
    lab, sales, _ = made.groups
    answer_all(lab.survey, tmp_path / "devices", 24, 12)
    lab.survey.close()
    sales.survey.abort("not now")
    lab.survey.result(wait=True)
    results = made.result()
    assert not results.is_complete
    assert [group.ending is None for group in results.groups] == [False, False, True]
    ((_, first), *_) = results.table(0)
    assert first[1:] == ["no result", "not over yet"]
    assert any(line.startswith("Sales & more: no result, ") for line in results.reasons())


def test_a_person_who_is_named_twice_is_in_no_group() -> None:
    header = ("mail", "department")
    rows = (("a", "Lab"), ("b", "Lab"), ("a", "Board"), ("c", "Board"))
    people = People(("a", "b", "a", "c"), header, rows)
    with pytest.raises(ParameterError, match="names a person twice: everybody is in one group"):
        split_people(people, "department")


def test_groups_come_from_a_column() -> None:
    header = ("mail", "department")
    rows = (("a", "Lab "), ("b", " Lab"), ("c", ""), ("d", "Board"))
    people = People(tuple("abcd"), header, rows)
    with pytest.raises(ParameterError, match="no column 'site'; its columns are mail, department"):
        split_people(people, "site")
    with pytest.raises(ParameterError, match="1 people have no department"):
        split_people(people, "department")
    named = People(tuple("abd"), header, (rows[0], rows[1], rows[3]))
    with pytest.raises(RefusedError, match="the group 'Board' has one person"):
        split_people(named, "department")
    assert list(split_people(People(("a", "b"), header, rows[:2]), "department")) == ["Lab"]


@pytest.mark.parametrize("place", ["../other", "/etc", "a/b", "", ".."])
def test_a_damaged_list_of_groups_leads_nowhere_else(tmp_path: Path, place: str) -> None:
    content = {"version": 2, "levels": None, "column": "department", "groups": {"Lab": place}}
    (tmp_path / "groups.json").write_text(json.dumps(content))
    with pytest.raises(FaircountError, match=r"groups\.json is damaged"):
        fc.GroupedSurvey.at(tmp_path)
