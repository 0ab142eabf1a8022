"""The guide and the list of commands: what they show exists, what exists is shown, and a difference
is noticed.

That both pages are up to date is tested with all others in test_pages.py.
"""

import importlib.util
from pathlib import Path
from types import ModuleType

import click
import pytest

from faircount.cli import COMMANDS, main

DOCS = Path(__file__).parents[2] / "docs"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / "generate" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


guide = script("make_analyse_a_table")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command_is_documented(name: str) -> None:
    page = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    section = page.split(f"## faircount {name}\n")[1].split("\n## ")[0]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert all(option in section for option in parameter.opts), parameter.opts


def test_the_guide_shows_every_command_a_newcomer_needs() -> None:
    page = (DOCS / "how-to" / "analyse-a-table.md").read_text(encoding="utf-8")
    for name in ("plan", "run", "privacy", "audit"):
        assert f"$ faircount {name} " in page


def test_costs_are_shown_to_readers_of_the_paper() -> None:
    page = (DOCS / "explanation" / "reproduction.md").read_text(encoding="utf-8")
    assert "$ faircount costs " in page


def test_output_is_made_again_and_a_difference_is_noticed(tmp_path: Path) -> None:
    page = "A.\n\n```console\n$ faircount privacy laplace --epsilon 1 --json\nold\n```\n\nB.\n"
    made = guide.render(page, tmp_path)
    assert made != page
    assert '"epsilon": 1.0' in made
    assert "old" not in made
    assert guide.render(made, tmp_path) == made


def test_programs_print_into_the_block_below(tmp_path: Path) -> None:
    page = "```python\nprint(6 * 7)\n```\n\n```text\n```\n\nWords.\n\n```text\nkept\n```\n"
    made = guide.render(page, tmp_path)
    assert "```text\n42\n```" in made
    assert "```text\nkept\n```" in made


def test_later_blocks_find_the_files_of_earlier_ones(tmp_path: Path) -> None:
    program = "```python\nopen('a.csv', 'w').write('city\\n')\n```\n"
    made = guide.render(
        f"{program}\n```console\n$ faircount run a.csv \\\n    --column city\n```\n", tmp_path
    )
    assert "--column city\nfaircount: give --epsilon" in made


def test_a_crash_or_a_foreign_command_stops_the_guide(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="fails"):
        guide.render("```python\n1 / 0\n```\n", tmp_path)
    with pytest.raises(SystemExit, match="only faircount"):
        guide.render("```console\n$ rm -rf x\n```\n", tmp_path)
