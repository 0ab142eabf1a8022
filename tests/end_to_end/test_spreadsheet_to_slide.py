"""The guide "From a spreadsheet to a slide" runs as it is written, with a real mail server."""

from collections import Counter
from pathlib import Path

import pytest
from page_blocks import SERVE, blocks_of, run_block, served_trial
from smtp_sink import smtp_sink


@pytest.mark.slow
def test_a_spreadsheet_becomes_a_slide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (_, serve), *blocks = blocks_of("how-to/from-a-spreadsheet-to-a-slide.md")
    assert serve == SERVE
    with smtp_sink() as sink, served_trial(tmp_path):
        settings = {
            "FAIRCOUNT_MAIL_FROM": "People team <people@company.example>",
            "FAIRCOUNT_SMTP_HOST": "127.0.0.1",
            "FAIRCOUNT_SMTP_PORT": str(sink.port),
            "FAIRCOUNT_SMTP_SECURITY": "none",
            "FAIRCOUNT_MAIL_RATE": "6000",
        }
        printed = "\n".join(run_block(kind, block, tmp_path, **settings) for kind, block in blocks)
    assert "60 invitations were sent." in printed
    assert "24 reminders were sent." in printed
    assert "60 invited, 36 responded (60%), 36 counted" in printed
    received = Counter(sink.recipients)
    assert len(received) == 60
    assert Counter(received.values()) == {1: 36, 2: 24}
    for name in ("label.html", "offices.png", "offices.xlsx", "offices.html"):
        assert (tmp_path / name).stat().st_size > 1000
    assert (tmp_path / "offices-2" / "parameters.json").exists()
