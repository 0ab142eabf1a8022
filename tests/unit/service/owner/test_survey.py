"""A survey from its owner's folder to its result, through the calls of the real servers."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faircount.cli import main
from faircount.core.entropy import SystemEntropy
from faircount.dashboard.form import advice, facts_of, wishes_of
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.registry import shared_mechanisms
from faircount.protocol import SERVERS, Topology, known_topologies, propose
from faircount.protocol.wire.messages import Aborted, Published
from faircount.service.client import Participation, connect
from faircount.service.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.service.owner.invitations import numbered, read_table
from faircount.service.owner.reissue import reissue
from faircount.service.owner.remote import BothServers
from faircount.service.owner.survey import Survey, create
from faircount.service.standing import Stage


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], catch_exceptions=False)


def said(*arguments: object) -> dict[str, Any]:
    done = call(*arguments, "--json")
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def parts_of(survey: Survey, folder: Path) -> list[Participation]:
    links = [each.code.link(survey.owner.public_address) for each in survey.invited()]
    return [connect(link, state=folder / f"{number}.device") for number, link in enumerate(links)]


def until_over(survey: Survey, parts: list[Participation]) -> None:
    """Everybody visits, the owner closes the visit, and so on; bounded."""
    end = time.monotonic() + 180
    while True:
        now = survey.servers.status(survey.params)
        for part in parts:
            part.visit()
        if all(part.standing().over for part in parts):
            return
        assert time.monotonic() < end, now
        if now["state"] in survey.params.topology.phases and "users" in now["waits_for"]:
            survey.servers.wish(survey.params, "close", state=now["state"], attempt=now["attempt"])
        else:
            time.sleep(0.05)


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_every_topology_over_the_servers_calls(
    both_apps: Any, almost_noiseless: Any, tmp_path: Path, topology: Topology
) -> None:
    survey = almost_noiseless(both_apps.folder, topology, 6)
    parts = parts_of(survey, tmp_path / "devices")
    for number, part in enumerate(parts):
        part.answer(part.items[number])
    until_over(survey, parts)
    assert [part.standing().stage for part in parts] == [Stage.COUNTED] * 6
    items = [each for part in parts for each in part._client.counted_as(part._begun()).values()]
    last = survey.servers.last_word(survey.params).says
    assert isinstance(last, Published)
    assert list(last.counts) == [items.count(each) for each in range(6)]


SIX: dict[str, Any] = {"items": ["x", "y"], "users": 6}
EXAMPLES: dict[str, dict[str, Any]] = {
    "laplace": {"epsilon": 8.0},
    "dpdg": {"epsilon": 8.0, "delta": 0.01},
    "decoys": {"epsilon": 8.0, "coins": 12},
    "dpds": {"p": 0.5, "floor": 2},
    "server-laplace": {"epsilon": 8.0},
    "server-coins": {"epsilon": 8.0, "coins": 12},
    "placed-coins": {"epsilon": 8.0, "coins": 6},
}

CREATE = (
    "--question", "Which city?", "--items", 'Aldmoor,Brackwater,"Carrow, Upper"', "--users", "40", "--epsilon", "2",
    "--absent", "0.2", "--owner", "A company", "--s1-operator", "One", "--s2-operator", "Two", "--open-for", "2h",
    "--anyway",
)  # fmt: skip


def test_an_owner_runs_a_survey_with_commands(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    made = said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE)
    assert (made["users"], made["minimum"], made["topology"]) == (40, 32, "servers")
    assert (made["mechanism"], made["proven"]) == ("server-laplace", True)
    assert made["supposed"].startswith("clients may lie")
    assert said("survey", "invite", folder)["invited"] == 40
    before = (folder / "invitations.csv").read_bytes()
    assert said("survey", "invite", folder)["invited"] == 40
    assert (folder / "invitations.csv").read_bytes() == before
    assert said("survey", "open", folder)["state"] == "submitting"
    survey = Survey.at(folder)
    parts = parts_of(survey, tmp_path / "devices")
    for part in parts[:35]:
        assert part.answer("Carrow, Upper").stage is Stage.SENT
    shown = call("survey", "status", folder)
    assert "35 of 40 invited; at least 32 are needed" in shown.stdout
    assert "users, until" in shown.stdout
    later = said("survey", "extend", folder, "--by", "1h")
    assert later["extended_seconds"] == 3600
    early = call("survey", "result", folder)
    assert early.exit_code == 2
    assert "not over yet" in early.stderr
    assert call("survey", "close", folder).exit_code == 0
    done = call("survey", "result", folder, "--wait")
    assert done.exit_code == 0, done.stderr
    assert "35 people counted" in done.stdout
    words = " ".join(done.stdout.split())
    assert "35 reports counted, 0 refused. Every counted report added exactly one to exactly one item" in words
    kept = json.loads((folder / "result.json").read_text())
    assert kept["users"] == 35
    assert (kept["validity"]["proven"], kept["validity"]["refused"]) == (True, 0)
    assert parts[0].visit().stage is Stage.COUNTED
    assert parts[39].answer("Aldmoor").stage is Stage.NOT_COUNTED


def test_every_way_to_a_survey_leaves_the_same_room_unless_told(both_apps: Any, tmp_path: Path) -> None:
    """The commands and the page left room for a fifth, `propose` for a twentieth; and room for nobody was not heard."""
    asked = {"items": "a\nb", "users": "41", "epsilon": "8", "delta": "1e-6", "hours": "1", "question": "Which?"}
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (8.0, 1e-6))
    minima = {}
    for absent in ("", "0"):
        form = {**asked, "absent": absent}
        page, _ = create(tmp_path / f"page{absent}", wishes_of(form), facts_of(form), owner)
        given = ("--absent", absent) if absent else ()
        command = said(
            "survey", "create", tmp_path / f"command{absent}", "--servers", both_apps.servers_file,
            "--question", "Which?", "--items", "a,b", "--users", 41, "--epsilon", 8, *given,
        )  # fmt: skip
        minima[absent] = [page.params.minimum, command["minimum"], advice(form)["needed"]]
    laplace = Laplace(items=["a", "b"], users=41, epsilon=8.0)
    proposed = propose(laplace, page.params.keys, survey=bytes(16), topology=SERVERS).minimum
    assert minima == {"": [proposed] * 3, "0": [41] * 3}
    assert proposed == 38


def test_what_is_not_proven_is_made_on_request_and_says_so(both_apps: Any, tmp_path: Path) -> None:
    terms = ("--servers", both_apps.servers_file, *CREATE, "--mechanism", "laplace")
    made = said("survey", "create", tmp_path / "one", *terms)
    assert (made["mechanism"], made["proven"]) == ("laplace", False)
    assert made["supposed"].startswith("clients follow the protocol; no report is proven")
    shown = " ".join(call("survey", "create", tmp_path / "two", *terms).stdout.split())
    assert "without proofs that a report is one vote" in shown
    assert "without proofs a client that lies can move any count" in shown


@pytest.mark.parametrize("name", sorted(set(shared_mechanisms()) - {"tss", "tss-prime"}))  # these need helpers
def test_every_mechanism_of_two_servers_over_their_calls(both_apps: Any, tmp_path: Path, name: str) -> None:
    """From offers to a result that counts everybody; its noise is tested elsewhere."""
    mechanism = shared_mechanisms()[name](**SIX, **EXAMPLES[name])
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (9.0, 0.999))
    keys = BothServers.of(owner).offers().keys
    terms = {"epsilon": 8.0, "minimum": 6, "population": "people"}
    params = propose(mechanism, keys, survey=SystemEntropy().bytes(16), topology=SERVERS, **terms)
    SurveyFolder(tmp_path / "survey").create(params, owner)
    survey = Survey.at(tmp_path / "survey")
    survey.invite(numbered(6))
    survey.servers.wish(params, "open", people=6)
    parts = parts_of(survey, tmp_path / "devices")
    for part in parts:
        part.answer("x")
    until_over(survey, parts)
    assert [part.standing().stage for part in parts] == [Stage.COUNTED] * 6
    result = survey.result()
    assert not isinstance(result, Aborted)
    assert result.included == 6
    assert (result.validity is not None and result.validity.proven) == params.proven


def test_a_survey_without_enough_answers_says_so(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE)
    said("survey", "invite", folder)
    said("survey", "open", folder)
    call("survey", "close", folder)
    done = call("survey", "result", folder, "--wait")
    assert done.exit_code == 4
    assert "ended without a result: S1: 0 users answered, 32 are needed" in done.stdout


def opened(both_apps: Any, folder: Path) -> Survey:
    said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE)
    said("survey", "invite", folder)
    said("survey", "open", folder)
    return Survey.at(folder)


def test_reminders_name_those_who_have_not_answered(both_apps: Any, tmp_path: Path) -> None:
    survey = opened(both_apps, tmp_path / "survey")
    for part in parts_of(survey, tmp_path / "devices")[:3]:
        part.answer("Aldmoor")
    told = said("survey", "remind", tmp_path / "survey")
    assert told["not_answered"] == 37
    people = [each.person for each in read_table(Path(told["file"]))]
    assert people == [each.person for each in survey.invited()[3:]]
    assert Path(told["file"]).stat().st_mode & 0o077 == 0


def test_a_lost_invitation_is_replaced_and_a_used_one_is_not(both_apps: Any, tmp_path: Path) -> None:
    survey = opened(both_apps, tmp_path / "survey")
    used, lost = parts_of(survey, tmp_path / "devices")[:2]
    used.answer("Aldmoor")
    refused = call("survey", "reissue", survey.folder.path, survey.invited()[0].person)
    assert refused.exit_code == 2
    assert "this invitation was used" in refused.stderr
    link = said("survey", "reissue", survey.folder.path, survey.invited()[1].person)["link"]
    assert link == survey.invited()[1].code.link("http://s1")
    assert link in survey.folder.printable_file.read_text()
    assert "no such invitation" in lost.answer("Aldmoor").words.lower()
    assert connect(link, state=tmp_path / "new.device").answer("Aldmoor").stage is Stage.SENT
    nobody = call("survey", "reissue", survey.folder.path, "somebody else")
    assert "nobody of this name is invited" in nobody.stderr


def test_invitations_stay_in_the_language_that_the_owner_chose(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "umfrage"
    said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE, "--language", "de")
    said("survey", "invite", folder)
    said("survey", "open", folder)
    said("survey", "reissue", folder, "Person 02")  # writes the pages again
    printed = Survey.at(folder).folder.printable_file.read_text(encoding="utf-8")
    assert printed.count("Scannen Sie das Bild") == printed.count("<section>") == 40
    refused = call("survey", "create", tmp_path / "x", "--servers", both_apps.servers_file, *CREATE, "--language", "q")
    assert "printed in one of en, de" in refused.stderr


def test_an_interrupted_replacement_is_finished_first(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S1 has agreed and the owner's machine stops before it has written that down: the new code is not lost."""
    survey = opened(both_apps, tmp_path / "survey")
    first, second = survey.invited()[:2]
    with monkeypatch.context() as stopped:
        stopped.setattr(Survey, "write_invitations", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            reissue(survey, first.person)
    assert survey.invited()[0] == first
    reissue(survey, second.person)
    after = survey.invited()
    assert after[0] != first
    assert after[1] != second
    for number in (0, 1):
        part = connect(after[number].code.link("http://s1"), state=tmp_path / f"{number}.device")
        assert part.answer("Aldmoor").stage is Stage.SENT
    assert not (survey.folder.path / "reissue.json").exists()


def test_a_survey_is_deleted_when_it_is_over(both_apps: Any, tmp_path: Path) -> None:
    survey = opened(both_apps, tmp_path / "survey")
    early = call("survey", "delete", survey.folder.path, "--yes")
    assert early.exit_code == 2
    assert said("survey", "abort", survey.folder.path, "--reason", "a mistake")["state"] in ("submitting", "aborted")
    assert "owner: a mistake" in call("survey", "result", survey.folder.path, "--wait").stdout
    assert call("survey", "delete", survey.folder.path, "--yes").exit_code == 0
    gone = call("survey", "status", survey.folder.path)
    assert gone.exit_code == 2
    assert "S1 refuses: there is no such survey here" in gone.stderr


def test_what_an_owner_gets_wrong_is_told_in_words(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    useless = call("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE[:-1], "--epsilon", "0.1")
    assert useless.exit_code == 2
    assert "do not run this" in useless.stderr
    assert "--anyway makes it all the same" in useless.stderr
    known = json.loads(both_apps.servers_file.read_text())
    known["s2"] |= {"token": "wrong"}
    (tmp_path / "other.json").write_text(json.dumps(known))
    refused = call("survey", "create", tmp_path / "b", "--servers", tmp_path / "other.json", *CREATE)
    assert refused.exit_code == 2
    assert "S2 refuses: this token is not known here: ask the operator for one" in refused.stderr
    assert not (tmp_path / "b" / "parameters.json").exists()
    late = call("survey", "create", tmp_path / "c", "--servers", both_apps.servers_file, *CREATE, "--open-for", "soon")
    assert "--open-for takes a time such as" in late.stderr


@pytest.mark.parametrize(
    "terms",
    [("--topology", "masked"), ("--topology", "explicit", "--mechanism", "decoys"),
     ("--topology", "two-stage", "--mechanism", "tss-prime", "--floor", "150", "--users", "600", "--delta", "1e-3")],
    ids=["masked", "explicit", "two-stage"],
)  # fmt: skip
def test_surveys_of_other_topologies_can_be_created(both_apps: Any, tmp_path: Path, terms: tuple[str, ...]) -> None:
    made = said("survey", "create", tmp_path / "survey", "--servers", both_apps.servers_file, *CREATE, *terms)
    assert made["topology"] == terms[1]
    assert SurveyFolder(tmp_path / "survey").parameters().phases[0] == 7200


def test_a_result_of_unequal_coins_counts_those_of_the_included_alone(both_apps: Any, tmp_path: Path) -> None:
    """Decoys give some users a coin more: without knowing who is in the sum its estimates would be off."""
    folder = tmp_path / "survey"
    terms = (*CREATE, "--topology", "explicit", "--mechanism", "decoys", "--users", "12", "--epsilon", "6")
    said("survey", "create", folder, "--servers", both_apps.servers_file, *terms)
    said("survey", "invite", folder)
    said("survey", "open", folder)
    survey = Survey.at(folder)
    assert not survey.params.mechanism.every_user_alike
    parts = parts_of(survey, tmp_path / "devices")[:11]
    for part in parts:
        part.answer("Aldmoor")
    until_over(survey, parts)
    result = survey.result()
    assert not isinstance(result, Aborted)
    places = survey.servers.places(survey.params)
    assert len(places) == result.included == 11
    assert result.mechanism == survey.params.mechanism.as_included(places)
