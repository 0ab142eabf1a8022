"""States as bytes: what a server or a device writes to its storage, and reads again after a crash or a restore.

    state = name of its class | u32 version of its layout | fields in order

A state class says its layout with its annotations, as a message class does (`codec`): a new field needs a new
`stored_version` and, if states of the version before are still read, a line of `older`. Bytes of any other version
raise `MalformedError`. `roles.stored` adds the check, and
the stores that are kept by row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Union, get_args, get_origin

import numpy as np

from faircount.core.errors import FaircountError, MalformedError
from faircount.protocol.wire import codec
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.field_kinds import LENGTH, FieldKind, ListOf, Record
from faircount.protocol.wire.stored_kinds import (
    BYTES,
    DTYPES,
    TEXT,
    WHOLE,
    AnyMessage,
    Array,
    Choice,
    Flag,
    MapOf,
    OneOf,
    RowStore,
    SetOf,
    Several,
    StoredBytes,
)


class StoredState:
    """Base of what is stored. `stored_version` is raised whenever the fields of the class, or their meaning, change.

    older: versions that are still read, each with the fields whose form was another one
    """

    stored_version: ClassVar[int] = 1
    older: ClassVar[Mapping[int, Mapping[str, FieldKind]]] = {}


class TopologyState(StoredState):
    """What a server keeps of one topology alone; a topology that needs something subclasses it."""


class Rows:
    """Marks a field that is kept row by row: `roles.stored` writes it."""


@dataclass(frozen=True, slots=True)
class AnyState(FieldKind):
    """A state of this class, or of one derived from it, with its name and version."""

    base: type[StoredState]

    def __repr__(self) -> str:
        return f"AnyState({self.base.__name__})"

    def write(self, value: Any, parts: list[bytes]) -> None:
        """Name, version, fields."""
        BYTES.write(type(value).__name__.encode(), parts)
        LENGTH.write(type(value).stored_version, parts)
        layout_of(type(value)).write(value, parts)

    def read(self, data: bytes, at: int) -> tuple[Any, int]:
        """A state of the version that this program writes, or of an older one that it still reads."""
        name, at = BYTES.read(data, at)
        version, at = LENGTH.read(data, at)
        kind = next((each for each in _derived(self.base) if each.__name__.encode() == name), None)
        if kind is None:
            raise MalformedError(f"these are no bytes of a {self.base.__name__}: look whether it is the right file")
        if version in kind.older:
            return older_layout(kind, version).read(data, at)
        if version != kind.stored_version:
            raise MalformedError(
                f"this {kind.__name__} has version {version}, and this faircount reads {kind.stored_version}: "
                "use the faircount that wrote it"
            )
        return layout_of(kind).read(data, at)


_OWN: dict[Any, FieldKind] = {}
_LAYOUTS: dict[type[Any], Record] = {}


def stored_as(kind: type[Any], form: FieldKind) -> None:
    """Say how values of a class are stored wherever they stand."""
    _OWN[kind] = form


def layout_of(kind: type[Any]) -> Record:
    """The layout of a dataclass, worked out once."""
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = Record.of(kind, stored_kind)
    return _LAYOUTS[kind]


def older_layout(kind: type[StoredState], version: int) -> Record:
    """The layout of a state in an older version."""
    other = kind.older[version]
    return Record(kind, tuple((name, other.get(name, form)) for name, form in layout_of(kind).parts))


def stored_kind(hint: Any) -> FieldKind:
    """How a field of a state with this annotation is stored."""
    plain: Mapping[Any, FieldKind] = {bytes: BYTES, str: TEXT, int: WHOLE, bool: Flag()}
    if get_origin(hint) is not None:
        return _built(get_origin(hint), get_args(hint), hint)
    if hint in _OWN or hint in plain:
        return _OWN.get(hint) or plain[hint]
    if issubclass(hint, Enum):
        return Choice(hint)
    if issubclass(hint, Message):
        return AnyMessage((hint,))
    if issubclass(hint, StoredState):
        return AnyState(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        return layout_of(hint)
    raise TypeError(f"{hint} has no stored form: give it one with stored_as")


def _built(origin: Any, args: tuple[Any, ...], hint: Any) -> FieldKind:
    """The kind of an annotation that has parts."""
    if origin is Annotated:
        return row_store(args[0]) if args[1] is Rows else codec.kind_of(hint)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is np.ndarray:
        return Array(_dtypes(get_args(args[1])[0]))
    if origin is tuple and args[-1] is not Ellipsis:
        return Several(tuple(stored_kind(each) for each in args))
    if origin in (tuple, frozenset):
        return (ListOf if origin is tuple else SetOf)(stored_kind(args[0]))
    if issubclass(origin, Mapping):
        return MapOf(*(stored_kind(each) for each in args))
    raise TypeError(f"{hint} has no stored form")


def row_store(hint: Any) -> RowStore:
    """The kind of a store: its key, and its value, which is a message if it is not said."""
    origin, args = get_origin(hint), (*get_args(hint), Message)
    return RowStore(dict if origin is Mapping else origin, stored_kind(args[0]), stored_kind(args[1]))


def _union(args: tuple[Any, ...]) -> FieldKind:
    classes = tuple(each for each in args if each is not NoneType)
    if len(classes) == len(args) and all(issubclass(each, Message) for each in args):
        return AnyMessage(args)
    if NoneType in args and len(classes) > 1:
        raise TypeError("an optional value has one class")
    kinds = tuple(None if each is NoneType else stored_kind(each) for each in args)
    return OneOf(tuple(get_origin(each) or each for each in args), kinds)


def _dtypes(scalar: Any) -> tuple[str, ...]:
    """The stored types of an array whose elements are annotated like this."""
    return tuple(each for each in DTYPES if issubclass(np.dtype(each).type, get_origin(scalar) or scalar))


def _derived(base: type[Any]) -> list[type[Any]]:
    """The states among the class and all classes derived from it."""
    below = [each for child in base.__subclasses__() for each in _derived(child)]
    return [base, *below] if is_dataclass(base) else below


def read_all(kind: FieldKind, data: bytes | memoryview, live: Mapping[type[Any], Any] | None = None) -> Any:
    """The value behind these bytes, all of them; `MalformedError` for any others, whatever is wrong with them."""
    source = StoredBytes(data)
    source.live = live or {}
    try:
        found, end = kind.read(source, 0)
    except MalformedError:
        raise
    except FaircountError as problem:  # a value refused its own fields
        raise MalformedError(f"these bytes are no state: {problem}") from None
    if end != len(data):
        raise MalformedError(f"{len(data) - end} bytes too many")
    return found
