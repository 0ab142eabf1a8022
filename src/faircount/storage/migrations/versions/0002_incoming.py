"""Parts of long messages from S1, until S2 has all of them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """One more table."""
    op.create_table(
        "incoming",
        sa.Column("survey", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("message", sa.LargeBinary, primary_key=True, nullable=False),
        sa.Column("part", sa.BigInteger, primary_key=True, nullable=False, autoincrement=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
