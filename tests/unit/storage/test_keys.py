"""Row keys outside the database, and the anchor."""

from pathlib import Path

import pytest

from faircount.core.errors import StorageError
from faircount.protocol.roles.anchor import UNSET
from faircount.storage.anchor import FolderAnchor
from faircount.storage.keys import KeyFolder


def test_a_value_is_decrypted_at_its_place_with_its_key_only(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    encrypted = keys.create("one").encrypt(b"place", b"a secret value")
    assert b"secret" not in encrypted
    assert KeyFolder(tmp_path / "keys").get("one").decrypt(b"place", encrypted) == b"a secret value"
    for key, place, data in (
        ("one", b"other", encrypted),
        ("one", b"place", encrypted[:-1]),
        ("two", b"place", encrypted),
    ):
        with pytest.raises(StorageError):
            keys.create(key).decrypt(place, data)


def test_a_destroyed_key_is_gone_for_good(tmp_path: Path) -> None:
    keys = KeyFolder(tmp_path / "keys")
    keys.create("one")
    secret = (tmp_path / "keys" / "one.key").read_bytes()
    assert keys.names() == ["one"]
    keys.destroy("one")
    keys.destroy("one")
    assert keys.names() == []
    with pytest.raises(StorageError, match="not in the key folder"):
        keys.get("one")
    keys.create("one")
    assert (tmp_path / "keys" / "one.key").read_bytes() != secret


def test_a_key_is_overwritten_before_its_file_is_removed(tmp_path: Path) -> None:
    """Removing a file removes its name: another name of the same blocks still reads them."""
    keys = KeyFolder(tmp_path / "keys")
    keys.create("one")
    (tmp_path / "blocks").hardlink_to(tmp_path / "keys" / "one.key")
    assert (tmp_path / "blocks").read_bytes() != bytes(32)
    keys.destroy("one")
    assert (tmp_path / "blocks").read_bytes() == bytes(32)


def test_zeros_that_a_crash_has_left_are_no_key(tmp_path: Path) -> None:
    """Everybody could read what is encrypted under them."""
    keys = KeyFolder(tmp_path / "keys")
    keys.create("one")
    (tmp_path / "keys" / "one.key").write_bytes(bytes(32))
    with pytest.raises(StorageError, match="destroyed"):
        keys.get("one")
    encrypted = keys.create("one").encrypt(b"place", b"value")
    assert (tmp_path / "keys" / "one.key").read_bytes() != bytes(32)
    assert keys.get("one").decrypt(b"place", encrypted) == b"value"


def test_key_files_are_private(tmp_path: Path) -> None:
    KeyFolder(tmp_path / "keys").create("one")
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    assert (tmp_path / "keys" / "one.key").stat().st_mode & 0o077 == 0


def test_the_anchor_advances_only_from_its_current_value(tmp_path: Path) -> None:
    anchor = FolderAnchor(tmp_path / "anchor")
    one = b"1" * 32
    two = b"2" * 32
    assert anchor.current_value(b"name") == UNSET
    assert anchor.advance(b"name", UNSET, one)
    assert anchor.advance(b"name", UNSET, one)  # the same step again, after a crash
    assert not FolderAnchor(tmp_path / "anchor").advance(b"name", UNSET, two)
    assert anchor.advance(b"name", one, two)
    assert FolderAnchor(tmp_path / "anchor").current_value(b"name") == two
    assert anchor.current_value(b"other name") == UNSET


@pytest.mark.parametrize("content", [b"", b"1" * 31, b"1" * 33])
def test_a_damaged_anchor_is_no_empty_one(tmp_path: Path, content: bytes) -> None:
    anchor = FolderAnchor(tmp_path / "anchor")
    assert anchor.advance(b"name", UNSET, b"1" * 32)
    (file,) = (tmp_path / "anchor").glob("*.value")
    file.write_bytes(content)
    with pytest.raises(StorageError, match="the anchor is damaged"):
        anchor.current_value(b"name")
    with pytest.raises(StorageError, match="the anchor is damaged"):
        anchor.advance(b"name", UNSET, b"2" * 32)


def test_an_anchor_keeps_its_identity(tmp_path: Path) -> None:
    anchor = FolderAnchor(tmp_path / "anchor")
    assert anchor.identity() is None
    named = anchor.create_identity()
    assert anchor.create_identity() == named == FolderAnchor(tmp_path / "anchor").identity()
    assert FolderAnchor(tmp_path / "other").create_identity() != named
