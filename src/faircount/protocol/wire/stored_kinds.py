"""Kinds of fields that states have beside those of messages (`codec`); `stored` finds them by annotation."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Any

import numpy as np

from faircount.core.errors import MalformedError
from faircount.protocol.wire import codec
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.field_kinds import LENGTH, FieldKind, Integer, ListOf, VariableBytes

WHOLE = Integer(struct.Struct(">q"))
BYTE = Integer(struct.Struct(">B"))
BYTES = VariableBytes()
DTYPES = ("|b1", "|u1", "<u2", "<u4", "<u8", "<i8")
"""Arrays are stored as one of these; their places in this list never change."""


class StoredBytes(bytes):
    """Bytes of a state that are being read, with the objects, by class, for the fields that are not stored with it."""

    live: Mapping[type[Any], Any]


def write_all(kind: FieldKind, value: Any) -> bytes:
    """The bytes of a value."""
    parts: list[bytes] = []
    kind.write(value, parts)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Flag(FieldKind):
    """True or false."""

    def write(self, value: Any, parts: list[bytes]) -> None:
        """One byte."""
        parts.append(b"\1" if value else b"\0")

    def read(self, data: bytes, at: int) -> tuple[bool, int]:
        """0 or 1, and nothing else."""
        value, at = BYTE.read(data, at)
        if value > 1:
            raise MalformedError("a flag is 0 or 1")
        return value == 1, at


FLAG = Flag()


@dataclass(frozen=True, slots=True)
class Choice(FieldKind):
    """A member of an enumeration of words."""

    words: type[Enum]

    def __repr__(self) -> str:
        return f"Choice({', '.join(str(each.value) for each in self.words)})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The word."""
        BYTES.write(value.value.encode(), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The member with this word."""
        word, at = BYTES.read(data, at)
        try:
            return self.words(word.decode()), at
        except ValueError:
            raise MalformedError(f"no {self.words.__name__} has this name") from None


@dataclass(frozen=True, slots=True)
class OneOf(FieldKind):
    """A value of one of several classes; None is one of them where there may be no value."""

    classes: tuple[type[Any], ...]
    kinds: tuple[FieldKind | None, ...]

    def __repr__(self) -> str:
        return f"OneOf{self.kinds}"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Which class, then the value."""
        for which, (each, kind) in enumerate(zip(self.classes, self.kinds, strict=True)):
            if isinstance(value, each):
                parts.append(bytes((which,)))
                return None if kind is None else kind.write(value, parts)
        raise MalformedError(f"a {type(value).__name__} cannot be stored here")

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """A value of the class that is named."""
        which, at = BYTE.read(data, at)
        if which >= len(self.kinds):
            raise MalformedError("no value of this kind can stand here")
        kind = self.kinds[which]
        return (None, at) if kind is None else kind.read(data, at)


@dataclass(frozen=True, slots=True)
class AnyMessage(FieldKind):
    """A message of one of these classes, as it travels."""

    classes: tuple[type[Message], ...]

    def __repr__(self) -> str:
        return f"AnyMessage({', '.join(each.__name__ for each in self.classes)})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Its bytes, after their length."""
        BYTES.write(codec.encode(value), parts)

    def read(self, data: bytes, at: int) -> tuple[Message, int]:
        """The message, with its own check."""
        raw, at = BYTES.read(data, at)
        found = codec.parse(raw)
        if not isinstance(found, self.classes):
            raise MalformedError(f"a {type(found).__name__} cannot stand here")
        return found, at


@dataclass(frozen=True, slots=True)
class Several(FieldKind):
    """A tuple with one value of each kind."""

    kinds: tuple[FieldKind, ...]

    def write(self, value: Any, parts: list[bytes]) -> None:
        """One after the other."""
        for kind, each in zip(self.kinds, value, strict=True):
            kind.write(each, parts)

    def read(self, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        """One after the other."""
        found = []
        for kind in self.kinds:
            value, at = kind.read(data, at)
            found.append(value)
        return tuple(found), at


@dataclass(frozen=True, slots=True)
class SetOf(FieldKind):
    """A set, ascending by the bytes of its values."""

    each: FieldKind

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The number, then every value, sorted."""
        LENGTH.write(len(value), parts)
        parts += sorted(write_all(self.each, one) for one in value)

    def read(self, data: bytes, at: int) -> tuple[frozenset[Any], int]:
        """Values of which none comes twice."""
        found, at = ListOf(self.each).read(data, at)
        values = frozenset(found)
        if len(values) != len(found):
            raise MalformedError("a set names something twice")
        return values, at


@dataclass(frozen=True, slots=True)
class MapOf(FieldKind):
    """A mapping, in its own order."""

    key: FieldKind
    value: FieldKind

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The number, then key and value of each."""
        ListOf(Several((self.key, self.value))).write(value.items(), parts)

    def read(self, data: bytes, at: int) -> tuple[dict[Any, Any], int]:
        """Keys of which none comes twice."""
        found, at = ListOf(Several((self.key, self.value))).read(data, at)
        values = dict(found)
        if len(values) != len(found):
            raise MalformedError("a mapping names a key twice")
        return values, at


@dataclass(frozen=True, slots=True)
class Array(FieldKind):
    """An array: number type and shape stated, the elements little endian."""

    dtypes: tuple[str, ...]

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Type, dimensions, sizes, elements."""
        code = value.dtype.newbyteorder("<").str
        if code not in self.dtypes:
            raise MalformedError(f"an array of {value.dtype} cannot be stored here")
        parts.append(bytes((DTYPES.index(code), value.ndim)))
        parts += [size.to_bytes(8, "big") for size in value.shape]
        parts.append(value.astype(code, copy=False).tobytes())

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """An array of its own, of a type that may stand here, and of no more elements than there are bytes."""
        (code, dimensions), at = Several((BYTE, BYTE)).read(data, at)
        if code >= len(DTYPES) or DTYPES[code] not in self.dtypes or dimensions > 2:
            raise MalformedError("an array of this type or shape cannot stand here")
        shape = [int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "big") for i in range(dimensions)]
        at, dtype = at + 8 * dimensions, np.dtype(DTYPES[code])
        end = at + prod(shape) * dtype.itemsize
        if end > len(data) or max(shape, default=0) > len(data):
            raise MalformedError("the bytes end too early")
        if dtype.kind == "b" and data[at:end].strip(b"\0\1"):
            raise MalformedError("a mark is 0 or 1")
        found = np.frombuffer(data[at:end], dtype).reshape(shape)
        return found.astype(dtype.newbyteorder("=")), end


@dataclass(frozen=True, slots=True)
class OwnForm(FieldKind):
    """A value that says by itself how it becomes bytes and comes back."""

    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]

    def __repr__(self) -> str:
        return self.name

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Its bytes, after their length."""
        BYTES.write(self.to_bytes(value), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """What its bytes say."""
        raw, at = BYTES.read(data, at)
        return self.from_bytes(raw), at


@dataclass(frozen=True, slots=True)
class ReadAs(FieldKind):
    """What an older version stored in another form; it is read, and written no more."""

    form: FieldKind
    become: Callable[[Any], Any]

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Never: a state is written in its newest version."""
        raise MalformedError("this form is read, and written no more")

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """What the value has become."""
        value, at = self.form.read(data, at)
        return self.become(value), at


def absent(begin: Callable[[], Any]) -> ReadAs:
    """What an older version did not store: it begins as it would in a new state."""
    return ReadAs(Several(()), lambda _: begin())


@dataclass(frozen=True, slots=True)
class Live(FieldKind):
    """What is not stored with the state: the object given when reading."""

    kind: type[Any]

    def __repr__(self) -> str:
        return f"Live({self.kind.__name__})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Nothing."""

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The object that was given."""
        return data.live[self.kind] if isinstance(data, StoredBytes) else None, at


@dataclass(frozen=True, slots=True)
class RowStore(FieldKind):
    """A store that is kept by row: among the fields stands only whether its messages were deleted for good."""

    store: type[Any]
    key: FieldKind
    value: FieldKind

    def __repr__(self) -> str:
        return f"{self.store.__name__}({self.key!r}, {self.value!r})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """The flag alone: its rows are written apart."""
        FLAG.write(getattr(value, "is_scrubbed", False), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """Empty, to be filled with its rows."""
        scrubbed, at = FLAG.read(data, at)
        if scrubbed and not hasattr(self.store, "is_scrubbed"):
            raise MalformedError("this store holds no messages that could be deleted")
        return self.store(scrubbed=True) if scrubbed else self.store(), at


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedError("this is no text") from None


TEXT = OwnForm("Text", str.encode, _text)
