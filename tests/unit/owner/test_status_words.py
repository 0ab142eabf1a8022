"""`faircount survey status` speaks an owner's language; programs read the values with --json."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from faircount.cli.survey.outcome import show_status
from faircount.cli.survey.progress import PHASES, REASONS, describe_silence, describe_status
from faircount.owner.survey import Survey
from faircount.protocol.survey.phases import Phase
from faircount.protocol.wire.messages import Reason

NOW = datetime(2026, 11, 17, 13, 15, tzinfo=UTC)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The computer's time zone is that of Berlin."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def status_of(**changes: Any) -> dict[str, Any]:
    opened = (NOW - timedelta(days=1)).isoformat()
    values = {
        "phase": "submitting",
        "attempt": 0,
        "responses": 9,
        "withdrawn": 0,
        "invited": 60,
        "minimum": 15,
        "opened_at": opened,
        "since": opened,
        "closes_at": (NOW + timedelta(days=2)).isoformat(),
        "held_since": None,
        "waits_for": "participants, until the closing time 2026-11-19T13:15:00Z",
        "next": "the coordinator closes this phase and writes to the aggregator",
        "waiting_since": None,
        "tries_again_at": None,
        "problem": "",
        "rejections": {},
    }
    return {**values, **changes}


@pytest.fixture
def made(both_apps: Any, tmp_path: Path) -> Survey:
    terms: dict[str, Any] = {"question": "Where?", "items": ["here", "there"], "users": 60}
    return Survey.create(tmp_path / "offices", servers=both_apps.servers_file, **terms)


def shown(survey: Survey, status: dict[str, Any]) -> dict[str, str]:
    return dict(describe_status(survey, status, NOW))


@pytest.mark.usefixtures("in_berlin")
def test_an_open_survey_in_an_owners_words(made: Survey) -> None:
    facts = shown(made, status_of(withdrawn=1))
    assert facts == {
        "status": "people can answer",
        "answers": "9 of 60 people; at least 15 are needed, 6 to go",
        "withdrawn": "1, not among the answers",
        "opened": "Monday 16 November 2026, 14:15 CET",
        "closes": "Thursday 19 November 2026, 14:15 CET (in about 2 days)",
        "next": "at that time, both servers count the answers. To close it earlier: faircount "
        f"survey close {made.folder.path}",
    }
    assert shown(made, status_of(responses=15))["answers"].endswith("minimum of 15 is reached")


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.CONFIRMED])
def test_no_phase_shows_a_machines_words(made: Survey, phase: Phase, tmp_path: Path) -> None:
    for more in ({}, {"waiting_since": NOW.isoformat(), "problem": "no connection"}):
        with (tmp_path / "screen").open("w+") as file:
            show_status(Console(file=file, width=1000), made, status_of(phase=str(phase), **more))
            file.seek(0)
            text = file.read().replace(str(made.folder.path), "FOLDER")
        assert not re.search(r"\d{4}-\d\d-\d\d|T\d\d:\d\d|submitting|phase|waits_for", text), text


def test_every_phase_and_reason_has_words() -> None:
    assert set(PHASES) == set(map(str, Phase))
    assert set(REASONS) == {reason.name.lower() for reason in Reason}


def test_a_held_survey_and_an_aggregator_that_is_away_say_what_to_do(made: Survey) -> None:
    held = shown(made, status_of(held_since=NOW.isoformat()))["next"]
    for words in ("held open", "survey remind", "survey extend", "survey close"):
        assert words in held
    later = (NOW + timedelta(seconds=30)).isoformat()
    asked = (NOW - timedelta(minutes=10)).isoformat()
    away = status_of(
        phase="counting", waiting_since=asked, tries_again_at=later, problem="no connection"
    )
    # Not since the phase began, a day earlier.
    assert "waiting for the aggregator since Tuesday 17" in shown(made, away)["next"]
    assert "you don't have to do anything" in shown(made, away)["next"]
    assert "The coordinator says: no connection" in shown(made, away)["next"]
    # Right after closing nothing is wrong, and nobody is sent to an operator.
    counting = shown(made, {**away, "problem": ""})["next"]
    assert "--wait" in counting
    assert "tell" not in counting
    # A dishonest coordinator may report a problem without a wait.
    assert "about to write" in shown(made, {**away, "waiting_since": None})["next"]
    # Said once: not again below the table.
    assert describe_silence(made, away) is None
    assert "People can answer nevertheless" in str(describe_silence(made, status_of()))
    assert "Nothing is lost" in str(describe_silence(made, status_of(phase="draft")))
    assert "survey open" in shown(made, status_of(phase="draft", closes_at=None))["next"]
    assert shown(made, status_of(phase="published"))["next"].endswith("shows it")
    assert shown(made, status_of(phase="aborted"))["next"].endswith("says why")
