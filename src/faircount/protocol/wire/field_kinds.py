"""How one field of a message is written and read, and lists that stay packed until their sender is known."""

import struct
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, get_type_hints

from faircount.core.errors import MalformedError


class FieldKind(ABC):
    """How one field, or one record, is written and read. What a kind prints says its layout, and nothing else."""

    def longest(self, elements: int, blob: int) -> int:
        """Bytes of the longest value with so many elements in every list, and so long blobs; of messages alone."""
        if self.width is None:
            raise TypeError(f"a field of kind {self!r} stands in no message")
        return self.width

    @property
    def width(self) -> int | None:
        """Bytes of every value, if all have the same number."""
        return None

    @abstractmethod
    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the bytes of a value."""

    def write_each(self, values: Iterable[Any], parts: list[bytes]) -> None:
        """Append the bytes of values, one after the other."""
        for value in values:
            self.write(value, parts)

    @abstractmethod
    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""

    def end(self, data: bytes, at: int) -> int:
        """Where the value that begins here ends; kinds of which lists stay packed build nothing to find out."""
        return self.read(data, at)[1]


def _within(data: bytes, end: int) -> int:
    """The end of a value, if there are so many bytes."""
    if end > len(data):
        raise MalformedError("the bytes end too early")
    return end


@dataclass(frozen=True, slots=True)
class FixedBytes(FieldKind):
    """Bytes of one length, as they are."""

    size: int

    @property
    def code(self) -> str:
        """In the notation of the struct module."""
        return f"{self.size}s"

    @property
    def width(self) -> int:
        """Always the same."""
        return self.size

    def write(self, value: Any, parts: list[bytes]) -> None:
        """As they are."""
        if len(value) != self.size:
            raise MalformedError(f"{self.size} bytes are needed here, not {len(value)}")
        parts.append(value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """As many as there must be."""
        end = _within(data, at + self.size)
        return data[at:end], end


@dataclass(frozen=True, slots=True)
class Integer(FieldKind):
    """A whole number of a fixed width."""

    form: struct.Struct

    def __repr__(self) -> str:
        return f"Integer({self.form.format})"

    @property
    def code(self) -> str:
        """In the notation of the struct module, without the order of bytes."""
        return self.form.format[1:]

    @property
    def width(self) -> int:
        """Always the same."""
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
        self.write_each((value,), parts)

    def write_each(self, values: Iterable[Any], parts: list[bytes]) -> None:
        """Length and bytes of each."""
        size = LENGTH.form.pack
        for value in values:
            parts += (size(len(value)), value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """As many as the length says."""
        end = self.end(data, at)
        return data[at + LENGTH.width : end], end

    def end(self, data: bytes, at: int) -> int:
        """Where the length says."""
        size, at = LENGTH.read(data, at)
        return _within(data, at + size)


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
        self.each.write_each(value, parts)

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """As many as the number says."""
        count, at = self.count(data, at)
        found = []
        for _ in range(count):
            one, at = self.each.read(data, at)
            found.append(one)
        return tuple(found), at

    def end(self, data: bytes, at: int) -> int:
        """After as many as the number says."""
        count, at = self.count(data, at)
        if self.each.width is not None:
            return _within(data, at + count * self.each.width)
        for _ in range(count):
            at = self.each.end(data, at)
        return at

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

    def __iter__(self) -> Iterator[Any]:
        return map(self._at, self._starts)

    def _at(self, start: int) -> Any:
        return self._each.read(self._data, start)[0]

    def holds(self, each: FieldKind) -> bool:
        """Whether its values are of this kind."""
        return self._each == each

    @property
    def raw(self) -> bytes:
        """The bytes of all values, one after the other."""
        if not self._starts:
            return b""
        return self._data[self._starts[0] : self._each.end(self._data, self._starts[-1])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Packed):
            return NotImplemented
        if isinstance(other, Packed) and other.holds(self._each):
            return self.raw == other.raw
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class PackedListOf(ListOf):
    """A list that can be long, or is read before its sender is known. Written as any list, and left packed."""

    def write(self, value: Any, parts: list[bytes]) -> None:
        """As any list; one that is packed is not taken apart."""
        if not isinstance(value, Packed) or not value.holds(self.each):
            ListOf.write(self, value, parts)
            return
        LENGTH.write(len(value), parts)
        parts.append(value.raw)

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """As many as the number says, checked and not built; four bytes for each whose place must be remembered."""
        count, at = self.count(data, at)
        if self.each.width is not None:
            end = _within(data, at + count * self.each.width)
            return Packed(self.each, data, range(at, end, self.each.width)), end
        starts = array("I")
        for _ in range(count):
            starts.append(at)
            at = self.each.end(data, at)
        return Packed(self.each, data, starts), at


@dataclass(frozen=True, slots=True)
class Record(FieldKind):
    """The fields of a dataclass, in order."""

    kind: type[Any]
    parts: tuple[tuple[str, FieldKind], ...]
    whole: struct.Struct | None = field(default=None, compare=False)  # all fields at once, if each has a fixed width

    @classmethod
    def of(cls, kind: type[Any], kind_of: Callable[[Any], FieldKind]) -> Self:
        """The record of a class, its fields read as `kind_of` says."""
        hints = get_type_hints(kind, include_extras=True)
        parts = tuple((each.name, kind_of(hints[each.name])) for each in fields(kind))
        codes = [part.code for _, part in parts if isinstance(part, FixedBytes | Integer)]
        return cls(kind, parts, struct.Struct(">" + "".join(codes)) if len(codes) == len(parts) else None)

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(f'{name}: {part!r}' for name, part in self.parts)})"

    @property
    def width(self) -> int | None:
        """That of all fields together."""
        found = [part.width for _, part in self.parts]
        return None if None in found else sum(each for each in found if each is not None)

    def longest(self, elements: int, blob: int) -> int:
        """At most so many bytes."""
        return sum(part.longest(elements, blob) for _, part in self.parts)

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Field after field."""
        for name, part in self.parts:
            part.write(getattr(value, name), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """Field after field."""
        if self.whole is not None:
            end = _within(data, at + self.whole.size)
            return self.kind(*self.whole.unpack_from(data, at)), end
        found = []
        for _, part in self.parts:
            value, at = part.read(data, at)
            found.append(value)
        return self.kind(*found), at

    def end(self, data: bytes, at: int) -> int:
        """After the last field."""
        for _, part in self.parts:
            at = part.end(data, at)
        return at
