"""All benchmarks, side by side in one run: prints a table and writes RESULTS.md and results.json beside this file."""

import json
import os
import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from table import Row, markdown

HERE = Path(__file__).parent
ROOMS = ("sharing", "accounting", "local", "planning", "protocol", "protocol_masked", "validity")
PACKAGES = ("numpy", "scipy", "cryptography", "dp-accounting", "multi-freq-ldpy", "pure-ldp")

HEAD = """# Benchmarks

Written by `make bench`; do not edit. The best of several runs each, ours and the other in one process. `ratio` is the
other's time over ours: above 1 ours is so many times faster, below 1 it reaches so much of a limit. On a shared machine
wall times can differ by a factor of two and more from run to run: take them on a quiet one. The rows of GRR and OUE are
CPU times of one thread, taken in turns with the other.
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
        return "not installed"


def collect() -> list[Row]:
    found: list[Row] = []
    for room in ROOMS:
        print(f"benchmarks/{room}.py ...", flush=True)
        found += import_module(room).rows()
    return found


def main() -> None:
    facts, found = machine(), collect()
    table = markdown(found)
    print(table)
    said = ", ".join(f"{name} {value}" for name, value in facts.items())
    (HERE / "RESULTS.md").write_text(f"{HEAD}\nMachine: {said}.\n\n{table}\n", encoding="utf-8")
    kept = {"machine": facts, "rows": [row.as_dict() for row in found]}
    (HERE / "results.json").write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
