"""The rows of a survey: what the servers store for each participant, and how a step changes them.

A role never touches storage. The caller gives it a `RowReader`; the role reads through `StepRows`,
which also collects what the role writes, and returns a `Step`: the new state, the rows to write,
the tables to scrub and the messages to send. The caller writes state and rows in one transaction,
and sends the messages afterwards. A crash in between loses messages, which are computed again from
the state; it never sends something that was not stored.

A row is written once under its natural key. Writing the same bytes again changes nothing, and
other bytes are a conflict that the sender is told about. Only invitations (`roles.reissue`),
notices about them, and rows about parts of a manifest (`PART_TABLES`) are overwritten.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from heapq import merge
from itertools import chain
from typing import Any, Generic, TypeVar

from faircount.protocol.wire.codec import Message, encode

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")

Upload = tuple[int, int | bytes, int]
"""Natural key of an upload: message tag, what it was made for (an attempt, a digest, or 0), and the
sender's position in the roster.
"""

COORDINATOR_TABLES = (
    "invited",
    "first_messages",
    "keys",
    "notices",
    "uploads",
    "withdrawn",
    "manifest_parts",
    "recorded_parts",
    "report_parts",
    "verified_parts",
)
"""The coordinator's tables.

    invited          by user: the access value
    first_messages   by user: the first message, with the key of its device
    keys             by public key: the user; empty in `servers`
    notices          by user: what has happened with the invitation since
    uploads          by `Upload`: the message
    withdrawn        by user: the hash of a withdrawal, and the key of its device
    manifest_parts   by part: the part itself, unless it is the last
    recorded_parts   by part: what the aggregator has recorded, for a restored coordinator
    report_parts     by part: a copy of its reports
    verified_parts   by part: what the aggregator has found about its reports
"""

AGGREGATOR_TABLES = ("mac_keys", "manifest_parts", "authentic_entries", "part_verifications")
"""The aggregator's tables.

    mac_keys             by user: the enrolment MAC key
    manifest_parts       by part: the part itself, unless it is the last
    authentic_entries    by part: which of its entries have a valid MAC
    part_verifications   by part: the verification of its reports
"""

PART_TABLES = (
    "manifest_parts",
    "recorded_parts",
    "report_parts",
    "verified_parts",
    "authentic_entries",
    "part_verifications",
)
"""Tables whose rows are each about a part of the manifest, and so about thousands of reports."""

LASTING_TABLES = ("invited", "keys", "notices", "withdrawn", "manifest_parts", "recorded_parts")
"""Tables that stay when a survey is over."""

_TABLES = tuple(dict.fromkeys(COORDINATOR_TABLES + AGGREGATOR_TABLES))

ACKNOWLEDGED_TABLES = ("first_messages", "uploads")
"""Tables of participants' messages, stored with the hash that the coordinator acknowledged."""


def part_key(number: int) -> bytes:
    """The key of a part of a manifest; a new manifest overwrites the parts of the one before."""
    return b"part" + number.to_bytes(4, "big")


@dataclass(slots=True)
class StoredRow:
    """What a reader finds under a key.

    Attributes:
        value: the value; None if a message was deleted
        hash: the acknowledged hash, in tables that have one
        kept: what stays, like the hash, when the message is deleted: the key of its device
        is_intact: whether value and hash were compared and fit; neither changes afterwards
    """

    value: Any = field(repr=False)
    hash: bytes = b""
    kept: bytes = field(default=b"", repr=False)
    is_intact: bool = field(default=False, compare=False)


@dataclass(slots=True)
class RowWrite:
    """One row to write. Not frozen, because a frozen one takes twice as long to make.

    Attributes:
        table: the table
        key: the natural key
        value: the value; None deletes a message and leaves its hash
        hash: the acknowledged hash, in tables that have one
        kept: what stays, like the hash, when the message is deleted
        is_new: whether the reader had no row under this key
    """

    table: str
    key: Any
    value: Any = field(repr=False)
    hash: bytes = b""
    kept: bytes = field(default=b"", repr=False)
    is_new: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Step(Generic[S]):
    """What a role returns: write `state`, `rows` and `scrubbed` together, then send `messages`.

    Attributes:
        state: the new state; the very same object if nothing changed
        messages: messages to send, after everything else is on disk
        rows: rows to write
        scrubbed: tables to scrub: values are deleted and hashes kept, rows without a hash deleted
    """

    state: S
    messages: tuple[Message, ...] = ()
    rows: tuple[RowWrite, ...] = ()
    scrubbed: tuple[str, ...] = ()


class RowReader(ABC):
    """Reads the rows of a survey as they were when the step began."""

    @abstractmethod
    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""

    def finder(self, table: str) -> "RowFinder":
        """`find` for one table, for whoever looks up many of its rows."""
        return partial(self.find, table)

    @abstractmethod
    def keys(self, table: str) -> Iterable[Any]:
        """All keys of a table, ascending."""

    @abstractmethod
    def count(self, table: str) -> int:
        """How many rows a table has."""


RowFinder = Callable[[Any], StoredRow | None]
"""Finds the row under a key of one table."""


class MemoryRows(RowReader):
    """Rows in memory, for simulations and for steps that need few rows."""

    def __init__(self, rows: Iterable[RowWrite] = ()) -> None:
        self._tables: dict[str, dict[Any, StoredRow]] = {name: {} for name in _TABLES}
        self.write(rows)

    def table(self, name: str) -> dict[Any, StoredRow]:
        """The rows of one table."""
        return self._tables[name]

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        return self._tables[table].get(key)

    def finder(self, table: str) -> RowFinder:
        """`find` for one table."""
        # The dictionary itself: steps look up a dozen rows for each report.
        return self._tables[table].get

    def keys(self, table: str) -> list[Any]:
        """All keys of a table, ascending."""
        return sorted(self.table(table))

    def count(self, table: str) -> int:
        """How many rows a table has."""
        return len(self.table(table))

    def write(self, rows: Iterable[RowWrite], *, is_intact: bool = False) -> None:
        """Write rows, over those that have the same keys."""
        for row in rows:
            self.table(row.table)[row.key] = StoredRow(row.value, row.hash, row.kept, is_intact)

    def apply(self, step: Step[Any]) -> None:
        """Write the rows of a step, and scrub its tables."""
        # The role has computed the hashes of what it writes: they need not be compared again.
        self.write(step.rows, is_intact=True)
        for name in step.scrubbed:
            scrubbed = {key: _scrub_row(row) for key, row in self.table(name).items()}
            self._tables[name] = {key: row for key, row in scrubbed.items() if row is not None}

    def rows(self) -> Iterator[RowWrite]:
        """All rows."""
        for name, rows in self._tables.items():
            for key, row in rows.items():
                yield RowWrite(name, key, row.value, row.hash, row.kept)

    def is_scrubbed(self, table: str) -> bool:
        """Whether no value of a table is left."""
        return all(row.value is None for row in self.table(table).values())

    def copy(self) -> "MemoryRows":
        """A copy that later writes do not change."""
        other = MemoryRows()
        # Rows are never changed in place but for `is_intact`, so they can be shared.
        other._tables = {name: dict(rows) for name, rows in self._tables.items()}
        return other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemoryRows) and self._tables == other._tables

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        sizes = (f"{name}: {len(rows)}" for name, rows in self._tables.items() if rows)
        return f"MemoryRows({', '.join(sizes)})"


class PrecomputedReader(RowReader):
    """Reads rows that were computed in advance for one step, and otherwise those of a reader.

    Nothing is stored of them unless the step writes it.
    """

    def __init__(self, reader: RowReader, computed: MemoryRows) -> None:
        self._reader = reader
        self._computed = computed

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        # What is stored counts first: another message may have been faster.
        return self._reader.find(table, key) or self._computed.find(table, key)

    def keys(self, table: str) -> Iterable[Any]:
        """All stored keys of a table, ascending."""
        return self._reader.keys(table)

    def count(self, table: str) -> int:
        """How many rows of a table are stored."""
        return self._reader.count(table)


class PostStepReader(RowReader):
    """Reads the rows as they will be once a step is written, before it is."""

    def __init__(self, reader: RowReader, step: Step[Any]) -> None:
        self._reader = reader
        self._scrubbed = step.scrubbed
        self._written = {(row.table, row.key): row for row in step.rows}

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, if there is one."""
        row = self._written.get((table, key))
        if row is None:
            found = self._reader.find(table, key)
        else:
            found = StoredRow(row.value, row.hash, row.kept)
        return _scrub_row(found) if table in self._scrubbed else found

    def keys(self, table: str) -> Iterator[Any]:
        """All keys of a table, ascending."""
        # Only new ones: a row that is written again is among the reader's keys already.
        new_keys = [row.key for row in self._written.values() if row.table == table and row.is_new]
        return merge(self._reader.keys(table), sorted(new_keys))

    def count(self, table: str) -> int:
        """How many rows a table has."""
        new = sum(row.table == table and row.is_new for row in self._written.values())
        return self._reader.count(table) + new


def _scrub_row(row: StoredRow | None) -> StoredRow | None:
    """A row after its table was scrubbed: without its value, and gone if it has no hash."""
    if row is None or not row.hash:
        return None
    return StoredRow(None, row.hash, row.kept)


RowSink = Callable[[RowWrite], None]
"""Writes a row at once, in the transaction of the step, where a table is too large for memory."""


Undo = tuple[dict[Any, Any], dict[Any, None], Any, StoredRow | None]
"""How to undo a write: what was written to, which keys in it are new, the key, and what stood there
before in this step.
"""


class StepTable(Generic[K, V]):
    """One table in a step: `put` keeps what is there, and `overwrite` replaces it.

    It sees what the step has written, then what the reader finds. It shares with the other tables
    of the step what is needed to undo writes, and which tables are scrubbed.
    """

    __slots__ = ("_find", "_new", "_reader", "_scrubbed", "_sink", "_undo", "_written", "name")

    def __init__(
        self,
        name: str,
        reader: RowReader,
        sink: RowSink | None,
        undo: list[Undo],
        scrubbed: dict[str, None],
    ) -> None:
        self.name = name
        self._reader = reader
        self._find = reader.finder(name)
        self._sink = sink
        self._undo = undo
        self._scrubbed = scrubbed
        self._written: dict[K, StoredRow] = {}
        self._new: dict[K, None] = {}

    def find(self, key: K) -> StoredRow | None:
        """The row under a key, as the step has left it."""
        # What this step wrote counts first: a message must see those before it in the same step.
        found = self._written.get(key)
        if found is None:
            found = self._find(key)
        # Most steps scrub nothing, and a report is looked up eight times.
        if self._scrubbed and self.name in self._scrubbed:
            return _scrub_row(found)
        return found

    def write(self, key: K, row: StoredRow) -> None:
        """Write a row in this step."""
        before = self._written.get(key)
        # The reader's count is that before the step: new rows are counted here.
        if before is None and self._find(key) is None:
            self._new[key] = None
        self._written[key] = row
        self._undo.append((self._written, self._new, key, before))

    def writes(self) -> Iterator[RowWrite]:
        """The rows that the step has written."""
        for key, row in self._written.items():
            # A row without value and hash was scrubbed in this step, together with its table.
            if row.hash or row.value is not None:
                yield RowWrite(self.name, key, row.value, row.hash, row.kept, key in self._new)

    def accepts(self, key: K, value: V) -> bool:
        """Whether this value could be stored: nothing, or the same, is there."""
        found = self.get(key)
        return found is None or found == value

    def put(self, key: K, value: V) -> bool:
        """Store a value unless another one is there; whether this value is stored now."""
        found = self.get(key)
        # The same value again writes nothing, so that a repeated message costs no disk write.
        if found is None:
            self.overwrite(key, value)
        return found is None or found == value

    def overwrite(self, key: K, value: V) -> None:
        """Store a value instead of the one that is there."""
        self.write(key, StoredRow(value))

    def stream(self, key: K, value: V) -> None:
        """Store a value through the sink of the step, so that it need not stay in memory.

        Such a row is not rolled back.
        """
        if self._sink is None:
            self.overwrite(key, value)
        else:
            self._sink(RowWrite(self.name, key, value))

    def scrub_all(self) -> None:
        """Delete all values; only hashes stay."""
        # What this step wrote is scrubbed at once; stored rows when the step is written.
        for key, row in list(self._written.items()):
            self.write(key, StoredRow(None, row.hash, row.kept))
        self._scrubbed[self.name] = None
        self._undo.append((self._scrubbed, {}, self.name, None))

    def get(self, key: K) -> V | None:
        """The value under a key, or None."""
        found = self.find(key)
        return None if found is None else found.value

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self.find(key) is not None

    def __len__(self) -> int:
        return self._reader.count(self.name) + len(self._new)

    def __iter__(self) -> Iterator[K]:
        # Ascending, so that a reader of a large table can page: its keys come one page at a time.
        before = None
        # A key that was stored before and is written again comes twice in a row.
        stored = self._reader.keys(self.name)
        for key in merge(stored, sorted(self._written)):  # type: ignore[type-var]
            if key != before:
                yield key
            before = key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class AcknowledgedTable(StepTable[K, Any]):
    """A table of participants' messages, stored with the hash that was acknowledged to the sender.

    The hash decides which message counts. Bytes that storage has damaged are noticed (`intact`) and
    repaired when the sender sends the same message again. A deleted message leaves its hash, by
    which the same message is still recognized and another one refused.
    """

    __slots__ = ()

    def accepts(self, key: K, value: Any) -> bool:
        """Whether nothing or the same message was acknowledged under this key."""
        found = self.find(key)
        return found is None or found.hash == _hash(value)

    def put(self, key: K, value: Any, kept: bytes = b"") -> bool:
        """Store a message unless another one was acknowledged; whether this one is stored now.

        kept: what stays when the message is deleted
        """
        found = self.find(key)
        message_hash = _hash(value)
        if found is not None and found.hash != message_hash:
            return False
        # Other bytes under the right hash were damaged in storage: they are written again.
        if found is None or found.value != value:
            self.write(key, StoredRow(value, message_hash, kept, is_intact=True))
        return True

    def kept_after_scrub(self, key: K) -> bytes | None:
        """What stays of a message when it is deleted, the key of its device; None without one."""
        found = self.find(key)
        return None if found is None else found.kept

    def hash_of(self, key: K) -> bytes:
        """The hash that was acknowledged to the sender."""
        found = self.find(key)
        if found is None:
            raise KeyError(key)
        return found.hash

    def intact(self, key: K) -> Any | None:
        """The message as it was acknowledged; None if it was deleted or its bytes have changed."""
        found = self.find(key)
        if found is None or found.value is None:
            return None
        # Hashing is slow for many reports: a row that was compared once is not compared again.
        if not found.is_intact:
            found.is_intact = _hash(found.value) == found.hash
        return found.value if found.is_intact else None

    def scrub(self, key: K) -> None:
        """Delete a message and keep its hash."""
        found = self.find(key)
        if found is not None and found.value is not None:
            self.write(key, StoredRow(None, found.hash, found.kept))


def _hash(message: Any) -> bytes:
    return sha256(encode(message)).digest()


class StepRows:
    """The rows as one step sees them, one table beside the other.

    Writes are collected here and become part of the `Step`. With a `sink`, rows that are streamed
    go there instead, so that closing a survey of any size needs the memory of one manifest part.
    A rejected message is undone (`roll_back`), so that it leaves no trace in a step which handles
    several messages.
    """

    def __init__(self, reader: RowReader, sink: RowSink | None = None) -> None:
        self._undo: list[Undo] = []
        self._scrubbed: dict[str, None] = {}
        # The tables do not refer to this object: with a cycle, everything that a step has touched
        # would stay in memory until Python looks for cycles, which then takes long.
        shared = (reader, sink, self._undo, self._scrubbed)
        self.invited: StepTable[bytes, bytes] = StepTable("invited", *shared)
        self.first_messages: AcknowledgedTable[bytes] = AcknowledgedTable("first_messages", *shared)
        self.public_keys: StepTable[bytes, bytes] = StepTable("keys", *shared)
        self.notices: StepTable[bytes, bytes] = StepTable("notices", *shared)
        self.uploads: AcknowledgedTable[Upload] = AcknowledgedTable("uploads", *shared)
        self.withdrawn: StepTable[bytes, bytes] = StepTable("withdrawn", *shared)
        self.manifest_parts: StepTable[bytes, Message] = StepTable("manifest_parts", *shared)
        self.recorded_parts: StepTable[bytes, Message] = StepTable("recorded_parts", *shared)
        self.report_parts: StepTable[bytes, Message] = StepTable("report_parts", *shared)
        self.verified_parts: StepTable[bytes, Message] = StepTable("verified_parts", *shared)
        self.mac_keys: StepTable[bytes, bytes] = StepTable("mac_keys", *shared)
        self.authentic_entries: StepTable[bytes, bytes] = StepTable("authentic_entries", *shared)
        self.part_verifications: StepTable[bytes, Message] = StepTable(
            "part_verifications", *shared
        )

    def _table(self, name: str) -> StepTable[Any, Any]:
        # The attribute says whose keys they are; the name of the stored table does not.
        attribute = "public_keys" if name == "keys" else name
        table: StepTable[Any, Any] = getattr(self, attribute)
        return table

    def find(self, table: str, key: Any) -> StoredRow | None:
        """The row under a key, as this step has left it."""
        return self._table(table).find(key)

    def scrub(self, table: str) -> None:
        """Delete the values of a table; only hashes stay."""
        if table not in self._scrubbed:
            self._table(table).scrub_all()

    def savepoint(self) -> int:
        """The point before the next message, for `roll_back`."""
        return len(self._undo)

    def roll_back(self, savepoint: int) -> None:
        """Undo what was written since the savepoint: its message was rejected."""
        # Newest first: a row may have been written twice.
        while len(self._undo) > savepoint:
            written, new, key, before = self._undo.pop()
            if before is None:
                # Not None but gone: the reader's row is seen again.
                del written[key]
                new.pop(key, None)
            else:
                written[key] = before

    def step(self, state: S, messages: tuple[Message, ...] = ()) -> Step[S]:
        """The step to this state, with everything that was written."""
        tables = (self._table(name) for name in _TABLES)
        rows = chain.from_iterable(table.writes() for table in tables)
        return Step(state, messages, tuple(rows), tuple(self._scrubbed))
