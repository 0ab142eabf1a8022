"""The states of S1, S2 and a device as bytes: in one piece, or as a head and the rows of its stores.

    stored = "faircount state" 0x00 | u8 part | state (`wire.stored`) | rows, if it is the whole | SHA-256 of all that

A server writes its head whenever it changes, and rows that are new or were exchanged; a backup, and a device, are one
piece. Not stored
but given when reading: the live `Sealing`, and to S2 the ledger of its population, which many surveys share and which
has a stored form of its own (`survey.stored_ledger`). Whatever is derived cheaply (graph, tree, ballot) is made again.
"""

import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, TypeVar, cast

from faircount.core.errors import MalformedError, ProtocolError
from faircount.protocol.roles.write_once import Acknowledged, Elsewhere, WriteOnce
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.field_kinds import FieldKind, ListOf, VariableBytes
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.sealing import RealSealing, Sealing
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import AnyState, StoredState, layout_of, read_all, stored_as
from faircount.protocol.wire.stored_kinds import AnyMessage, Live, OwnForm, RowStore, Several, write_all

KIND = b"faircount state\0"
HEAD, WHOLE = b"\0", b"\1"
CHECK = 32
S = TypeVar("S", bound=StoredState)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a store: under which key what stands, and the hash that its sender was given (else empty)."""

    store: str
    key: bytes
    value: bytes = field(repr=False)  # the encoded message (empty if it was deleted), or the bytes
    hash: bytes = b""


def encode_state(state: StoredState) -> bytes:
    """A state in one piece, with all that is in its stores."""
    rows = write_all(_ROWS, list(rows_of(state)))
    return _framed(WHOLE, write_all(AnyState(StoredState), state), rows)


def decode_state(kind: type[S], data: bytes, sealing: Sealing | None = None, ledger: Ledger | None = None) -> S:
    """The state behind these bytes; `MalformedError` for bytes that are damaged, of another version or of no state."""
    state, rows = read_all(Several((AnyState(kind), _ROWS)), _body(WHOLE, data), _live(kind, sealing, ledger))
    for row in rows:
        add_row(state, row)
    return cast(S, state)


def encode_head(state: StoredState) -> bytes:
    """A state without what is in its stores: small, to be written at every change."""
    return _framed(HEAD, write_all(AnyState(StoredState), state))


def decode_head(kind: type[S], data: bytes, sealing: Sealing | None = None, ledger: Ledger | None = None) -> S:
    """The state behind a head, its stores empty: `add_row` fills them."""
    return cast(S, read_all(AnyState(kind), _body(HEAD, data), _live(kind, sealing, ledger)))


def _live(kind: type[S], sealing: Sealing | None, ledger: Ledger | None) -> Mapping[type[Any], Any]:
    """What stands in the fields that are not stored with the state."""
    if ledger is None and any(form == Live(Ledger) for _, form in layout_of(kind).parts):
        raise ProtocolError("S2 is read with the ledger of its population: give that, too")
    return {Sealing: sealing or RealSealing(), Ledger: ledger}


def rows_of(state: StoredState) -> Iterator[Row]:
    """Every row of the state's stores, in the order of writing."""
    return (row_of(type(state), *entry) for entry in entries_of(state))


def entries_of(state: StoredState, stores: Iterable[str] | None = None) -> Iterator[tuple[str, Any, Any, bytes]]:
    """Store, key, value and acknowledged hash of all that is in the state's stores, or in some of them."""
    for name in stores_of(type(state)) if stores is None else stores:
        for entry in _items(getattr(state, name)):
            yield (name, *entry)


def row_of(kind: type[StoredState], store: str, key: Any, value: Any, given: bytes) -> Row:
    """An entry of a store as a row."""
    form = stores_of(kind)[store]
    return Row(store, _raw(form.key, key), _raw(form.value, value), given)


def add_row(state: StoredState, row: Row) -> None:
    """Put a row back into the store from which it came, in place; nothing may stand there yet."""
    form = stores_of(type(state)).get(row.store)
    if form is None:
        raise MalformedError(f"a {type(state).__name__} has no store of this name")
    store, key, value = getattr(state, row.store), _parsed(form.key, row.key), _parsed(form.value, row.value)
    if not _load(store, key, value, row.hash):
        raise MalformedError(f"two rows of {row.store} have the same key: restore a copy")


def held_elsewhere(state: StoredState, store: str, others: Elsewhere) -> None:
    """Say of a state that was not given all rows which further ones its storage holds."""
    written = getattr(state, store, None)
    if isinstance(written, WriteOnce):
        written.held_elsewhere(others)


def is_scrubbed(state: StoredState, store: str) -> bool:
    """Whether only the hashes of a store are left."""
    written = getattr(state, store, None)
    return isinstance(written, Acknowledged) and written.is_scrubbed


def entry_of(kind: type[StoredState], row: Row) -> tuple[Any, Any]:
    """Key and value of a row, as they stand in its store."""
    form = stores_of(kind)[row.store]
    return _parsed(form.key, row.key), _parsed(form.value, row.value)


_STORES: dict[type[StoredState], Mapping[str, RowStore]] = {}


def stores_of(kind: type[StoredState]) -> Mapping[str, RowStore]:
    """The stores of a state, found once."""
    if kind not in _STORES:
        _STORES[kind] = {name: form for name, form in layout_of(kind).parts if isinstance(form, RowStore)}
    return _STORES[kind]


def _items(store: Any) -> Iterator[tuple[Any, Any, bytes]]:
    if isinstance(store, WriteOnce):
        return store.rows()
    return ((key, value, b"") for key, value in store.items())


def _load(store: Any, key: Any, value: Any, given: bytes) -> bool:
    if isinstance(store, WriteOnce):
        return store.load(key, value, given)
    free = key not in store
    store[key] = value
    return free


def _raw(kind: FieldKind, value: Any) -> bytes:
    """A key or value by itself: bytes and messages need no length in front."""
    if isinstance(kind, AnyMessage):
        return b"" if value is None else encode(value)
    return bytes(value) if isinstance(kind, VariableBytes) else write_all(kind, value)


def _parsed(kind: FieldKind, raw: bytes) -> Any:
    if isinstance(kind, AnyMessage):
        return parse(raw) if raw else None
    return raw if isinstance(kind, VariableBytes) else read_all(kind, raw)


def _framed(*parts: bytes) -> bytes:
    check = sha256(KIND)
    for each in parts:
        check.update(each)
    return b"".join((KIND, *parts, check.digest()))


def _body(part: bytes, data: bytes) -> memoryview:
    """What is between kind and check, not copied, if these are the bytes of a state and nobody has changed them."""
    start = KIND + part
    if len(data) < len(start) + CHECK or not data.startswith(KIND):
        raise MalformedError("these bytes are no state of faircount: look whether it is the right file")
    if not hmac.compare_digest(sha256(memoryview(data)[:-CHECK]).digest(), data[-CHECK:]):
        raise MalformedError("this state was changed or damaged: restore it from a copy")
    if not data.startswith(start):
        raise MalformedError("a head is read with decode_head and its rows, a whole state with decode_state")
    return memoryview(data)[len(start) : -CHECK]


# --- values with a form of their own


@lru_cache(maxsize=64)
def _parameters(published: bytes) -> SurveyParameters:
    """Cached: parsing computes every derived number again, and all states of a survey hold the same bytes."""
    return SurveyParameters.parse(published)


def _statement(raw: bytes) -> Statement:
    signed = parse(raw)
    if not isinstance(signed, Signed):
        raise MalformedError("a statement is signed")
    return Statement(signed, parse(signed.payload))


stored_as(SurveyParameters, OwnForm("SurveyParameters", attrgetter("published"), _parameters))
stored_as(Statement, OwnForm("Statement", lambda statement: encode(statement.signed), _statement))
stored_as(Ledger, Live(Ledger))
stored_as(Sealing, Live(Sealing))
_ROWS = ListOf(layout_of(Row))
