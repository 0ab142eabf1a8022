"""Users' sealing keys in one piece: a dictionary of a hundred thousand takes five times as much memory."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

from faircount.core.errors import MalformedError

USER, KEY = 16, 32
LINE = USER + KEY


class PackedKeys(Mapping[bytes, bytes]):
    """User id -> sealing key, from lines of both that are ascending by user id."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of(cls, lines: Iterable[tuple[bytes, bytes]]) -> "PackedKeys":
        """From pairs that are ascending by user id, as they come."""
        data = bytearray()
        for user, key in lines:
            if (len(user), len(key)) != (USER, KEY):
                raise MalformedError("a user id or a sealing key does not have its length: restore a copy")
            data += user + key
        return cls(bytes(data))

    def __getitem__(self, user: bytes) -> bytes:
        at = bisect_left(range(len(self)), user, key=self._user)
        if at == len(self) or self._user(at) != user:
            raise KeyError(user)
        return self.data[at * LINE + USER : (at + 1) * LINE]

    def __iter__(self) -> Iterator[bytes]:
        return map(self._user, range(len(self)))

    def __len__(self) -> int:
        return len(self.data) // LINE

    def _user(self, at: int) -> bytes:
        return self.data[at * LINE : at * LINE + USER]
