"""Logs: one JSON object per line on standard error. Only what is listed here is written, so no secret can slip in."""

import json
import logging
import sys
from typing import Any

from faircount.service.clock import written

FIELDS = ("survey", "call", "status", "milliseconds", "bytes", "problem", "count", "port", "role")
"""What a line may say besides time, level and words; a survey's id is public."""


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, words, and those of the known fields that are there."""
        said: dict[str, Any] = {
            "time": written(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            said["error"] = record.exc_info[0].__name__  # its text may quote what a caller sent
            said["where"] = _where(record)
        return json.dumps(said, ensure_ascii=False)


def _where(record: logging.LogRecord) -> list[str]:
    """File and line of each step to an error, without any values."""
    import traceback

    steps = traceback.extract_tb(record.exc_info[2]) if record.exc_info else []
    return [f"{each.filename.rsplit('/', 1)[-1]}:{each.lineno}" for each in steps]


def set_up_logs(level: str) -> None:
    """Write everything that is logged from now on as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "alembic", "uvicorn"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
