"""S2's step that is about to be anchored, so that it is done again after a crash, before any other."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """One more table."""
    op.create_table(
        "begun",
        sa.Column("population", sa.Text, primary_key=True, nullable=False),
        sa.Column("survey", sa.LargeBinary, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
    )
