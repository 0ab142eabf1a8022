"""The head of a state in a row of its own: a survey's line is written with every group of users, and held it all."""

from alembic import op

revision = "0004"
down_revision = "0003"

_MOVE = (
    "INSERT INTO state_rows (survey, store, key, hash, sealed) "
    "SELECT id, 'head', substr(id, 1, 0), substr(id, 1, 0), sealed FROM surveys WHERE length(sealed) > 12"
)


def upgrade() -> None:
    """Heads move to `state_rows`; the line of a survey keeps the nonce, its first 12 bytes."""
    op.execute(_MOVE)
    op.execute("UPDATE surveys SET sealed = substr(sealed, 1, 12) WHERE length(sealed) > 12")
