"""Stores in which the first write stands."""

from hashlib import sha256

from faircount.protocol.roles.write_once import Acknowledged, WriteOnce
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import Rejected


def test_first_writes_stand() -> None:
    store: WriteOnce[int, str] = WriteOnce()
    assert store.put(1, "a")
    assert store.put(1, "a")
    backup = store.copy()
    assert not store.fits(1, "b")
    assert not store.put(1, "b")
    assert store.put(2, "b")
    assert (store[1], store.get(3), len(store), store.keys(), 2 in store) == ("a", None, 2, [1, 2], True)
    assert len(backup) == 1
    assert store != backup
    assert "a" not in repr(store)


def test_spoiled_bytes_are_noticed_and_mended_by_the_same_message_again() -> None:
    store: Acknowledged[int] = Acknowledged()
    first, other = Rejected(1, b"first"), Rejected(2, b"other")
    assert store.put(1, first)
    assert store.intact(1) == first
    assert store.intact(2) is None
    assert not store.put(1, other)
    assert not store.fits(1, other)
    store._written[1] = other  # a disk does this
    assert store.intact(1) is None
    assert store.copy().intact(1) is None
    assert not store.put(1, other)  # what stands is what was acknowledged
    assert store.put(1, first)
    assert store.intact(1) == first
    assert store.hash_of(1) == sha256(encode(first)).digest()
