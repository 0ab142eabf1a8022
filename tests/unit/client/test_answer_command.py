"""`faircount answer`: what participants read, choose and are shown."""

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
    monkeypatch.setattr("faircount.client.calls._open_connection", lambda *_: made.http())
    monkeypatch.setattr("faircount.client.calls.RetryPolicy.pauses", lambda _: iter([0.0, 0.0]))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return made


def answer(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(main, ["answer", *arguments], input=typed, catch_exceptions=False)


def test_a_participant_reads_chooses_and_confirms(servers: Any, tmp_path: Path) -> None:
    link = servers.codes[0].link(ADDRESS)
    done = answer(link, typed="3\ny\n")
    assert done.exit_code == 0, done.output
    texts = ("Which city?", "at most 6 are invited", "epsilon 40", "one: answer and leave")
    for text in (*texts, "acknowledged"):
        assert text in done.stdout
    assert len(list((tmp_path / "faircount").glob("*.device"))) == 1
    assert "acknowledged" in answer(link).stdout  # it comes back, and is not asked again


def test_nothing_is_sent_before_the_participant_confirms(servers: Any, tmp_path: Path) -> None:
    assert answer(servers.codes[0].link(ADDRESS), typed="3\nn\n").exit_code == 1
    assert answer(servers.codes[0].link(ADDRESS), "--show").exit_code == 0
    assert servers.messages == []
    assert not (tmp_path / "faircount").exists()


def test_a_program_answers_with_json(servers: Any) -> None:
    code = servers.codes[1].text
    asked = answer(code, "--server", ADDRESS, "--json")
    assert asked.exit_code == 2
    assert "give --item ANSWER or --answers FILE, and --yes" in asked.stderr
    shown = json.loads(answer(code, "--server", ADDRESS, "--show", "--json").stdout)
    assert shown["questions"][0]["items"] == ["0", "1", "2", "3", "4", "5"]
    done = json.loads(
        answer("-", "--server", ADDRESS, "--item", "4", "--yes", "--json", typed=code + "\n").stdout
    )
    assert (done["stage"], done["over"], done["version"]) == ("sent", False, 1)
    receipt = json.loads(answer(code, "--server", ADDRESS, "--receipt").stdout)
    assert len(receipt["written"]) == 1
    asked = answer(code, "--server", ADDRESS, "--withdraw", "--json")
    assert asked.exit_code == 2
    assert "give --yes" in asked.stderr
    back = json.loads(answer(code, "--server", ADDRESS, "--withdraw", "--yes", "--json").stdout)
    assert (back["stage"], back["over"]) == ("withdrawn", True)


def test_two_answers_to_one_question_in_a_file_are_refused(servers: Any, tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('{"1": "4", "1": "2"}')
    sent = len(servers.messages)
    done = answer(servers.codes[3].link(ADDRESS), "--answers", str(file), "--yes")
    assert done.exit_code == 2
    assert "answers a question twice" in done.stderr
    assert len(servers.messages) == sent


def test_nothing_is_withdrawn_before_the_participant_confirms(servers: Any) -> None:
    link = servers.codes[2].link(ADDRESS)
    assert answer(link, "--item", "4", "--yes").exit_code == 0
    sent = len(servers.messages)
    asked = answer(link, "--withdraw", typed="n\n")
    assert asked.exit_code == 1
    assert "Withdraw your answer for good?" in asked.stdout
    assert len(servers.messages) == sent
    assert "is withdrawn" in answer(link, "--withdraw", typed="y\n").stdout


def test_without_a_server_the_answer_stays_on_the_device(servers: Any) -> None:
    link = servers.codes[0].link(ADDRESS)

    def lose(request: httpx.Request) -> httpx.Response | None:
        if request.method == "POST":
            raise httpx.ConnectError("[Errno 111] Connection refused")
        return None

    servers.before = lose
    done = answer(link, "--item", "1", "--yes")
    assert done.exit_code == 2
    assert (
        f"at {ADDRESS} cannot be reached (connection refused): nothing is lost, try again later"
        in done.stderr
    )
    servers.before = lambda request: None
    assert "acknowledged" in answer(link, "--item", "1").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("hello", "this is no invitation code"),
        (f"{ADDRESS}/#HELLO", "no invitation code"),
        ("ftp://a/#b", "the address of a server"),
    ],
)
def test_what_is_no_invitation_is_refused_in_one_line(
    servers: Any, given: str, message: str
) -> None:
    done = answer(given)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_used_invitation_is_an_error_with_its_reason(servers: Any, tmp_path: Path) -> None:
    link = servers.codes[0].link(ADDRESS)
    assert answer(link, "--item", "1", "--yes").exit_code == 0
    other_device = str(tmp_path / "other")
    used = answer(link, "--item", "2", "--yes", "--state", other_device)
    assert used.exit_code == 2
    assert "did not accept your answer" in used.stdout
    assert "somebody else has answered with your invitation" in used.stdout
    again = answer(link, "--state", other_device)
    assert again.exit_code == 2
    assert "somebody else has answered with your invitation" in again.stdout


def test_an_answer_after_the_survey_closed_is_not_counted(servers: Any) -> None:
    for number in range(1, 6):
        answer(servers.codes[number].link(ADDRESS), "--item", str(number), "--yes")
    servers.end_phase()
    late = answer(servers.codes[0].link(ADDRESS), "--item", "0", "--yes")
    assert "does not count your answer" in late.stdout
    counted = answer(servers.codes[1].link(ADDRESS), "--stay")
    assert "counts your answer: this device has checked the proof" in counted.stdout
