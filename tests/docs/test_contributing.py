"""Pages for contributors name files that exist, and packages and phases as they are in the code."""

import re
from pathlib import Path

import diagrams
import pytest

from faircount.protocol.survey.phases import TRANSITIONS, Phase

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "faircount"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
PAGES = (CONTRIBUTING, ARCHITECTURE, *sorted((ROOT / "docs" / "extending").glob("*.md")))
PARTS_OF_A_TOPOLOGY = {"__init__.py", "aggregator.py", "coordinator.py", "messages.py", "user.py"}
"""Named alone in the checklist of a topology, which says where they go."""

MOST_LINES = 120


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


def test_there_is_a_checklist_for_every_kind_of_change() -> None:
    folder = ROOT / "docs" / "extending"
    listed = set(
        re.findall(r"\]\(([\w-]+\.md)\)", (folder / "README.md").read_text(encoding="utf-8"))
    )
    assert listed == {path.name for path in folder.glob("*.md")} - {"README.md"}
    assert len(listed) >= 10


def test_contributing_is_short() -> None:
    lines = CONTRIBUTING.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_LINES


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
