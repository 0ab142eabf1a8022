"""All benchmarks, side by side in one run: prints a table and writes RESULTS.md and results.json beside this file.

With names of rooms (such as `validity`) only these are measured; the rows of the others stay as they are.
"""

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from table import Row, markdown

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
MISSING = "not installed"
ROOMS = ("sharing", "accounting", "local", "planning", "protocol", "protocol_masked", "validity")
PACKAGES = ("numpy", "scipy", "cryptography", "dp-accounting", "multi-freq-ldpy", "pure-ldp")

HEAD = """# Benchmarks

Written by `make bench`; do not edit. The best of several runs each, ours and the other in one process. `ratio` is the
other's time over ours: above 1 ours is so many times faster, below 1 it reaches so much of a limit. On a shared machine
wall times can differ by a factor of two and more from run to run: take them on a quiet one. The rows of GRR and OUE are
CPU times of one thread, taken in turns with the other; so are those of proofs ("prove", "verify", "proven").
"""


def machine() -> dict[str, object]:
    """What the numbers depend on, and nothing that identifies the machine."""
    facts: dict[str, object] = {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
    }
    facts["python"] = platform.python_version()
    return facts | {package: installed(package) for package in PACKAGES}


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def collect(rooms: Sequence[str]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for room in rooms:
        print(f"benchmarks/{room}.py ...", flush=True)
        found[room] = import_module(room).rows()
        print(markdown(found[room]), flush=True)
    return found


def kept(rows: list[dict[str, Any]]) -> dict[str, list[Row]]:
    """The rows of the last runs, by room."""
    return {room: [Row.from_dict(row) for row in rows if row["room"] == room] for room in ROOMS}


def main(named: Sequence[str]) -> None:
    if unknown := set(named) - set(ROOMS):
        sys.exit(f"no benchmarks called {', '.join(sorted(unknown))}: choose of {', '.join(ROOMS)}")
    last = json.loads(RESULTS.read_text(encoding="utf-8")) if named else {"machine": {}, "rows": []}
    found = kept(last["rows"]) | collect(named or ROOMS)
    here = {name: value for name, value in machine().items() if value != MISSING or name not in last["machine"]}
    write(last["machine"] | here, [(room, row) for room in ROOMS for row in found[room]])


def write(facts: dict[str, object], rows: list[tuple[str, Row]]) -> None:
    said, table = ", ".join(f"{name} {value}" for name, value in facts.items()), markdown(row for _, row in rows)
    (HERE / "RESULTS.md").write_text(f"{HEAD}\nMachine: {said}.\n\n{table}\n", encoding="utf-8")
    known = {"machine": facts, "rows": [{"room": room} | row.as_dict() for room, row in rows]}
    RESULTS.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
