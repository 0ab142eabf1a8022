"""Logs: one JSON object per line on standard error.

Only the fields listed here are written, and no exception texts, so that no secret can end up in a
log.
"""

import json
import logging
import sys
import traceback
from typing import Any

from faircount.server.common.clock import format_time

FIELDS = ("survey", "call", "status", "milliseconds", "bytes", "problem", "count", "port", "role")
"""The fields of a line besides time, level, logger and message. Survey ids are public."""


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and message, and the known fields that the record has."""
        line: dict[str, Any] = {
            "time": format_time(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            # The type and the place only: the text of an exception may quote what a caller sent.
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["where"] = [
                f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno}" for frame in frames
            ]
        return json.dumps(line, ensure_ascii=False)


def set_up_logs(level: str) -> None:
    """Write everything that is logged from now on as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # At their usual level these libraries log every single request.
    for library in ("httpx", "httpcore", "alembic", "uvicorn"):
        logging.getLogger(library).setLevel(logging.WARNING)
