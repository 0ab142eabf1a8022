"""`faircount answer`: what a person reads, chooses and is told."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from faircount.cli import main

ADDRESS = "https://count.example.org"


@pytest.fixture
def servers(in_memory: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    made = in_memory(6)
    monkeypatch.setattr("faircount.service.calls._connection", lambda verify: made.http())
    monkeypatch.setattr("faircount.service.calls.Patience.pauses", lambda _: iter([0.0, 0.0]))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return made


def answer(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["answer", *arguments], input=typed, catch_exceptions=False)


def test_a_person_reads_chooses_and_confirms(servers: Any, tmp_path: Path) -> None:
    link = servers.codes[0].link(ADDRESS)
    done = answer(link, typed="3\ny\n")
    assert done.exit_code == 0, done.output
    for words in ("Which city?", "at most 6 are invited", "epsilon 1", "one: answer and leave", "acknowledged"):
        assert words in done.stdout
    assert len(list((tmp_path / "faircount").glob("*.device"))) == 1
    assert "acknowledged" in answer(link).stdout  # it comes back, and is not asked again


def test_nothing_is_sent_before_a_person_has_confirmed(servers: Any, tmp_path: Path) -> None:
    assert answer(servers.codes[0].link(ADDRESS), typed="3\nn\n").exit_code == 1
    assert answer(servers.codes[0].link(ADDRESS), "--show").exit_code == 0
    assert servers.bodies == []
    assert not (tmp_path / "faircount").exists()


def test_a_program_answers_with_json(servers: Any) -> None:
    code = servers.codes[1].text
    asked = answer(code, "--server", ADDRESS, "--json")
    assert asked.exit_code == 2
    assert "give --item ANSWER and --yes" in asked.stderr
    shown = json.loads(answer(code, "--server", ADDRESS, "--show", "--json").stdout)
    assert shown["items"] == [0, 1, 2, 3, 4, 5]
    done = json.loads(answer("-", "--server", ADDRESS, "--item", "4", "--yes", "--json", typed=code + "\n").stdout)
    assert (done["stage"], done["over"], done["version"]) == ("sent", False, 1)
    receipt = json.loads(answer(code, "--server", ADDRESS, "--receipt").stdout)
    assert len(receipt["written"]) == 1
    back = json.loads(answer(code, "--server", ADDRESS, "--withdraw", "--json").stdout)
    assert (back["stage"], back["over"]) == ("withdrawn", True)


def test_a_server_that_cannot_be_reached_keeps_the_answer_here(servers: Any) -> None:
    link = servers.codes[0].link(ADDRESS)

    def lost(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST":
            raise httpx.ConnectError("[Errno 111] Connection refused")
        return None

    servers.before = lost
    done = answer(link, "--item", "1", "--yes")
    assert done.exit_code == 2
    assert f"at {ADDRESS} cannot be reached (connection refused): nothing is lost, try again later" in done.stderr
    servers.before = lambda request: None
    assert "acknowledged" in answer(link, "--item", "1").stdout


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("hello", "give the link"),
        (f"{ADDRESS}/#HELLO", "no invitation code"),
        ("ftp://a/#b", "the address of a server"),
    ],
)
def test_what_is_no_invitation_is_told_in_words(servers: Any, given: str, words: str) -> None:
    done = answer(given)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_closed_survey_says_so(servers: Any) -> None:
    for number in range(6):
        answer(servers.codes[number].link(ADDRESS), "--item", str(number), "--yes") if number else None
    servers.end_phase()
    late = answer(servers.codes[0].link(ADDRESS), "--item", "0", "--yes")
    assert "does not count your answer" in late.stdout
    counted = answer(servers.codes[1].link(ADDRESS), "--stay")
    assert "counts your answer: this device has checked the proof" in counted.stdout
