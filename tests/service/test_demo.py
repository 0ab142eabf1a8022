"""The demonstration in small: real server processes, crowds of devices that are killed, and people who vanish."""

from dataclasses import replace
from pathlib import Path

import pytest

from faircount.protocol.wire.messages import Aborted
from faircount.service.demo.scenarios import PEERS_SURVEY, SERVERS_SURVEY, people_of, prepare
from faircount.service.demo.stage import play
from faircount.service.owner.advice import Wishes
from faircount.service.trial import trial

ITEMS = {"a": 14, "b": 10}
SMALL = replace(
    SERVERS_SURVEY,
    wishes=Wishes(tuple(ITEMS), 24, 20.0, absent=0.3),  # the default: proven
    answers=ITEMS,
    vanish=6,
    crowds=2,
    kills=1,
    lies=1,
)


@pytest.mark.slow
def test_nobody_is_lost_or_counted_twice_when_processes_are_killed(tmp_path: Path) -> None:
    """With epsilon 20 noise is all but impossible: the result is the count of those who saw that they were counted."""
    with trial(tmp_path / "trial") as running:
        survey = prepare(running, SMALL, "survey")
        people, seen = people_of(survey, SMALL), list[str]()
        played = play(running, survey, people, SMALL, lambda now: seen.append(now["state"]))
        result = survey.result(wait=True)
        assert not isinstance(result, Aborted)
        assert sum(played.stages.values()) == 24
        assert played.stages["counted"] == result.included == 17
        assert played.stages["not counted"] == 1  # the one who lies
        assert result.validity is not None
        assert (result.validity.proven, result.validity.refused) == (True, 1)
        assert [round(each * result.included) for each in result.estimates] == [
            played.counted["a"],
            played.counted["b"],
        ]
        assert "submitting" in seen
        logs = "".join(each.read_text() for each in running.folder.glob("*.log"))
    tokens = [each.code.invitation.token for each in survey.invited()]
    assert not any(each.hex() in logs for each in tokens)
    assert not any(each.code.text in logs for each in survey.invited())
    _neither_server_has(running.folder, tokens)


def _neither_server_has(folder: Path, tokens: list[bytes]) -> None:
    """Invitation tokens are in no file of either server, byte for byte."""
    files = [each for name in ("s1", "s2") for each in (folder / name).rglob("*") if each.is_file()]
    assert any(each.name.endswith(".sqlite") for each in files)
    for each in files:
        data = each.read_bytes()
        assert not any(token in data for token in tokens), each


def test_the_scenarios_are_as_announced() -> None:
    for scenario, share in ((SERVERS_SURVEY, 0.15), (PEERS_SURVEY, 0.05)):
        assert sum(scenario.answers.values()) == scenario.wishes.users
        assert scenario.vanish == share * scenario.wishes.users
        assert tuple(scenario.answers) == scenario.wishes.items
    assert min(PEERS_SURVEY.answers.values()) > PEERS_SURVEY.wishes.floor  # the floor is true of these people
