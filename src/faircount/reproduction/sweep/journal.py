"""The resume file of a sweep: finished blocks, one JSON line each.

The first line identifies the sweep, and the file gets its final name only with that line in it.
Every further line holds a block behind a checksum. A line counts when its checksum fits and its
end of line is there; anything behind the last good line was left by a crash. It is cut off when the
file is opened again, and those blocks are computed again, with the same numbers.
"""

import base64
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import InputError
from faircount.reproduction.sweep.blocks import Block, Job, encode_point, task_name

FORMAT = "faircount sweep 2"

# A first line longer than this was not written by a sweep, so the rest of it need not be read.
MAX_HEADER_BYTES = 10_000


def describe_sweep(jobs: Sequence[Job]) -> dict[str, str | int]:
    """What two sweeps must have in common to share a resume file."""
    points = b"\n".join(encode_point(job.point) for job in jobs if job.number == 0)
    # The same runs in other blocks have other generators, hence other numbers.
    sizes = b" ".join(b"%d" % job.runs for job in jobs)
    runs_at_point: Counter[int] = Counter()
    for job in jobs:
        runs_at_point[job.position] += job.runs
    return {
        "format": FORMAT,
        "task": task_name(jobs[0].task),
        "seed": str(jobs[0].seed),
        "runs": max(runs_at_point.values()),
        # Another version of NumPy may draw other numbers from the same seed.
        "numpy": np.__version__,
        "points": hashlib.sha256(points).hexdigest(),
        "blocks": hashlib.sha256(sizes).hexdigest(),
    }


class Journal:
    """The finished blocks of one sweep: read those that are there, then append new ones."""

    def __init__(self, path: Path, jobs: Sequence[Job]) -> None:
        self._sizes = {(job.position, job.number): job.runs for job in jobs}
        header = describe_sweep(jobs)
        if path.exists():
            _require_header(path, header)
        else:
            _create(path, header)
        self._file = path.open("r+b")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read_blocks(self) -> Iterator[Block]:
        """Yield the finished blocks, then cut the file after the last good one, ready for more."""
        self._file.readline()
        while True:
            start = self._file.tell()
            block = _decode_block(self._file.readline())
            # A block of another size would have been drawn from the generator differently.
            if block is None or self._sizes.get((block.position, block.number)) != block.runs:
                break
            yield block
        self._file.seek(start)
        self._file.truncate()

    def append(self, block: Block) -> None:
        """Write a block; once this returns, killing the process does not lose it."""
        self._file.write(_encode_block(block))
        # Handed to the operating system, which survives this process. A power cut may lose blocks,
        # which the checksums then show.
        self._file.flush()


def _create(path: Path, header: dict[str, str | int]) -> None:
    """Write the first line under another name, so that a crash leaves no file without it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps two sweeps apart that start at the same time.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    unfinished.write_bytes(json.dumps(header).encode() + b"\n")
    unfinished.replace(path)


def _require_header(path: Path, header: dict[str, str | int]) -> None:
    with path.open("rb") as file:
        try:
            found = json.loads(file.readline(MAX_HEADER_BYTES))
        except ValueError:
            found = None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(
            f"{path.name} is not the resume file of a sweep: choose another name. "
            "The file was not changed"
        )
    differences = [name for name in header if found.get(name) != header[name]]
    if differences:
        listed = ", ".join(f"{name} ({found.get(name)} there)" for name in differences)
        raise InputError(
            f"{path.name} belongs to another sweep, with different {listed}: "
            "use the same ones, or another file. The file was not changed"
        )


def _encode_block(block: Block) -> bytes:
    """A line with a checksum and the block; its numbers keep their exact bits."""
    arrays = {name: _encode_array(array) for name, array in block.values.items()}
    body = json.dumps([block.position, block.number, arrays]).encode()
    return _checksum(body) + b" " + body + b"\n"


def _decode_block(line: bytes) -> Block | None:
    """The block in a line; None if the line is cut short or damaged."""
    checksum, _, body = line.partition(b" ")
    if not body.endswith(b"\n") or _checksum(body[:-1]) != checksum:
        return None
    position, number, arrays = json.loads(body)
    return Block(position, number, {name: _decode_array(text) for name, text in arrays.items()})


def _encode_array(array: Floats) -> str:
    return base64.b64encode(array.astype("<f8").tobytes()).decode()


def _decode_array(text: str) -> Floats:
    return np.frombuffer(base64.b64decode(text), dtype="<f8").astype(np.float64)


def _checksum(body: bytes) -> bytes:
    """Truncated SHA-256: it detects corruption, and is not a MAC."""
    return hashlib.sha256(body).hexdigest()[:16].encode()
