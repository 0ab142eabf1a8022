"""Codecs of stored states beyond those of messages (`field_codecs`); `stored` finds them.

Every value has one encoding, so that reading a state and writing it again gives the same bytes: a
set is sorted, a boolean is 0 or 1, and repeated keys are refused.
"""

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
from faircount.protocol.wire.field_codecs import (
    LENGTH,
    FieldCodec,
    Integer,
    ListOf,
    VariableBytes,
)

INT64 = Integer(struct.Struct(">q"))
UINT8 = Integer(struct.Struct(">B"))
BYTES = VariableBytes()
DTYPES = ("|b1", "|u1", "<u2", "<u4", "<u8", "<i8")
"""Number types of stored arrays. Their positions are stored: append only, and never reorder."""


class StoredBytes(bytes):
    """The bytes of a state that is being read.

    `injected` has the objects, by class, for the fields that are not stored with the state.
    """

    injected: Mapping[type[Any], Any]


def encode_value(form: FieldCodec, value: Any) -> bytes:
    """The bytes of a value."""
    parts: list[bytes] = []
    form.write(value, parts)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Boolean(FieldCodec):
    """True or false, in one byte."""

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append 1 or 0."""
        # By truth and not by value: NumPy's booleans are stored like Python's.
        parts.append(b"\1" if value else b"\0")

    def read(self, data: bytes, at: int) -> tuple[bool, int]:
        """1 or 0; any other byte is refused."""
        value, at = UINT8.read(data, at)
        if value > 1:
            raise MalformedError("a boolean is stored as 0 or 1")
        return value == 1, at


@dataclass(frozen=True, slots=True)
class EnumMember(FieldCodec):
    """A member of an enumeration with text values, stored as its value."""

    members: type[Enum]

    def __repr__(self) -> str:
        return f"EnumMember({', '.join(str(member.value) for member in self.members)})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the member's value."""
        BYTES.write(value.value.encode(), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The member with this value."""
        text, at = BYTES.read(data, at)
        try:
            return self.members(text.decode()), at
        except ValueError:
            raise MalformedError(f"no {self.members.__name__} has this value") from None


@dataclass(frozen=True, slots=True)
class TaggedUnion(FieldCodec):
    """A value of one of several classes, after the position of its class in the annotation.

    A class without a codec is NoneType: its position is all that is stored.
    """

    classes: tuple[type[Any], ...]
    codecs: tuple[FieldCodec | None, ...]

    def __repr__(self) -> str:
        return f"TaggedUnion{self.codecs}"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the position of the class, then the value."""
        for position, kind in enumerate(self.classes):
            if not isinstance(value, kind):
                continue
            # The position and no name: a class may be renamed, and stored states stay readable.
            parts.append(bytes((position,)))
            form = self.codecs[position]
            if form is not None:
                form.write(value, parts)
            return
        raise MalformedError(f"a {type(value).__name__} cannot be stored here")

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """A value of the class at this position."""
        position, at = UINT8.read(data, at)
        if position >= len(self.codecs):
            raise MalformedError(f"class {position} of {len(self.codecs)} cannot stand here")
        form = self.codecs[position]
        return (None, at) if form is None else form.read(data, at)


@dataclass(frozen=True, slots=True)
class AnyMessage(FieldCodec):
    """A message of one of these classes, with the same bytes as on the wire."""

    classes: tuple[type[Message], ...]

    def __repr__(self) -> str:
        return f"AnyMessage({', '.join(str(getattr(kind, 'tag', 'any')) for kind in self.classes)})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the length, then the encoded message."""
        BYTES.write(codec.encode(value), parts)

    def read(self, data: bytes, at: int) -> tuple[Message, int]:
        """The message, whose checksum is verified as well."""
        raw, at = BYTES.read(data, at)
        # The bytes that a sender signed or was acknowledged for are kept, not a second encoding.
        parsed = codec.parse(raw)
        if not isinstance(parsed, self.classes):
            raise MalformedError(f"a {type(parsed).__name__} cannot stand here")
        return parsed, at


@dataclass(frozen=True, slots=True)
class FixedTuple(FieldCodec):
    """A tuple of fixed length with one codec per position."""

    codecs: tuple[FieldCodec, ...]

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append one value after the other."""
        for form, member in zip(self.codecs, value, strict=True):
            form.write(member, parts)

    def read(self, data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        """A value for each position."""
        values = []
        for form in self.codecs:
            value, at = form.read(data, at)
            values.append(value)
        return tuple(values), at


@dataclass(frozen=True, slots=True)
class SetOf(FieldCodec):
    """A set, sorted by the bytes of its elements."""

    element: FieldCodec

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the count, then the elements in order."""
        LENGTH.write(len(value), parts)
        # Sets iterate in an order that depends on the process: sorted, equal sets are equal bytes.
        parts += sorted(encode_value(self.element, member) for member in value)

    def read(self, data: bytes, at: int) -> tuple[frozenset[Any], int]:
        """The set; a repeated element is refused."""
        values, at = ListOf(self.element).read(data, at)
        distinct = frozenset(values)
        if len(distinct) != len(values):
            raise MalformedError("a set names something twice")
        return distinct, at


@dataclass(frozen=True, slots=True)
class MapOf(FieldCodec):
    """A mapping, in the order of its keys as inserted."""

    key: FieldCodec
    value: FieldCodec

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the count, then key and value of every entry."""
        # Not sorted, unlike a set: the order in which entries came is part of some states.
        ListOf(FixedTuple((self.key, self.value))).write(value.items(), parts)

    def read(self, data: bytes, at: int) -> tuple[dict[Any, Any], int]:
        """The mapping; a repeated key is refused."""
        entries, at = ListOf(FixedTuple((self.key, self.value))).read(data, at)
        values = dict(entries)
        if len(values) != len(entries):
            raise MalformedError("a mapping names a key twice")
        return values, at


@dataclass(frozen=True, slots=True)
class Array(FieldCodec):
    """A NumPy array: number type, shape, and little-endian elements."""

    dtypes: tuple[str, ...]

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append u8 number type, u8 dimensions, u64 sizes, elements."""
        code = value.dtype.newbyteorder("<").str
        # Wider types are not converted: the element type is part of what equality compares.
        if code not in self.dtypes:
            raise MalformedError(f"an array of {value.dtype} cannot be stored here")
        parts.append(bytes((DTYPES.index(code), value.ndim)))
        parts += [size.to_bytes(8, "big") for size in value.shape]
        parts.append(value.astype(code, copy=False).tobytes())

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """A writable array of an allowed type, with no more elements than there are bytes."""
        (code, dimensions), at = FixedTuple((UINT8, UINT8)).read(data, at)
        if code >= len(DTYPES) or DTYPES[code] not in self.dtypes or dimensions > 2:
            raise MalformedError("an array of this type or shape cannot stand here")
        dtype = np.dtype(DTYPES[code])
        shape = []
        for _ in range(dimensions):
            shape.append(int.from_bytes(data[at : at + 8], "big"))
            at += 8

        # Python integers do not overflow here. The second test refuses shapes such as (2^40, 0),
        # which have no elements and which NumPy cannot always represent.
        end = at + prod(shape) * dtype.itemsize
        if end > len(data) or max(shape, default=0) > len(data):
            raise MalformedError("the bytes end too early")
        # NumPy takes any byte for a boolean; two encodings of True would break equality.
        if dtype.kind == "b" and data[at:end].strip(b"\0\1"):
            raise MalformedError("an array of booleans has a byte that is neither 0 nor 1")
        elements = np.frombuffer(data[at:end], dtype).reshape(shape)
        return elements.astype(dtype.newbyteorder("=")), end


@dataclass(frozen=True, slots=True)
class CustomCodec(FieldCodec):
    """A class with conversions of its own from and to bytes, which follow a length."""

    name: str
    to_bytes: Callable[[Any], bytes]
    from_bytes: Callable[[bytes], Any]

    def __repr__(self) -> str:
        return self.name

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the length, then the converted value."""
        BYTES.write(self.to_bytes(value), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value converted back."""
        raw, at = BYTES.read(data, at)
        return self.from_bytes(raw), at


@dataclass(frozen=True, slots=True)
class Injected(FieldCodec):
    """A field that is not stored: the reader supplies the object, such as the shared ledger."""

    kind: type[Any]

    def __repr__(self) -> str:
        return "Injected"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append nothing."""

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The object that the reader supplied."""
        # None when somebody decodes the field alone, for example in a test of its layout.
        return data.injected[self.kind] if isinstance(data, StoredBytes) else None, at


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise MalformedError("this is not text in UTF-8") from None


TEXT = CustomCodec("Text", str.encode, _decode_text)
