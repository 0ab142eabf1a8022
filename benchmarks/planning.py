"""`faircount plan` and `faircount run` as people wait for them: whole processes, started cold.

CPU times of the processes, so that other work of the machine counts little. On a quiet machine
people wait about as long.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from table import Row, best_of

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


def rows() -> list[Row]:
    """Plans of both sizes, then a histogram of a million rows."""
    return [*(plan_row(users, more) for users, more in PLANS), start_row(), *run_rows()]


def child_cpu() -> float:
    """CPU time of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def faircount(*arguments: str) -> str:
    """Standard output of a process of its own."""
    source = str(Path(__file__).parents[1] / "src")
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        # As an installed package: its modules are compiled once.
        "PYTHONDONTWRITEBYTECODE": "",
    }
    command = [sys.executable, "-m", "faircount", *arguments]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout


def plan_row(users: int, more: str) -> Row:
    line = [
        "plan",
        "--users",
        str(users),
        "--items",
        str(ITEMS),
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        *more.split(),
    ]
    said = json.loads(faircount(*line, "--json"))
    took = best_of(lambda: faircount(*line), most=5, budget=6.0, clock=child_cpu)
    what = f"plan, n = {users:,}, N = {ITEMS}, (1, 1e-6){' ' + more if more else ''}, whole process"
    return Row(what, took, "-", None, f"recommends {said['recommended']}")


def start_row() -> Row:
    """What the interpreter and NumPy take before anything is planned."""
    nothing = [sys.executable, "-c", "import numpy, click"]
    alone = best_of(
        lambda: subprocess.run(nothing, check=True), most=5, budget=3.0, clock=child_cpu
    )
    return Row(
        "faircount --help, whole process",
        best_of(lambda: faircount("--help"), most=5, clock=child_cpu),
        "importing NumPy",
        alone,
    )


def run_rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        answers = np.random.default_rng(1).integers(ITEMS, size=ROWS)
        path.write_text(
            "id,item\n" + "\n".join(f"{i},item {x}" for i, x in enumerate(answers)) + "\n"
        )
        reading = best_of(lambda: count_alone(path), most=5, clock=child_cpu)
        return [run_row(path, name, reading) for name in ("auto", "decoys", "oue")]


def run_row(path: Path, mechanism: str, reading: float) -> Row:
    items = ",".join(f"item {j}" for j in range(ITEMS))
    line = [
        "run",
        str(path),
        "--column",
        "item",
        "--epsilon",
        "1",
        "--domain",
        items,
        "--mechanism",
        mechanism,
    ]
    said = json.loads(faircount(*line, "--json"))
    took = best_of(lambda: faircount(*line), most=4, budget=6.0, clock=child_cpu)
    what = f"run --mechanism {mechanism}, {said['n']:,} rows of CSV, N = {ITEMS}, whole process"
    peer = f"pyarrow {version('pyarrow')}: read_csv and a NumPy count, whole process"
    return Row(what, took, peer, reading, said["mechanism"])


def count_alone(path: Path) -> None:
    """What the machine can do without privacy: pyarrow's reader, and the counts of the items."""
    command = [sys.executable, "-c", COUNT_ALONE, str(path)]
    subprocess.run(command, check=True, capture_output=True)


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
