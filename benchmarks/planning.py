"""`faircount plan` and `faircount run` as people wait for them: whole processes, started cold.

Medians of CPU times, in turns with a floor: a process that does only what cannot be left out. On a
quiet machine people wait about as long.
"""

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from table import Row, processes_in_turns

ITEMS = 12
ROWS = 1_000_000

PLANS = (
    (1000, ""),
    (1000, "--floor 60 --target-error 0.01"),
    (1000, "--releases 12"),
    (10**6, ""),
    (10**6, "--floor 1000 --target-error 0.0001"),
    (10**6, "--releases 12"),
)

SOURCE = str(Path(__file__).parents[1] / "src")
SETTINGS = {
    "PYTHONPATH": os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")]),
    # As plan and run set it for themselves: the floors must not wait for threads without work.
    "OPENBLAS_NUM_THREADS": "1",
}

# A plan computes with NumPy alone; SciPy is not needed. Click reads options, rich prints.
LIBRARIES = "import click, numpy, rich.console, rich.table"
HELP_FLOOR = "import click"


def rows() -> list[Row]:
    """Plans of both sizes, then a histogram of a million rows."""
    return [*(plan_row(users, more) for users, more in PLANS), help_row(), *run_rows()]


def faircount(*arguments: str) -> list[str]:
    """The command as a process of its own."""
    return [sys.executable, "-m", "faircount", *arguments]


def answer_of(command: list[str]) -> dict[str, object]:
    """What the command says in JSON."""
    done = subprocess.run(
        [*command, "--json"], env=os.environ | SETTINGS, capture_output=True, check=True
    )
    said: dict[str, object] = json.loads(done.stdout)
    return said


def beside(what: str, command: list[str], other: str, floor: list[str], note: str = "") -> Row:
    """A row of the command and its floor, in turns."""
    ours, least = processes_in_turns(command, floor, settings=SETTINGS)
    return Row(f"{what}, whole process", ours, f"{other}, whole process", least, note)


def plan_row(users: int, more: str) -> Row:
    question = f"--users {users} --items {ITEMS} --epsilon 1 --delta 1e-6 {more}"
    command = faircount("plan", *question.split())
    what = f"plan, n = {users:,}, N = {ITEMS}, (1, 1e-6){' ' + more if more else ''}"
    floor = [sys.executable, "-c", LIBRARIES]
    note = f"recommends {answer_of(command)['recommended']}"
    return beside(what, command, "importing NumPy, click and rich", floor, note)


def help_row() -> Row:
    """Help needs no NumPy."""
    floor = [sys.executable, "-c", HELP_FLOOR]
    return beside("faircount --help", faircount("--help"), "importing click", floor)


def run_rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        answers = np.random.default_rng(1).integers(ITEMS, size=ROWS)
        path.write_text(
            "id,item\n" + "\n".join(f"{i},item {x}" for i, x in enumerate(answers)) + "\n"
        )
        return [run_row(path, name) for name in ("auto", "decoys", "oue")]


def run_row(path: Path, mechanism: str) -> Row:
    items = ",".join(f"item {j}" for j in range(ITEMS))
    asked = ["--column", "item", "--epsilon", "1", "--domain", items, "--mechanism", mechanism]
    command = faircount("run", str(path), *asked)
    said = answer_of(command)
    what = f"run --mechanism {mechanism}, {said['n']:,} rows of CSV, N = {ITEMS}"
    # What the machine can do without privacy.
    peer = f"pyarrow {version('pyarrow')}: read_csv and a NumPy count"
    floor = [sys.executable, "-c", COUNT_ALONE, str(path)]
    return beside(what, command, peer, floor, str(said["mechanism"]))


# Dictionary-encoded, and without pyarrow's conversion to NumPy, which imports pandas.
COUNT_ALONE = """
import sys
import numpy as np
import pyarrow as pa
from pyarrow import csv
items = pa.dictionary(pa.int32(), pa.string())
options = csv.ConvertOptions(include_columns=["item"], column_types={"item": items})
column = csv.read_csv(sys.argv[1], convert_options=options)["item"]
codes = column.unify_dictionaries().combine_chunks().indices
print(np.bincount(np.frombuffer(codes.buffers()[1], dtype=np.int32)))
"""


if __name__ == "__main__":
    for row in rows():
        print(row)
