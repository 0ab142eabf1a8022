"""A small demonstration: real server processes, crowds that are killed, and people who leave."""

from dataclasses import replace
from pathlib import Path

import pytest

from faircount.demo.scenarios import PEERS_SURVEY, SERVERS_SURVEY, people_of, prepare
from faircount.demo.stage import play
from faircount.demo.trial import trial
from faircount.owner.advice import SurveyRequirements
from faircount.owner.questions import one_question
from faircount.protocol.wire.messages import Aborted

ITEMS = {"a": 14, "b": 10}

# With epsilon 20 the noise is almost certainly 0.
SMALL = replace(
    SERVERS_SURVEY,
    requirements=SurveyRequirements(one_question("Which?", ITEMS), 24, 20.0, minimum=16),
    votes=ITEMS,
    leaving=6,
    crowds=2,
    kills=1,
    malicious=1,
)


@pytest.mark.slow
def test_nobody_is_lost_or_counted_twice_when_processes_are_killed(tmp_path: Path) -> None:
    """The result is the count of those who saw that they were counted."""
    states = []
    with trial(tmp_path / "trial") as running:
        survey = prepare(running, SMALL, "survey")
        people = people_of(survey, SMALL)
        outcome = play(
            running, survey, people, SMALL, lambda status: states.append(status["phase"])
        )
        result = survey.ending(wait=True)
        logs = "".join(path.read_text() for path in running.folder.glob("*.log"))
    assert "submitting" in states
    assert not isinstance(result, Aborted)
    assert sum(outcome.stages.values()) == 24
    assert outcome.stages["counted"] == result.included == 17
    assert outcome.stages["not counted"] == 1  # the malicious client
    assert result.validity is not None
    assert (result.validity.proven, result.validity.refused) == (True, 1)
    counts = [round(frequency * result.included) for frequency in result.estimates]
    assert counts == [outcome.count_answers()[0], outcome.count_answers()[1]]
    for invitee in survey.invitees():
        assert invitee.code.invitation.token.hex() not in logs
        assert invitee.code.text not in logs
    tokens = [invitee.code.invitation.token for invitee in survey.invitees()]
    for name in ("s1", "s2"):
        check_has_no_token(running.folder / name, tokens)


def check_has_no_token(folder: Path, tokens: list[bytes]) -> None:
    """No file of a server contains an invitation token, with which it could answer itself."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".sqlite") for path in files)
    for path in files:
        data = path.read_bytes()
        assert not any(token in data for token in tokens), path


def test_the_scenarios_are_as_announced() -> None:
    for scenario, share in ((SERVERS_SURVEY, 0.15), (PEERS_SURVEY, 0.05)):
        assert sum(scenario.votes.values()) == scenario.requirements.users
        assert scenario.leaving == share * scenario.requirements.users
        assert tuple(scenario.votes) == scenario.requirements.items
    # The promise assumes a floor, which must be true of these people.
    assert min(PEERS_SURVEY.votes.values()) > PEERS_SURVEY.requirements.floor
