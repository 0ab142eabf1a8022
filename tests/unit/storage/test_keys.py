"""Keys outside the database, and the anchor."""

from pathlib import Path

import pytest

from faircount.core.errors import StorageError
from faircount.protocol.roles.anchor import NOTHING
from faircount.storage.anchor import FolderAnchor
from faircount.storage.keys import KeyFolder


def test_a_value_opens_at_its_place_with_its_key_alone(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    sealed = keys.create("one").seal(b"place", b"a secret value")
    assert b"secret" not in sealed
    assert KeyFolder(tmp_path / "keys").get("one").open(b"place", sealed) == b"a secret value"
    for key, place, data in (("one", b"other", sealed), ("one", b"place", sealed[:-1]), ("two", b"place", sealed)):
        with pytest.raises(StorageError):
            keys.create(key).open(place, data)


def test_a_destroyed_key_is_gone_for_good(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    keys.create("one")
    secret = (tmp_path / "keys" / "one.key").read_bytes()
    assert keys.names() == ["one"]
    keys.destroy("one")
    keys.destroy("one")
    assert keys.names() == []
    with pytest.raises(StorageError, match="not in the folder"):
        keys.get("one")
    keys.create("one")
    assert (tmp_path / "keys" / "one.key").read_bytes() != secret


def test_files_of_keys_are_private(tmp_path: Path) -> None:
    KeyFolder(tmp_path / "keys").create("one")
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    assert (tmp_path / "keys" / "one.key").stat().st_mode & 0o077 == 0


def test_the_anchor_moves_only_from_what_stands(tmp_path: Path) -> None:
    anchor, one, two = FolderAnchor(tmp_path / "anchor"), b"1" * 32, b"2" * 32
    assert anchor.standing(b"name") == NOTHING
    assert anchor.advance(b"name", NOTHING, one)
    assert anchor.advance(b"name", NOTHING, one)  # the same step again, after a crash
    assert not FolderAnchor(tmp_path / "anchor").advance(b"name", NOTHING, two)
    assert anchor.advance(b"name", one, two)
    assert FolderAnchor(tmp_path / "anchor").standing(b"name") == two
    assert anchor.standing(b"other name") == NOTHING
