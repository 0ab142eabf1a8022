"""The time of a server, in whole milliseconds. It decides when a phase ends; nothing that must be safe rests on it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], int]


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def written(milliseconds: int | None) -> str | None:
    """A time as people and programs read it (RFC 3339, UTC); None for none."""
    if milliseconds is None:
        return None
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
