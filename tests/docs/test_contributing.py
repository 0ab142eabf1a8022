"""CONTRIBUTING names files that are there, and every package of the tree."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PLACES = (ROOT, ROOT / "src" / "faircount", ROOT / "src" / "faircount" / "mechanisms")


def named(page: str) -> set[str]:
    """Files and folders that a page names, but for those that are yet to be written (NAME)."""
    found = re.findall(r"`([\w./*-]+/[\w./*-]*|[\w-]+\.(?:py|md|js))`", page)
    return {each for each in found if "NAME" not in each}


def missing(page: str) -> list[str]:
    return sorted(each for each in named(page) if not any(any(place.glob(each)) for place in PLACES))


def test_every_file_that_is_named_is_there() -> None:
    parts = {
        "messages.py",
        "user.py",
        "coordinator.py",
        "aggregator.py",
        "play.py",
        "fig5.py",
    }  # of a package named beside
    assert len(named(PAGE)) > 30
    assert set(missing(PAGE)) <= parts
    assert missing("`service/nowhere.py` and `docs/cli.md`") == ["service/nowhere.py"]


def test_every_package_has_its_job_in_the_table() -> None:
    packages = {each.parent.name for each in (ROOT / "src" / "faircount").glob("*/__init__.py")}
    table = PAGE.split("| layer | package | job |")[1].split("\n\n")[0]
    assert packages == set(re.findall(r"`(\w+)`", table))
