"""A table of people that the owner chooses on the page: read here, and kept on this machine."""

import base64
import binascii
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError
from faircount.dashboard.error_payload import error_payload
from faircount.owner.people import People, parse_people, table_titles

MAX_BYTES = 20_000_000
"""More would not be a list of people; the page reads a file into memory."""

PEOPLE_SHOWN = 3


def describe_sheet(values: dict[str, Any]) -> dict[str, Any]:
    """How many people a file has and which columns, or why it cannot be used with this column."""
    path, data = _file_of(values)
    titles = table_titles(path, data)
    found: dict[str, Any] = {"columns": list(titles), "column": "", "count": 0, "problem": None}
    try:
        people = people_of_sheet(values)
    except ParameterError as problem:
        # With the columns at hand the owner can choose another one.
        return {**found, "problem": error_payload(problem)}
    return {
        **found,
        "column": _column_of(people),
        "count": len(people),
        "first": list(people.names[:PEOPLE_SHOWN]),
        "guessed_encoding": bool(people.note),
    }


def people_of_sheet(values: dict[str, Any]) -> People:
    """The people in a file {name, data}; `address_column` tells them apart."""
    path, data = _file_of(values)
    return parse_people(path, data, str(values.get("address_column", "")) or None)


def _column_of(people: People) -> str:
    """The title of the column with the addresses."""
    for place, title in enumerate(people.header):
        if all(row[place] == name for row, name in zip(people.rows, people.names, strict=True)):
            return title
    return ""


def _file_of(values: dict[str, Any]) -> tuple[Path, bytes]:
    try:
        data = base64.b64decode(values["sheet"]["data"], validate=True)
        # The name alone, as error messages show it: nothing is read from or written to that path.
        path = Path(Path(str(values["sheet"]["name"])).name)
    except (KeyError, TypeError, binascii.Error):
        message = "a table of people is sent as its name and its bytes in base64"
        raise ParameterError(message).with_code("bad_call") from None
    if len(data) > MAX_BYTES:
        message = f"{path} has more than {MAX_BYTES:,} bytes: give a table with one row per person"
        raise ParameterError(message).with_code("sheet_too_large", file=str(path))
    return path, data
