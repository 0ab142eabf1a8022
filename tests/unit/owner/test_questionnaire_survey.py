"""A survey with several questions, from the file of its owner to its result."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from visits import visit_until_over

import faircount as fc
from faircount.cli import main
from faircount.client.participation import connect
from faircount.client.participation_status import Stage
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Questionnaire, YesNo
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.invitation_texts import printed_words
from faircount.owner.mail import Mailing
from faircount.owner.questions import read_questions
from faircount.owner.survey import Survey
from faircount.protocol import EXPLICIT, MASKED, TWO_STAGE, Topology

STAFF = """
title = "Working here"
language = "en"

[translation.de]
title = "Arbeiten hier"

[[question]]
kind = "one"
text = "Which site?"
items = ["North", "South", "East"]
skip = true
translation.de = {text = "Welcher Standort?", items = ["Nord", "Süd", "Ost"]}

[[question]]
kind = "yes"
text = "Would you recommend us?"
translation.de = {text = "Würden Sie uns empfehlen?", items = ["nein", "ja"]}

[[question]]
kind = "most"
text = "What do you drink?"
items = ["tea", "coffee", "water", "juice"]
most = 2
only_if = {question = 1, items = ["North", "South"]}
translation.de = {text = "Was trinken Sie?", items = ["Tee", "Kaffee", "Wasser", "Saft"]}

[[question]]
kind = "number"
text = "How many years have you been here?"
low = 0
high = 50
translation.de = {text = "Seit wie vielen Jahren sind Sie hier?"}

[[question]]
kind = "scale"
text = "How satisfied are you?"
items = ["not at all", "partly", "very"]
open = "mean"
translation.de = {text = "Wie zufrieden sind Sie?", items = ["nicht", "teils", "sehr"]}
"""

PEOPLE = 12


def run(*arguments: object, typed: str = "") -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed)


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.toml"
    path.write_text(STAFF)
    return path


@pytest.fixture
def opened(both_apps: Any, staff: Path, tmp_path: Path) -> Survey:
    """A survey whose noise is 0, except with probability 10^-9: one radius, of one group."""
    staff.write_text(STAFF.replace("[[question]]", '[[question]]\ngroup = "all"'))
    survey = Survey.create(
        tmp_path / "survey",
        servers=both_apps.servers_file,
        questionnaire=staff,
        users=PEOPLE,
        epsilon=40.0,
        minimum=3,
        owner="A company",
        anyway=True,
    )
    survey.invite()
    survey.open()
    return survey


def links(survey: Survey) -> list[str]:
    return [invitee.code.link(survey.owner.public_address) for invitee in survey.invitees()]


def test_people_answer_in_every_way_and_the_result_has_all_questions(
    opened: Survey, tmp_path: Path
) -> None:
    given: list[Any] = [
        {
            "Which site?": "North",
            "Would you recommend us?": "yes",
            "What do you drink?": ["tea", "water"],
            "How many years have you been here?": 4,
            "How satisfied are you?": "very",
        },
        {1: "East", 2: True, 4: 10, 5: "partly"},
        ["South", "no", [], 50, "not at all"],
        {"Welcher Standort?": None, "Würden Sie uns empfehlen?": "ja", 4: 0, "5": "sehr"},
        [0, 1, [1, 2], 6, 2],
    ]
    for number, (link, answers) in enumerate(zip(links(opened), given, strict=False)):
        part = connect(link, state=tmp_path / f"{number}.device")
        assert part.answer(answers).stage is Stage.SENT
    opened.close()
    result = opened.result(wait=True)
    assert result.included == 5
    assert result.cells.tolist() == [
        *(2, 1, 1, 1),  # North, South, East, prefer not to say
        4,  # yes
        *(1, 1, 2, 0, 2),  # what they drink; two were not asked
        70,  # years
        *(2 + 1 + 0 + 2 + 2,),  # satisfied
    ]
    assert result.guarantee.epsilon == 40.0
    assert result["How many years have you been here?"].estimates[0].estimate == 14


def test_the_commands_create_answer_and_show(both_apps: Any, staff: Path, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    created = run(
        *("survey", "create", folder, "--servers", both_apps.servers_file),
        *("--questionnaire", staff, "--users", "300", "--epsilon", "1", "--owner", "A company"),
    )
    assert created.exit_code == 0, created.output
    text = " ".join(created.stdout.split())
    assert "3. What do you drink? at most 2 of 4" in text
    assert "Participants will read: Imagine somebody who thinks that two ways to answer" in text
    assert "About a single answer of yours" in text
    assert "one sheet of possible answers" in text
    assert run("survey", "invite", folder).exit_code == 0
    assert run("survey", "open", folder).exit_code == 0
    survey = Survey.at(folder)
    first, second, third, *_ = links(survey)
    # Asked one by one: out of range, between steps, too many, and then as it should be.
    typed = "-\nx\n2\n7 years\n51\n7\n2\ny\n"
    asked = run("answer", first, "--state", tmp_path / "first", typed=typed)
    assert asked.exit_code == 0, asked.output
    shown = " ".join(asked.stdout.split())
    assert "Working here: 5 questions" in shown
    assert "give a number from 1 to 2" in shown
    assert "a number from 0 to 50" in shown
    for confirmed in (
        "1. Which site? prefer not to say",
        "2. Would you recommend us? yes",
        "3. What do you drink? does not apply",
        "How many years have you been here? 7",
        "satisfied are you? partly",
    ):
        assert confirmed in shown
    assert "Send these answers? They cannot be changed" in shown
    listed = run("answer", first, "--show").stdout
    assert "(only after North or South in question 1)" in listed
    several = run(
        *("answer", second, "--state", tmp_path / "second", "--language", "de"),
        typed="1\n2\n1,2,3\n2 4\n7\n2\ny\n",
    )
    assert several.exit_code == 0, several.output
    assert "Was trinken Sie?" in several.stdout
    assert "Kaffee, Saft" in several.stdout
    file = tmp_path / "sheet.json"
    file.write_text(json.dumps({"Which site?": "East", "2": "no", "4": 3, "5": "very"}))
    named = run(
        "answer", third, "--answers", file, "--yes", "--state", tmp_path / "third", "--json"
    )
    assert json.loads(named.stdout)["stage"] == "sent"
    wrong = run("answer", third, "--item", "East", "--yes", "--state", tmp_path / "other")
    assert "--item answers one question, and the survey has 5" in wrong.stderr
    status = run("survey", "status", folder)
    assert "3 of 300 people" in status.stdout
    again = survey.repeat()
    assert again.params.questionnaire == survey.params.questionnaire
    assert again.params.mechanism == survey.params.mechanism
    with pytest.raises(ParameterError, match="only a survey with one question"):
        survey.repeat(question="Otherwise?")


def test_questions_are_a_file_a_list_or_a_questionnaire(staff: Path) -> None:
    fields = [{"kind": "yes", "text": "Would you recommend us?"}]
    from_list = read_questions(None, None, fields)
    made = Questionnaire((YesNo(text="Would you recommend us?"),))
    assert from_list.questionnaire == read_questions(None, None, made).questionnaire == made
    assert len(read_questions(None, None, staff).questionnaire) == 5
    with pytest.raises(ParameterError, match="say what is asked"):
        read_questions(None, None, None)
    with pytest.raises(ParameterError, match="leave --question and --items out"):
        read_questions("Why?", ["a", "b"], fields)
    with pytest.raises(ParameterError, match="must be the path of a TOML file or a list"):
        read_questions(None, None, 7)  # type: ignore[arg-type]


def requirements(staff: Path, **terms: Any) -> SurveyRequirements:
    return SurveyRequirements(read_questions(None, None, staff), 300, 1.0, **terms)


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"topology": TWO_STAGE}, "would single people out"),
        ({"mechanism": "dpds"}, "The same coin for all questions protects less .*nobody knows"),
        ({"mechanism": "tss"}, "would single people out"),
        ({"mechanism": "tss-prime"}, "would single people out"),
        ({"mechanism": "placed-coins"}, "prove the coins of all answers"),
        ({"mechanism": "server-laplace"}, "draws noise for one question"),
        ({"mechanism": "laplace"}, "laplace-sheets draws the same for several"),
        ({"mechanism": "grr", "topology": MASKED}, "each would get a part of epsilon"),
        ({"mechanism": "server-joint", "topology": EXPLICIT}, "runs laplace-sheets"),
    ],
)
def test_what_cannot_carry_several_questions_says_why(
    staff: Path, terms: dict[str, Topology | str], reason: str
) -> None:
    with pytest.raises(RefusedError, match=reason):
        advise(requirements(staff, **terms))


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED])
def test_topologies_without_proofs_run_the_noise_of_participants(
    staff: Path, topology: Topology
) -> None:
    advice = advise(requirements(staff, topology=topology))
    assert advice.mechanism.name == "laplace-sheets"
    assert not advice.proven
    assert advice.minimum == 285
    assert "Participants make the noise" in advice.description
    assert "no proofs that a report is one sheet" in advice.description
    joint = advise(requirements(staff))
    assert advice.half_width_95 > joint.half_width_95
    # The same mechanism runs in servers if its owner does without proofs.
    unproven = advise(requirements(staff, mechanism="laplace-sheets"))
    assert unproven.mechanism == advice.mechanism


def test_names_of_groups_are_for_joint_noise(staff: Path) -> None:
    staff.write_text(STAFF.replace("[[question]]", '[[question]]\ngroup = "all"'))
    with pytest.raises(ParameterError, match="leave group out of all questions"):
        advise(requirements(staff, topology=MASKED))


@pytest.mark.parametrize("topology", ["masked", "explicit"])
def test_sheets_between_participants_from_the_commands_to_the_exports(
    both_apps: Any, staff: Path, tmp_path: Path, topology: str
) -> None:
    """At so large an epsilon the noise is 0, except with probability 10^-7."""
    staff.write_text(STAFF.replace("high = 50", "high = 3"))
    folder = tmp_path / "survey"
    created = run(
        *("survey", "create", folder, "--servers", both_apps.servers_file),
        *("--questionnaire", staff, "--users", "6", "--epsilon", "400", "--minimum", "5"),
        *("--topology", topology, "--population", "staff", "--budget", "800", "2e-6"),
    )
    assert created.exit_code == 0, created.output
    text = " ".join(created.stdout.split())
    assert f"Mechanism: laplace-sheets, topology: {topology}" in text
    assert "Every question has noise of its own" in text
    assert run("survey", "invite", folder).exit_code == 0
    assert run("survey", "open", folder).exit_code == 0
    survey = Survey.at(folder)
    first, second, *others = links(survey)
    # Asked one by one, from a file, and by a program.
    typed = "1\n2\n1 3\n2\n2\ny\n"
    asked = run("answer", first, "--state", tmp_path / "0.device", typed=typed)
    assert asked.exit_code == 0, asked.output
    file = tmp_path / "sheet.json"
    file.write_text(json.dumps({"Which site?": "East", "2": "no", "4": 3, "5": "very"}))
    named = run("answer", second, "--answers", file, "--yes", "--state", tmp_path / "1.device")
    assert named.exit_code == 0, named.output
    for number, link in enumerate(others, 2):
        part = fc.connect(link, state=tmp_path / f"{number}.device")
        part.answer({"Which site?": None, 2: True, 4: 1, "How satisfied are you?": "partly"})
    devices = enumerate((first, second, *others))
    visit_until_over(
        survey, [connect(link, state=tmp_path / f"{number}.device") for number, link in devices]
    )
    shown = run("survey", "result", folder, "--csv", tmp_path / "result.csv", "--json")
    assert shown.exit_code == 0, shown.output
    result = survey.result()
    assert result.included == 6
    assert result.cells.tolist() == [*(1, 0, 1, 4), 5, *(1, 0, 1, 0, 5), 2 + 3 + 4, 1 + 2 + 4]
    assert result.guarantee.epsilon == 400.0
    rows = (tmp_path / "result.csv").read_text().splitlines()
    assert any("Would you recommend us?" in row and "yes" in row for row in rows)
    label = run("survey", "label", folder, "--json")
    assert label.exit_code == 0, label.output
    assert sum(part["epsilon"] for part in json.loads(label.stdout)["single_answer"]) == (
        pytest.approx(400.0)
    )
    again = survey.repeat()
    assert again.params.mechanism == survey.params.mechanism


def test_a_question_from_which_nothing_is_learned_is_refused(
    both_apps: Any, staff: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        RefusedError, match=r"question 3 has an error of ±\d+ points.*fewer questions"
    ):
        fc.Survey.create(
            tmp_path / "few", servers=both_apps.servers_file, questionnaire=staff, users=20
        )


@pytest.mark.parametrize(
    ("language", "title", "count", "promise", "mail"),
    [
        ("en", "Working here", "5 questions", "all your answers together", "answer 5 questions:"),
        ("de", "Arbeiten hier", "5 Fragen", "alle Ihre Antworten zusammen", "eingeladen, 5 Fragen"),
    ],
)
def test_invitations_and_mails_name_all_questions(
    both_apps: Any,
    staff: Path,
    tmp_path: Path,
    language: str,
    title: str,
    count: str,
    promise: str,
    mail: str,
) -> None:
    people = [f"p{number}@example.org" for number in range(PEOPLE)]
    survey = Survey.create(
        tmp_path / "survey",
        servers=both_apps.servers_file,
        questionnaire=staff,
        people=people,
        epsilon=40.0,
        language=language,
        anyway=True,
    )
    survey.invite()
    survey.open()
    pages = survey.folder.printable_file.read_text()
    assert f"<h1 dir=auto>{title}</h1><p>{count}</p>" in pages
    assert promise in pages
    for remind in (False, True):
        letter = Mailing(survey, "hr@example.org", remind).letters()[0].message
        text = letter.get_content()
        assert title in letter["Subject"]
        assert promise in text
        assert (mail in text) == (not remind)
        assert " 5 " in text


def test_questions_without_a_title_are_named_by_the_first() -> None:
    form = read_questions(None, None, [{"kind": "yes", "text": f"{n}?"} for n in ("a", "b", "c")])
    assert printed_words("en").name_survey(form.questionnaire) == "a? (and 2 more)"
    assert printed_words("de").name_survey(form.questionnaire) == "a? (und 2 weitere)"
