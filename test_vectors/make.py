"""Writes the known answers of this folder, or with `--check` says which are out of date; README.md explains them."""

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
        "sealing",
        "bad_sealing",
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
    ),
    proofs: ("proven_reports", "bad_reports", "placed_coins"),
}
FILES: dict[str, Callable[[], list[basics.Case]]] = {
    name: getattr(module, name) for module, names in NAMES.items() for name in names
}
"""What each file holds."""


def _plain(value: Any) -> Any:
    """Bytes as hexadecimal text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def written(name: str) -> str:
    """The text of a file."""
    about = " ".join((FILES[name].__doc__ or "").split())
    return json.dumps({"about": about, "cases": _plain(FILES[name]())}, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write or check every file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checking, stale = parser.parse_args().check, []
    for name in FILES:
        path, text = HERE / f"{name}.json", written(name)
        if checking and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not checking:
            path.write_text(text, encoding="utf-8")
    if stale:
        sys.exit(f"out of date: {', '.join(stale)}: run make vectors")


if __name__ == "__main__":
    main()
