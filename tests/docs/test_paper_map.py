"""The map from the paper to the code names files that exist, and names that are in them."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "explanation" / "paper-map.md").read_text(encoding="utf-8")
FILE = re.compile(r"`([\w/.-]+\.py)`")
NAMES = re.compile(r"`([\w/.-]+\.py)` \(((?:`\w[\w.]*`(?:, )?)+)\)")


def place(path: str) -> Path:
    return (
        ROOT / path if path.startswith(("docs/", "tests/")) else ROOT / "src" / "faircount" / path
    )


def test_every_file_exists() -> None:
    found = FILE.findall(TEXT)
    assert len(found) > 50
    assert [path for path in found if not place(path).is_file()] == []


def test_every_name_is_in_its_file() -> None:
    pairs = [
        (path, name)
        for path, names in NAMES.findall(TEXT)
        for name in re.findall(r"`([\w.]+)`", names)
    ]
    assert len(pairs) > 20
    missing = [
        (path, name)
        for path, name in pairs
        if name.split(".")[-1] not in place(path).read_text(encoding="utf-8")
    ]
    assert missing == []
