"""A release reaches somebody: files are checked before noise is drawn, and what was drawn is printed or kept.

Noise that was drawn has spent privacy, whether or not anybody read the result. So no later mishap may lose it: each
way out is tried, and where neither standard output nor --out took the result, it is kept in a file of its own.
"""

import csv
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.figures import check_figure


@dataclass(frozen=True)
class Targets:
    """Files to write: JSON, CSV, a figure."""

    out: Path | None = None
    csv: Path | None = None
    plot: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """Those asked for."""
        return [each for each in (self.out, self.csv, self.plot) if each is not None]

    def check(self, table: Path | None = None) -> None:
        """Refuse now what could not be written later; so far no noise is drawn."""
        if self.plot is not None:
            check_figure(self.plot)
        for path in self.paths:
            check_writable(path)
        taken = [each.resolve() for each in (*self.paths, *([] if table is None else [table]))]
        if len(set(taken)) < len(taken):
            raise ParameterError("two of the files are one and the same: give each its own name")
        if sys.stdout is None and self.out is None:
            raise ParameterError("standard output is closed, so the result would be lost: give --out FILE")


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be made or written."""
    folder = path.parent
    problem = None
    if not folder.is_dir():
        problem = "no such file or directory"
    elif path.is_dir():
        problem = "is a directory"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        problem = "permission denied"
    if problem is not None:
        raise FaircountError(f"{path} cannot be written: {problem}")


def deliver(said: dict[str, Any], show: Callable[[], None], targets: Targets, draw: Callable[[Path], None]) -> None:
    """Print the result and write the files; every problem is told at the end, and none of them stops the others."""
    unprinted = _problem(_print, show)
    unwritten = None if targets.out is None else _problem(_json, said, targets.out)
    problems = [unprinted, unwritten]
    if unprinted and (targets.out is None or unwritten):
        problems.append(_kept(said))
    problems += [] if targets.csv is None else [_problem(_csv, said, targets.csv)]
    problems += [] if targets.plot is None else [_problem(draw, targets.plot)]
    told = [each for each in problems if each is not None]
    if told:
        raise FaircountError("; ".join(told))


def _problem(way: Callable[..., None], *arguments: object) -> str | None:
    try:
        way(*arguments)
    except FaircountError as problem:
        return str(problem)
    return None


def _print(show: Callable[[], None]) -> None:
    """Show the result; a pipe that was closed or a full disk behind standard output is a problem like any other."""
    try:
        show()
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as problem:
        reason = (problem.strerror or "unknown reason").lower()
    except SystemExit:  # rich ends the program when a pipe is closed
        reason = "broken pipe"
    else:
        return
    sys.stdout = io.StringIO()  # Python flushes it once more at the end
    raise FaircountError(f"standard output cannot be written: {reason}")


def _kept(said: dict[str, Any]) -> str:
    """Keep the result in a new file here, or where temporary files go."""
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(prefix="faircount-result-", suffix=".json", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8") as target:
                json.dump(said, target, indent=2, allow_nan=False)
        except OSError:
            continue
        return f"the result is kept in {name}"
    return f"the result is {json.dumps(said, allow_nan=False)}"


def _json(said: dict[str, Any], path: Path) -> None:
    with _writing(path) as target:
        json.dump(said, target, indent=2, ensure_ascii=False, allow_nan=False)
        target.write("\n")


def _csv(said: dict[str, Any], path: Path) -> None:
    marked = (["simulation"], ["true"]) if said.get("simulation") else ([], [])
    with _writing(path) as target:
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(["item", "estimate", "low", "high", "consistent", *marked[0]])
        for row, whole in zip(said["estimates"], said["consistent"], strict=True):
            writer.writerow([row["item"], row["estimate"], row["low"], row["high"], whole, *marked[1]])


@contextmanager
def _writing(path: Path) -> Iterator[Any]:
    try:
        with path.open("w", encoding="utf-8", newline="") as target:
            yield target
    except OSError as problem:
        raise FaircountError(f"{path} cannot be written: {(problem.strerror or 'unknown reason').lower()}") from None
