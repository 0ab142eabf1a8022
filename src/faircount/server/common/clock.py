"""The clock of a server, in whole milliseconds.

It decides when a phase ends. No security property depends on it.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import overload

Clock = Callable[[], int]


def now() -> int:
    """Return the milliseconds since 1970."""
    # From nanoseconds, because a float of seconds is not exact.
    return time.time_ns() // 1_000_000


@overload
def format_time(milliseconds: int) -> str: ...
@overload
def format_time(milliseconds: int | None) -> str | None: ...
def format_time(milliseconds: int | None) -> str | None:
    """Format a time as in RFC 3339, in UTC; None stays None.

    Parameters may set a closing time that is further away than dates go: it becomes the last one.
    """
    if milliseconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        moment = datetime.max.replace(tzinfo=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
