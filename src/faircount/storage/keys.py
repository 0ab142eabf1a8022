"""Encryption keys of database rows, in a folder outside the database and its backups.

Every survey has two keys: one for what is needed while it runs, and one for what remains after its
final statement. Tables that remain are encrypted under the second key from the beginning. To erase
a survey's live data a server writes the rest of what remains under the second key, commits, and
then destroys the first key. From then on nobody can read what the database, its write-ahead log or
a backup still contains under the first key, unless somebody has copied this folder: do not back it
up together with the database.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import StorageError
from faircount.core.files import make_private_folder, sync_folder, write_durably

KEY = 32
NONCE = 12
OPERATOR = "operator"
"""Name of the file with the operator's long-term key."""


class RowKey:
    """Encrypts and decrypts values (AES-256-GCM), each bound to its place in the database."""

    __slots__ = ("_cipher",)

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(secret)

    def encrypt(self, associated_data: bytes, value: bytes) -> bytes:
        """Encrypt a value; the nonce comes first."""
        # One key encrypts far fewer than 2^32 rows, so random 96-bit nonces do not collide.
        nonce = os.urandom(NONCE)
        # The associated data name the place of the value: whoever can write to the database cannot
        # swap two rows.
        return nonce + self._cipher.encrypt(nonce, value, associated_data)

    def decrypt(self, associated_data: bytes, encrypted: bytes) -> bytes:
        """Decrypt a value that was encrypted with the same associated data."""
        try:
            # A view instead of a slice: the value can be long, and is not copied.
            return self._cipher.decrypt(
                encrypted[:NONCE], memoryview(encrypted)[NONCE:], associated_data
            )
        except (InvalidTag, ValueError):
            raise StorageError(
                "a stored row was changed or belongs to another key: restore a backup"
            ) from None


LIVE = 0
LAST = 1
"""Generations of a survey's keys: for what is destroyed at its end, and for what remains."""


def state_key_name(survey: bytes, generation: int) -> str:
    """Name a key of a survey, of the generation `LIVE` or `LAST`."""
    return f"survey-{survey.hex()}-{generation}"


def wrapping_key_name(signing_key: bytes) -> str:
    """Name the key that encrypts new survey keys, known by their public signing key, until use."""
    return f"unused-{signing_key.hex()}"


@dataclass(frozen=True)
class KeyFolder:
    """One file per key, readable by this server's user only.

    path: the folder, which is created if it does not exist
    """

    path: Path

    def __post_init__(self) -> None:
        make_private_folder(self.path)

    def create(self, name: str) -> RowKey:
        """Return the key of this name; a new one is on disk before it is returned."""
        # check: zeroed-key - a crash while a key is destroyed leaves zeros, which everybody knows
        if not self.has(name) or self._is_zeroed(name):
            write_durably(self._file(name), SystemEntropy().bytes(KEY))
        return self.get(name)

    def operator_secret(self) -> bytes:
        """Return the secret of the operator's long-term key, which is made once.

        It encrypts nothing: its operator may keep a copy, to stay the same operator.
        """
        file = self._file(OPERATOR)
        if not file.exists():
            fresh = file.with_name(f"{OPERATOR}.{SystemEntropy().bytes(8).hex()}")
            write_durably(fresh, SystemEntropy().bytes(KEY))
            # Not replaced: of two workers that start at once, both use the key of the first.
            with suppress(FileExistsError):
                os.link(fresh, file)
            fresh.unlink()
            sync_folder(self.path)
        return self._read(OPERATOR)

    def get(self, name: str) -> RowKey:
        """Return the key of this name, which must exist."""
        return RowKey(self._read(name))

    def _read(self, name: str) -> bytes:
        try:
            # Not through `Path`: the key of a survey is read with every group of messages.
            file = os.open(f"{self.path}/{name}.key", os.O_RDONLY)
            try:
                secret = os.read(file, KEY + 1)
            finally:
                os.close(file)
        except OSError:
            raise StorageError(
                f"the key {name} is not in the key folder: its rows cannot be read"
            ) from None
        # A worker may look while another one destroys the key: zeros are no key any more.
        if len(secret) != KEY or secret == bytes(KEY):
            raise StorageError(f"the key {name} is damaged or destroyed: its rows cannot be read")
        return secret

    def _is_zeroed(self, name: str) -> bool:
        """Whether the file was overwritten, and a crash kept it from being deleted."""
        return self._file(name).read_bytes() == bytes(KEY)

    def has(self, name: str) -> bool:
        """Whether there is a key of this name."""
        return self._file(name).exists()

    def created_at(self, name: str) -> float:
        """Return when a key was made, in seconds since 1970; 0 if it does not exist."""
        try:
            return self._file(name).stat().st_mtime
        except OSError:
            return 0.0

    def names(self) -> list[str]:
        """Return the names of all keys of rows."""
        found = {file.stem for file in self.path.glob("*.key")}
        return sorted(found - {OPERATOR})

    def destroy(self, name: str) -> None:
        """Overwrite and delete a key for good; a key that does not exist any more is fine."""
        file = self._file(name)
        try:
            # Zeros reach the disk before the name disappears: a crash in between leaves a key that
            # is useless, and `destroy_used_keys` deletes it at the next start.
            with file.open("r+b") as target:
                # check: key-overwritten - the blocks of a removed file can still be read
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
