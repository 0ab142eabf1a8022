"""Everybody's access value in a row of its own: S1's head held them all.

Nothing can be moved here, without the keys. A state that was stored before is read as it is, and written with rows at
its next change (`storage.states`). A program that does not know these rows refuses this schema.
"""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Tables stay as they are."""
