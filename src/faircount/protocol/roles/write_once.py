"""Writes that are idempotent by their natural key: the first stands, the same again is fine, another is a conflict.

Only invitations, parts of a claim and notes about them may be exchanged.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from heapq import merge
from typing import Any, Generic, TypeVar

from faircount.protocol.wire.codec import encode

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Elsewhere:
    """Writes that storage holds beside those of a store in memory: how many, which, and each with its hash.

    Where no step asks for them their number is enough. With `keep` storage takes what is exchanged at once.
    """

    count: int = 0
    keys: Callable[[], Iterable[Any]] = tuple
    find: Callable[[Any], tuple[Any, bytes] | None] = lambda key: None
    keep: Callable[[Any, Any], None] | None = None


def part_key(number: int) -> bytes:
    """Under which key both servers keep a part of a claim: a claim that begins anew takes the same places."""
    return b"part" + number.to_bytes(4, "big")


class WriteOnce(Generic[K, V]):
    """First writes by key. It is owned by one state and filled in place: copying it per message would cost n^2.

    A role looks before it writes and writes last, so a message that is not accepted leaves no trace.
    """

    __slots__ = ("_elsewhere", "_written")

    def __init__(self, written: dict[K, V] | None = None) -> None:
        self._written: dict[K, V] = {} if written is None else written
        self._elsewhere = Elsewhere()

    def held_elsewhere(self, others: Elsewhere) -> None:
        """Say which further writes storage holds: of a store that was not filled with all of them."""
        self._elsewhere = others

    def fits(self, key: K, value: V) -> bool:
        """Whether this value may stand under this key: nothing or the same is there."""
        there = self.get(key)
        return there is None or there == value

    def put(self, key: K, value: V) -> bool:
        """Write, unless something else was written before; whether the value stands now."""
        there = self.get(key)
        if there is None:
            self._written[key] = value
        return there is None or there == value

    def exchange(self, key: K, value: V) -> None:
        """Write instead of what stood there, where somebody may change it."""
        if self._elsewhere.keep is None:
            self._written[key] = value
        else:
            self._elsewhere.keep(key, value)

    def exchanged(self, key: K, value: V) -> "WriteOnce[K, V]":
        """A store in which this stands instead of what stood there; this one stays as it is."""
        other = WriteOnce(self._written | {key: value})
        other.held_elsewhere(self._elsewhere)
        return other

    def without(self, others: "WriteOnce[K, V]") -> "WriteOnce[K, V]":
        """A store with what was written here under keys that are free there."""
        return WriteOnce({key: value for key, value in self._written.items() if key not in others})

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: K) -> V | None:
        """What stands under the key, if anything."""
        found = self._written.get(key)
        if found is None and (other := self._elsewhere.find(key)) is not None:
            return other[0]  # type: ignore[no-any-return]  # storage holds what was written here
        return found

    def __contains__(self, key: K) -> bool:
        return key in self._written or self._elsewhere.find(key) is not None

    def __len__(self) -> int:
        return len(self._written) + self._elsewhere.count

    def keys(self) -> list[K]:
        """Keys in the order of writing; before them those that are held elsewhere."""
        return [*self._elsewhere.keys(), *self._written]

    def ascending(self) -> Iterator[K]:
        """Keys in ascending order; those that are held elsewhere, ascending there, are not read at once."""
        return merge(self._elsewhere.keys(), sorted(self._written))  # type: ignore[type-var]  # keys that have an order

    def rows(self) -> Iterator[tuple[K, V, bytes]]:
        """Key, value and acknowledged hash (none here) of every write in memory, for storage."""
        return ((key, value, b"") for key, value in self._written.items())

    def load(self, key: K, value: V, acknowledged: bytes) -> bool:
        """Put back what storage held; whether nothing stood there before."""
        if key in self._written:
            return False
        self._written[key] = value
        return True

    def copy(self) -> "WriteOnce[K, V]":
        """A backup that later writes do not reach."""
        return WriteOnce(dict(self._written))

    def __deepcopy__(self, memo: object) -> "WriteOnce[K, V]":
        return self.copy()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WriteOnce) and self._written == other._written

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"WriteOnce({len(self)} written)"


class Acknowledged(WriteOnce[K, Any]):
    """First messages by key, each with the hash that its sender was given in return.

    What stands is decided by the hash, so bytes that storage has spoiled since are noticed (`intact`), and mended when
    the sender says the same again. Of a `scrubbed` store only the hashes are left: it still knows a repeated message
    from another one, and keeps neither.
    """

    __slots__ = ("_hashes", "_intact", "_scrubbed")

    def __init__(
        self, written: dict[K, Any] | None = None, hashes: dict[K, bytes] | None = None, *, scrubbed: bool = False
    ) -> None:
        super().__init__(written)
        self._hashes: dict[K, bytes] = {} if hashes is None else hashes
        self._intact: dict[K, Any] = {}  # messages whose hash was looked at; they never change
        self._scrubbed = scrubbed

    def fits(self, key: K, value: Any) -> bool:
        """Whether nothing or the same message was acknowledged under this key."""
        return self._given(key) in (None, _hash(value))

    def put(self, key: K, value: Any) -> bool:
        """Write, unless another message was acknowledged before; whether this one stands now."""
        wanted = _hash(value)
        if (self._given(key) or wanted) != wanted:
            return False
        self._hashes[key] = wanted
        if not self._scrubbed:
            self._written[key] = self._intact[key] = value
        return True

    def hash_of(self, key: K) -> bytes:
        """What the sender was given for its message."""
        given = self._given(key)
        if given is None:
            raise KeyError(key)
        return given

    def _given(self, key: K) -> bytes | None:
        found = self._hashes.get(key)
        if found is None and (other := self._elsewhere.find(key)) is not None:
            return other[1]
        return found

    def get(self, key: K) -> Any | None:
        """The message under the key; of a scrubbed store, and if it was deleted, none."""
        found = None if self._scrubbed else self._written.get(key)
        return found if found is not None or self._scrubbed or key in self._hashes else super().get(key)

    def intact(self, key: K) -> Any | None:
        """The message as it was acknowledged; None if there is none, or if its bytes have changed since."""
        value = self.get(key)
        if value is None or (value is not self._intact.get(key) and _hash(value) != self._given(key)):
            return None
        if key in self._written:
            self._intact[key] = value
        return value

    def scrub(self, key: K) -> None:
        """Delete a message and keep its hash: the same again is still known, another one still refused."""
        self._written.pop(key, None)
        self._intact.pop(key, None)

    def scrubbed(self) -> "Acknowledged[K]":
        """The store without the messages: their hashes stay."""
        left = Acknowledged({}, dict(self._hashes), scrubbed=True)
        left.held_elsewhere(self._elsewhere)
        return left

    @property
    def is_scrubbed(self) -> bool:
        """Whether only hashes are kept."""
        return self._scrubbed

    def rows(self) -> Iterator[tuple[K, Any, bytes]]:
        """Key, message (None if it was deleted) and the hash that its sender was given, of all in memory."""
        return ((key, self._written.get(key), given) for key, given in self._hashes.items())

    def load(self, key: K, value: Any, acknowledged: bytes) -> bool:
        """Put back what storage held; the hash stands even if it is not that of the message."""
        if key in self._hashes:
            return False
        self._hashes[key] = acknowledged
        return value is None or super().load(key, value, acknowledged)

    def copy(self) -> "Acknowledged[K]":
        """A backup that later writes do not reach."""
        return Acknowledged(dict(self._written), dict(self._hashes), scrubbed=self._scrubbed)

    def __contains__(self, key: K) -> bool:
        return self._given(key) is not None

    def __len__(self) -> int:
        return len(self._hashes) + self._elsewhere.count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Acknowledged) and self._all() == other._all()

    def _all(self) -> tuple[object, ...]:
        return self._written, self._hashes, self._scrubbed

    __hash__ = None  # it changes


def _hash(message: Any) -> bytes:
    return sha256(encode(message)).digest()
