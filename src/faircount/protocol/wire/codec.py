"""Every message as bytes, in exactly one way: fixed-width big-endian numbers, stated lengths, nothing left over.

    message = u8 version | u8 tag | fields in order | the first 8 bytes of the SHA-256 of all that
    u8, u32, i64; fixed-length bytes as they are; other bytes after a u32 length; lists after a u32 count

The check at the end is no secret's: it tells bytes that were changed on their way or in a store from those that were
sent, so that S1 never acknowledges, and S2 never sees, nearly the blob of a user. A message class says its layout with
its annotations (`U32`, `Hash`, `Blob`, `tuple[Entry, ...]`, or `Sequence[Entry]` where the list is read before its
sender is known), so the layout is written once. `parse` raises for bytes of nothing; `wire.decode` makes a `Rejected`.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from hashlib import sha256
from typing import Annotated, Any, ClassVar, TypeVar, dataclass_transform, get_args, get_origin

from faircount.core.errors import MalformedError
from faircount.protocol.wire.field_kinds import (
    LENGTH,
    FieldKind,
    FixedBytes,
    Integer,
    ListOf,
    Packed,
    PackedListOf,
    Record,
    VariableBytes,
)

VERSION = 2
CHECK = 8
"""Bytes at the end of every message that tell whether the others were changed."""
MOST_BYTES = 1 << 30
"""Bodies above this are refused unread; a service sets lower limits per route."""


Id = Annotated[bytes, FixedBytes(16)]
Hash = Annotated[bytes, FixedBytes(32)]
Signature = Annotated[bytes, FixedBytes(64)]
U8 = Annotated[int, Integer(struct.Struct(">B"))]
U32 = Annotated[int, LENGTH]
I64 = Annotated[int, Integer(struct.Struct(">q"))]
Blob = bytes


class Party(IntEnum):
    """Addresses of section 5; users have their place in the roster."""

    USER = 0
    S1 = 0xFFFFFFFE
    S2 = 0xFFFFFFFF


class Message:
    """Base of everything that travels. `to` says who reads it; USER is whoever asked."""

    __slots__ = ()
    tag: ClassVar[int]
    to: ClassVar[Party]


_CLASSES: dict[int, type[Message]] = {}
M = TypeVar("M", bound=Message)


@dataclass_transform(frozen_default=True)
def message(tag: int, to: Party) -> Callable[[type[M]], type[M]]:
    """Make a class the message with this tag: a frozen dataclass. Tags are never given to two classes."""

    def register(body: type[M]) -> type[M]:
        kind = dataclass(frozen=True, slots=True)(body)
        known = _CLASSES.setdefault(tag, kind)
        if known.__qualname__ != kind.__qualname__:
            raise TypeError(f"tag {tag} belongs to {known.__qualname__}")
        kind.tag, kind.to = tag, to
        kind.__repr__ = _shape  # type: ignore[method-assign, assignment]  # instead of what dataclass wrote
        return kind

    return register


def _shape(what: Message) -> str:
    """A message as it may be logged: its numbers, and how long everything else is. Shares and credentials stay in."""
    values = ((each.name, getattr(what, each.name)) for each in fields(what))  # type: ignore[arg-type]  # a dataclass
    plain = (int, Message)
    shown = (f"{name}={value!r}" if isinstance(value, plain) else f"{name}=<{len(value)}>" for name, value in values)
    return f"{type(what).__name__}({', '.join(shown)})"


def encode(what: Message) -> bytes:
    """The bytes of a message."""
    parts = [bytes((VERSION, what.tag))]
    _layout(type(what)).write(what, parts)
    return framed(b"".join(parts))


def size_with_blobs(what: Message, count: int, size: int) -> int:
    """Bytes of a message if its empty list held so many blobs of this size: lists can be longer than memory."""
    return len(encode(what)) + count * (LENGTH.form.size + size)


def framed(body: bytes) -> bytes:
    """The bytes with their check."""
    return body + sha256(body).digest()[:CHECK]


def parse(data: bytes) -> Message:
    """The message behind these bytes; raises `MalformedError` for any others."""
    if not 2 + CHECK <= len(data) <= MOST_BYTES or data[0] != VERSION or data[1] not in _CLASSES:
        raise MalformedError("not a message of this version: unknown version or tag, or too long")
    kind, size = _CLASSES[data[1]], len(data) - CHECK
    if sha256(memoryview(data)[:size]).digest()[:CHECK] != data[size:]:  # no copy: the sender is not known yet
        raise MalformedError("the bytes were changed on their way: send them again")
    found, end = _layout(kind).read(data, 2)
    if end != size:
        what = f"{size - end} bytes too many after" if end < size else "the bytes end too early for"
        raise MalformedError(f"{what} a {kind.__name__}")
    return found  # type: ignore[no-any-return]  # the layout of a message class reads that class


def class_of(data: bytes) -> type[Message] | None:
    """The class that these bytes say they are, unread."""
    return _CLASSES.get(data[1]) if len(data) > 1 else None


def most_bytes(kind: type[Message], elements: int, blob: int) -> int:
    """The longest form of a message whose lists have at most so many elements and whose blobs so many bytes."""
    return 2 + _layout(kind).longest(elements, blob) + CHECK


_LAYOUTS: dict[type[Any], Record] = {}


def _layout(kind: type[Any]) -> Record:
    """The layout of a class, worked out once."""
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = Record.of(kind, kind_of)
    return _LAYOUTS[kind]


def packed(kind: type[Any], values: Iterable[Any]) -> Packed:
    """Records of one class, all equally long, as a list that holds their bytes and no objects."""
    each, data = _layout(kind), bytearray()
    for value in values:
        parts: list[bytes] = []
        each.write(value, parts)
        data += b"".join(parts)
    return Packed(each, bytes(data), range(0, len(data), each.width or 1))


def kind_of(hint: Any) -> FieldKind:
    """How a field of a message with this annotation is written."""
    if hint is bytes:
        return VariableBytes()
    if get_origin(hint) is tuple:
        return ListOf(kind_of(get_args(hint)[0]))
    if get_origin(hint) is Sequence:
        return PackedListOf(kind_of(get_args(hint)[0]))
    if get_origin(hint) is Annotated:
        kind: FieldKind = hint.__metadata__[0]
        return kind
    return _layout(hint)
