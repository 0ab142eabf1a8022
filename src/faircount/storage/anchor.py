"""An anchor in a folder: one small file per name, changed under a lock, never part of a backup of the database.

Put the folder where a restore of the server does not reach: another disk, or another machine's. Several workers of one
server share it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from faircount.core.errors import StorageError
from faircount.core.files import not_written, private_folder, write_durably
from faircount.protocol.roles.anchor import NOTHING, Anchor


@dataclass(frozen=True)
class FolderAnchor(Anchor):
    """Values in files.

    path: the folder; made if it is not there
    """

    path: Path

    def __post_init__(self) -> None:
        private_folder(self.path)

    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Compare and set; on the disk when this returns."""
        with self._locked():
            standing = self.standing(name)
            if standing not in (before, after):
                return False
            if standing != after:
                write_durably(self._file(name), after)
            return True

    def standing(self, name: bytes) -> bytes:
        """The value, or `NOTHING`."""
        try:
            found = self._file(name).read_bytes()
        except FileNotFoundError:
            return NOTHING
        if len(found) != len(NOTHING):
            raise StorageError("a value of the anchor is damaged: stop, and find out why")
        return found

    def _file(self, name: bytes) -> Path:
        return self.path / f"{sha256(name).hexdigest()}.value"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from fcntl import LOCK_EX, flock

        lock = self.path / "lock"
        try:
            held = lock.open("ab")
        except OSError as problem:
            raise not_written(lock, problem) from None
        with held:
            flock(held, LOCK_EX)
            yield
