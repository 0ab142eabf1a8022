"""What only a disk, or a dishonest coordinator, does to rows: for tests."""

from typing import Any

from faircount.protocol.roles.rows import StoredRow
from faircount.protocol.simulator import InMemory


def spoil(server: InMemory[Any], table: str, key: Any, value: Any) -> None:
    """Other bytes stand under a key than were acknowledged."""
    rows = server.rows.table(table)
    rows[key] = StoredRow(value, rows[key].hash)


def put(server: InMemory[Any], table: str, key: Any, value: Any) -> None:
    """Write a row that no role would take."""
    rows = server.view
    getattr(rows, table).put(key, value)
    server.rows.apply(rows.step(server.state))
