"""A survey from its owner's folder to its result, over the HTTP calls of the real servers."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import httpx
import pytest
from click.testing import CliRunner, Result
from visits import visit_until_over

from faircount.accounting.levels import Levels
from faircount.cli import main
from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.client.participation import Participation, connect
from faircount.client.participation_status import Stage
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import UnreachableError
from faircount.dashboard.form import advice, facts_of, requirements_of
from faircount.dashboard.surveys import Surveys
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.registry import SURVEY, shared_mechanisms
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.owner.creation import create
from faircount.owner.folder import COMMAND_RETRY, OwnerFile, SurveyFolder, read_servers
from faircount.owner.invitations import numbered_people, read_invitations
from faircount.owner.questions import one_question
from faircount.owner.reissue import reissue
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.protocol import SERVERS, Topology, known_topologies, propose
from faircount.protocol.wire.messages import Aborted, Published
from faircount.transport.limits import CONNECT_SECONDS


def run(*arguments: object) -> Result:
    """Run a command of faircount."""
    return CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)


def run_json(*arguments: object) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def connect_all(survey: Survey, folder: Path) -> list[Participation]:
    """The participations of everybody who is invited."""
    participations = []
    for number, invitee in enumerate(survey.invitees()):
        link = invitee.code.link(survey.owner.public_address)
        participations.append(connect(link, state=folder / f"{number}.device"))
    return participations


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_every_topology_over_the_servers_calls(
    both_apps: Any, almost_noiseless: Any, tmp_path: Path, topology: Topology
) -> None:
    survey = almost_noiseless(both_apps.folder, topology, 6)
    participations = connect_all(survey, tmp_path / "devices")
    for number, participation in enumerate(participations):
        participation.answer(participation.items[number])
    visit_until_over(survey, participations)
    sheets: list[Any] = []
    for participation in participations:
        assert participation.status().stage is Stage.COUNTED
        client = participation._load_client()
        sheets += participation._client.counted_as(client).values()
    last = survey.servers.final_statement(survey.params).message
    assert isinstance(last, Published)
    assert list(last.counts) == [sheets.count((position,)) for position in range(6)]


SIX: dict[str, Any] = {"items": ["x", "y"], "users": 6}
EXAMPLES: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 8.0},
    "dpdg": {"epsilon": 8.0, "delta": 0.01},
    "decoys": {"epsilon": 8.0, "coins": 12},
    "dpds": {"p": 0.5, "floor": 2},
    "server-laplace": {"epsilon": 8.0},
    "server-coins": {"epsilon": 8.0, "coins": 12},
    "placed-coins": {"epsilon": 8.0, "coins": 6},
    "server-joint": {"epsilon": 8.0},
    "laplace-sheets": {"epsilon": 8.0},
    "server-levels": {"epsilon": 8.0, "levels": Levels.of({"strong": 4.0, "weak": 8.0})},
}

CREATE = (
    *("--question", "Which city?", "--items", 'Aldmoor,Brackwater,"Carrow, Upper"'),
    *("--users", "40", "--epsilon", "2", "--minimum", "80%", "--owner", "A company"),
    *("--s1-operator", "One", "--s2-operator", "Two", "--open-for", "2h", "--anyway"),
)


def with_options(*more: str) -> tuple[str, ...]:
    """The options of `CREATE` with others; an option with a value replaces that in `CREATE`."""
    kept: list[str] = []
    for name, value in zip(CREATE[:-1:2], CREATE[1:-1:2], strict=True):
        if name not in more:
            kept += (name, value)
    return (*kept, CREATE[-1], *more)


def creation(both_apps: Any, folder: Path, *more: str) -> tuple[object, ...]:
    """The command that creates a survey."""
    options = with_options(*more)
    return ("survey", "create", folder, "--servers", both_apps.servers_file, *options)


def test_an_owner_runs_a_survey_with_commands(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    made = run_json(*creation(both_apps, folder))
    assert (made["users"], made["minimum"], made["topology"]) == (40, 32, "servers")
    assert (made["mechanism"], made["proven"]) == ("server-joint", True)
    assert made["assumption"].startswith("clients may be malicious")
    assert run_json("survey", "invite", folder)["invited"] == 40
    before = (folder / "invitations.csv").read_bytes()
    assert run_json("survey", "invite", folder)["invited"] == 40
    assert (folder / "invitations.csv").read_bytes() == before
    assert "Next: faircount survey open" in run("survey", "invite", folder).stdout
    assert run_json("survey", "open", folder)["phase"] == "submitting"
    assert "The survey is open: faircount survey status" in run("survey", "invite", folder).stdout
    survey = Survey.at(folder)
    participations = connect_all(survey, tmp_path / "devices")
    for participation in participations[:35]:
        assert participation.answer("Carrow, Upper").stage is Stage.SENT
    shown = run("survey", "status", folder)
    assert "35 of 40 people; the minimum of 32 is reached" in shown.stdout
    assert "people can answer" in shown.stdout
    later = run_json("survey", "extend", folder, "--by", "1h")
    assert later["extended_seconds"] == 3600
    early = run("survey", "result", folder)
    assert early.exit_code == 2
    assert "not over yet" in early.stderr
    assert "faircount survey status" in early.stderr
    assert run("survey", "close", folder).exit_code == 0
    late = run("survey", "invite", folder)
    assert late.exit_code == 2
    assert "nobody can answer the survey in" in late.stderr
    done = run("survey", "result", folder, "--wait")
    assert done.exit_code == 0, done.stderr
    assert "35 people counted" in done.stdout
    # The folder knows it, whatever the servers have deleted.
    assert run("survey", "invite", folder).exit_code == 2
    text = " ".join(done.stdout.split())
    assert (
        "35 reports counted, 0 refused. Every counted report added exactly one to exactly one item"
        in text
    )
    kept = json.loads((folder / "result.json").read_text())
    assert kept["users"] == 35
    assert (kept["validity"]["proven"], kept["validity"]["refused"]) == (True, 0)
    assert participations[0].visit().stage is Stage.COUNTED
    assert participations[39].answer("Aldmoor").stage is Stage.NOT_COUNTED


def test_the_default_minimum_is_the_same_everywhere(both_apps: Any, tmp_path: Path) -> None:
    """In the commands, on the page and in `propose`; and a minimum of everybody is respected."""
    asked = {
        "questions": [{"kind": "one", "text": "Which?", "items": "a\nb"}],
        "users": "41",
        "epsilon": "8",
        "delta": "1e-6",
        "open_for": "1",
        "unit": "hours",
    }
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (8.0, 1e-6))
    minima = {}
    for written in ("", "100%"):
        form = {**asked, "minimum": written}
        page, _ = create(tmp_path / f"page{written}", requirements_of(form), facts_of(form), owner)
        option = ("--minimum", written) if written else ()
        question = ("--question", "Which?", "--items", "a,b", "--users", 41, "--epsilon", 8)
        folder = tmp_path / f"command{written}"
        servers = ("--servers", both_apps.servers_file)
        command = run_json("survey", "create", folder, *servers, *question, *option)
        minima[written] = [page.params.minimum, command["minimum"], advice(form)["minimum"]]
    noise = ServerLaplace(items=["a", "b"], users=41, epsilon=8.0)
    proposed = propose(noise, page.params.keys, survey=bytes(16), topology=SERVERS).minimum
    assert minima == {"": [proposed] * 3, "100%": [41] * 3}
    assert proposed == 11


def test_a_survey_without_proofs_says_so(both_apps: Any, tmp_path: Path) -> None:
    terms = ("--servers", both_apps.servers_file, *CREATE, "--mechanism", "laplace")
    made = run_json("survey", "create", tmp_path / "one", *terms)
    assert (made["mechanism"], made["proven"]) == ("laplace", False)
    assert made["assumption"].startswith("clients follow the protocol; no report is proven")
    shown = " ".join(run("survey", "create", tmp_path / "two", *terms).stdout.split())
    assert "There are no proofs that a report is one vote" in shown
    assert "without proofs a malicious client can change any count" in shown


# Those of two stages elect reporters, which needs another topology.
@pytest.mark.parametrize("name", sorted(set(shared_mechanisms()) - {"tss", "tss-prime"}))
def test_every_mechanism_of_two_servers_over_their_calls(
    both_apps: Any, tmp_path: Path, name: str
) -> None:
    """From survey keys to a result that counts everybody; other tests look at its noise."""
    given = {**SIX, **EXAMPLES[name]}
    if name in SURVEY:
        questions = one_question("Which one?", given.pop("items")).questionnaire
        # With levels, the groups of questions share the epsilon of the strongest.
        shared = 4.0 if name == "server-levels" else 8.0
        given |= {"questionnaire": questions, "groups": split_epsilon(shared, [[0]])}
    mechanism = shared_mechanisms()[name](**given)
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (9.0, 0.999))
    fresh = BothServers.of(owner).survey_keys()
    terms: dict[str, Any] = {"epsilon": 8.0, "minimum": 6, "population": "people"}
    terms |= {"s1_operator": fresh.s1_operator, "s2_operator": fresh.s2_operator}
    params = propose(
        mechanism, fresh.keys, survey=SystemEntropy().bytes(16), topology=SERVERS, **terms
    )
    SurveyFolder(tmp_path / "survey").create(params, owner)
    survey = Survey.at(tmp_path / "survey")
    survey.invite(numbered_people(6))
    survey.servers.request(params, "open", invited=6)
    participations = connect_all(survey, tmp_path / "devices")
    for participation in participations:
        participation.answer("x")
    visit_until_over(survey, participations)
    for participation in participations:
        assert participation.status().stage is Stage.COUNTED
    result = survey.result()
    assert not isinstance(result, Aborted)
    assert result.included == 6
    assert (result.validity is not None and result.validity.proven) == params.proven


def test_a_survey_without_enough_responses_says_so(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    run_json(*creation(both_apps, folder, "--open-for", "1s", "--grace", "1s"))
    run_json("survey", "invite", folder)
    run_json("survey", "open", folder)
    done = run("survey", "result", folder, "--wait")
    assert done.exit_code == 4
    text = " ".join(done.stdout.split())
    reason = "the coordinator (S1) reports: 0 participants responded, 32 are needed"
    assert f"ended without a result: {reason}" in text


def open_survey(both_apps: Any, folder: Path) -> Survey:
    run_json(*creation(both_apps, folder))
    run_json("survey", "invite", folder)
    run_json("survey", "open", folder)
    return Survey.at(folder)


def test_reminders_are_for_those_who_have_not_answered(both_apps: Any, tmp_path: Path) -> None:
    survey = open_survey(both_apps, tmp_path / "survey")
    for participation in connect_all(survey, tmp_path / "devices")[:3]:
        participation.answer("Aldmoor")
    printed = run_json("survey", "remind", tmp_path / "survey")
    assert printed["not_answered"] == 37
    assert read_invitations(Path(printed["file"])) == survey.invitees()[3:]
    assert Path(printed["file"]).stat().st_mode & 0o077 == 0


def test_a_lost_invitation_is_replaced_and_a_used_one_is_not(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = open_survey(both_apps, tmp_path / "survey")
    used, lost = connect_all(survey, tmp_path / "devices")[:2]
    used.answer("Aldmoor")
    refused = run("survey", "reissue", survey.folder.path, survey.invitees()[0].person)
    assert refused.exit_code == 2
    assert "this invitation was used" in refused.stderr
    link = run_json("survey", "reissue", survey.folder.path, survey.invitees()[1].person)["link"]
    assert link == survey.invitees()[1].code.link("http://s1")
    assert link in survey.folder.printable_file.read_text()
    assert "has replaced your invitation" in lost.answer("Aldmoor").description
    assert connect(link, state=tmp_path / "new.device").answer("Aldmoor").stage is Stage.SENT
    nobody = run("survey", "reissue", survey.folder.path, "somebody else")
    assert "nobody of this name is invited" in nobody.stderr


def test_invitations_stay_in_the_language_that_the_owner_chose(
    both_apps: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "umfrage"
    run_json(*creation(both_apps, folder, "--language", "de"))
    run_json("survey", "invite", folder)
    run_json("survey", "open", folder)
    run_json("survey", "reissue", folder, "Person 02")  # writes the pages again
    printed = Survey.at(folder).folder.printable_file.read_text(encoding="utf-8")
    assert printed.count("Scannen Sie den Code") == printed.count("<section>") == 40
    refused = run(*creation(both_apps, tmp_path / "x", "--language", "q"))
    assert "printed in one of en, de" in refused.stderr


def test_an_interrupted_replacement_is_finished_first(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's machine stops after the coordinator agreed: the new code is not lost."""
    survey = open_survey(both_apps, tmp_path / "survey")
    first, second = survey.invitees()[:2]
    with monkeypatch.context() as stopped:
        stopped.setattr(Survey, "write_invitations", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reissue(survey, first.person)
    assert survey.invitees()[0] == first
    reissue(survey, second.person)
    after = survey.invitees()
    assert after[0] != first
    assert after[1] != second
    for number in (0, 1):
        participation = connect(
            after[number].code.link("http://s1"), state=tmp_path / f"{number}.device"
        )
        assert participation.answer("Aldmoor").stage is Stage.SENT
    assert not (survey.folder.path / "reissue.json").exists()


def test_a_survey_is_deleted_when_it_is_over(both_apps: Any, tmp_path: Path) -> None:
    survey = open_survey(both_apps, tmp_path / "survey")
    early = run("survey", "delete", survey.folder.path, "--yes")
    assert early.exit_code == 2
    asked = run("survey", "abort", survey.folder.path, "--json")
    assert (asked.exit_code, asked.stdout) == (2, "")
    assert "give --yes" in asked.stderr
    assert run("survey", "abort", survey.folder.path).exit_code == 1  # nobody said yes
    assert run_json("survey", "status", survey.folder.path)["s1"]["phase"] == "submitting"
    ending = run_json("survey", "abort", survey.folder.path, "--reason", "a mistake", "--yes")
    assert ending["phase"] in ("submitting", "aborted")
    ended = run("survey", "result", survey.folder.path, "--wait").stdout
    assert "the owner ended the survey: a mistake" in " ".join(ended.split())
    assert run("survey", "delete", survey.folder.path, "--yes").exit_code == 0
    gone = run("survey", "status", survey.folder.path)
    assert gone.exit_code == 2
    assert "The coordinator refuses: there is no such survey here" in gone.stderr


def test_closing_with_too_few_answers_says_how_many_are_missing(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = open_survey(both_apps, tmp_path / "survey")
    folder = survey.folder.path
    connect_all(survey, tmp_path / "devices")[0].answer("Aldmoor")
    closed = run("survey", "close", folder)
    assert closed.exit_code == 2
    said = " ".join(closed.stderr.split())
    assert f"1 has answered, and {survey.params.minimum} are needed, so the survey stays" in said
    assert "survey extend" in said
    assert "survey abort" in said
    assert run_json("survey", "status", folder)["s1"]["phase"] == "submitting"


def test_the_grace_period_stands_in_the_parameters(both_apps: Any, tmp_path: Path) -> None:
    for more, grace in (((), 30 * 86400), (("--grace", "2h"), 7200)):
        folder = tmp_path / str(grace)
        run_json(*creation(both_apps, folder, *more))
        assert Survey.at(folder).params.grace == grace


def test_a_survey_without_invitations_says_what_to_do(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    assert run(*creation(both_apps, folder)).exit_code == 0
    for name, *options in (
        ("status",),
        ("close",),
        ("extend", "--by", "1d"),
        ("remind",),
        ("result",),
        ("trend", folder),
        ("mail", "--dry-run", "--from", "people@example.org"),
    ):
        refused = run("survey", name, folder, *options)
        assert refused.exit_code == 2
        assert f"with faircount survey invite {folder}" in refused.stderr, name


def test_inviting_that_was_interrupted_is_continued(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "survey"
    assert run(*creation(both_apps, folder)).exit_code == 0
    with monkeypatch.context() as away:
        away.setattr(BothServers, "set_up", Mock(side_effect=UnreachableError("away")))
        assert run("survey", "invite", folder).exit_code == 2
    before = (folder / "invitations.csv").read_bytes()
    for name, *options in (("status",), ("open",), ("abort", "--yes"), ("close",), ("remind",)):
        refused = run("survey", name, folder, *options)
        assert refused.exit_code == 2
        assert f"continue with faircount survey invite {folder}" in refused.stderr, name
    assert run("survey", "invite", folder).exit_code == 0
    assert (folder / "invitations.csv").read_bytes() == before
    assert run("survey", "open", folder).exit_code == 0


def test_the_dashboard_continues_inviting_that_was_interrupted(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surveys = Surveys(tmp_path / "surveys", both_apps.servers_file)
    form = {
        "name": "drinks",
        "questions": [{"kind": "one", "text": "Which?", "items": "tea\ncoffee"}],
        "users": "60",
        "epsilon": "1",
        "delta": "1e-6",
        "open_for": "3",
        "unit": "days",
    }
    with monkeypatch.context() as away:
        away.setattr(BothServers, "set_up", Mock(side_effect=UnreachableError("away")))
        made = surveys.create(form)
    assert (made["invited"], made["interrupted"], made["problem"]) == (False, True, None)
    before = surveys.survey("drinks").invitees()
    continued = surveys.request("drinks", "invite", {})
    assert (continued["invited"], continued["interrupted"]) == (True, False)
    assert surveys.survey("drinks").invitees() == before
    assert surveys.request("drinks", "open", {})["status"]["phase"] == "submitting"


def test_a_withdrawn_answer_is_told_apart_in_the_status(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    for command in (creation(both_apps, folder), ("survey", "invite", folder)):
        assert run(*command).exit_code == 0
    assert "not among the answers" not in run("survey", "open", folder).stdout
    participation = connect_all(Survey.at(folder), tmp_path / "devices")[0]
    participation.answer(participation.items[0])
    participation.withdraw()
    lines = run("survey", "status", folder).stdout.splitlines()
    (withdrawn,) = [line.split() for line in lines if "not among" in line]
    assert " ".join(withdrawn) == "withdrawn 1, not among the answers"


def test_mistakes_of_an_owner_are_explained(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    tiny = creation(both_apps, folder, "--epsilon", "0.1")
    useless = run(*(word for word in tiny if word != "--anyway"))
    assert useless.exit_code == 2
    assert "do not run this" in useless.stderr
    assert "create the survey nevertheless with --anyway" in useless.stderr
    known = json.loads(both_apps.servers_file.read_text())
    known["s2"] |= {"token": "wrong"}
    (tmp_path / "other.json").write_text(json.dumps(known))
    refused = run("survey", "create", tmp_path / "b", "--servers", tmp_path / "other.json", *CREATE)
    assert refused.exit_code == 2
    assert (
        "The aggregator refuses: this token is not known here: ask the operator for one"
        in refused.stderr
    )
    assert not (tmp_path / "b" / "parameters.json").exists()
    late = run(*creation(both_apps, tmp_path / "c", "--open-for", "soon"))
    assert "--open-for takes a time such as" in late.stderr


def test_a_coordinator_that_is_down_is_noticed_in_seconds(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands wait a few seconds in all, and not longer where each attempt takes long."""
    folder = tmp_path / "survey"
    run_json(*creation(both_apps, folder))
    run_json("survey", "invite", folder)
    link = read_invitations(folder / "invitations.csv")[0].code.link("http://nowhere")
    away = (folder / "owner.json").read_text().replace("http://s1", "http://nowhere")
    (folder / "owner.json").write_text(away)
    monkeypatch.setattr(RetryPolicy, "pauses", lambda _: iter([0.0, 0.0]))
    for arguments in (("survey", "status", folder), ("answer", link, "--item", "x", "--yes")):
        refused = run(*arguments)
        assert refused.exit_code == 2
        (line,) = refused.stderr.splitlines()
        assert "at http://nowhere cannot be reached" in line
    for policy in (COMMAND_RETRY, RetryPolicy()):
        longest = [policy.first_pause * 2**attempt for attempt in range(policy.attempts - 1)]
        assert sum(longest) < 10
        assert policy.patience < 10
    assert CONNECT_SECONDS < 10


def test_slow_attempts_are_not_repeated_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 1000, 5))  # every look at the clock is five seconds later
    monkeypatch.setattr("faircount.client.calls.time.monotonic", lambda: next(clock))
    attempts: list[str] = []

    def time_out(request: httpx.Request) -> httpx.Response:
        attempts.append(str(request.url))
        raise httpx.ConnectTimeout("no answer")

    http = httpx.Client(transport=httpx.MockTransport(time_out))
    server = RemoteServer("http://s1", http=http, retry=RetryPolicy(sleep=lambda _: None))
    with pytest.raises(UnreachableError, match="does not answer in time"):
        server.call("GET", "/")
    assert 1 <= len(attempts) <= 2


TWO_STAGE_TERMS = (
    *("--topology", "two-stage", "--mechanism", "tss-prime"),
    *("--floor", "150", "--users", "600", "--delta", "1e-3"),
)


@pytest.mark.parametrize(
    "terms",
    [
        ("--topology", "masked"),
        ("--topology", "explicit", "--mechanism", "decoys"),
        TWO_STAGE_TERMS,
    ],
    ids=["masked", "explicit", "two-stage"],
)
def test_surveys_of_other_topologies_can_be_created(
    both_apps: Any, tmp_path: Path, terms: tuple[str, ...]
) -> None:
    made = run_json(*creation(both_apps, tmp_path / "survey", *terms))
    assert made["topology"] == terms[1]
    assert SurveyFolder(tmp_path / "survey").parameters().phase_seconds[0] == 7200


def test_a_result_of_unequal_coins_uses_those_of_accepted_reports(
    both_apps: Any, tmp_path: Path
) -> None:
    """Decoys give some users one more coin, so estimates depend on whose reports are accepted."""
    folder = tmp_path / "survey"
    terms = ("--topology", "explicit", "--mechanism", "decoys", "--users", "12", "--epsilon", "6")
    run_json(*creation(both_apps, folder, *terms))
    run_json("survey", "invite", folder)
    run_json("survey", "open", folder)
    survey = Survey.at(folder)
    assert not survey.params.mechanism.identical_for_all_users
    participations = connect_all(survey, tmp_path / "devices")[:11]
    for participation in participations:
        participation.answer("Aldmoor")
    visit_until_over(survey, participations)
    result = survey.result()
    assert not isinstance(result, Aborted)
    places = survey.servers.accepted_places(survey.params)
    assert len(places) == result.included == 11
    assert result.mechanism == survey.params.mechanism.for_included(places)


def test_a_spreadsheet_of_people_becomes_invitations(both_apps: Any, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    rows = [f"=Name {number};p{number}@example.org" for number in range(40)]
    table.write_text("\n".join(["Name;Mail", *rows]), encoding="utf-8-sig")
    folder = tmp_path / "survey"
    words = [word for word in CREATE if word not in ("--users", "40")]
    servers = ("--servers", both_apps.servers_file)
    made = run_json("survey", "create", folder, *servers, *words, "--people", table)
    assert made["users"] == 40
    table.unlink()  # the folder has the list
    assert run_json("survey", "invite", folder)["invited"] == 40
    invitees = Survey.at(folder).invitees()
    assert invitees[7].person == "p7@example.org"
    assert invitees[7].columns == (("Name", "=Name 7"), ("Mail", "p7@example.org"))
    run_json("survey", "open", folder)
    run_json("survey", "reissue", folder, "p7@example.org")
    after = Survey.at(folder).invitees()
    assert (after[7].columns, after[7].code == invitees[7].code) == (invitees[7].columns, False)
    printed = run_json("survey", "remind", folder)
    assert read_invitations(Path(printed["file"])) == after
    nobody = run("survey", "create", tmp_path / "x", *servers, *words)
    assert "--people FILE, or their number with --users" in nobody.stderr


def test_more_people_than_planned_are_refused_before_the_survey_exists(
    both_apps: Any, tmp_path: Path
) -> None:
    people = tmp_path / "people.txt"
    people.write_text("\n".join(numbered_people(41)))
    refused = run(*creation(both_apps, tmp_path / "survey", "--people", people))
    assert "planned for 40 people, and the list has 41" in refused.stderr
    assert not (tmp_path / "survey").exists()
