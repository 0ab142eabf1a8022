"""The encoding of states: what a server or a client stores, and reads after a crash or a restore.

    state = tag of its class | fields in order

A state class declares its layout with annotations, as a message class does (`codec`). Its bytes
begin with its `stored_tag` instead of its name, so that renaming the class changes nothing that is
stored. This module finds the codec of each annotation; `stored_codecs` has those that messages do
not need.

`roles.stored` makes files and database rows of it. What it writes is

    "faircount state" 0x00 | u8 VERSION | state | SHA-256 over everything before

The last 32 bytes detect corruption and are not a MAC: whoever can write to the store can also
compute them. `VERSION` covers the layouts of all states.
"""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import numpy as np

from faircount.core.errors import FaircountError, MalformedError
from faircount.core.questions import Sheet
from faircount.protocol.wire import codec
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.field_codecs import FieldCodec, ListOf, Record
from faircount.protocol.wire.stored_codecs import (
    BYTES,
    DTYPES,
    INT64,
    TEXT,
    AnyMessage,
    Array,
    Boolean,
    EnumMember,
    FixedTuple,
    MapOf,
    SetOf,
    StoredBytes,
    TaggedUnion,
)

VERSION = 1
"""Raised whenever the fields of any state, or their meaning, change; no other version is read."""

_STATES: dict[str, "type[StoredState]"] = {}


class StoredState:
    """Base class of what is stored.

    `stored_tag` names the class in the bytes; a class without one serves as a base class only.
    """

    stored_tag: ClassVar[str] = ""

    def __init_subclass__(cls, **given: Any) -> None:
        """Register the tag, which must be new."""
        super().__init_subclass__(**given)
        # Also refuses a subclass that inherits its tag: it would be read back as its parent.
        if cls.stored_tag and _STATES.setdefault(cls.stored_tag, cls) is not cls:
            raise TypeError(
                f"the stored tag {cls.stored_tag} belongs to {_STATES[cls.stored_tag].__qualname__}"
            )


class TopologyState(StoredState):
    """What a server keeps for one topology only; a topology that keeps something subclasses it."""


@dataclass(frozen=True, slots=True)
class AnyState(FieldCodec):
    """A state of this class or of a subclass, after its tag."""

    base: type[StoredState]

    def __repr__(self) -> str:
        return f"AnyState({self.base.stored_tag})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Append the tag, then the fields."""
        kind = type(value)
        if _STATES.get(kind.stored_tag) is not kind:
            raise TypeError(f"{kind.__name__} cannot be stored: give it a stored_tag")
        TEXT.write(kind.stored_tag, parts)
        layout_of(kind).write(value, parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """The state of the class with this tag."""
        tag, at = TEXT.read(data, at)
        kind = _STATES.get(tag)
        # A valid state of another role must not be taken for this one: the bytes of a client's
        # file, say, for those of a server.
        if kind is None or not issubclass(kind, self.base):
            raise MalformedError(
                f"these bytes are not a {self.base.__name__}: check whether it is the right file"
            )
        return layout_of(kind).read(data, at)


_REGISTERED: dict[Any, FieldCodec] = {}
_LAYOUTS: dict[type[Any], Record] = {}


def register_codec(kind: Any, form: FieldCodec) -> None:
    """Store values of a class with this codec, in whichever field they occur."""
    _REGISTERED[kind] = form


# An answer is a position or a number of steps, positions, or nothing.
_ANSWER = TaggedUnion((int, tuple, NoneType), (INT64, ListOf(INT64), None))
register_codec(Sheet, ListOf(_ANSWER))


def layout_of(kind: type[Any]) -> Record:
    """The layout of a dataclass, derived once."""
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = Record.of(kind, stored_codec)
    return _LAYOUTS[kind]


_PLAIN: Mapping[Any, FieldCodec] = {bytes: BYTES, str: TEXT, int: INT64, bool: Boolean()}


def stored_codec(hint: Any) -> FieldCodec:
    """The codec of a state's field with this annotation."""
    # Registered classes first: some of them are dataclasses that must not be stored field by field.
    if hint in _REGISTERED:
        return _REGISTERED[hint]
    if get_origin(hint) is not None:
        return _generic_codec(get_origin(hint), get_args(hint), hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if issubclass(hint, Enum):
        return EnumMember(hint)
    if issubclass(hint, Message):
        return AnyMessage((hint,))
    if issubclass(hint, StoredState):
        return AnyState(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return layout_of(hint)
    raise TypeError(f"{hint} has no stored form: give it one with register_codec")


def _generic_codec(origin: Any, args: tuple[Any, ...], hint: Any) -> FieldCodec:
    """The codec of an annotation with arguments, such as `tuple[int, ...]`."""
    if origin is Annotated:
        return codec.codec_for(hint)
    if origin in (Union, UnionType):
        return _union_codec(args)
    if origin is np.ndarray:
        return Array(_allowed_dtypes(get_args(args[1])[0]))
    if origin is tuple and args[-1] is not Ellipsis:
        return FixedTuple(tuple(map(stored_codec, args)))
    if origin is tuple:
        return ListOf(stored_codec(args[0]))
    if origin is frozenset:
        return SetOf(stored_codec(args[0]))
    if issubclass(origin, Mapping):
        return MapOf(*map(stored_codec, args))
    raise TypeError(f"{hint} has no stored form")


def _union_codec(args: tuple[Any, ...]) -> FieldCodec:
    """The codec of a union: of message classes, or of one class and None, or of any classes."""
    classes = tuple(kind for kind in args if kind is not NoneType)
    # The order of the arguments is part of the layout: positions in the union are stored.
    # Messages carry their own tag, so that a union of them needs no other.
    if len(classes) == len(args) and all(issubclass(kind, Message) for kind in args):
        return AnyMessage(args)
    if NoneType in args and len(classes) > 1:
        raise TypeError("an optional value has one class")
    codecs = tuple(None if kind is NoneType else stored_codec(kind) for kind in args)
    return TaggedUnion(tuple(get_origin(kind) or kind for kind in args), codecs)


def _allowed_dtypes(scalar: Any) -> tuple[str, ...]:
    """The stored number types of an array whose elements are annotated like this."""
    base = get_origin(scalar) or scalar
    return tuple(code for code in DTYPES if issubclass(np.dtype(code).type, base))


def decode_value(
    form: FieldCodec, data: bytes | memoryview, injected: Mapping[type[Any], Any] | None = None
) -> Any:
    """The value that these bytes encode, all of them; `MalformedError` whatever is wrong.

    injected: objects, by class, for the fields that are not stored with the state
    """
    source = StoredBytes(data)
    source.injected = injected or {}
    try:
        value, end = form.read(source, 0)
    except MalformedError:
        raise
    except FaircountError as problem:
        # A class refused its own fields, for example parameters that do not fit together.
        raise MalformedError(f"these bytes are no state: {problem}") from None
    # As for messages: one state has one encoding.
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes too many")
    return value
