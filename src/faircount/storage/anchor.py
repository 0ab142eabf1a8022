"""An anchor in a folder: one small file per value, changed under a file lock.

The anchor remembers how far a server has come, so that a server whose database was restored from a
backup notices that it has signed something it no longer knows. It therefore must not be part of
that backup: put the folder on another disk or another machine. All workers of one server share it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import StorageError
from faircount.core.files import make_private_folder, write_durably, write_error
from faircount.protocol.roles.anchor import UNSET, Anchor


@dataclass(frozen=True)
class FolderAnchor(Anchor):
    """An anchor whose values are files.

    path: the folder, which is created if it does not exist
    """

    path: Path

    def __post_init__(self) -> None:
        make_private_folder(self.path)

    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Compare and set. The new value is on disk when this returns True."""
        with self._lock():
            current = self.current_value(name)
            # After a crash the same step is made again: then the value is already `after`.
            # check: stored-anchor-compares - a server that was rolled back moves on
            if current not in (before, after):
                return False
            if current != after:
                write_durably(self._file(name), after)
            return True

    def current_value(self, name: bytes) -> bytes:
        """Return the value of this name, or `UNSET` if there is none."""
        try:
            value = self._file(name).read_bytes()
        except FileNotFoundError:
            return UNSET
        # check: damaged-anchor - "no value" would allow any rollback
        if len(value) != len(UNSET):
            raise StorageError(
                "a file of the anchor is damaged: stop the server and find out why before you go on"
            )
        return value

    def identity(self) -> str | None:
        """Return the random name of this anchor, or None if it is new or was emptied."""
        try:
            return self._identity_file.read_text(encoding="ascii")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            raise StorageError("the file of the anchor's identity cannot be read") from None

    def create_identity(self) -> str:
        """Return the name of this anchor; a new one is on disk when this returns."""
        # Under the lock: of several workers that start at once, one names the anchor.
        with self._lock():
            known = self.identity()
            if known is not None:
                return known
            fresh = SystemEntropy().bytes(16).hex()
            write_durably(self._identity_file, fresh.encode())
            return fresh

    @property
    def _identity_file(self) -> Path:
        return self.path / "identity"

    def _file(self, name: bytes) -> Path:
        # Names contain survey ids and populations; a hash is safe as a file name.
        return self.path / f"{sha256(name).hexdigest()}.value"

    @contextmanager
    def _lock(self) -> Iterator[None]:
        from fcntl import LOCK_EX, flock

        # The lock has a file of its own: `write_durably` replaces the file of a value.
        path = self.path / "lock"
        try:
            lock_file = path.open("ab")
        except OSError as problem:
            raise write_error(path, problem) from None
        # The system releases the lock also if this process is killed.
        with lock_file:
            flock(lock_file, LOCK_EX)
            yield
