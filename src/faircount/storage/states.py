"""A state of the protocol in the database: a sealed head, written when it has changed, and sealed rows, written once.

    load -> a role's step -> save, all in one transaction; the answers go out after it

Where a step needs only the rows of those who have sent something (`wanted`), no others are read, and their number is
known from a counter: memory does not grow with the users held. All other steps read every row, and drop them again.

When the last word is said, what is left is written under a new key; destroy the old one once that is committed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

from faircount.protocol import Aggregator, Coordinator, Ledger, Row, add_row, decode_head, encode_head
from faircount.protocol.roles.coordinator import backup
from faircount.protocol.roles.stored import entries_of, held_elsewhere, row_of
from faircount.protocol.survey.states import FINAL
from faircount.storage.database import Record, Transaction, marks
from faircount.storage.keys import NONCE, KeyFolder, RowKey, survey_key

S = TypeVar("S", bound=Coordinator | Aggregator)
Place = tuple[str, bytes]
"""Store and key of a row."""

USERS = "bodies"
"""The store of S1 with one row per user."""

MOST_HEADS = 8
"""Heads that are kept in memory as read."""


@dataclass(frozen=True)
class SurveyRow:
    """A line of `surveys`."""

    id: bytes
    params: bytes
    owner: bytes
    sealed: bytes | None
    generation: int
    version: int
    head_version: int
    state: str
    attempt: int
    users: int
    people: int
    opened_at: int | None
    due_at: int | None
    since: int
    extended: int

    @classmethod
    def of(cls, record: Record) -> "SurveyRow":
        """From what the database said."""
        return cls(**{name: record[name] for name in _COLUMNS})


_COLUMNS = tuple(SurveyRow.__dataclass_fields__)
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM surveys"  # noqa: S608 - names of our own columns


async def find(tx: Transaction, survey: bytes, *, change: bool = False) -> SurveyRow | None:
    """A survey; with `change` nobody else changes it before this transaction ends."""
    found = await (tx.held if change else tx.one)(f"{_SELECT} WHERE id = ?", survey)
    return None if found is None else SurveyRow.of(found)


async def insert(tx: Transaction, row: SurveyRow) -> None:
    """A new survey."""
    values = tuple(getattr(row, name) for name in _COLUMNS)
    await tx.run(f"INSERT INTO surveys ({', '.join(_COLUMNS)}) VALUES {marks(values)}", *values)  # noqa: S608 - as above


async def update(tx: Transaction, survey: bytes, **change: Any) -> None:
    """Change columns of a survey."""
    names = ", ".join(f"{name} = ?" for name in change)
    values = (*change.values(), survey)
    await tx.run_many(f"UPDATE surveys SET {names} WHERE id = ?", [values])  # noqa: S608 - as above


@dataclass(frozen=True)
class Loaded(Generic[S]):
    """A state as it was read: what `save` compares with."""

    row: SurveyRow
    state: S
    entries: Mapping[tuple[str, Any], Any]


class States(Generic[S]):
    """The states of one role."""

    def __init__(self, kind: type[S], keys: KeyFolder) -> None:
        self._kind, self._keys = kind, keys
        self._heads: dict[bytes, tuple[bytes, Coordinator]] = {}

    async def load(
        self, tx: Transaction, row: SurveyRow, ledger: Ledger | None = None, wanted: Sequence[Place] | None = None
    ) -> Loaded[S]:
        """The state, with all of its rows or with those wanted; of a survey that has a head."""
        rows = await _rows(tx, row.id, wanted)
        if wanted is None:  # many rows: others need not wait while they are opened
            return await asyncio.to_thread(self._loaded, row, ledger, rows)
        found = self._loaded(row, ledger, rows)
        held_elsewhere(found.state, USERS, row.users - sum(each["store"] == USERS for each in rows))
        return found

    def _loaded(self, row: SurveyRow, ledger: Ledger | None, rows: Sequence[Record]) -> Loaded[S]:
        key = self._keys.get(survey_key(row.id, row.generation))
        state = self._head(row, key, ledger)
        for each in rows:
            add_row(state, _opened(key, row, each))
        return Loaded(row, state, {(store, at): value for store, at, value, _ in entries_of(state)})

    def _head(self, row: SurveyRow, key: RowKey, ledger: Ledger | None) -> S:
        """The state with empty stores. S1 decodes a head once: everybody's access is in it, and users come all day."""
        known, sealed = self._heads.get(row.id), row.sealed or b""
        if known is not None and known[0] == sealed[:NONCE]:  # not the version: a restore gives it out again
            return cast(S, backup(known[1]))
        state = decode_head(self._kind, key.open(_head_place(row.id, row.generation), sealed), None, ledger)
        if isinstance(state, Coordinator):
            self._heads[row.id] = sealed[:NONCE], backup(state)
            while len(self._heads) > MOST_HEADS:
                self._heads.pop(next(iter(self._heads)))
        return state

    async def save(self, tx: Transaction, before: Loaded[S], after: S) -> SurveyRow:
        """Write what the step has changed; the line of the survey as it stands now."""
        row = before.row
        if after.state in FINAL and row.generation == 0:
            return await self._scrub(tx, row, after)
        changed = [
            row_of(self._kind, store, key, value, given)
            for store, key, value, given in entries_of(after)
            if (store, key) not in before.entries or before.entries[store, key] is not value
        ]
        new_users = sum(store == USERS and (store, key) not in before.entries for store, key, _, _ in entries_of(after))
        if not changed and after is before.state:
            return row
        key = self._keys.get(survey_key(row.id, row.generation))
        await _write_rows(tx, key, row, changed)
        head = None if after is before.state else after
        return await self._write_survey(tx, key, replace(row, users=row.users + new_users), head)

    async def begin(self, tx: Transaction, row: SurveyRow, state: S) -> SurveyRow:
        """Write the first state of a survey; its key is on the disk before."""
        key = self._keys.create(survey_key(row.id, row.generation))
        await _write_rows(tx, key, row, [row_of(self._kind, *each) for each in entries_of(state)])
        return await self._write_survey(tx, key, row, state)

    async def add(self, tx: Transaction, row: SurveyRow, rows: Iterable[Row]) -> None:
        """Rows of a state that was begun, before its first step: the people whom the owner tells S2 of."""
        await _write_rows(tx, self._keys.get(survey_key(row.id, row.generation)), row, list(rows))

    async def _scrub(self, tx: Transaction, row: SurveyRow, after: S) -> SurveyRow:
        """The survey is over: what is left of it, under another key. Seals of invitations are needed no more."""
        last = replace(row, generation=1)
        key = self._keys.create(survey_key(row.id, last.generation))
        await tx.run("DELETE FROM state_rows WHERE survey = ?", row.id)
        left = [] if isinstance(after, Aggregator) else [row_of(self._kind, *each) for each in entries_of(after)]
        await _write_rows(tx, key, last, left)
        return await self._write_survey(tx, key, last, after)

    async def _write_survey(self, tx: Transaction, key: RowKey, row: SurveyRow, head: S | None) -> SurveyRow:
        change: dict[str, Any] = {"users": row.users, "version": row.version + 1}
        if head is not None:
            change |= {
                "sealed": key.seal(_head_place(row.id, row.generation), encode_head(head)),
                "generation": row.generation,
                "head_version": row.head_version + 1,
                "state": str(head.state),
                "attempt": head.attempt if isinstance(head, Coordinator) else 0,
            }
        await update(tx, row.id, **change)
        return replace(row, **change)

    def forget_old_key(self, row: SurveyRow) -> None:
        """After the commit: destroy the key of the live state of a survey that is over."""
        if row.generation:
            self._keys.destroy(survey_key(row.id, 0))


def _head_place(survey: bytes, generation: int) -> bytes:
    return b"head" + survey + bytes((generation,))


def _row_place(row: SurveyRow, store: str, key: bytes) -> bytes:
    return b"row" + row.id + bytes((row.generation, len(store))) + store.encode() + key


async def _rows(tx: Transaction, survey: bytes, wanted: Sequence[Place] | None) -> Sequence[Record]:
    select = "SELECT store, key, hash, sealed FROM state_rows WHERE survey = ?"
    if wanted is None:
        return await tx.all(f"{select} ORDER BY store, key", survey)
    if not wanted:
        return ()
    keys = _padded({key for _, key in wanted})
    found = await tx.all(f"{select} AND key IN {marks(keys)}", survey, *keys)
    places = set(wanted)
    return [each for each in found if (each["store"], bytes(each["key"])) in places]


def _padded(keys: Iterable[bytes]) -> tuple[bytes, ...]:
    """So many keys, the last one repeated, that there are few statements in all: a database prepares each once."""
    found = tuple(keys)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))


def _opened(key: RowKey, row: SurveyRow, each: Record) -> Row:
    place = _row_place(row, each["store"], each["key"])
    value = b"" if each["sealed"] is None else key.open(place, each["sealed"])
    return Row(each["store"], each["key"], value, each["hash"])


async def _write_rows(tx: Transaction, key: RowKey, row: SurveyRow, rows: Sequence[Row]) -> None:
    lines = [
        (row.id, each.store, each.key, each.hash,
         key.seal(_row_place(row, each.store, each.key), each.value) if each.value else None)
        for each in rows
    ]  # fmt: skip
    if lines:
        await tx.run_many(_PUT_ROW, lines)


_PUT_ROW = (
    "INSERT INTO state_rows (survey, store, key, hash, sealed) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (survey, store, key) DO UPDATE SET hash = excluded.hash, sealed = excluded.sealed"
)
