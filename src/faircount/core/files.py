"""Files that must not be lost, truncated or read by others.

A file is written under a temporary name, forced to the disk and then renamed, so that a crash at
any moment leaves the complete old file or the complete new one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from pathlib import Path

from faircount.core.errors import DiskFullError, FaircountError, RefusedError, StorageError

PRIVATE = 0o600
"""File mode: only the owner can read and write."""


def write_durably(path: Path, data: bytes, mode: int = PRIVATE) -> None:
    """Replace the contents of a file; after any failure it holds the old bytes or the new ones."""
    fresh = path.with_name(path.name + ".new")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(handle, "wb") as target:
            # The mode given to `open` counts only for a new file. A file that an earlier crash
            # left behind may be readable by others, so it is closed before bytes are written.
            os.fchmod(target.fileno(), mode)
            target.write(data)
            target.flush()
            # The order matters: were the name replaced before the bytes are on the disk, a power
            # failure could leave the new name with an empty file.
            os.fsync(target.fileno())
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        fresh.unlink(missing_ok=True)
        raise write_error(path, problem) from None


def write_error(path: Path, problem: OSError) -> StorageError:
    """Return the error to raise for a file that could not be written."""
    kind = DiskFullError if problem.errno in (ENOSPC, EDQUOT) else StorageError
    return kind(f"{path} cannot be written: {describe_os_error(problem)}")


def sync_folder(folder: Path) -> None:
    """Force a folder to the disk; only then is a new name in it safe."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(path: Path, hint: str) -> bytes:
    """Return the bytes of a file; `hint` says what a missing file is and how to get it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FaircountError(f"there is no {path}: {hint}") from None
    except OSError as problem:
        raise FaircountError(f"{path} cannot be read: {describe_os_error(problem)}") from None


def make_private_folder(path: Path) -> Path:
    """Create a folder that only its owner can enter; an existing one stays as it is."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise FaircountError(f"{path} cannot be made: {describe_os_error(problem)}") from None
    return path


def make_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read; an existing one is closed to others."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE)
        try:
            # check: private-file - others on the machine read a file in a folder that is open
            os.fchmod(handle, PRIVATE)
        finally:
            os.close(handle)
    except OSError as problem:
        raise write_error(path, problem) from None


@contextmanager
def lock_file(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep other processes on this machine from working with a file at the same time.

    shared: others may work with it too if they say the same

    The kernel releases the lock when the process ends, however it ends: none is left over by a
    crash.
    """
    try:
        from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
    except ImportError:
        raise RefusedError("this system has no file locks: use a Unix machine") from None
    # The lock is on a file of its own: `write_durably` replaces the file itself, and a lock on it
    # would then belong to the old contents that nobody opens any more.
    lock = path.with_name(path.name + ".lock")
    try:
        handle = lock.open("ab")
    except OSError as problem:
        raise FaircountError(f"{lock} cannot be written: {describe_os_error(problem)}") from None
    with handle:
        try:
            flock(handle, (LOCK_SH if shared else LOCK_EX) | LOCK_NB)
        except BlockingIOError:
            raise RefusedError(
                f"another program works with {path} now: wait until it has ended"
            ) from None
        except OSError as problem:
            message = f"{lock} cannot be locked: {describe_os_error(problem)}"
            raise FaircountError(message) from None
        yield


def describe_os_error(problem: OSError) -> str:
    """Return the operating system's reason for an error, to be put into a sentence."""
    return (problem.strerror or "unknown reason").lower()
