"""Make sure that a result reaches somebody.

Once noise is drawn, privacy is spent, whether or not anybody reads the result, so a failure must
not lose it. Files are therefore checked before noise is drawn. Afterwards every output is tried
even if another one fails, and if neither standard output nor --out took the result, it is saved in
a file of its own.
"""

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

from faircount.core.csv_cells import write_csv
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
        """The files that were asked for."""
        return [path for path in (self.out, self.csv, self.plot) if path is not None]

    def check(self, table: Path | None = None) -> None:
        """Refuse files that could not be written later; no noise is drawn yet."""
        # Also whether matplotlib is installed: a missing package would be noticed after the draw.
        if self.plot is not None:
            check_figure(self.plot)
        for path in self.paths:
            check_writable(path)
        named = list(self.paths)
        if table is not None:
            named.append(table)
        # Resolved, because ./answers.csv is answers.csv: the CSV of the result must not overwrite
        # the table.
        if len({path.resolve() for path in named}) < len(named):
            raise ParameterError("two of the files are the same: give each its own name")
        if sys.stdout is None and self.out is None:
            raise ParameterError(
                "standard output is closed, so the result would be lost: give --out FILE"
            )


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be created or written."""
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


def deliver(
    result: dict[str, Any],
    show: Callable[[], None],
    targets: Targets,
    draw: Callable[[Path], None],
) -> None:
    """Print the result and write the files, and report all problems at the end."""
    not_printed = _try(_print, show)
    problems = [not_printed]
    not_written = None
    if targets.out is not None:
        not_written = _try(_write_json, result, targets.out)
        problems.append(not_written)
    if not_printed and (targets.out is None or not_written):
        problems.append(_save_elsewhere(result))
    # CSV and figure come last: they lack the guarantee, so they are no substitute for the result.
    if targets.csv is not None:
        problems.append(_try(_write_csv, result, targets.csv))
    if targets.plot is not None:
        problems.append(_try(draw, targets.plot))
    message = "; ".join(filter(None, problems))
    if message:
        raise FaircountError(message)


def _try(action: Callable[..., None], *arguments: object) -> str | None:
    """Run an action and return the message of its error."""
    try:
        action(*arguments)
    except FaircountError as problem:
        return str(problem)
    return None


def _print(show: Callable[[], None]) -> None:
    """Show the result, and report a closed pipe or a full disk like any other problem."""
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
    # Python flushes standard output once more when it exits, and would fail a second time.
    sys.stdout = io.StringIO()
    raise FaircountError(f"standard output cannot be written: {reason}")


def _save_elsewhere(result: dict[str, Any]) -> str:
    """Save the result in a new file in this folder, or where temporary files go."""
    # The current folder comes first, because that is where somebody will look.
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(prefix="faircount-result-", suffix=".json", dir=folder)
            with os.fdopen(handle, "w", encoding="utf-8") as target:
                json.dump(result, target, indent=2, allow_nan=False)
        except OSError:
            continue
        return f"the result is kept in {name}"
    # The error message is the last way out.
    return f"the result is {json.dumps(result, allow_nan=False)}"


def _write_json(result: dict[str, Any], path: Path) -> None:
    with _open_for_writing(path) as target:
        json.dump(result, target, indent=2, ensure_ascii=False, allow_nan=False)
        target.write("\n")


def _write_csv(result: dict[str, Any], path: Path) -> None:
    headings = ["item", "estimate", "low", "high", "consistent"]
    rows = []
    for estimate, consistent in zip(result["estimates"], result["consistent"], strict=True):
        row = [estimate["item"], estimate["estimate"], estimate["low"], estimate["high"]]
        rows.append([*row, consistent])
    # A column of its own, because somebody may cut off or skip a line of comment.
    if result.get("simulation"):
        headings.append("simulation")
        for row in rows:
            row.append("true")
    with _open_for_writing(path) as target:
        target.write(write_csv(headings, rows).decode())


@contextmanager
def _open_for_writing(path: Path) -> Iterator[Any]:
    try:
        # Without newline translation: a CSV file has the same bytes on every system.
        with path.open("w", encoding="utf-8", newline="") as target:
            yield target
    except OSError as problem:
        raise FaircountError(
            f"{path} cannot be written: {(problem.strerror or 'unknown reason').lower()}"
        ) from None
