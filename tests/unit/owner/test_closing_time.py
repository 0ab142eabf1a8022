"""An owner names a closing time: it holds whenever the survey is opened, in the owner's zone."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from faircount.cli import main
from faircount.core.durations import parse_closing_time
from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.folder import OwnerFile
from faircount.owner.survey import Survey

NOW = datetime(2026, 11, 17, 13, 15, tzinfo=UTC)


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The computer's time zone is that of Berlin."""
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_berlin")
@pytest.mark.parametrize(
    ("written", "hour"),
    [
        ("2026-11-19 18:00", 17),
        ("2026-11-19T18:00", 17),
        ("2026-11-19T18:00+00:00", 18),
        ("2026-11-19T18:00:00.000Z", 18),
        (" 2026-07-01 18:00 ", 16),  # in summer
    ],
)
def test_a_time_is_meant_in_the_owners_zone(written: str, hour: int) -> None:
    now = datetime(2026, 6, 1, tzinfo=UTC)
    assert parse_closing_time("--closes", written, now).hour == hour


@pytest.mark.parametrize("written", ["", "tomorrow", "2026-11-19", "18:00", "2026-11-32 18:00"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(ParameterError, match="date and time such as 2026-11-19 18:00"):
        parse_closing_time("--closes", written, NOW)


@pytest.mark.parametrize("days", [-1, 0, 400])
def test_a_time_that_is_over_or_far_away_is_refused(days: int) -> None:
    given = (NOW + timedelta(days=days)).isoformat()
    with pytest.raises(ParameterError, match="this time is over, or more than a year away"):
        parse_closing_time("--closes", given, NOW)


TERMS: dict[str, Any] = {"question": "Where?", "items": ["here", "there"], "users": 60}


def make(both_apps: Any, folder: Path, **more: Any) -> Survey:
    survey = Survey.create(folder, servers=both_apps.servers_file, **TERMS, **more)
    survey.invite()
    return survey


def test_a_survey_closes_at_its_closing_time_whenever_it_is_opened(
    both_apps: Any, tmp_path: Path
) -> None:
    closes = (datetime.now(tz=UTC) + timedelta(hours=5)).replace(microsecond=0)
    make(both_apps, tmp_path / "survey", closes=closes.isoformat())
    # As if it had been created two hours ago: only what is left of the time is asked for.
    file = tmp_path / "survey" / "owner.json"
    earlier = json.loads(file.read_text()) | {
        "closes_at": (closes - timedelta(hours=2)).isoformat()
    }
    file.write_text(json.dumps(earlier))
    status = Survey.at(tmp_path / "survey").open()
    due = datetime.fromisoformat(status["closes_at"])
    assert abs(due - (closes - timedelta(hours=2))) < timedelta(seconds=5)


def test_a_closing_time_that_has_passed_is_refused_before_anybody_can_answer(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = make(both_apps, tmp_path / "survey", open_for="1d")
    file = tmp_path / "survey" / "owner.json"
    passed = json.loads(file.read_text()) | {"closes_at": "2020-01-01T00:00:00+00:00"}
    file.write_text(json.dumps(passed))
    with pytest.raises(RefusedError, match="has passed before it was opened"):
        Survey.at(tmp_path / "survey").open()
    assert survey.status()["phase"] == "draft"


def test_nobody_gets_more_time_than_the_parameters_say(both_apps: Any, tmp_path: Path) -> None:
    survey = make(both_apps, tmp_path / "survey", open_for="1h")
    invited = len(survey.invitees())
    status = survey.servers.request(survey.params, "open", invited=invited, seconds=86400)
    left = datetime.fromisoformat(status["closes_at"]) - datetime.now(tz=UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)


def test_the_next_survey_is_open_for_as_long_and_has_no_closing_time(
    both_apps: Any, tmp_path: Path
) -> None:
    closes = (datetime.now(tz=UTC) + timedelta(hours=5)).isoformat()
    survey = make(both_apps, tmp_path / "a", closes=closes, population="staff", budget=(5.0, 1e-5))
    again = survey.repeat(tmp_path / "b")
    assert again.owner.closes_at == ""
    assert again.params.phase_seconds == survey.params.phase_seconds
    assert OwnerFile.decode((tmp_path / "a" / "owner.json").read_bytes()).closes_at == closes


def test_the_command_takes_it_and_several_visits_do_not(both_apps: Any, tmp_path: Path) -> None:
    closes = (datetime.now().astimezone() + timedelta(days=2)).strftime("%Y-%m-%d %H:%M")
    options = ["--question", "Where?", "--items", "here,there", "--users", "60"]

    def create(name: str, *more: str) -> Any:
        folder = str(tmp_path / name)
        command = ["survey", "create", folder, "--servers", str(both_apps.servers_file)]
        return CliRunner().invoke(main, [*command, *options, "--closes", closes, *more])

    assert create("one").exit_code == 0
    seconds = Survey.at(tmp_path / "one").params.phase_seconds[0]
    assert 2 * 86400 - 61 <= seconds <= 2 * 86400
    refused = create("four", "--topology", "explicit", "--anyway")
    assert refused.exit_code == 2
    assert "give --open-for, the time for each visit" in refused.stderr
