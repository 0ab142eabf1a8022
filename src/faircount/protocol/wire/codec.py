"""Every message as bytes, in exactly one way: fixed-width big-endian numbers, stated lengths, nothing left over.

    message = u8 version | u8 tag | fields in order | the first 8 bytes of the SHA-256 of all that
    u8, u32, i64; fixed-length bytes as they are; other bytes after a u32 length; lists after a u32 count

The check at the end is no secret's: it tells bytes that were changed on their way or in a store from those that were
sent, so that S1 never acknowledges, and S2 never sees, nearly the blob of a user. A message class says its layout with
its annotations (`U32`, `Hash`, `Blob`, `tuple[Entry, ...]`, or `Sequence[Blob]` where users send the list), so the
layout is written once. `parse` raises for bytes of nothing; `wire.decode` makes a `Rejected` of them.
"""

import struct
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin, get_type_hints

from faircount.core.errors import MalformedError

VERSION = 2
CHECK = 8
"""Bytes at the end of every message that tell whether the others were changed."""
MOST_BYTES = 1 << 30
"""Bodies above this are refused unread; a service sets lower limits per route."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Marks bytes of one length."""

    size: int


@dataclass(frozen=True, slots=True)
class Number:
    """Marks a whole number of a fixed width, in the notation of the struct module."""

    code: str


Id = Annotated[bytes, Fixed(16)]
Hash = Annotated[bytes, Fixed(32)]
Signature = Annotated[bytes, Fixed(64)]
U8 = Annotated[int, Number(">B")]
U32 = Annotated[int, Number(">I")]
I64 = Annotated[int, Number(">q")]
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


def message(tag: int, to: Party) -> Callable[[type[M]], type[M]]:
    """Register a frozen dataclass as the message with this tag. Tags are never given to two classes."""

    def register(kind: type[M]) -> type[M]:
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


class FieldKind(ABC):
    """How one field, or one record, is written and read. What a kind prints says its layout, and nothing else."""

    def longest(self, elements: int, blob: int) -> int:
        """Bytes of the longest value with so many elements in every list, and so long blobs; of messages alone."""
        raise TypeError(f"a field of kind {self!r} stands in no message")

    @abstractmethod
    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the bytes of a value."""

    @abstractmethod
    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""


@dataclass(frozen=True, slots=True)
class FixedBytes(FieldKind):
    """Bytes of one length, as they are."""

    size: int

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return self.size

    def write(self, value: Any, parts: list[bytes]) -> None:
        """As they are."""
        if len(value) != self.size:
            raise MalformedError(f"{self.size} bytes are needed here, not {len(value)}")
        parts.append(value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """As many as there must be."""
        end = at + self.size
        if end > len(data):
            raise MalformedError("the bytes end too early")
        return data[at:end], end


@dataclass(frozen=True, slots=True)
class Integer(FieldKind):
    """A whole number of a fixed width."""

    form: struct.Struct

    def __repr__(self) -> str:
        return f"Integer({self.form.format})"

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return self.form.size

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Big endian."""
        try:
            parts.append(self.form.pack(value))
        except struct.error:
            raise MalformedError(f"{value} does not fit in {self.form.size} bytes") from None

    def read(self, data: bytes, at: int) -> tuple[int, int]:
        """Big endian."""
        try:
            return self.form.unpack_from(data, at)[0], at + self.form.size
        except struct.error:
            raise MalformedError("the bytes end too early") from None


LENGTH = Integer(struct.Struct(">I"))


@dataclass(frozen=True, slots=True)
class VariableBytes(FieldKind):
    """Bytes after their length."""

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return 4 + blob

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The length, then the bytes."""
        LENGTH.write(len(value), parts)
        parts.append(value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """As many as the length says."""
        start, end = self.bounds(data, at)
        return data[start:end], end

    def bounds(self, data: bytes, at: int) -> tuple[int, int]:
        """Where the bytes begin and end."""
        size, at = LENGTH.read(data, at)
        if at + size > len(data):
            raise MalformedError("the bytes end too early")
        return at, at + size


BYTES = VariableBytes()


@dataclass(frozen=True, slots=True)
class ListOf(FieldKind):
    """Values of one kind after their number."""

    each: FieldKind

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return 4 + elements * self.each.longest(elements, blob)

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The number, then every value."""
        LENGTH.write(len(value), parts)
        for one in value:
            self.each.write(one, parts)

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """As many as the number says."""
        count, at = self.count(data, at)
        found = []
        for _ in range(count):
            one, at = self.each.read(data, at)
            found.append(one)
        return tuple(found), at

    def count(self, data: bytes, at: int) -> tuple[int, int]:
        """The number, and where the first value begins."""
        count, at = LENGTH.read(data, at)
        if count > len(data) - at:  # every element has at least one byte: a huge count cannot make us allocate
            raise MalformedError("a list is longer than the bytes that hold it")
        return count, at


class Packed(Sequence[Any]):
    """A list as it arrived: its values stay in the bytes of the message, and each is read when it is asked for.

    Python's own objects for short values take up to twelve times their bytes, and a list is read before its sender
    has shown a credential.
    """

    __slots__ = ("_data", "_each", "_starts")

    def __init__(self, each: FieldKind, data: bytes, starts: Sequence[int]) -> None:
        self._each, self._data, self._starts = each, data, starts

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, which: Any) -> Any:
        found = self._starts[which]
        return tuple(map(self._at, found)) if isinstance(which, slice) else self._at(found)

    def _at(self, start: int) -> Any:
        return self._each.read(self._data, start)[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Packed):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class PackedListOf(ListOf):
    """A list in a user's message: numbers, or bytes after their length. Written as any list, and left packed."""

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """As many as the number says, checked and not built; four bytes for each whose place must be remembered."""
        count, at = self.count(data, at)
        if isinstance(self.each, Integer):
            end = at + count * (step := self.each.form.size)
            if end > len(data):
                raise MalformedError("the bytes end too early")
            return Packed(self.each, data, range(at, end, step)), end
        starts = array("I")
        for _ in range(count):
            starts.append(at)
            _, at = BYTES.bounds(data, at)
        return Packed(self.each, data, starts), at


@dataclass(frozen=True, slots=True)
class Record(FieldKind):
    """The fields of a dataclass, in order."""

    kind: type[Any]
    parts: tuple[tuple[str, FieldKind], ...]

    @classmethod
    def of(cls, kind: type[Any], kind_of: Callable[[Any], FieldKind]) -> Self:
        """The record of a class, its fields read as `kind_of` says."""
        hints = get_type_hints(kind, include_extras=True)
        return cls(kind, tuple((each.name, kind_of(hints[each.name])) for each in fields(kind)))

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(f'{name}: {part!r}' for name, part in self.parts)})"

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return sum(part.longest(elements, blob) for _, part in self.parts)

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Field after field."""
        for name, part in self.parts:
            part.write(getattr(value, name), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """Field after field."""
        found = []
        for _, part in self.parts:
            value, at = part.read(data, at)
            found.append(value)
        return self.kind(*found), at


_LAYOUTS: dict[type[Any], Record] = {}


def _layout(kind: type[Any]) -> Record:
    """The layout of a class, worked out once."""
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = Record.of(kind, kind_of)
    return _LAYOUTS[kind]


def kind_of(hint: Any) -> FieldKind:
    """How a field of a message with this annotation is written."""
    if hint is bytes:
        return VariableBytes()
    if get_origin(hint) is tuple:
        return ListOf(kind_of(get_args(hint)[0]))
    if get_origin(hint) is Sequence:
        return PackedListOf(kind_of(get_args(hint)[0]))
    if get_origin(hint) is Annotated:
        mark = hint.__metadata__[0]
        return FixedBytes(mark.size) if isinstance(mark, Fixed) else Integer(struct.Struct(mark.code))
    return _layout(hint)
