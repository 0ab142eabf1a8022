"""The API reference: every public name is on it, with parameters, what it returns and an example."""

import doctest
import inspect
from pathlib import Path

import make_api
import pytest

import faircount as fc
from faircount.client.invitation_codes import Code
from faircount.mechanisms import registry
from faircount.protocol import Invitation

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
DOCUMENTED = {name: getattr(fc, name) for name in fc.__all__ if name != "FaircountError"}
DOCUMENTED |= {kind.__name__: kind for kind in make_api.RETURNED}


@pytest.mark.parametrize("name", sorted(fc.__all__))
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert f"### {name}\n" in PAGE


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstrings_list_every_parameter(name: str) -> None:
    listed = set()
    for names, _ in make_api.read_docstring(DOCUMENTED[name]).parameters:
        listed |= set(names.split(", "))
    listed |= {"mechanism", "aggregate", "included", "facts"} if name == "Histogram" else set()
    given = inspect.signature(DOCUMENTED[name]).parameters.values()
    named = {parameter.name for parameter in given if parameter.kind is not parameter.VAR_KEYWORD}
    assert named <= listed


def test_a_docstring_is_taken_apart() -> None:
    def example(one: int, two: int, three: str = "x") -> str:
        """What it does: words.

        one, two: first line
            and its second
        three: the last
        returns: something
            short

        >>> example(1, 2)
        'x'
        """

    found = make_api.read_docstring(example)
    assert found.text == "What it does: words."
    assert found.parameters == [("one, two", "first line and its second"), ("three", "the last")]
    assert found.returns == "something short"
    assert found.example == [">>> example(1, 2)", "'x'"]
    entry = make_api.entry("example", example)
    assert "example(one: int, two: int, three: str = 'x') -> str" in entry
    assert "**Returns** `str`: something short" in entry


@pytest.mark.parametrize("name", sorted(fc.__all__))
def test_every_public_name_has_an_example(name: str) -> None:
    assert make_api.read_docstring(getattr(fc, name)).example


@pytest.mark.parametrize(
    "name",
    sorted(name for name in fc.__all__ if inspect.isfunction(getattr(fc, name))),
)
def test_every_public_function_says_what_it_returns(name: str) -> None:
    assert make_api.read_docstring(getattr(fc, name)).returns


@pytest.fixture
def link() -> str:
    """The link of an invitation to a survey that does not exist: nothing is sent there."""
    code = Code(bytes(16), Invitation(bytes(32), bytes(32)))
    return f"https://count.example.org/#{code.text}"


@pytest.mark.parametrize("name", sorted(fc.__all__))
def test_examples_run(
    name: str, link: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        registry, "_registered", dict(registry._registered)
    )  # one example registers a mechanism
    source = inspect.getdoc(getattr(fc, name)) or ""
    case = doctest.DocTestParser().get_doctest(source, {"fc": fc, "link": link}, name, None, None)
    printed: list[str] = []
    doctest.DocTestRunner().run(case, out=printed.append)
    assert not printed, "".join(printed)
