"""States of the coordinator, the aggregator and a client as bytes, and the rows of both servers.

    stored = "faircount state" 0x00 | u8 version | state (`wire.stored`) | SHA-256 of all that

A server writes its state whenever it changes, together with the rows of the step. Two fields are
not stored but injected when a state is read: the `CryptoSuite`, and for the aggregator the ledger
of its population, which many surveys share and which is stored by itself (`survey.stored_ledger`).
What can be derived cheaply (graph, tree, ballot) is derived again.

Rows of a table have keys and values of fixed types (`TABLE_CODECS`), so they are stored without
tags or lengths.
"""

import hmac
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

from faircount.core.errors import MalformedError, ProtocolError
from faircount.protocol.roles.rows import RowWrite, Upload
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.topology import load_all_roles
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
    """A state as bytes."""
    return _frame(encode_value(AnyState(StoredState), state))


def decode_state(
    kind: type[S], data: bytes, crypto: CryptoSuite | None = None, ledger: Ledger | None = None
) -> S:
    """The state in these bytes.

    Args:
        kind: the class of the state
        data: what `encode_state` returned
        crypto: injected into the state; the standard suite unless given
        ledger: injected into the aggregator's state, which needs one

    Raises:
        MalformedError: the bytes are damaged, of another version, or not of such a state
    """
    # The bytes name the class of a state by its tag, and a class is known once it is loaded.
    load_all_roles()
    # Checked before decoding, which would fail much later and say less.
    needs_ledger = any(form == Injected(Ledger) for _, form in layout_of(kind).parts)
    if needs_ledger and ledger is None:
        raise ProtocolError("an aggregator's state is read with the ledger of its population")
    injected: Mapping[type[Any], Any] = {CryptoSuite: crypto or StandardCrypto(), Ledger: ledger}
    return cast(S, decode_value(AnyState(kind), _unframe(data), injected))


def _frame(encoded: bytes) -> bytes:
    """An encoded state with its prefix and checksum."""
    return b"".join((START, encoded, sha256(START + encoded).digest()))


def _unframe(data: bytes) -> memoryview:
    """The encoded state between prefix and checksum, not copied, if the checksum matches."""
    # In this order, so that each error says what to do: another file, damage, another version.
    if len(data) < len(START) + CHECK or not data.startswith(KIND):
        raise MalformedError(
            "these bytes are not a state of faircount: check whether it is the right file"
        )
    # Views instead of slices: a state can be many megabytes.
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


@dataclass(slots=True)
class Row:
    """A row as it is stored. Not frozen, like `RowWrite`, and not changed either.

    Attributes:
        table: the table
        key: the encoded key
        value: the encoded value; empty for a message that was deleted
        hash: the hash that was acknowledged to the sender of a message
        kept: what stays when the message is deleted
    """

    table: str
    key: bytes
    value: bytes = field(repr=False)
    hash: bytes = b""
    kept: bytes = field(default=b"", repr=False)


class TableCodecs(NamedTuple):
    """The codecs of a table's keys and values."""

    key: FieldCodec
    value: FieldCodec


class BareForms(NamedTuple):
    """How keys and values of a table become bytes that fill their columns, and are read again."""

    write_key: Callable[[Any], bytes]
    write_value: Callable[[Any], bytes]
    read_key: Callable[[bytes], Any]
    read_value: Callable[[bytes], Any]


TABLE_CODECS: Mapping[str, TableCodecs] = {
    "invited": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "first_messages": TableCodecs(stored_codec(bytes), stored_codec(Message)),
    "keys": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "notices": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "uploads": TableCodecs(stored_codec(Upload), stored_codec(Message)),
    "withdrawn": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "manifest_parts": TableCodecs(stored_codec(bytes), stored_codec(Message)),
    "recorded_parts": TableCodecs(stored_codec(bytes), stored_codec(Message)),
    "report_parts": TableCodecs(stored_codec(bytes), stored_codec(Message)),
    "verified_parts": TableCodecs(stored_codec(bytes), stored_codec(Message)),
    "mac_keys": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "authentic_entries": TableCodecs(stored_codec(bytes), stored_codec(bytes)),
    "part_verifications": TableCodecs(stored_codec(bytes), stored_codec(Message)),
}


def forms_of(table: str) -> BareForms:
    """How keys and values of a table become bytes."""
    forms = _BARE_FORMS.get(table)
    if forms is None:
        raise MalformedError("there is no table of this name")
    return forms


def encode_row(write: RowWrite) -> Row:
    """A row that a step writes, as it is stored."""
    forms = forms_of(write.table)
    key = forms.write_key(write.key)
    return Row(write.table, key, forms.write_value(write.value), write.hash, write.kept)


def decode_row(row: Row) -> RowWrite:
    """The row that a step wrote."""
    forms = forms_of(row.table)
    key = forms.read_key(row.key)
    return RowWrite(row.table, key, forms.read_value(row.value), row.hash, row.kept)


def encode_key(table: str, key: Any) -> bytes:
    """The key of a row as it is stored."""
    return forms_of(table).write_key(key)


def encode_rows(writes: Iterable[RowWrite]) -> bytes:
    """Several rows as bytes, for another process."""
    return encode_value(_ROWS, [encode_row(write) for write in writes])


def decode_rows(data: bytes) -> list[RowWrite]:
    """The rows in these bytes."""
    return [decode_row(row) for row in decode_value(_ROWS, data)]


def _bare_writer(codec: FieldCodec) -> Callable[[Any], bytes]:
    """Writes a key or value that fills its column: bytes and messages need no length in front."""
    if isinstance(codec, AnyMessage):
        return _write_message
    if isinstance(codec, VariableBytes):
        return bytes
    return partial(encode_value, codec)


def _bare_reader(codec: FieldCodec) -> Callable[[bytes], Any]:
    if isinstance(codec, AnyMessage):
        return _read_message
    if isinstance(codec, VariableBytes):
        return bytes
    return partial(decode_value, codec)


def _write_message(message: Message | None) -> bytes:
    # No message is empty, so empty bytes can stand for a deleted one.
    return b"" if message is None else encode(message)


def _read_message(data: bytes) -> Message | None:
    return parse(data) if data else None


# Chosen once and not for every row.
_BARE_FORMS = {
    table: BareForms(
        _bare_writer(codecs.key),
        _bare_writer(codecs.value),
        _bare_reader(codecs.key),
        _bare_reader(codecs.value),
    )
    for table, codecs in TABLE_CODECS.items()
}


# --- values that are stored as the bytes which others have signed or hashed


@lru_cache(maxsize=64)
def parse_parameters(published: bytes) -> SurveyParameters:
    """The parameters in published bytes."""
    # Parsing computes every derived number again, and all states of a survey have the same bytes.
    return SurveyParameters.parse(published)


def _parse_statement(data: bytes) -> Statement:
    signed = parse(data)
    if not isinstance(signed, Signed):
        raise MalformedError("a statement is a signed message")
    # The signature was verified before the statement was stored.
    return Statement(signed, parse(signed.payload))


register_codec(
    SurveyParameters, CustomCodec("SurveyParameters", attrgetter("published"), parse_parameters)
)
register_codec(
    Statement,
    CustomCodec("Statement", lambda statement: encode(statement.signed), _parse_statement),
)
register_codec(Ledger, Injected(Ledger))
register_codec(CryptoSuite, Injected(CryptoSuite))
_ROWS = ListOf(layout_of(Row))
