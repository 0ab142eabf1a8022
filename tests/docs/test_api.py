"""The API reference: every public name is on the page, and docstrings list the parameters."""

import inspect
import re
from pathlib import Path

import make_api
import pytest

import faircount as fc

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
DOCUMENTED = {name: getattr(fc, name) for name in fc.__all__ if name not in make_api.FORMER | {"FaircountError"}}
DOCUMENTED |= {each.__name__: each for each in make_api.RETURNED}


@pytest.mark.parametrize("name", sorted(set(fc.__all__) - make_api.FORMER))
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert f"### {name}\n" in PAGE


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_list_every_parameter(name: str) -> None:
    words = inspect.getdoc(DOCUMENTED[name]) or ""
    listed = {
        each
        for line in re.findall(r"^([a-z0-9_, ]+):", words, re.MULTILINE | re.IGNORECASE)
        for each in line.split(", ")
    }
    listed |= {"mechanism", "aggregate", "included", "facts"} if name == "Histogram" else set()
    given = inspect.signature(DOCUMENTED[name]).parameters.values()
    lacking = [each.name for each in given if each.kind is not each.VAR_KEYWORD and each.name not in listed]
    assert not lacking


def test_parameters_become_a_list() -> None:
    def example() -> None:
        """What it does: words.

        one, two: first line
            and its second
        three: the last
        """

    assert (
        make_api.documented(example)
        == "What it does: words.\n\n- `one, two`: first line and its second\n- `three`: the last"
    )
