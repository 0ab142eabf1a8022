"""What a server of the fault simulation has written, all of it bytes; the only way back after a
crash or a restore.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from faircount.protocol import (
    Aggregator,
    Coordinator,
    MemoryRows,
    Row,
    RowWrite,
    decode_row,
    decode_state,
    encode_row,
    encode_state,
)
from faircount.protocol.simulator import InMemory
from faircount.protocol.survey import stored_ledger
from faircount.protocol.wire.crypto import CryptoSuite

S = TypeVar("S", Coordinator, Aggregator)


@dataclass(frozen=True, slots=True)
class Backup:
    """A server at one time: its state, its rows, and of the aggregator the ledger beside it."""

    state: bytes
    rows: tuple[Row, ...]
    ledger: bytes = b""


class Disk(Generic[S]):
    """The storage of one server. A state is written when it has changed, and every row once."""

    def __init__(self, kind: type[S], crypto: CryptoSuite) -> None:
        self._kind: type[S] = kind
        self._crypto = crypto
        self._state: S | None = None
        self._encoded = b""
        self._ledger = b""
        self._rows: dict[tuple[str, Any], tuple[RowWrite, Row]] = {}

    def write(self, server: InMemory[S]) -> Backup:
        """Write what is new, and keep all that is there now."""
        state = server.state
        if state is not self._state:
            if isinstance(state, Aggregator) and state.ledger is not getattr(
                self._state, "ledger", None
            ):
                self._ledger = stored_ledger.encode(state.ledger)
            self._state = state
            self._encoded = encode_state(state)
        rows = tuple(self._row(write) for write in server.rows.rows())
        return Backup(self._encoded, rows, self._ledger)

    def _row(self, write: RowWrite) -> Row:
        """The row as it was written, if what stands there is still the same."""
        known = self._rows.get((write.table, write.key))
        if known is None or known[0].value is not write.value:
            known = write, encode_row(write)
            self._rows[write.table, write.key] = known
        return known[1]

    def read(self, backup: Backup) -> InMemory[S]:
        """The server as it was when it was written."""
        ledger = stored_ledger.decode(backup.ledger) if backup.ledger else None
        state = decode_state(self._kind, backup.state, self._crypto, ledger)
        return InMemory(state, MemoryRows(decode_row(row) for row in backup.rows))
