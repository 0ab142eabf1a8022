"""What options of several commands share, so that the same option means the same everywhere."""

import re
from pathlib import Path
from typing import Any

import click

from faircount.core.errors import ParameterError

FILE = click.Path(dir_okay=False, path_type=Path)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
DELTA = "Probability with which more than epsilon may be lost"


def listed(option: str, given: str) -> list[str]:
    """Entries between commas, in quotes where an entry has a comma itself, or the lines of @FILE."""
    import csv

    from faircount.analysis.prepare import lines_of

    try:
        entries = lines_of(Path(given[1:])) if given.startswith("@") else next(csv.reader([given], **_QUOTED), [])
    except csv.Error:
        raise ParameterError(f"{option.split()[0]}: a quote is opened and not closed") from None
    found = [each.strip() for each in entries if each.strip()]
    if not found:
        raise ParameterError(f"{option.split()[0]} lists nothing: write {option}, or name a file with one entry a line")
    return found


_QUOTED: dict[str, Any] = {"skipinitialspace": True, "strict": True}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(option: str, given: str) -> int:
    """A time such as 90s, 30m, 12h or 3d, in seconds."""
    found = re.fullmatch(r"(\d{1,6})([smhd])", given.strip().lower())
    if found is None or not int(found[1]):
        raise ParameterError(f"{option} takes a time such as 90s, 30m, 12h or 3d, not {given!r:.40}")
    return int(found[1]) * _SECONDS[found[2]]
