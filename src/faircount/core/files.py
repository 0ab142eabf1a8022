"""Files that must not be lost, cut short or read by others: written whole, forced to the disk, put in place at once."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path

from faircount.core.errors import DiskFullError, FaircountError, RefusedError, StorageError

PRIVATE = 0o600
"""Readable by its owner alone."""


def write_durably(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Put these bytes under this name: whatever fails, there is the old file or the new one, on the disk."""
    fresh = path.with_name(path.name + ".new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as target:
            os.fchmod(target.fileno(), mode)  # what an earlier crash left there may have had another one
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        fresh.unlink(missing_ok=True)
        raise not_written(path, problem) from None


def not_written(path: Path, problem: OSError) -> StorageError:
    """The error of a file that could not be written; a full disk has one of its own."""
    kind = DiskFullError if problem.errno in (ENOSPC, EDQUOT) else StorageError
    return kind(f"{path} cannot be written: {reason(problem)}")


def sync_folder(folder: Path) -> None:
    """Force a folder to the disk: a new name in it is safe only then."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: Path, what: str) -> bytes:
    """The bytes of a file that should be there; `what` says what it holds and where it comes from."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FaircountError(f"there is no {path}: {what}") from None
    except OSError as problem:
        raise FaircountError(f"{path} cannot be read: {reason(problem)}") from None


def private_folder(path: Path) -> Path:
    """A folder that its owner alone can enter; one that is there keeps what is in it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise FaircountError(f"{path} cannot be made: {reason(problem)}") from None
    return path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Nobody else on this machine works with this file meanwhile; a lock of a process that dies is gone with it."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        raise RefusedError("this system has no file locks: use a Unix machine") from None
    lock = path.with_name(path.name + ".lock")
    try:
        with lock.open("ab") as held:
            try:
                flock(held, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                raise RefusedError(f"another program works with {path} now: wait until it has ended") from None
            yield
    except OSError as problem:
        raise FaircountError(f"{lock} cannot be written: {reason(problem)}") from None


def reason(problem: OSError) -> str:
    """Why the system refused, in its words."""
    return (problem.strerror or "unknown reason").lower()
