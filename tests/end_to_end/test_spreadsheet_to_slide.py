"""The guide "From a spreadsheet to a slide" runs as it is written, with a real mail server."""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from quick_python import quick_python
from smtp_sink import Sink, smtp_sink

PAGE = "how-to/from-a-spreadsheet-to-a-slide.md"
SEND = "faircount survey mail offices --yes\n"
KILLS = 3


def settings_for(sink: Sink) -> dict[str, str]:
    """What an owner tells faircount about a mail server; the rate only shortens the test."""
    return {
        "FAIRCOUNT_MAIL_FROM": "People team <people@company.example>",
        "FAIRCOUNT_SMTP_HOST": "127.0.0.1",
        "FAIRCOUNT_SMTP_PORT": str(sink.port),
        "FAIRCOUNT_SMTP_SECURITY": "none",
        "FAIRCOUNT_MAIL_RATE": "6000",
    }


@pytest.mark.slow
def test_a_spreadsheet_becomes_a_slide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (_, serve), *blocks = blocks_of(PAGE)
    assert serve == SERVE
    with smtp_sink() as sink, served_trial(tmp_path, quick_python()):
        settings = settings_for(sink)
        printed = "\n".join(
            run_block(kind, block, tmp_path, quick_python(), **settings) for kind, block in blocks
        )
    assert "60 invitations were sent." in printed
    assert "24 reminders were sent." in printed
    assert "60 invited, 36 responded (60%), 36 counted" in printed
    received = Counter(sink.recipients)
    assert len(received) == 60
    assert Counter(received.values()) == {1: 36, 2: 24}
    for name in ("label.html", "offices.png", "offices.xlsx", "offices.html"):
        assert (tmp_path / name).stat().st_size > 1000
    assert (tmp_path / "offices-2" / "parameters.json").exists()


def kill_after(mails: int, command: list[str], sink: Sink) -> None:
    """Start a command, and kill it when the mail server has so many more mails."""
    wanted = len(sink.mails) + mails
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while len(sink.mails) < wanted and process.poll() is None:
        assert time.monotonic() < end, "no mail was sent"
        time.sleep(0.001)
    process.kill()
    process.wait()


@pytest.mark.slow
def test_a_killed_command_sends_nobody_a_second_mail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, *blocks = blocks_of(PAGE)
    before = blocks[: blocks.index(("sh", SEND))]
    with smtp_sink() as sink, served_trial(tmp_path, quick_python()):
        for kind, block in before:
            run_block(kind, block, tmp_path, quick_python())
        for name, value in settings_for(sink).items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-m", *SEND.split()]
        for _ in range(KILLS):
            kill_after(5, command, sink)
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
        printed = json.loads(done.stdout)
    received = Counter(sink.recipients)
    assert set(received.values()) == {1}
    # Whoever has no mail is listed as unsure: nobody is forgotten.
    everybody = {f"person{number}@company.example" for number in range(1, 61)}
    assert set(received) | set(printed["unsure"]) == everybody
    assert len(printed["unsure"]) <= KILLS
    assert printed["complete"] == (not printed["unsure"])
