"""The first schema.

A migration says what it makes in full: tables of `schema.py` may change later, what was made once may not.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COLUMNS: dict[str, str] = {
    "meta": "name:text* value:text",
    "surveys": "id:bytes* params:bytes owner:bytes sealed:bytes? generation:number version:number head_version:number "
    "state:text attempt:number users:number people:number opened_at:number? due_at:number? since:number "
    "extended:number",
    "state_rows": "survey:bytes* store:text* key:bytes* hash:bytes sealed:bytes?",
    "parts": "survey:bytes* part:number* hash:bytes sealed:bytes?",
    "offers": "id:bytes* owner:bytes sealed:bytes? used_by:bytes?",
    "tokens": "hash:bytes* scope:text label:text expires_at:number?",
    "rejections": "survey:bytes* reason:text* count:number",
    "outbox": "survey:bytes* since:number next_at:number tries:number lease_until:number lease:bytes problem:text",
    "receipts": "population:text* number:number* survey:bytes* signed:bytes",
    "populations": "name:text* owner:bytes ledger:bytes",
    "nonces": "nonce:bytes* expires_at:number",
}
"""name:kind, with * for the parts of the primary key and ? for what may be missing."""

_KINDS = {"text": sa.Text, "bytes": sa.LargeBinary, "number": sa.BigInteger}


def upgrade() -> None:
    """Make every table."""
    for name, columns in _COLUMNS.items():
        op.create_table(name, *(_column(each) for each in columns.split()))


def _column(said: str) -> "sa.Column[object]":
    name, kind = said.rstrip("*?").split(":")
    key = said.endswith("*")
    return sa.Column(name, _KINDS[kind], primary_key=key, nullable=said.endswith("?"), autoincrement=False)
