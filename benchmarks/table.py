"""One row of the benchmark table, and how rows are timed and printed."""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent
COLUMNS = ("what", "ours", "beside it", "its time", "ratio", "note", "taken")


@dataclass(frozen=True, slots=True)
class Row:
    """Ours and another way of doing the same, timed in one run.

    `other` is "-" if nothing else does the same; `other_seconds` is None if it did not run. `taken`
    says on which commit and at which load the row was measured.
    """

    name: str
    ours_seconds: float
    other: str
    other_seconds: float | None
    note: str = ""
    taken: str = ""

    @property
    def ratio(self) -> float | None:
        """Above 1: so many times faster than the other. Below 1: so much of a limit is reached."""
        return None if self.other_seconds is None else self.other_seconds / self.ours_seconds

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "ours_seconds": self.ours_seconds,
            "other": self.other,
            "other_seconds": self.other_seconds,
            "ratio": self.ratio,
            "note": self.note,
            "taken": self.taken,
        }

    @classmethod
    def from_dict(cls, known: dict[str, Any]) -> "Row":
        return cls(**{column.name: known[column.name] for column in fields(cls)})

    def cells(self) -> tuple[str, ...]:
        missing = "-" if self.other == "-" else "not run"
        other = missing if self.other_seconds is None else seconds(self.other_seconds)
        ratio = "-" if self.ratio is None else f"{self.ratio:.3g}"
        ours = seconds(self.ours_seconds)
        return self.name, ours, self.other, other, ratio, self.note, self.taken


def best_of(
    work: Callable[[], object],
    *,
    most: int = 15,
    budget: float = 2.0,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Shortest of up to `most` runs within about `budget` seconds.

    At least two, because the first one may warm caches.
    """
    times: list[float] = []
    while len(times) < 2 or (len(times) < most and sum(times) < budget):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def in_turns(
    ours: Callable[[], object], other: Callable[[], object], *, rounds: int = 5
) -> tuple[float, float]:
    """Best CPU time of each (both on one thread), measured in turns.

    Not wall time: on a busy machine a run of 1 ms slips through between interruptions and one of
    100 ms never does, so the best wall times would flatter the faster of the two.
    """
    cpu = time.process_time
    pairs = [
        (
            best_of(ours, most=5, budget=0.2, clock=cpu),
            best_of(other, most=2, budget=0.2, clock=cpu),
        )
        for _ in range(rounds)
    ]
    return min(mine for mine, _ in pairs), min(theirs for _, theirs in pairs)


def processes_in_turns(
    *commands: Sequence[str], settings: Mapping[str, str], rounds: int = 7
) -> list[float]:
    """Median CPU time of each command as a process of its own, with all its threads, in turns.

    One round before fills the caches of files and compiled modules, and does not count.
    """
    # As an installed package: its modules are compiled once.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **settings}
    times: list[list[float]] = [[] for _ in commands]
    for number in range(rounds + 1):
        for command, taken in zip(commands, times, strict=True):
            start = _ended_children()
            subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
            if number:
                taken.append(_ended_children() - start)
    return [median(taken) for taken in times]


def _ended_children() -> float:
    """CPU time of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def seconds(value: float) -> str:
    """A duration with three significant digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def markdown(rows: Iterable[Row]) -> str:
    """The rows as a Markdown table."""
    lines = [COLUMNS, tuple("---" for _ in COLUMNS), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def ask_git(*question: str, folder: Path = HERE) -> str:
    """What git answers about a folder; nothing if it is no checkout."""
    command = ["git", "-C", str(folder), *question]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
