"""A table of people that the owner chooses on the page."""

import base64
from typing import Any

import pytest

from faircount.core.errors import ParameterError
from faircount.dashboard.sheets import MAX_BYTES, describe_sheet, people_of_sheet

TABLE = b"Name,Private,Work\nZo\xeb,zoe@home.example,zoe@example.org\nBo,bo@home.example,bo@example.org\n"


def sheet(data: bytes, name: str = "people.csv", **more: str) -> dict[str, Any]:
    return {"sheet": {"name": name, "data": base64.b64encode(data).decode()}, **more}


def test_the_owner_chooses_the_column_if_it_is_not_obvious() -> None:
    asked = describe_sheet(sheet(TABLE))
    assert asked["columns"] == ["Name", "Private", "Work"]
    assert asked["problem"]["code"] == "sheet_which_column"
    found = describe_sheet(sheet(TABLE, address_column="Work"))
    assert (found["count"], found["column"], found["problem"]) == (2, "Work", None)
    assert found["first"] == ["zoe@example.org", "bo@example.org"]
    assert found["guessed_encoding"]
    assert people_of_sheet(sheet(TABLE, address_column="Name")).names == ("Zoë", "Bo")


def test_a_list_needs_no_columns() -> None:
    found = describe_sheet(sheet(b"Ada\n\nBo\n", "people.txt"))
    assert (found["count"], found["columns"], found["column"]) == (2, [], "")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "bad_call"),
        ({"sheet": {"name": "people.csv", "data": "?"}}, "bad_call"),
        (sheet(b"", "people.xls"), "sheet_format"),
        (sheet(b"no zip", "people.xlsx"), "sheet_unreadable"),
        (sheet(bytes(MAX_BYTES + 1)), "sheet_too_large"),
    ],
)
def test_what_is_no_table_is_refused_with_a_code(values: dict[str, Any], code: str) -> None:
    with pytest.raises(ParameterError) as refused:
        people_of_sheet(values)
    assert refused.value.code == code
