"""What a role keeps by row: read through a `RowReader`, written by the `Step` that a role returns.

A role never reaches storage by itself. It is given a reader, sees its rows through `StepRows`, and
returns a `Step`: the new state, the rows to write, the tables to scrub and the messages to send.
Who calls it writes the state and the rows together, and sends the messages afterwards.

Writes are idempotent by their natural key: the first one stands, the same again is fine, and other
bytes are a conflict. Only invitations, parts of a manifest and notes about them are exchanged.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import merge
from typing import Any, Generic, TypeVar

from faircount.protocol.wire.codec import Message, encode

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")

Upload = tuple[int, int | bytes, int]
"""Natural key of an upload: message tag, what it was made for (an attempt, a digest, or 0), place
in the roster.
"""

COORDINATOR_TABLES = ("invited", "first_messages", "keys", "uploads", "withdrawn", "manifest_parts")
"""Access value by user, first message by user, user by public key, upload by `Upload`, hash of a
withdrawal by user, and earlier parts of the manifest by number.
"""

AGGREGATOR_TABLES = ("mac_keys", "manifest_parts", "part_verdicts")
"""Enrolment MAC key by user, earlier parts of the manifest, and verdicts about its parts."""

ACKNOWLEDGED_TABLES = ("first_messages", "uploads")
"""Messages of participants, kept with the hash that their sender was given in return."""


def part_key(number: int) -> bytes:
    """The key of a part of a manifest: a manifest that begins anew takes the same places."""
    return b"part" + number.to_bytes(4, "big")


@dataclass(slots=True)
class StoredRow:
    """What stands under a key: the value (None: a message that was deleted) and its hash, if any.

    `is_intact` notes that the hash was compared with the value, which never changes after that.
    """

    value: Any = field(repr=False)
    hash: bytes = b""
    is_intact: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row to be written: without a value, a message goes and its hash stays."""

    table: str
    key: Any
    value: Any = field(repr=False)
    hash: bytes = b""
    is_new: bool = field(default=True, compare=False)  # nothing stood there before the step


@dataclass(frozen=True)
class Step(Generic[S]):
    """What a role makes of its state: write `state`, `rows` and `scrubbed`, then send
    `messages`.
    """

    state: S
    messages: tuple[Message, ...] = ()
    rows: tuple[RowWrite, ...] = ()
    scrubbed: tuple[str, ...] = ()
    """Tables of which only hashes stay; rows without a hash go. The survey is over."""


class RowReader(ABC):
    """Where the rows of a survey are read, as they stood when the step began."""

    @abstractmethod
    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""

    @abstractmethod
    def keys(self, table: str) -> Iterable[Any]:
        """All keys of a table, ascending."""

    @abstractmethod
    def count(self, table: str) -> int:
        """How many rows a table has."""


class MemoryRows(RowReader):
    """Rows in memory, by table and key, in the order of writing."""

    def __init__(self, rows: Iterable[RowWrite] = ()) -> None:
        self._tables: dict[str, dict[Any, StoredRow]] = {}
        self.write(rows)

    def table(self, name: str) -> dict[Any, StoredRow]:
        """The rows of one table."""
        return self._tables.setdefault(name, {})

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        return self.table(table).get(key)

    def keys(self, table: str) -> list[Any]:
        """All keys of a table, ascending."""
        return sorted(self.table(table))

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return len(self.table(table))

    def write(self, rows: Iterable[RowWrite], *, is_intact: bool = False) -> None:
        """Write rows, whatever stood there before."""
        for row in rows:
            self.table(row.table)[row.key] = StoredRow(row.value, row.hash, is_intact)

    def apply(self, step: Step[Any]) -> None:
        """Write what a step says."""
        # A role hashes what it writes: it need not be looked at again.
        self.write(step.rows, is_intact=True)
        for name in step.scrubbed:
            rows = self.table(name).items()
            self._tables[name] = {k: StoredRow(None, row.hash) for k, row in rows if row.hash}

    def rows(self) -> Iterator[RowWrite]:
        """All rows."""
        for name, rows in self._tables.items():
            for key, row in rows.items():
                yield RowWrite(name, key, row.value, row.hash)

    def is_scrubbed(self, table: str) -> bool:
        """Whether no value of a table is left."""
        return all(row.value is None for row in self.table(table).values())

    def copy(self) -> "MemoryRows":
        """A backup that later writes do not reach."""
        other = MemoryRows()
        other._tables = {name: dict(rows) for name, rows in self._tables.items()}
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRows) and self._filled() == other._filled()

    def _filled(self) -> dict[str, dict[Any, StoredRow]]:
        return {name: rows for name, rows in self._tables.items() if rows}

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(rows)}" for name, rows in self._filled().items())
        return f"MemoryRows({sizes})"


class RowsAfter(RowReader):
    """What a reader finds once a step is written: asked before it is."""

    def __init__(self, reader: RowReader, step: Step[Any]) -> None:
        self._reader = reader
        self._scrubbed = step.scrubbed
        self._written = {(row.table, row.key): row for row in step.rows}

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        row = self._written.get((table, key))
        found = self._reader.find(table, key) if row is None else StoredRow(row.value, row.hash)
        if found is not None and table in self._scrubbed:
            return StoredRow(None, found.hash) if found.hash else None
        return found

    def keys(self, table: str) -> Iterator[Any]:
        """All keys of a table, ascending."""
        new = sorted(row.key for row in self._written.values() if row.table == table and row.is_new)
        return merge(self._reader.keys(table), new)

    def count(self, table: str) -> int:
        """How many rows a table has."""
        new = sum(row.table == table and row.is_new for row in self._written.values())
        return self._reader.count(table) + new


RowSink = Callable[[RowWrite], None]
"""Takes a row of a bulky table at once, in the transaction of the step."""


class StepRows:
    """The rows as one step sees them: its own writes first, then what the reader finds.

    Writes are only collected here. With a `sink`, rows that are handed on go there instead, so that
    closing a survey of any size needs the memory of one part.
    """

    def __init__(self, reader: RowReader, sink: RowSink | None = None) -> None:
        self._reader = reader
        self._sink = sink
        self._written: dict[tuple[str, Any], StoredRow] = {}
        self._new: set[tuple[str, Any]] = set()
        self._added: Counter[str] = Counter()
        self._scrubbed: dict[str, None] = {}
        self._undo: list[Callable[[], object]] = []
        self.invited = WriteOnce[bytes, bytes](self, "invited")
        self.first_messages = Acknowledged[bytes](self, "first_messages")
        self.keys = WriteOnce[bytes, bytes](self, "keys")
        self.uploads = Acknowledged[Upload](self, "uploads")
        self.withdrawn = WriteOnce[bytes, bytes](self, "withdrawn")
        self.manifest_parts = WriteOnce[bytes, Message](self, "manifest_parts")
        self.mac_keys = WriteOnce[bytes, bytes](self, "mac_keys")
        self.part_verdicts = WriteOnce[bytes, Message](self, "part_verdicts")

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, as this step has left it."""
        found = self._written.get((table, key))
        if found is None:
            found = self._reader.find(table, key)
        if found is not None and table in self._scrubbed:
            return StoredRow(None, found.hash) if found.hash else None
        return found

    def keys_of(self, table: str) -> Iterator[Any]:
        """Keys of a table, ascending; those of the reader are not read at once."""
        own = sorted(key for name, key in self._written if name == table)
        before = None
        for key in merge(self._reader.keys(table), own):
            if key != before:
                yield key
            before = key

    def count(self, table: str) -> int:
        """How many rows a table has now."""
        return self._reader.count(table) + self._added[table]

    def write(self, table: str, key: Any, row: StoredRow) -> None:
        """Note a row to be written."""
        place = (table, key)
        before = self._written.get(place)
        is_new = before is None and self._reader.find(table, key) is None
        self._written[place] = row
        if is_new:
            self._new.add(place)
            self._added[table] += 1
        self._undo.append(lambda: self._take_back(place, before, is_new=is_new))

    def _take_back(self, place: tuple[str, Any], before: StoredRow | None, *, is_new: bool) -> None:
        if before is None:
            del self._written[place]
        else:
            self._written[place] = before
        if is_new:
            self._new.remove(place)
            self._added[place[0]] -= 1

    def hand_on(self, table: str, key: Any, value: Any) -> None:
        """Write a row of a bulky table at once where there is a sink; it is not taken back."""
        if self._sink is None:
            self.write(table, key, StoredRow(value))
        else:
            self._sink(RowWrite(table, key, value))

    def scrub(self, table: str) -> None:
        """Only hashes of this table stay."""
        if table in self._scrubbed:
            return
        for (name, key), row in list(self._written.items()):
            if name == table:
                self.write(table, key, StoredRow(None, row.hash))
        self._scrubbed[table] = None
        self._undo.append(lambda: self._scrubbed.pop(table))

    def savepoint(self) -> int:
        """Where the next message begins."""
        return len(self._undo)

    def roll_back(self, savepoint: int) -> None:
        """Drop what was written since: the message was rejected, and must leave no trace."""
        while len(self._undo) > savepoint:
            self._undo.pop()()

    def step(self, state: S, messages: tuple[Message, ...] = ()) -> Step[S]:
        """The step to this state, with all that was written on the way."""
        rows = tuple(
            RowWrite(table, key, row.value, row.hash, (table, key) in self._new)
            for (table, key), row in self._written.items()
            if row.hash or row.value is not None
        )
        return Step(state, messages, rows, tuple(self._scrubbed))


class WriteOnce(Generic[K, V]):
    """One table in a step. The first write by a key stands."""

    __slots__ = ("_rows", "_table")

    def __init__(self, rows: StepRows, table: str) -> None:
        self._rows = rows
        self._table = table

    def fits(self, key: K, value: V) -> bool:
        """Whether this value may stand under this key: nothing or the same is there."""
        found = self.get(key)
        return found is None or found == value

    def put(self, key: K, value: V) -> bool:
        """Write, unless something else was written before; whether the value stands now."""
        found = self.get(key)
        if found is None:
            self.exchange(key, value)
        return found is None or found == value

    def exchange(self, key: K, value: V) -> None:
        """Write instead of what stood there, where somebody may change it."""
        self._rows.write(self._table, key, StoredRow(value))

    def hand_on(self, key: K, value: V) -> None:
        """The same, out of memory at once where storage is ready for it."""
        self._rows.hand_on(self._table, key, value)

    def get(self, key: K) -> V | None:
        """What stands under the key, if anything."""
        found = self._rows.find(self._table, key)
        return None if found is None else found.value

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self._rows.find(self._table, key) is not None

    def __len__(self) -> int:
        return self._rows.count(self._table)

    def __iter__(self) -> Iterator[K]:
        # Ascending: whoever goes through all keys reads a few rows at a time.
        return self._rows.keys_of(self._table)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._table})"


class Acknowledged(WriteOnce[K, Any]):
    """Messages of participants, with the hash that their sender was given in return.

    What stands is decided by the hash: bytes that storage has spoiled are noticed (`intact`), and
    mended when the sender says the same again. A deleted message leaves its hash: the same message
    is still known, and another one still refused.
    """

    __slots__ = ()

    def fits(self, key: K, value: Any) -> bool:
        """Whether nothing or the same message was acknowledged under this key."""
        found = self._rows.find(self._table, key)
        return found is None or found.hash == _hash(value)

    def put(self, key: K, value: Any) -> bool:
        """Write, unless another message was acknowledged before; whether this one stands now."""
        found = self._rows.find(self._table, key)
        wanted = _hash(value)
        if found is not None and found.hash != wanted:
            return False
        if found is None or found.value != value:
            self._rows.write(self._table, key, StoredRow(value, wanted, is_intact=True))
        return True

    def hash_of(self, key: K) -> bytes:
        """What the sender was given for its message."""
        found = self._rows.find(self._table, key)
        if found is None:
            raise KeyError(key)
        return found.hash

    def intact(self, key: K) -> Any | None:
        """The message as it was acknowledged; None if it is gone, or its bytes have changed."""
        found = self._rows.find(self._table, key)
        if found is None or found.value is None:
            return None
        if not found.is_intact:
            found.is_intact = _hash(found.value) == found.hash
        return found.value if found.is_intact else None

    def scrub(self, key: K) -> None:
        """Delete a message and keep its hash."""
        found = self._rows.find(self._table, key)
        if found is not None and found.value is not None:
            self._rows.write(self._table, key, StoredRow(None, found.hash))


def _hash(message: Any) -> bytes:
    return sha256(encode(message)).digest()
