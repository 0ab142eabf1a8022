"""Runs all benchmarks, prints a table, and writes RESULTS.md and results.json.

With names of groups (such as `validity`) only these are measured, and the other rows stay.
"""

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from table import Row, ask_git, markdown

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
MISSING = "not installed"
AGAIN = "not taken again"
GROUPS = (
    "sharing",
    "numpy_floor",
    "accounting",
    "local",
    "planning",
    "protocol",
    "protocol_masked",
    "both_servers",
    "validity",
    "prover",
    "service",
)
PACKAGES = ("numpy", "scipy", "cryptography", "dp-accounting", "multi-freq-ldpy", "pure-ldp")

HEAD = """# Benchmarks

Written by `make bench`; do not edit. Every time is the best of several runs, ours and the other in
one process, and every group of rows in a process of its own. `ratio` is the other's time divided by
ours: 3 means that ours is three times faster, 0.5 that it reaches half of a limit. On a shared
machine wall times can differ by a factor of two from run to run, so measure on a quiet one.

The rows of GRR and OUE, of proofs ("prove", "verify", "proven"), of random elements and of both
servers are CPU times of one thread, taken in turns with the other; those "in JavaScript" are CPU
times of the processes. Those of a "whole process" are medians of seven CPU times of processes with
warm caches, in turns with a floor: what it takes to import the libraries, or to read and count the
same file without privacy. The last rows are surveys over HTTP with servers as processes, one for
each row unless the note says otherwise; the process that plays all clients shares the cores with
them.

Peers: `dp_accounting` with its grid of 1e-4 and pessimistic estimates, which are its defaults;
multi-freq-ldpy and pure-ldp through their client and aggregator functions. **The reference code of
VDAF is plain Python that is written to be read, not to be fast: being hundreds of times as fast as
that says nothing about a fast Prio3.** A library that people use is beside the rows in JavaScript:
`@divviup/prio3`. All peers run with their defaults unless a row says otherwise.

`taken` is the commit on which a row was measured (with a plus: and changes that were not
committed), the load of the machine (processes that want to run, on so many cores), and the Python:
the reference code of VDAF needs 3.12. Rows with "not taken again" are from an earlier commit than
the others.
"""


def describe_machine() -> dict[str, object]:
    """What the numbers depend on, and nothing that identifies the machine."""
    facts: dict[str, object] = {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
    }
    for package in PACKAGES:
        facts[package] = installed_version(package)
    return facts


def installed_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return MISSING


def rows_of(group: str) -> list[Row]:
    """Run the benchmarks of a group."""
    measured: list[Row] = import_module(group).rows()
    return measured


def measure(group: str) -> list[Row]:
    """Run the benchmarks of a group and print their rows."""
    print(f"benchmarks/{group}.py ...", flush=True)
    # In a process of its own, like a server: what another group has left in memory costs up to a
    # tenth of the time.
    with get_context("spawn").Pool(1) as process:
        measured = process.apply(rows_of, (group,))
    rows = [replace(row, taken=describe_moment()) for row in measured]
    print(markdown(rows), flush=True)
    return rows


def measured_commit() -> str:
    return ask_git("rev-parse", "--short", "HEAD") or "unknown"


def describe_moment() -> str:
    """The commit that is measured, how busy the machine was in the last minute, and the Python."""
    # The results of an earlier run are no change of what is measured.
    changed = ask_git("status", "--porcelain", "--", "../src", "*.py", "*.mjs")
    commit = measured_commit() + ("+" if changed else "")
    return f"commit {commit}, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}"


def keep(row: Row) -> Row:
    """A row of an earlier run, marked unless that was on the same commit."""
    if AGAIN in row.taken or row.taken.startswith(f"commit {measured_commit()},"):
        return row
    return replace(row, taken=f"{row.taken}; {AGAIN}")


def main(named: Sequence[str]) -> None:
    if unknown := set(named) - set(GROUPS):
        names = ", ".join(sorted(unknown))
        sys.exit(f"no benchmarks called {names}: choose from {', '.join(GROUPS)}")
    last: dict[str, Any] = {"machine": {}, "rows": []}
    if named:
        last = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows: list[tuple[str, Row]] = []
    for group in GROUPS:
        if named and group not in named:
            kept = [keep(Row.from_dict(row)) for row in last["rows"] if row["group"] == group]
        else:
            kept = measure(group)
        rows += [(group, row) for row in kept]
    facts = dict(last["machine"])
    for name, value in describe_machine().items():
        # A package that is missing now was there when the rows that stay were measured.
        if value != MISSING or name not in facts:
            facts[name] = value
    write(facts, rows)


def write(facts: dict[str, object], rows: list[tuple[str, Row]]) -> None:
    machine = ", ".join(f"{name} {value}" for name, value in facts.items())
    table = markdown(row for _, row in rows)
    page = f"{HEAD}\nMachine: {machine}.\n\n{table}\n"
    (HERE / "RESULTS.md").write_text(page, encoding="utf-8")
    results = {"machine": facts, "rows": [{"group": group} | row.as_dict() for group, row in rows]}
    RESULTS.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
