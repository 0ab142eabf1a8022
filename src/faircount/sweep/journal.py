"""What a sweep has finished, on disk: one line of JSON per block, behind a line that says which sweep it is.

The file appears whole with its first line; a block's line counts once its end of line is there. Whatever a crash leaves
behind that is cut off when the file is opened again, and done again with the same numbers.
"""

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from faircount.core.errors import InputError
from faircount.sweep.blocks import Block, Job, canonical, task_name

FORMAT = "faircount sweep 2"


def identity(jobs: Sequence[Job]) -> dict[str, str | int]:
    """What two sweeps must have in common to share a file."""
    points = hashlib.sha256(b"\n".join(canonical(job.point) for job in jobs if job.number == 0)).hexdigest()
    blocks = hashlib.sha256(b" ".join(b"%d" % job.runs for job in jobs)).hexdigest()
    head: dict[str, str | int] = {"format": FORMAT, "task": task_name(jobs[0].task), "seed": str(jobs[0].seed)}
    by_point: Counter[int] = Counter()
    for job in jobs:
        by_point[job.position] += job.runs
    return head | {"runs": max(by_point.values()), "numpy": np.__version__, "points": points, "blocks": blocks}


class Journal:
    """Finished blocks of one sweep: read those that are there, then append new ones."""

    def __init__(self, path: Path, jobs: Sequence[Job]) -> None:
        self._sizes = {(job.position, job.number): job.runs for job in jobs}
        if not path.exists():
            _create(path, identity(jobs))
        else:
            _compare(path, identity(jobs))
        self._file = path.open("r+b")

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def finished(self) -> Iterator[Block]:
        """Blocks that were finished before; then the file is cut after the last good one, ready for more."""
        self._file.readline()
        while True:
            start = self._file.tell()
            block = _block_of(self._file.readline())
            if block is None or self._sizes.get((block.position, block.number)) != block.runs:
                break
            yield block
        self._file.seek(start)
        self._file.truncate()

    def append(self, block: Block) -> None:
        """Keep a block: once this returns, a killed process does not lose it."""
        self._file.write(_line_of(block))
        self._file.flush()


def _create(path: Path, head: dict[str, str | int]) -> None:
    """Under its final name the file has its first line from the start."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    unfinished.write_bytes(json.dumps(head).encode() + b"\n")
    unfinished.replace(path)


def _compare(path: Path, head: dict[str, str | int]) -> None:
    with path.open("rb") as file:
        try:
            found = json.loads(file.readline(10_000))
        except ValueError:
            found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"{path.name} is not a resume file of a sweep: choose another name; it was left as it is")
    differing = [f"{name} ({found.get(name)} there)" for name in head if found.get(name) != head[name]]
    if differing:
        raise InputError(
            f"{path.name} belongs to another sweep, with different {', '.join(differing)}: "
            "give the same ones, or another file; it was left as it is"
        )


def _line_of(block: Block) -> bytes:
    """The block with its numbers' exact bits, and a checksum in front."""
    coded = {name: base64.b64encode(each.astype("<f8").tobytes()).decode() for name, each in block.values.items()}
    body = json.dumps([block.position, block.number, coded]).encode()
    return hashlib.sha256(body).hexdigest()[:16].encode() + b" " + body + b"\n"


def _block_of(line: bytes) -> Block | None:
    """The block of a line; None if the line is cut short or damaged."""
    check, _, body = line.partition(b" ")
    if not body.endswith(b"\n") or hashlib.sha256(body[:-1]).hexdigest()[:16].encode() != check:
        return None
    position, number, coded = json.loads(body)
    values = {
        name: np.frombuffer(base64.b64decode(each), dtype="<f8").astype(np.float64) for name, each in coded.items()
    }
    return Block(position, number, values)
