"""Logs that callers cannot fill."""

import io
import json
import logging

import pytest

from faircount.server.common import logs
from faircount.server.common.logs import JsonLines, LogLimit


def test_the_same_message_is_not_written_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    handler.addFilter(LogLimit())
    log = logging.Logger("some library")
    log.addHandler(handler)
    for number in range(50_000):
        log.error("accept failed: %s", number)
    lines = out.getvalue().splitlines()
    assert len(lines) == logs.BURST
    assert len(out.getvalue()) < 200 * logs.BURST
    # Others are heard all the same, and later lines tell how many are missing.
    log.error("the disk is full")
    now += 1.0
    log.error("accept failed: %s", "again")
    other, again = (json.loads(line) for line in out.getvalue().splitlines()[-2:])
    assert (other["message"], "left_out" in other) == ("the disk is full", False)
    assert again["left_out"] == 50_000 - logs.BURST


def test_messages_of_any_number_and_length_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_MESSAGES", 10)
    limit = LogLimit()
    for number in range(50):
        record = logging.makeLogRecord({"name": "x", "msg": f"{number}" + "y" * 100_000})
        assert limit.filter(record)
        assert len(JsonLines().format(record)) < 2 * logs.LONGEST_TEXT
    assert len(limit._known) <= 10
