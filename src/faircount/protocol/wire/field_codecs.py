"""How one field of a message becomes bytes and is read again, and lists that stay packed.

A codec writes a value by appending bytes to a list, and reads a value from a position in the whole
message, returning it with the position after it. Codecs are derived from the annotations of a
message class (`codec.codec_for`) and composed: a `Record` has one codec per field, a list has one
for its elements.

A server must decode an upload before it can look at the credential inside. Python objects for short
values take up to twelve times the bytes of the message, so a stranger could exhaust its memory with
a legal message. Lists that a client sends are therefore read as a `PackedList`: the codec checks
every length, and then keeps the bytes and the positions of the elements. An element is decoded each
time somebody asks for it, which happens only after the sender was authenticated.
"""

import struct
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import groupby, starmap
from operator import attrgetter
from typing import Any, Self, get_type_hints

from faircount.core.errors import MalformedError


class FieldCodec(ABC):
    """Writes and reads one field, or one record.

    The repr of a codec describes its layout and nothing else: tests compare hashes of it to notice
    that a stored layout has changed.
    """

    def longest(self, elements: int, variable_bytes: int) -> int:
        """Bytes of the longest value, for codecs that messages use.

        elements: most elements of a list
        variable_bytes: most bytes of a value of variable length
        """
        if self.width is None:
            raise TypeError(f"{self!r} is a codec of stored states: messages cannot use it")
        return self.width

    @property
    def width(self) -> int | None:
        """Bytes of every value if all have the same length, otherwise None."""
        return None

    @abstractmethod
    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the bytes of a value."""

    def write_each(self, values: Iterable[Any], parts: list[bytes]) -> None:
        """Append the bytes of several values."""
        for value in values:
            self.write(value, parts)

    @abstractmethod
    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The value at this position, and the position after it."""

    def read_each(self, data: bytes, starts: Sequence[int]) -> Iterator[Any]:
        """The values at these positions, which follow each other without gaps."""
        return (self.read(data, start)[0] for start in starts)

    def end(self, data: bytes, at: int) -> int:
        """The position after the value; codecs used in packed lists find it without decoding."""
        return self.read(data, at)[1]


def _check_end(data: bytes, end: int) -> int:
    """The end of a value, refused if it lies beyond the data."""
    # A slice beyond the end would silently be shorter than the length field says.
    if end > len(data):
        raise MalformedError("the bytes end too early")
    return end


@dataclass(frozen=True, slots=True)
class FixedBytes(FieldCodec):
    """Bytes of a fixed length, without a length field."""

    size: int

    @property
    def code(self) -> str:
        """The format in the notation of the struct module."""
        return f"{self.size}s"

    @property
    def width(self) -> int:
        """The fixed length."""
        return self.size

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the bytes themselves."""
        # A caller's mistake: silently padding a key or hash would change what it identifies.
        if len(value) != self.size:
            raise MalformedError(f"{self.size} bytes are needed here, not {len(value)}")
        parts.append(value)

    def write_each(self, values: Iterable[Any], parts: list[bytes]) -> None:
        """Append several values of this length."""
        for value in values:
            if len(value) != self.size:
                raise MalformedError(f"{self.size} bytes are needed here, not {len(value)}")
            parts.append(value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """The next `size` bytes."""
        end = _check_end(data, at + self.size)
        return data[at:end], end


@dataclass(frozen=True, slots=True)
class Integer(FieldCodec):
    """A big-endian integer of a fixed width."""

    form: struct.Struct

    def __repr__(self) -> str:
        return f"Integer({self.form.format})"

    @property
    def code(self) -> str:
        """The format in the notation of the struct module, without the byte order."""
        return self.form.format[1:]

    @property
    def width(self) -> int:
        """The fixed length."""
        return self.form.size

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the integer; one that does not fit is refused rather than truncated."""
        try:
            parts.append(self.form.pack(value))
        except struct.error:
            raise MalformedError(f"{value} does not fit in {self.form.size} bytes") from None

    def read(self, data: bytes, at: int) -> tuple[int, int]:
        """The next integer."""
        try:
            return self.form.unpack_from(data, at)[0], at + self.form.size
        except struct.error:
            raise MalformedError("the bytes end too early") from None


LENGTH = Integer(struct.Struct(">I"))


@dataclass(frozen=True, slots=True)
class VariableBytes(FieldCodec):
    """Bytes of any length, after a u32 length."""

    def longest(self, elements: int, variable_bytes: int) -> int:
        """The length field and the most bytes."""
        return 4 + variable_bytes

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the length, then the bytes."""
        parts += (LENGTH.form.pack(len(value)), value)

    def write_each(self, values: Iterable[Any], parts: list[bytes]) -> None:
        """Append length and bytes of each value."""
        # Bound once outside the loop: batches have hundreds of thousands of encrypted shares.
        pack_length = LENGTH.form.pack
        for value in values:
            parts += (pack_length(len(value)), value)

    def read(self, data: bytes, at: int) -> tuple[bytes, int]:
        """As many bytes as the length says."""
        start = at + LENGTH.width
        # A length that is cut off is too small; the end still lies beyond the data then.
        end = _check_end(data, start + int.from_bytes(data[at:start], "big"))
        return data[start:end], end

    def read_each(self, data: bytes, starts: Sequence[int]) -> Iterator[bytes]:
        """The bytes at these positions."""
        # Written out, because the aggregator reads the encrypted share of every report.
        for start in starts:
            first = start + LENGTH.form.size
            yield data[first : _check_end(data, first + int.from_bytes(data[start:first], "big"))]

    def end(self, data: bytes, at: int) -> int:
        """The position that the length leads to."""
        size, at = LENGTH.read(data, at)
        return _check_end(data, at + size)


@dataclass(frozen=True, slots=True)
class ListOf(FieldCodec):
    """Values with one codec, after a u32 count; decoded into a tuple."""

    element: FieldCodec

    def longest(self, elements: int, variable_bytes: int) -> int:
        """The count and the most elements, each as long as possible."""
        return 4 + elements * self.element.longest(elements, variable_bytes)

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the count, then every element."""
        LENGTH.write(len(value), parts)
        self.element.write_each(value, parts)

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """As many elements as the count says."""
        count, at = self.count(data, at)
        values = []
        for _ in range(count):
            value, at = self.element.read(data, at)
            values.append(value)
        return tuple(values), at

    def end(self, data: bytes, at: int) -> int:
        """The position after the last element."""
        count, at = self.count(data, at)
        # A multiplication instead of a loop: anybody can send a list with millions of elements.
        if self.element.width is not None:
            return _check_end(data, at + count * self.element.width)
        for _ in range(count):
            at = self.element.end(data, at)
        return at

    def count(self, data: bytes, at: int) -> tuple[int, int]:
        """The number of elements, and the position of the first."""
        count, at = LENGTH.read(data, at)
        # Every element has at least one byte, so a count of 2^32 - 1 in a short message is refused
        # before anything is allocated for it.
        if count > len(data) - at:
            raise MalformedError("a list is longer than the bytes that hold it")
        return count, at


class PackedList(Sequence[Any]):
    """A list that was checked and not decoded: each element is decoded when it is accessed.

    See the module's docstring for why. Equality compares bytes where both sides are packed.
    """

    __slots__ = ("_data", "_element", "_starts")

    def __init__(self, element: FieldCodec, data: bytes, starts: Sequence[int]) -> None:
        self._element = element
        self._data = data
        self._starts = starts

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return tuple(map(self._decode, self._starts[which]))
        return self._decode(self._starts[which])

    def _decode(self, start: int) -> Any:
        return self._element.read(self._data, start)[0]

    def __iter__(self) -> Iterator[Any]:
        return self._element.read_each(self._data, self._starts)

    def has_codec(self, element: FieldCodec) -> bool:
        """Whether its elements are encoded with this codec."""
        # Two codecs with one layout are equal, wherever they were derived.
        return self._element == element

    @property
    def raw(self) -> bytes:
        """The bytes of all elements, one after the other."""
        if not self._starts:
            return b""
        # The elements follow each other without gaps, so two positions tell where all of them are.
        return self._data[self._starts[0] : self._element.end(self._data, self._starts[-1])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | PackedList):
            return NotImplemented
        if isinstance(other, PackedList) and other.has_codec(self._element):
            return self.raw == other.raw
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        # Equal to the hash of the tuple with the same elements, because the two compare equal.
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class PackedListOf(ListOf):
    """A list that can be long, or is read before its sender is known: bytes as of any list."""

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the list; one that is packed already is copied without decoding it."""
        if not isinstance(value, PackedList) or not value.has_codec(self.element):
            ListOf.write(self, value, parts)
            return
        # Relaying a batch copies its bytes once, however many encrypted shares it has.
        LENGTH.write(len(value), parts)
        parts.append(value.raw)

    def read(self, data: bytes, at: int) -> tuple[Sequence[Any], int]:
        """The packed list, after checking the length of every element."""
        count, at = self.count(data, at)
        if self.element.width is not None:
            end = _check_end(data, at + count * self.element.width)
            return PackedList(self.element, data, range(at, end, self.element.width)), end

        # Positions as 4-byte integers: messages are shorter than 2^32 bytes (MAX_MESSAGE_BYTES).
        starts = array("I")
        for _ in range(count):
            starts.append(at)
            at = self.element.end(data, at)
        return PackedList(self.element, data, starts), at


class FixedFields:
    """Two or more fields of fixed length that follow each other, for writing them in one go."""

    __slots__ = ("_parts", "_sizes", "_values")

    def __init__(self, parts: Sequence[tuple[str, FixedBytes]]) -> None:
        self._parts = tuple(parts)
        self._sizes = tuple(codec.size for _, codec in parts)
        self._values = attrgetter(*(name for name, _ in parts))

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the bytes of these fields of a value."""
        found = self._values(value)
        if tuple(map(len, found)) == self._sizes:
            parts += found
            return
        # One of the codecs raises the error that says which length it needs.
        for name, codec in self._parts:
            codec.write(getattr(value, name), parts)


@dataclass(frozen=True, slots=True)
class Record(FieldCodec):
    """The fields of a dataclass, in order.

    `runs` are the same fields for reading: those of fixed width that follow each other are read in
    one call. `writers` are the same fields for writing, those of fixed length together.
    """

    kind: type[Any]
    parts: tuple[tuple[str, FieldCodec], ...]
    runs: "tuple[struct.Struct | FieldCodec, ...]" = field(default=(), compare=False)
    writers: "tuple[FixedFields | tuple[str, FieldCodec], ...]" = field(default=(), compare=False)

    @classmethod
    def of(cls, kind: type[Any], codec_for: Callable[[Any], FieldCodec]) -> Self:
        """The record of a dataclass; `codec_for` maps an annotation to a codec."""
        hints = get_type_hints(kind, include_extras=True)
        names = [member.name for member in fields(kind)]
        parts = tuple((name, codec_for(hints[name])) for name in names)
        # One struct call for several fields: manifests have many entries, and reports are many.
        runs = list[struct.Struct | FieldCodec]()
        codes = ""
        for _, part in parts:
            if isinstance(part, FixedBytes | Integer):
                codes += part.code
                continue
            runs += [struct.Struct(">" + codes), part] if codes else [part]
            codes = ""
        if codes:
            runs.append(struct.Struct(">" + codes))
        return cls(kind, parts, tuple(runs), tuple(_writers_of(parts)))

    def __repr__(self) -> str:
        return f"Record({', '.join(f'{name}: {part!r}' for name, part in self.parts)})"

    @property
    def width(self) -> int | None:
        """The sum of the widths, if every field has one."""
        total = 0
        for _, part in self.parts:
            if part.width is None:
                return None
            total += part.width
        return total

    def longest(self, elements: int, variable_bytes: int) -> int:
        """The longest values of all fields together."""
        return sum(part.longest(elements, variable_bytes) for _, part in self.parts)

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append field after field."""
        for writer in self.writers:
            if isinstance(writer, FixedFields):
                writer.write(value, parts)
            else:
                name, part = writer
                part.write(getattr(value, name), parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """An instance of the class, whose own checks run as well."""
        values = list[Any]()
        for run in self.runs:
            if isinstance(run, struct.Struct):
                end = _check_end(data, at + run.size)
                values += run.unpack_from(data, at)
                at = end
            elif isinstance(run, VariableBytes):
                # Written out, because servers read four such fields of every report.
                start = at + LENGTH.form.size
                at = _check_end(data, start + int.from_bytes(data[at:start], "big"))
                values.append(data[start:at])
            else:
                value, at = run.read(data, at)
                values.append(value)
        # The constructor, so that a class's own checks are not bypassed.
        return self.kind(*values), at

    def read_each(self, data: bytes, starts: Sequence[int]) -> Iterator[Any]:
        """The records at these positions, which follow each other without gaps."""
        whole = self.runs[0]
        if len(self.runs) > 1 or not isinstance(whole, struct.Struct) or not starts:
            return FieldCodec.read_each(self, data, starts)
        # All in one call of the struct module: both servers go through manifests several times.
        records = memoryview(data)[starts[0] : starts[-1] + whole.size]
        return starmap(self.kind, whole.iter_unpack(records))

    def end(self, data: bytes, at: int) -> int:
        """The position after the last field."""
        for _, part in self.parts:
            at = part.end(data, at)
        return at


def _writers_of(
    parts: Sequence[tuple[str, FieldCodec]],
) -> Iterator[FixedFields | tuple[str, FieldCodec]]:
    """The fields of a record for writing: those of fixed length that follow each other together."""
    for is_fixed, group in groupby(parts, lambda part: isinstance(part[1], FixedBytes)):
        members = list(group)
        fixed = [(name, codec) for name, codec in members if isinstance(codec, FixedBytes)]
        if is_fixed and len(fixed) > 1:
            yield FixedFields(fixed)
        else:
            yield from members
