"""Durations and closing times as people write them: 90s, 30m, 12h, 3d; 2026-11-19 18:00."""

import math
import re
from datetime import UTC, datetime, timedelta

from faircount.core.errors import ParameterError

_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=366)
"""A closing time outside of this is a typing error."""


def parse_duration(name: str, given: str) -> int:
    """Seconds of a duration such as 90s, 30m, 12h or 3d."""
    # Six digits at most: a longer number is a typing error.
    found = re.fullmatch(r"(\d{1,6})([smhd])", given.strip().lower())
    if found is None or not int(found[1]):
        raise ParameterError(f"{name} takes a time such as 90s, 30m, 12h or 3d, not {given!r:.40}")
    return int(found[1]) * _SECONDS_PER_UNIT[found[2]]


def parse_closing_time(name: str, given: str, now: datetime) -> datetime:
    """A date and time in the future such as 2026-11-19 18:00, in this computer's time zone.

    A time with an offset, such as 2026-11-19T18:00+01:00, means that zone.
    """
    try:
        when = datetime.fromisoformat(given.strip())
        # Seconds matter to nobody here; a date alone would close at midnight, when it begins.
        if len(given.strip()) < len("2026-11-19 18:00"):
            raise ValueError
        when = when.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"{name} takes a date and time such as 2026-11-19 18:00, not {given!r:.40}"
        raise ParameterError(message).with_code("closing_time_form") from None
    if not SHORTEST <= when - now <= LONGEST:
        message = f"{name}: this time is over, or more than a year away: give a later or nearer one"
        raise ParameterError(message).with_code("closing_time_passed")
    return when


def seconds_until(when: datetime, now: datetime) -> int:
    """Whole seconds from now until then, rounded up."""
    return math.ceil((when - now).total_seconds())
