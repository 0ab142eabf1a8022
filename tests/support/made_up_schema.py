"""A made-up second schema, which shows what a future migration does to a database of today."""

from pathlib import Path

import pytest
from alembic.config import Config

from faircount.storage import migrate

SECOND = "made_up"
_MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision = "{SECOND}"
down_revision = "{migrate.NEWEST}"


def upgrade() -> None:
    op.add_column("rejections", sa.Column("note", sa.Text, nullable=False, server_default="none"))
'''


def know_second_schema(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make this program a newer one, which knows one more migration."""
    (folder / "versions").mkdir(exist_ok=True)
    (folder / "versions" / "made_up.py").write_text(_MIGRATION)
    present = migrate.migration_config

    def config() -> Config:
        extended = present()
        extended.set_main_option("path_separator", "newline")
        extended.set_main_option(
            "version_locations", f"faircount.storage:migrations/versions\n{folder / 'versions'}"
        )
        return extended

    monkeypatch.setattr(migrate, "migration_config", config)
    monkeypatch.setattr(migrate, "REVISIONS", (*migrate.REVISIONS, SECOND))
    monkeypatch.setattr(migrate, "NEWEST", SECOND)
