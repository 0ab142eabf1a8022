"""Pages that scripts of this folder write: `--check` shows what would change instead, and fails if anything would."""

import difflib
import sys
from pathlib import Path

HERE = Path(__file__).parent


def write(name: str, text: str) -> None:
    """Write docs/NAME, or with `--check` on the command line compare it with what stands there, and end the program."""
    page = HERE / name
    if "--check" not in sys.argv[1:]:
        page.write_text(text, encoding="utf-8")
        return
    before = page.read_text(encoding="utf-8") if page.exists() else ""
    sys.stdout.writelines(difflib.unified_diff(before.splitlines(True), text.splitlines(True), name, "today"))
    sys.exit(0 if before == text else f"docs/{name} is out of date: run make docs")
