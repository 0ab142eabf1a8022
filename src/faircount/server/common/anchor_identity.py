"""The database of a server knows its anchor: a server whose anchor is gone does not start silently.

Without its anchor a server cannot know whether its database is the newest that it had, nor what it
has signed. An empty folder in the anchor's place looks as if nothing had ever been signed.
"""

from pathlib import Path

from faircount.core.errors import FaircountError, RefusedError
from faircount.storage.anchor import FolderAnchor
from faircount.storage.database import Database, Transaction

_META = "anchor"


async def open_anchor(
    database: Database, folder: Path, role: str, *, has_new_anchor: bool = False
) -> FolderAnchor:
    """Open the anchor of a database; another one is refused, and the database closed.

    has_new_anchor: the operator states that the anchor which the database knew is lost; the
        database takes the new one when it is restored (`adopt`)
    """
    anchor = FolderAnchor(folder)
    try:
        await _check(database, anchor, role, is_lost=has_new_anchor)
    except FaircountError:
        await database.close()
        raise
    return anchor


async def _check(database: Database, anchor: FolderAnchor, role: str, *, is_lost: bool) -> None:
    async with database.write() as tx:
        row = await tx.fetch_one("SELECT value FROM meta WHERE name = ?", _META)
        if row is None:
            # An anchor that is older than the database refuses whatever it knows better.
            await adopt(tx, anchor)
            return
        is_known = anchor.identity() == row["value"]
    if is_known and is_lost:
        raise RefusedError(
            f"{anchor.path} is the anchor of this database, and nothing is lost: leave "
            "--new-anchor out"
        )
    # check: anchor-identity - with an empty anchor a restored server spends budget again
    if not is_known and not is_lost:
        raise RefusedError(
            f"{anchor.path} is not the anchor of this database: mount the right folder. "
            f"If the anchor is lost, this {role} cannot know what it has signed since its "
            f"database was written; state that with: faircount restore {role} --new-anchor"
        )


async def adopt(tx: Transaction, anchor: FolderAnchor) -> None:
    """Make this anchor the one that the database knows."""
    # The identity is on disk first: after a crash the database still knows none, and adopts it.
    await tx.execute(
        "INSERT INTO meta (name, value) VALUES (?, ?) "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        _META,
        anchor.create_identity(),
    )
