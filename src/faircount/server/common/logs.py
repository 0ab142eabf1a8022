"""Logs: one JSON object per line on standard error.

Only the fields listed here are written, and no exception texts, so that no secret can end up in a
log.
"""

import json
import logging
import sys
import time
import traceback
from collections import OrderedDict
from typing import Any

from faircount.server.common.clock import format_time

FIELDS = (
    "survey",
    "population",
    "number",
    "call",
    "status",
    "milliseconds",
    "bytes",
    "problem",
    "count",
    "port",
    "role",
    "left_out",
)
"""The fields of a line besides time, level, logger and message. Survey ids and numbers of
reservations are public, and so are the names of populations, which are in parameters."""


class JsonLines(logging.Formatter):
    """Formats a log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return time, level, logger and message, and the known fields that the record has."""
        line: dict[str, Any] = {
            "time": format_time(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:LONGEST_TEXT],
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


LINES_PER_SECOND = 20.0
"""Lines with the same message that are written per second, in the long run."""
BURST = 1000
"""Lines with the same message that are written at once."""
MAX_MESSAGES = 200
"""Different messages whose lines are counted."""
LONGEST_TEXT = 2000
"""Characters of a text in a line."""


class LogLimit(logging.Filter):
    """Leaves lines out when the same message is logged too often: callers must not fill the disk.

    The next line that is written says how many were left out.
    """

    def __init__(self) -> None:
        super().__init__()
        # By message: lines that may be written now, since when, and how many were left out.
        self._known: OrderedDict[tuple[str, str], tuple[float, float, int]] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        # Before its values are filled in, which differ from line to line.
        key = (record.name, str(record.msg)[:LONGEST_TEXT])
        now = time.monotonic()
        tokens, since, left_out = self._known.pop(key, (float(BURST), now, 0))
        tokens = min(float(BURST), tokens + (now - since) * LINES_PER_SECOND)
        # check: log-lines - a caller fills the disk with lines about refused connections
        if tokens < 1:
            self._known[key] = (tokens, now, left_out + 1)
            return False
        self._known[key] = (tokens - 1, now, 0)
        if len(self._known) > MAX_MESSAGES:
            self._known.popitem(last=False)
        if left_out:
            record.left_out = left_out
        return True


def set_up_logs(level: str) -> None:
    """Write everything that is logged from now on as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(LogLimit())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # At their usual level these libraries log every single request.
    for library in ("httpx", "httpcore", "alembic", "uvicorn"):
        logging.getLogger(library).setLevel(logging.WARNING)
