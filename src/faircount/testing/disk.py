"""What a server of the fault simulation has written, all of it bytes; the only way back after a crash or a restore."""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.stored import Row, add_row, decode_head, encode_head, entries_of, row_of
from faircount.protocol.survey import stored_ledger
from faircount.protocol.wire.sealing import Sealing
from faircount.protocol.wire.stored import StoredState

S = TypeVar("S", bound=StoredState)


@dataclass(frozen=True, slots=True)
class Backup:
    """A state at one time: the head, the rows of its stores, and of S2 the ledger beside it."""

    head: bytes
    rows: tuple[Row, ...]
    ledger: bytes = b""


class Disk(Generic[S]):
    """The storage of one server. As in a service a head is written when it has changed, and every row once."""

    def __init__(self, kind: type[S], sealing: Sealing) -> None:
        self._kind, self._sealing = kind, sealing
        self._state: S | None = None
        self._head, self._ledger = b"", b""
        self._rows: dict[tuple[str, Any], tuple[Any, Row]] = {}

    def write(self, state: S) -> Backup:
        """Write what is new, and keep all that is there now."""
        if state is not self._state:
            if isinstance(state, Aggregator) and state.ledger is not getattr(self._state, "ledger", None):
                self._ledger = stored_ledger.encode(state.ledger)
            self._state, self._head = state, encode_head(state)
        return Backup(self._head, tuple(self._row(*entry) for entry in entries_of(state)), self._ledger)

    def _row(self, store: str, key: Any, value: Any, given: bytes) -> Row:
        """The row as it was written, if what stands there is still the same."""
        known, row = self._rows.get((store, key), (None, None))
        if row is None or known is not value:
            row = row_of(self._kind, store, key, value, given)
            self._rows[store, key] = value, row
        return row

    def read(self, backup: Backup) -> S:
        """The state as it was when it was written."""
        ledger = stored_ledger.decode(backup.ledger) if backup.ledger else None
        state = decode_head(self._kind, backup.head, self._sealing, ledger)
        for row in backup.rows:
            add_row(state, row)
        return state
