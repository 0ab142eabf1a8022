"""A small demonstration: real server processes, crowds that are killed, and people who leave."""

from dataclasses import replace
from pathlib import Path

import pytest

from faircount.demo.questions import working_here
from faircount.demo.scenarios import PEERS_SURVEY, SERVERS_SURVEY, people_of, prepare
from faircount.demo.stage import find_truth, play
from faircount.demo.trial import trial
from faircount.owner.advice import SurveyRequirements
from faircount.protocol.wire.messages import Aborted

# With so large an epsilon and one group the noise is almost certainly 0.
FORM = replace(working_here(), groups=("all",) * 5)
SMALL = replace(
    SERVERS_SURVEY,
    requirements=SurveyRequirements(FORM, 24, 40.0, minimum=15),
    leaving=6,
    crowds=2,
    kills=1,
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
    assert outcome.stages["counted"] == result.included == 15
    assert outcome.stages["not counted"] == 3  # the malicious clients
    assert result.validity is not None
    assert (result.validity.proven, result.validity.refused) == (True, 3)
    truth = find_truth(result, outcome.counted)
    assert len(truth) == 5
    for question in result.questions:
        assert [row.estimate for row in question.estimates] == truth[question.number]
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
        assert scenario.leaving == share * scenario.requirements.users
    kinds = {type(question) for question in SERVERS_SURVEY.requirements.questionnaire.questions}
    assert len(kinds) == 5
    votes = PEERS_SURVEY.votes
    assert votes is not None
    assert sum(votes.values()) == PEERS_SURVEY.requirements.users
    assert tuple(votes) == PEERS_SURVEY.requirements.items
    # The promise assumes a floor, which must be true of these people.
    assert min(votes.values()) > PEERS_SURVEY.requirements.floor
