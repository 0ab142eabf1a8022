"""Keys of rows, in a folder outside the database and its backups: what is destroyed here can be read nowhere.

Every survey has a key for its live state and another one for what is left after its last word. Scrubbing a survey is:
write what is left under the second key, commit, destroy the first. Whatever the database, its log or a backup still
holds under the first is noise from then on, unless somebody copied the folder: do not back it up with the database.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import StorageError
from faircount.core.files import private_folder, sync_folder, write_durably

KEY = 32
NONCE = 12


class RowKey:
    """Seals and opens values, each bound to its place."""

    __slots__ = ("_cipher",)

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(secret)

    def seal(self, place: bytes, value: bytes) -> bytes:
        """The value as it is stored at this place."""
        nonce = os.urandom(NONCE)
        return nonce + self._cipher.encrypt(nonce, value, place)

    def open(self, place: bytes, sealed: bytes) -> bytes:
        """The value that was sealed for this place."""
        try:
            return self._cipher.decrypt(sealed[:NONCE], memoryview(sealed)[NONCE:], place)  # no copy: it can be long
        except (InvalidTag, ValueError):
            raise StorageError("a stored row was changed, or belongs to another key: restore a copy") from None


def survey_key(survey: bytes, generation: int) -> str:
    """The name of a survey's key: generation 0 while it is live, 1 after its last word."""
    return f"survey-{survey.hex()}-{generation}"


def offer_key(offer: bytes) -> str:
    """The name of the key under which an offer waits for its survey."""
    return f"offer-{offer.hex()}"


@dataclass(frozen=True)
class KeyFolder:
    """One file per key, readable by this server alone.

    path: the folder; made if it is not there
    """

    path: Path

    def __post_init__(self) -> None:
        private_folder(self.path)

    def create(self, name: str) -> RowKey:
        """The key of this name, made and on the disk if there was none."""
        if not self.has(name):
            write_durably(self._file(name), SystemEntropy().bytes(KEY))
        return self.get(name)

    def get(self, name: str) -> RowKey:
        """The key of this name, which must be there."""
        try:
            secret = self._file(name).read_bytes()
        except OSError:
            raise StorageError(f"the key {name} is not in the folder of keys: its rows cannot be read") from None
        if len(secret) != KEY:
            raise StorageError(f"the key {name} is damaged: its rows cannot be read")
        return RowKey(secret)

    def has(self, name: str) -> bool:
        """Whether there is such a key."""
        return self._file(name).exists()

    def names(self) -> list[str]:
        """All keys."""
        return sorted(each.stem for each in self.path.glob("*.key"))

    def destroy(self, name: str) -> None:
        """Overwrite and delete a key, for good; one that is gone already is fine."""
        file = self._file(name)
        try:
            with file.open("r+b") as target:
                target.write(bytes(KEY))
                target.flush()
                os.fsync(target.fileno())
            file.unlink()
        except FileNotFoundError:
            return
        except OSError as problem:
            raise StorageError(f"the key {name} cannot be destroyed: {problem.strerror}") from None
        sync_folder(self.path)

    def _file(self, name: str) -> Path:
        return self.path / f"{name}.key"
