"""What only a disk, or a dishonest coordinator, does to rows: for tests."""

from dataclasses import replace
from typing import Any

from faircount.protocol.simulator import InMemory


def spoil(server: InMemory[Any], table: str, key: Any, value: Any) -> None:
    """Other bytes stand under a key than were acknowledged."""
    rows = server.rows.table(table)
    rows[key] = replace(rows[key], value=value, is_intact=False)


def put(server: InMemory[Any], table: str, key: Any, value: Any) -> None:
    """Write a row that no role would take."""
    rows = server.view
    getattr(rows, table).put(key, value)
    server.rows.apply(rows.step(server.state))
