"""States of the coordinator, the aggregator and a client as bytes; and the rows of both servers.

    stored = "faircount state" 0x00 | u8 version | state (`wire.stored`) | SHA-256 of all that

A server writes its state whenever it changes, and the rows that a step names. Not stored but given
when reading: the live `CryptoSuite`, and to the aggregator the ledger of its population, which many
surveys share and which has a stored form of its own (`survey.stored_ledger`). Whatever is derived
cheaply (graph, tree, ballot) is made again.
"""

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

from faircount.core.errors import MalformedError, ProtocolError
from faircount.protocol.roles.rows import RowWrite, Upload
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, encode, parse
from faircount.protocol.wire.crypto import CryptoSuite, StandardCrypto
from faircount.protocol.wire.field_codecs import FieldCodec, ListOf, VariableBytes
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import (
    VERSION,
    AnyState,
    StoredState,
    decode_value,
    layout_of,
    register_codec,
    stored_codec,
)
from faircount.protocol.wire.stored_codecs import AnyMessage, CustomCodec, Injected, encode_value

KIND = b"faircount state\0"
START = KIND + bytes((VERSION,))
CHECK = 32
S = TypeVar("S", bound=StoredState)


def encode_state(state: StoredState) -> bytes:
    """A state as bytes: small, to be written at every change."""
    return _framed(encode_value(AnyState(StoredState), state))


def decode_state(
    kind: type[S], data: bytes, crypto: CryptoSuite | None = None, ledger: Ledger | None = None
) -> S:
    """The state behind these bytes; `MalformedError` for bytes that are damaged, of another version
    or of no state.
    """
    return cast(S, decode_value(AnyState(kind), _body(data), _live(kind, crypto, ledger)))


def _live(
    kind: type[S], crypto: CryptoSuite | None, ledger: Ledger | None
) -> Mapping[type[Any], Any]:
    """What stands in the fields that are not stored with the state."""
    if ledger is None and any(form == Injected(Ledger) for _, form in layout_of(kind).parts):
        raise ProtocolError(
            "The aggregator is read with the ledger of its population: give that, too"
        )
    return {CryptoSuite: crypto or StandardCrypto(), Ledger: ledger}


def _framed(body: bytes) -> bytes:
    return b"".join((START, body, sha256(START + body).digest()))


def _body(data: bytes) -> memoryview:
    """What is between kind and check, not copied, if these are the bytes of a state and nobody has
    changed them.
    """
    if len(data) < len(START) + CHECK or not data.startswith(KIND):
        raise MalformedError(
            "these bytes are no state of faircount: look whether it is the right file"
        )
    if not hmac.compare_digest(sha256(memoryview(data)[:-CHECK]).digest(), data[-CHECK:]):
        raise MalformedError("this state was changed or damaged: restore it from a copy")
    if not data.startswith(START):
        found = data[len(KIND)]
        raise MalformedError(
            f"this state has version {found}, and this faircount reads {VERSION}: use the "
            "faircount that wrote it"
        )
    return memoryview(data)[len(START) : -CHECK]


# --- rows


@dataclass(frozen=True, slots=True)
class Row:
    """A row as it is stored: what stands under which key, and the hash that its sender was
    given.
    """

    table: str
    key: bytes
    value: bytes = field(repr=False)  # the encoded message (empty if it was deleted), or the bytes
    hash: bytes = b""


class TableForm(NamedTuple):
    """How keys and values of a table are stored."""

    key: FieldCodec
    value: FieldCodec


TABLE_FORMS: Mapping[str, TableForm] = {
    "invited": TableForm(stored_codec(bytes), stored_codec(bytes)),
    "first_messages": TableForm(stored_codec(bytes), stored_codec(Message)),
    "keys": TableForm(stored_codec(bytes), stored_codec(bytes)),
    "uploads": TableForm(stored_codec(Upload), stored_codec(Message)),
    "withdrawn": TableForm(stored_codec(bytes), stored_codec(bytes)),
    "manifest_parts": TableForm(stored_codec(bytes), stored_codec(Message)),
    "mac_keys": TableForm(stored_codec(bytes), stored_codec(bytes)),
    "part_verdicts": TableForm(stored_codec(bytes), stored_codec(Message)),
}


def encode_row(write: RowWrite) -> Row:
    """What a step writes, as it is stored."""
    form = _form(write.table)
    key, value = _raw(form.key, write.key), _raw(form.value, write.value)
    return Row(write.table, key, value, write.hash)


def decode_row(row: Row) -> RowWrite:
    """What a step has written."""
    form = _form(row.table)
    key, value = _parsed(form.key, row.key), _parsed(form.value, row.value)
    return RowWrite(row.table, key, value, row.hash)


def encode_key(table: str, key: Any) -> bytes:
    """The key of a row as it is stored."""
    return _raw(_form(table).key, key)


def encode_rows(writes: Iterable[RowWrite]) -> bytes:
    """Rows in one piece, for another process."""
    return encode_value(_ROWS, [encode_row(write) for write in writes])


def decode_rows(data: bytes) -> list[RowWrite]:
    """The rows behind these bytes."""
    return [decode_row(row) for row in decode_value(_ROWS, data)]


def _form(table: str) -> TableForm:
    form = TABLE_FORMS.get(table)
    if form is None:
        raise MalformedError("there is no table of this name")
    return form


def _raw(kind: FieldCodec, value: Any) -> bytes:
    """A key or value by itself: bytes and messages need no length in front."""
    if isinstance(kind, AnyMessage):
        return b"" if value is None else encode(value)
    return bytes(value) if isinstance(kind, VariableBytes) else encode_value(kind, value)


def _parsed(kind: FieldCodec, raw: bytes) -> Any:
    if isinstance(kind, AnyMessage):
        return parse(raw) if raw else None
    return raw if isinstance(kind, VariableBytes) else decode_value(kind, raw)


# --- values with a form of their own


@lru_cache(maxsize=64)
def _parameters(published: bytes) -> SurveyParameters:
    """Cached: parsing computes every derived number again, and all states of a survey hold the
    same bytes.
    """
    return SurveyParameters.parse(published)


def _statement(raw: bytes) -> Statement:
    signed = parse(raw)
    if not isinstance(signed, Signed):
        raise MalformedError("a statement is signed")
    return Statement(signed, parse(signed.payload))


register_codec(
    SurveyParameters, CustomCodec("SurveyParameters", attrgetter("published"), _parameters)
)
register_codec(
    Statement, CustomCodec("Statement", lambda statement: encode(statement.signed), _statement)
)
register_codec(Ledger, Injected(Ledger))
register_codec(CryptoSuite, Injected(CryptoSuite))
_ROWS = ListOf(layout_of(Row))
