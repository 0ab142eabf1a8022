"""Rows of a step: the first write counts, a rejected message leaves no trace."""

from hashlib import sha256

import pytest

from faircount.protocol.roles.rows import (
    MemoryRows,
    PostStepReader,
    PrecomputedReader,
    RowWrite,
    StepRows,
    StoredRow,
    part_key,
)
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import Rejection

FIRST, OTHER = Rejection(1, b"first"), Rejection(2, b"other")


def test_first_writes_count() -> None:
    stored = MemoryRows()
    rows = StepRows(stored)
    assert rows.public_keys.put(b"1", b"a")
    assert rows.public_keys.put(b"1", b"a")
    assert not rows.public_keys.accepts(b"1", b"b")
    assert not rows.public_keys.put(b"1", b"b")
    assert rows.public_keys.put(b"0", b"b")
    assert (rows.public_keys[b"1"], rows.public_keys.get(b"3"), len(rows.public_keys)) == (
        b"a",
        None,
        2,
    )
    assert list(rows.public_keys) == [b"0", b"1"]
    assert b"1" in rows.public_keys
    assert repr(rows.public_keys) == "StepTable(keys)"
    with pytest.raises(KeyError):
        rows.public_keys[b"3"]
    assert stored.count("keys") == 0  # until the step is written
    backup = stored.copy()
    stored.apply(rows.step(None))
    assert stored.keys("keys") == [b"0", b"1"]
    assert stored != backup
    assert "keys: 2" in repr(stored)


def test_spoiled_bytes_are_noticed_and_mended_by_the_same_message_again() -> None:
    stored = MemoryRows()
    rows = StepRows(stored)
    assert rows.first_messages.put(b"1", FIRST)
    assert rows.first_messages.intact(b"1") == FIRST
    assert rows.first_messages.intact(b"2") is None
    assert not rows.first_messages.put(b"1", OTHER)
    assert not rows.first_messages.accepts(b"1", OTHER)
    stored.apply(rows.step(None))
    given = sha256(encode(FIRST)).digest()
    stored.table("first_messages")[b"1"] = StoredRow(OTHER, given)  # a disk does this
    rows = StepRows(stored)
    assert rows.first_messages.intact(b"1") is None
    assert not rows.first_messages.put(b"1", OTHER)  # the acknowledged message counts
    assert rows.first_messages.put(b"1", FIRST)
    assert rows.first_messages.intact(b"1") == FIRST
    assert rows.first_messages.hash_of(b"1") == given
    assert rows.step(None).rows == (RowWrite("first_messages", b"1", FIRST, given),)
    with pytest.raises(KeyError):
        rows.first_messages.hash_of(b"2")


def test_what_was_rejected_is_rolled_back() -> None:
    rows = StepRows(MemoryRows([RowWrite("keys", b"1", b"a")]))
    rows.public_keys.overwrite(b"1", b"b")
    before = rows.step(None)
    savepoint = rows.savepoint()
    rows.public_keys.overwrite(b"1", b"c")
    rows.public_keys.put(b"2", b"d")
    rows.first_messages.put(b"1", FIRST)
    rows.scrub("first_messages")
    assert (len(rows.public_keys), rows.first_messages.get(b"1")) == (2, None)
    rows.roll_back(savepoint)
    assert rows.step(None) == before
    assert (len(rows.public_keys), rows.public_keys[b"1"], len(rows.first_messages)) == (1, b"b", 0)


def test_a_scrubbed_table_keeps_hashes_and_nothing_else() -> None:
    stored = MemoryRows([RowWrite("part_verifications", part_key(0), FIRST)])
    rows = StepRows(stored)
    rows.uploads.put((1, 0, 2), FIRST)
    rows.scrub("uploads")
    rows.scrub("part_verifications")
    step = rows.step(None)
    assert step.scrubbed == ("uploads", "part_verifications")
    assert [write.value for write in step.rows] == [None]
    after = PostStepReader(stored, step)
    assert after.find("part_verifications", part_key(0)) is None
    stored.apply(step)
    for reader in (after, stored):
        found = reader.find("uploads", (1, 0, 2))
        assert found == StoredRow(None, sha256(encode(FIRST)).digest())
    assert stored.is_scrubbed("uploads")
    assert stored.count("part_verifications") == 0


def test_rows_are_handed_on_where_there_is_a_sink() -> None:
    taken = list[RowWrite]()
    rows = StepRows(MemoryRows(), taken.append)
    rows.manifest_parts.stream(part_key(0), FIRST)
    assert rows.step(None).rows == ()
    assert taken == [RowWrite("manifest_parts", part_key(0), FIRST)]
    rows = StepRows(MemoryRows())
    rows.manifest_parts.stream(part_key(0), FIRST)
    assert rows.step(None).rows == tuple(taken)


def test_rows_after_a_step_are_those_that_it_leaves() -> None:
    stored = MemoryRows([RowWrite("keys", b"2", b"old"), RowWrite("keys", b"3", b"stays")])
    rows = StepRows(stored)
    rows.public_keys.overwrite(b"2", b"new")
    rows.public_keys.put(b"1", b"first")
    after = PostStepReader(stored, rows.step(None))
    assert list(after.keys("keys")) == [b"1", b"2", b"3"]
    assert after.count("keys") == 3
    found = [after.find("keys", key) for key in (b"1", b"2", b"3", b"4")]
    assert found == [StoredRow(b"first"), StoredRow(b"new"), StoredRow(b"stays"), None]


def test_rows_computed_ahead_are_read_and_what_is_stored_counts_first() -> None:
    stored = MemoryRows([RowWrite("part_verifications", part_key(0), FIRST)])
    ahead = [RowWrite("part_verifications", part_key(number), OTHER) for number in (0, 1)]
    reader = PrecomputedReader(stored, MemoryRows(ahead))
    found = [reader.find("part_verifications", part_key(number)) for number in range(3)]
    assert found == [StoredRow(FIRST), StoredRow(OTHER), None]
    # Nothing of it is stored: a step that goes through a table does not see it.
    assert list(reader.keys("part_verifications")) == [part_key(0)]
    assert reader.count("part_verifications") == 1
    rows = StepRows(reader)
    assert rows.step(None).rows == ()
    rows.part_verifications.overwrite(part_key(1), OTHER)
    stored.apply(rows.step(None))
    assert stored.count("part_verifications") == 2
