"""Durations as people write them: 90s, 30m, 12h, 3d."""

import re

from faircount.core.errors import ParameterError

_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(name: str, given: str) -> int:
    """Seconds of a duration such as 90s, 30m, 12h or 3d."""
    # Six digits at most: a longer number is a typing error.
    found = re.fullmatch(r"(\d{1,6})([smhd])", given.strip().lower())
    if found is None or not int(found[1]):
        raise ParameterError(f"{name} takes a time such as 90s, 30m, 12h or 3d, not {given!r:.40}")
    return int(found[1]) * _SECONDS_PER_UNIT[found[2]]
