"""The initial schema.

A migration spells out what it creates and imports no tables: `schema.py` changes with the program,
while databases that this migration created stay as they are until a later migration changes them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COLUMNS: dict[str, str] = {
    "meta": "name:text* value:text",
    "surveys": "id:bytes* params:bytes owner:bytes operators:bytes main_nonce:bytes? "
    "generation:number version:number main_version:number phase:text attempt:number "
    "participants:number withdrawn:number invited:number opened_at:number? due_at:number? "
    "held_since:number? since:number extended:number",
    "state_rows": "survey:bytes* store:text* key:bytes* hash:bytes kept:bytes? encrypted:bytes?",
    "worker_counts": "survey:bytes* worker:bytes* participants:number",
    "parts": "survey:bytes* part:number* hash:bytes encrypted:bytes?",
    "survey_keys": "id:bytes* owner:bytes encrypted:bytes? used_by:bytes?",
    "tokens": "hash:bytes* holder:bytes scope:text name:text created_at:number expires_at:number? "
    "revoked_at:number?",
    "rejections": "survey:bytes* reason:text* count:number",
    "outbox": "survey:bytes* since:number next_at:number tries:number lease_until:number "
    "lease:bytes problem:text",
    "reservations": "population:text* number:number* survey:bytes* owner:bytes signed:bytes",
    "populations": "name:text* owner:bytes ledger:bytes",
    "started_steps": "population:text* survey:bytes encrypted:bytes",
    "nonces": "nonce:bytes* expires_at:number",
}
"""name:type of each column, with * for the primary key and ? for columns that may be NULL."""

_TYPES = {"text": sa.Text, "bytes": sa.LargeBinary, "number": sa.BigInteger}


def upgrade() -> None:
    """Create every table."""
    for name, columns in _COLUMNS.items():
        op.create_table(name, *(_column(column) for column in columns.split()))


def _column(column: str) -> "sa.Column[object]":
    name, column_type = column.rstrip("*?").split(":")
    return sa.Column(
        name,
        _TYPES[column_type],
        primary_key=column.endswith("*"),
        nullable=column.endswith("?"),
        # Keys are given by us: SQLite would otherwise number rows itself.
        autoincrement=False,
    )
