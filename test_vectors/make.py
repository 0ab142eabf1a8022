"""Write the test vectors of this folder, or with `--check` name those that are out of date.

README.md explains the files. The text under "about" is the docstring of the function of that name.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import basics
import proofs
import surveys

HERE = Path(__file__).parent

NAMES = {
    basics: (
        "known_answer",
        "key_derivation",
        "bad_keys",
        "expansion",
        "packing",
        "bad_packing",
        "encryption",
        "bad_encryption",
        "shamir",
        "bad_shamir",
        "draws",
    ),
    surveys: (
        "params",
        "bad_params",
        "rosters",
        "sets",
        "invitations",
        "graphs",
        "servers_upload",
        "masks",
        "explicit_users",
        "messages",
        "bad_messages",
        "requests",
        "bad_requests",
        "acknowledgements",
        "bad_acknowledgements",
        "device_messages",
        "bad_device_messages",
        "operators",
        "bad_operators",
    ),
    proofs: ("sheets", "levels", "proven_reports", "bad_reports", "placed_coins"),
}
FILES: dict[str, Callable[[], list[basics.Case]]] = {
    name: getattr(module, name) for module, names in NAMES.items() for name in names
}
"""The function that makes the cases of each file."""


def _plain(value: Any) -> Any:
    """The value as plain JSON, with bytes as hexadecimal text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(member) for member in value]
    return value


def make_text(name: str) -> str:
    """The text of a file."""
    about = " ".join((FILES[name].__doc__ or "").split())
    content = {"about": about, "cases": _plain(FILES[name]())}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write or check every file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checking = parser.parse_args().check
    stale = []
    for name in FILES:
        path = HERE / f"{name}.json"
        text = make_text(name)
        if checking and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not checking:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}: run make vectors")


if __name__ == "__main__":
    main()
