"""Pages for contributors name files that exist, and packages and phases as they are in the code."""

import ast
import builtins
import keyword
import re
import sys
from functools import cache
from pathlib import Path

import diagrams
import pytest

from faircount.protocol.survey.phases import TRANSITIONS, Phase
from faircount.protocol.survey.topology import known_topologies

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "faircount"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = (CONTRIBUTING, ARCHITECTURE, *sorted((ROOT / "docs" / "extending").glob("*.md")))
PARTS_OF_A_TOPOLOGY = {"__init__.py", "aggregator.py", "coordinator.py", "messages.py", "user.py"}
"""Named alone in the checklist of a topology, which says where they go."""

MAX_LINES = 120


def named_files(page: str) -> set[str]:
    """Files and folders that a page names, except those that are yet to be written (NAME)."""
    found = re.findall(r"`([\w./*-]+/[\w./*-]*|[\w-]+\.(?:py|md|js))`", page)
    return {name for name in found if "NAME" not in name and not name.startswith("out/")}


def missing_files(page: str) -> list[str]:
    """Those that are neither in the repository nor in the package."""
    names = named_files(page) - PARTS_OF_A_TOPOLOGY
    return sorted(
        name for name in names if not any(any(place.glob(name)) for place in (ROOT, SOURCE))
    )


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_file_that_is_named_exists(path: Path) -> None:
    assert missing_files(path.read_text(encoding="utf-8")) == []


def test_a_missing_file_is_found() -> None:
    assert len(named_files("\n".join(path.read_text(encoding="utf-8") for path in PAGES))) > 60
    assert missing_files("`server/nowhere.py` and `docs/reference/cli.md`") == ["server/nowhere.py"]


NOT_OF_THE_CODE = {"is_", "has_", "make", "reason_NAME", "started_steps"}
"""Beginnings of names, a program, a placeholder, and a table of the database."""


@cache
def identifiers() -> frozenset[str]:
    """Names of modules, packages, classes, functions, their parameters, constants and imports."""
    found = {path.name for path in SOURCE.rglob("*") if path.is_dir()}
    for path in (*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        found.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
            elif isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.alias):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return frozenset(found)


def named_identifiers(page: str) -> set[str]:
    """What a page quotes and looks like a name in code, without the module before a dot."""
    quoted = re.findall(r"`((?:fc\.)?[A-Za-z_]\w+)(?:\(\))?`", page)
    return {name.removeprefix("fc.") for name in quoted}


def missing_identifiers(page: str) -> list[str]:
    """Quoted names that are neither in the code nor words of Python."""
    known = {*identifiers(), *NOT_OF_THE_CODE, *map(str, Phase)}
    known |= {topology.name for topology in known_topologies()}
    known |= {*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names}
    return sorted(named_identifiers(page) - known)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_name_in_code_that_is_quoted_exists(path: Path) -> None:
    assert missing_identifiers(path.read_text(encoding="utf-8")) == []


def test_a_missing_name_is_found() -> None:
    assert (
        len(named_identifiers("\n".join(path.read_text(encoding="utf-8") for path in PAGES))) > 60
    )
    assert missing_identifiers("`judge_the_part()`, `fc.histogramme` and `StepRows`") == [
        "histogramme",
        "judge_the_part",
    ]


def test_there_is_a_checklist_for_every_kind_of_change() -> None:
    folder = ROOT / "docs" / "extending"
    listed = set(
        re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert len(listed) >= 10


def test_contributing_is_short() -> None:
    lines = CONTRIBUTING.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= MAX_LINES


def test_every_package_has_its_job_in_the_architecture() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    table = ARCHITECTURE.read_text(encoding="utf-8").split("| package | job |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert packages == {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_the_diagram_of_phases_is_the_table_of_transitions() -> None:
    sources = diagrams.BLOCK.findall(ARCHITECTURE.read_text(encoding="utf-8"))
    (phases,) = (source for source in sources if source.startswith("stateDiagram"))
    drawn = set(re.findall(r"^\s+(\w+) --> (\w+)", phases, re.MULTILINE))
    table = {
        (before.value, after.value)
        for before, following in TRANSITIONS.items()
        for after in following
    }
    assert drawn == {edge for edge in table if edge[1] != Phase.ABORTED.value}
