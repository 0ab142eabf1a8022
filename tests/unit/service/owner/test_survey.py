"""A survey from its owner's folder to its result, through the calls of the real servers."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faircount.cli import main
from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import Topology, known_topologies, propose
from faircount.protocol.wire.messages import Published
from faircount.service.client import Participation, connect
from faircount.service.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.service.owner.invitations import numbered
from faircount.service.owner.remote import BothServers
from faircount.service.owner.survey import Survey
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


def almost_noiseless(both_apps: Any, topology: Topology, users: int) -> Survey:
    """A survey in which noise is all but impossible, so that every answer shows: no owner's command makes one."""
    mechanism, terms = topology.trial(users, 0)
    if isinstance(mechanism, TSSPrime):
        mechanism = replace(mechanism, p=1 - 1e-9)
    else:
        mechanism = Laplace(items=users, users=users, epsilon=50.0)
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (50.0, 1 - 1e-12))
    agreed = {"epsilon": 50.0, "delta": 1 - 1e-10, "minimum": users, "population": "people", **terms}
    keys = BothServers.of(owner).offers().keys
    params = propose(mechanism, keys, survey=SystemEntropy().bytes(16), topology=topology, **agreed)
    SurveyFolder(both_apps.folder / "survey").create(params, owner)
    return Survey.at(both_apps.folder / "survey")


def until_over(survey: Survey, parts: list[Participation]) -> None:
    """Everybody visits, the owner closes the visit, and so on; bounded."""
    end = time.monotonic() + 60
    while True:
        now = survey.servers.status(survey.params)
        for part in parts:
            part.visit()
        if all(part.standing().over for part in parts):
            return
        assert time.monotonic() < end, now
        if now["state"] in survey.params.topology.phases and "users" in now["waits_for"]:
            survey.servers.wish(survey.params, "close", state=now["state"], attempt=now["attempt"])


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_every_topology_over_the_servers_calls(both_apps: Any, tmp_path: Path, topology: Topology) -> None:
    survey = almost_noiseless(both_apps, topology, 6)
    survey.invite(numbered(6))
    survey.servers.wish(survey.params, "open", people=6)
    parts = parts_of(survey, tmp_path / "devices")
    for number, part in enumerate(parts):
        part.answer(part.items[number])
    until_over(survey, parts)
    assert [part.standing().stage for part in parts] == [Stage.COUNTED] * 6
    items = [each for part in parts for each in part._client.counted_as(part._begun()).values()]
    last = survey.servers.last_word(survey.params).says
    assert isinstance(last, Published)
    assert list(last.counts) == [items.count(each) for each in range(6)]


CREATE = (
    "--question", "Which city?", "--items", 'Aldmoor,Brackwater,"Carrow, Upper"', "--users", "40", "--epsilon", "2",
    "--owner", "A company", "--s1-operator", "One", "--s2-operator", "Two", "--open-for", "2h", "--anyway",
)  # fmt: skip


def test_an_owner_runs_a_survey_with_commands(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    made = said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE)
    assert (made["users"], made["minimum"], made["topology"]) == (40, 32, "servers")
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
    kept = json.loads((folder / "result.json").read_text())
    assert kept["users"] == 35
    assert parts[0].visit().stage is Stage.COUNTED
    assert parts[39].answer("Aldmoor").stage is Stage.NOT_COUNTED


def test_a_survey_without_enough_answers_says_so(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "survey"
    said("survey", "create", folder, "--servers", both_apps.servers_file, *CREATE)
    said("survey", "invite", folder)
    said("survey", "open", folder)
    call("survey", "close", folder)
    done = call("survey", "result", folder, "--wait")
    assert done.exit_code == 4
    assert "ended without a result: S1: 0 users answered, 32 are needed" in done.stdout
