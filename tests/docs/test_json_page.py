"""The page of JSON keys names every key that the commands print, and no other."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from faircount.cli import main

PAGE = (Path(__file__).parents[2] / "docs/reference/json.md").read_text(encoding="utf-8")
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n## ")[1:]}

# Keys of the result of a survey only, and of a simulation.
OF_SURVEYS = {"title", "simultaneous", "questions", "record", "levels", "simulation"}


@pytest.fixture
def keys_of(tmp_path: Path) -> Callable[[str], set[str]]:
    rows = [f"{number},{'xy'[number % 2]},{'ABC'[number % 3]}" for number in range(300)]
    table = tmp_path / "people.csv"
    table.write_text("\n".join(["person,tier,city", *rows]))

    def keys(command: str) -> set[str]:
        done = CliRunner().invoke(main, [*command.replace("TABLE", str(table)).split(), "--json"])
        assert done.exit_code == 0, done.output
        return set(json.loads(done.stdout))

    return keys


def table_keys(section: str) -> set[str]:
    """The keys in the first columns of a section's tables."""
    cells = re.findall(r"^\| (`.*?) \|", SECTIONS[section], re.MULTILINE)
    return set(re.findall(r"`(\w+)`", " ".join(cells)))


RUN = "run TABLE --column city --user person --domain A,B,C"


@pytest.mark.parametrize(
    ("section", "commands"),
    [
        (
            "`run`, and the result of a survey",
            (
                f"{RUN} --epsilon 1",
                f"{RUN} --groups tier --public-groups --levels x=1,y=2",
            ),
        ),
        ("`plan`", ("plan --users 800 --items 4 --epsilon 1",)),
        ("`privacy`", ("privacy laplace --epsilon 1 --users 800 --items 4",)),
        ("`audit`", ("audit laplace --epsilon 1 --users 20 --runs 200",)),
    ],
)
def test_every_key_is_described(
    keys_of: Callable[[str], set[str]], section: str, commands: tuple[str, ...]
) -> None:
    printed = set[str]().union(*(keys_of(command) for command in commands))
    assert "version" in printed
    assert table_keys(section) - OF_SURVEYS == printed - {"version"}


def test_the_keys_of_a_planned_mechanism_are_described() -> None:
    asked = ["--users", "800", "--items", "4", "--epsilon", "1"]
    done = CliRunner().invoke(main, ["plan", *asked, "--json"])
    made = json.loads(done.stdout)
    assert all(f"`{key}`" in SECTIONS["`plan`"] for key in made["mechanisms"][0])
