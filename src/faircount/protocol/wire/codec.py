"""The encoding of messages: every message has exactly one sequence of bytes.

    message  = u8 version | u8 tag | fields in order | checksum
    checksum = first 8 bytes of SHA-256 over everything before it

Numbers are big endian (u8, u32, i64). Bytes of a fixed length stand as they are, other bytes follow
a u32 length, lists follow a u32 count. Nothing may be left over. TLS presentation language, in
which DAP defines its messages, leads to the same layouts; the checksum is our addition.

The checksum is a truncated SHA-256: it detects corruption and is not a MAC, since anybody can
compute it. It keeps the coordinator from acknowledging, and the aggregator from decrypting, an
encrypted share that was damaged in transit or in a store. Who sent a message is shown by
credentials and signatures (`signing`).

A message class declares its layout with annotations: `U32`, `Hash`, `VarBytes`,
`tuple[Entry, ...]`, or `Sequence[Entry]` for a list that stays packed until its sender is known
(`field_codecs.PackedList`). `parse` raises for bytes that are no message; `messages.decode` turns
that into a `Rejection`.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from hashlib import sha256
from importlib import import_module
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_args, get_origin

from faircount.core.errors import MalformedError
from faircount.protocol.wire.field_codecs import (
    LENGTH,
    FieldCodec,
    FixedBytes,
    Integer,
    ListOf,
    PackedList,
    PackedListOf,
    Record,
    VariableBytes,
)

VERSION = 2
CHECKSUM_BYTES = 8

KEPT_BYTES = 1 << 14
"""Up to this length a message that was parsed keeps its bytes.

A report is parsed, hashed, stored and, after it was read again, hashed again. Long messages would
take twice their memory.
"""

MAX_MESSAGE_BYTES = 1 << 30
"""Longer messages are refused unread; a server sets lower limits for each route."""


Id = Annotated[bytes, FixedBytes(16)]
Hash = Annotated[bytes, FixedBytes(32)]
Signature = Annotated[bytes, FixedBytes(64)]
U8 = Annotated[int, Integer(struct.Struct(">B"))]
U32 = Annotated[int, LENGTH]
I64 = Annotated[int, Integer(struct.Struct(">q"))]

VarBytes = bytes
"""Bytes of any length, after a u32 length: `opaque<0..2^32-1>` in TLS presentation language."""


class Party(IntEnum):
    """Addresses of the parties on the wire; a client is addressed by its place in the roster."""

    CLIENT = 0
    COORDINATOR = 0xFFFFFFFE
    AGGREGATOR = 0xFFFFFFFF


class Message:
    """Base class of all messages.

    `to` is the party that receives the message; CLIENT stands for whichever client asked.
    """

    # The bytes of the message, where they are known already and short (`keep_encoding`).
    __slots__ = ("_encoded",)
    _encoded: bytes
    tag: ClassVar[int]
    to: ClassVar[Party]
    # The first bytes of every message of this class: version and tag.
    first_bytes: ClassVar[bytes]


_CLASSES: dict[int, type[Message]] = {}

# Modules with message classes. They are loaded when the first message is decoded that is not known
# yet, so that whoever decodes knows every message, and a plan, which decodes none, loads none.
_MODULES = ["faircount.protocol.wire.messages", "faircount.protocol.wire.roster_messages"]
M = TypeVar("M", bound=Message)


@dataclass_transform(frozen_default=True)
def message_fields(body: type[M]) -> type[M]:
    """Make a class a dataclass whose fields nobody sets: a message, or what several begin with."""
    # Frozen for the type checker only: at run time a frozen one takes five times as long to make,
    # and a server makes three of them for every report.
    return dataclass(slots=True, unsafe_hash=True)(body)


@dataclass_transform(frozen_default=True)
def message(tag: int, to: Party) -> Callable[[type[M]], type[M]]:
    """Make a class the message with this tag.

    A tag belongs to one class for good: bytes that were stored or signed must not change meaning.
    """

    def register(body: type[M]) -> type[M]:
        kind = message_fields(body)
        # By name, because `slots=True` and a reload make new class objects of the same class.
        known = _CLASSES.setdefault(tag, kind)
        if known.__qualname__ != kind.__qualname__:
            raise TypeError(f"tag {tag} belongs to {known.__qualname__}: choose a free one")
        kind.tag = tag
        kind.to = to
        kind.first_bytes = bytes((VERSION, tag))
        # The repr that dataclass wrote would print shares and credentials into logs.
        kind.__repr__ = _loggable  # type: ignore[method-assign, assignment]
        return kind

    return register


def declare_messages(module: str) -> None:
    """Say that a module has message classes, without loading it."""
    _MODULES.append(module)


def message_classes() -> Mapping[int, type[Message]]:
    """All message classes by their tags."""
    for module in _MODULES:
        import_module(module)
    return _CLASSES


def _class_of(tag: int) -> type[Message] | None:
    """The message class with this tag; None if there is none."""
    return _CLASSES.get(tag) or message_classes().get(tag)


def _loggable(shown: Message) -> str:
    """A message as it may be logged: its numbers, and the length of everything else."""
    texts = []
    for field in fields(shown):  # type: ignore[arg-type]  # every message is a dataclass
        value = getattr(shown, field.name)
        text = repr(value) if isinstance(value, (int, Message)) else f"<{len(value)}>"
        texts.append(f"{field.name}={text}")
    return f"{type(shown).__name__}({', '.join(texts)})"


def encode(outgoing: Message) -> bytes:
    """The bytes of a message."""
    # Every message has one sequence of bytes, so those that it was parsed from are the same.
    known: bytes | None = getattr(outgoing, "_encoded", None)
    if known is not None:
        return known
    kind = type(outgoing)
    parts = [kind.first_bytes]
    _layout(kind).write(outgoing, parts)
    return add_checksum(b"".join(parts))


def size_with_encrypted_shares(empty: Message, count: int, size: int) -> int:
    """Bytes of a message if its empty list had `count` encrypted shares of `size` bytes.

    Computed rather than built: such a list can be larger than memory.
    """
    return len(encode(empty)) + count * (LENGTH.form.size + size)


def add_checksum(body: bytes) -> bytes:
    """The bytes followed by their checksum."""
    return body + sha256(body).digest()[:CHECKSUM_BYTES]


def parse(data: bytes) -> Message:
    """The message that these bytes encode; raises `MalformedError` for any other bytes."""
    if (
        not 2 + CHECKSUM_BYTES <= len(data) <= MAX_MESSAGE_BYTES
        or data[0] != VERSION
        or (kind := _class_of(data[1])) is None
    ):
        raise MalformedError("not a message of this version: unknown version or tag, or too long")
    size = len(data) - CHECKSUM_BYTES

    # Hash through a view: the sender is not known yet, and a copy would double the memory that a
    # stranger can make a server use.
    if sha256(memoryview(data)[:size]).digest()[:CHECKSUM_BYTES] != data[size:]:
        raise MalformedError("the bytes were changed on their way: send them again")

    parsed, end = _layout(kind).read(data, 2)
    # One message has one encoding: with bytes left over, two would share a meaning and differ in
    # their hash. A field that reaches into the checksum shows as an end that is too far.
    if end < size:
        raise MalformedError(f"{size - end} bytes too many after a {kind.__name__}")
    if end > size:
        raise MalformedError(f"the bytes end too early for a {kind.__name__}")
    if len(data) <= KEPT_BYTES:
        keep_encoding(parsed, bytes(data))
    return parsed  # type: ignore[no-any-return]  # the layout of a message class reads that class


def keep_encoding(encoded: Message, data: bytes) -> None:
    """Keep the bytes of a message with it, for `encode`."""
    # Nobody sets its fields. A copy with other fields (`replace`) does not have these bytes.
    encoded._encoded = data


def peek_class(data: bytes) -> type[Message] | None:
    """The class that the tag names, without reading further; None if the tag is unknown."""
    # Servers look up the size limit of the class with it, before they hash or parse anything.
    return _class_of(data[1]) if len(data) > 1 else None


def max_encoded_size(kind: type[Message], elements: int, variable_bytes: int) -> int:
    """The longest encoding of a message class.

    elements: most elements of each of its lists
    variable_bytes: most bytes of each field of variable length
    """
    return 2 + _layout(kind).longest(elements, variable_bytes) + CHECKSUM_BYTES


_LAYOUTS: dict[type[Any], Record] = {}


def _layout(kind: type[Any]) -> Record:
    """The layout of a class, derived once."""
    found = _LAYOUTS.get(kind)
    if found is None:
        found = _LAYOUTS[kind] = Record.of(kind, codec_for)
    return found


def pack_records(kind: type[Any], values: Iterable[Any]) -> PackedList:
    """Records of one class and one width as a packed list, which keeps their bytes, not objects."""
    layout = _layout(kind)
    data = bytearray()
    for value in values:
        parts: list[bytes] = []
        layout.write(value, parts)
        data += b"".join(parts)
    # The width is None only for records of variable length, which callers do not pass.
    return PackedList(layout, bytes(data), range(0, len(data), layout.width or 1))


def codec_for(hint: Any) -> FieldCodec:
    """The codec of a message field with this annotation."""
    # `VarBytes` is an alias of bytes; fixed lengths are annotated with their codec.
    if hint is bytes:
        return VariableBytes()
    if get_origin(hint) is tuple:
        return ListOf(codec_for(get_args(hint)[0]))
    if get_origin(hint) is Sequence:
        return PackedListOf(codec_for(get_args(hint)[0]))
    if get_origin(hint) is Annotated:
        codec: FieldCodec = hint.__metadata__[0]
        return codec
    return _layout(hint)
