"""Backups of a server, and the way back from one.

A backup is a copy of the database, made while the server runs. The folders of keys and of the
anchor are not in it: keys that were destroyed must stay destroyed, and the anchor remembers what no
restore may take back.

A server that was restored does not know what it has said since. The coordinator asks the
aggregator what stands before it ends any phase. The aggregator ends what was live, counts it as
spent, and keeps its populations closed until it has been shown its own receipts.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from faircount.core.errors import ParameterError, RefusedError, StorageError
from faircount.core.files import PRIVATE, make_private_file
from faircount.protocol import Aggregator, Coordinator, Ledger
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.survey.reservations import charge_of
from faircount.server.common.base import Server, parse_parameters
from faircount.server.coordinator.service import note_outbox
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.sqlite import open_connection
from faircount.storage.states import States, SurveyRow

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Restored:
    """What became of the surveys that were live in the backup.

    `lost` are those whose keys were destroyed since.
    """

    resumed: tuple[bytes, ...] = ()
    ended: tuple[bytes, ...] = ()
    lost: tuple[bytes, ...] = ()
    closed: tuple[str, ...] = ()


def back_up(url: str, target: Path) -> None:
    """Copy an SQLite database as it is now, whoever uses it meanwhile."""
    if target.exists():
        raise RefusedError(f"{target} is there already: give every backup a name of its own")
    source = sqlite_file(url)
    if not source.exists():
        raise ParameterError(f"there is no database {source}: has this server ever been started?")
    target.touch(PRIVATE)
    _copy(source, target)


def put_back(url: str, source: Path, role: str) -> None:
    """Put a backup in the place of the database; refused if it is damaged or another server's."""
    if not source.exists():
        raise ParameterError(f"there is no backup {source}")
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as copy:
            sound = copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            found = copy.execute("SELECT value FROM meta WHERE name = 'role'").fetchone()
    except sqlite3.Error as problem:
        raise RefusedError(f"{source} is no backup of faircount: {problem}") from None
    if not sound or found != (role,):
        raise RefusedError(f"{source} is damaged, or the backup of another server than the {role}")
    make_private_file(sqlite_file(url))
    _copy(source, sqlite_file(url))


def sqlite_file(url: str) -> Path:
    """The file behind an address; PostgreSQL has its own tools."""
    if not url.startswith(SQLITE):
        raise RefusedError(
            "PostgreSQL has tools of its own for this, pg_dump and pg_restore: see "
            "docs/how-to/back-up-and-restore.md"
        )
    return Path(url.removeprefix(SQLITE))


def _copy(source: Path, target: Path) -> None:
    try:
        with (
            closing(open_connection(str(source))) as there,
            closing(open_connection(str(target))) as here,
        ):
            there.backup(here)
    except sqlite3.Error as problem:
        raise StorageError(f"the database cannot be copied: {problem}") from None


async def restored_s1(server: Server) -> Restored:
    """The coordinator after its database was put back: every live survey asks the aggregator
    what stands.
    """
    held = States(Coordinator, server.keys)
    resumed, lost = list[bytes](), list[bytes]()
    async with server.database.write() as tx:
        for row in await _live(tx):
            try:
                before = await held.load(tx, row)
            except StorageError:
                await _give_up(tx, row)
                lost.append(row.id)
                continue
            await held.save(tx, before, coordinator.restored(before.state, before.rows))
            await note_outbox(tx, row.id, server.clock())
            resumed.append(row.id)
    return Restored(resumed=tuple(resumed), lost=tuple(lost))


async def restored_s2(server: Server) -> Restored:
    """The aggregator after its database was put back: what was live is ended and charged, and
    every population is closed.
    """
    held = States(Aggregator, server.keys)
    ended, lost = list[bytes](), list[bytes]()
    async with server.database.write() as tx:
        ledgers = {
            each["name"]: stored_ledger.decode(bytes(each["ledger"])).close_after_restore(())
            for each in await tx.fetch_all("SELECT name, ledger FROM populations")
        }
        for row in await _live(tx):
            population = parse_parameters(row.params).population
            try:
                ledgers[population] = await _ended(tx, held, row, ledgers[population])
                ended.append(row.id)
            except StorageError:
                ledgers[population] = ledgers[population].close_after_restore(
                    (charge_of(parse_parameters(row.params)),)
                )
                await _give_up(tx, row)
                lost.append(row.id)
        await tx.execute(
            "DELETE FROM started_steps"
        )  # steps of surveys that are ended now, under keys that will be gone
        for name, ledger in ledgers.items():
            await tx.execute(
                "UPDATE populations SET ledger = ? WHERE name = ?",
                stored_ledger.encode(ledger),
                name,
            )
    return Restored(ended=tuple(ended), lost=tuple(lost), closed=tuple(sorted(ledgers)))


async def _ended(
    tx: Transaction, held: States[Aggregator], row: SurveyRow, ledger: Ledger
) -> Ledger:
    """End one survey of the aggregator; the ledger with its charge."""
    before = await held.load(tx, row, ledger)
    step = aggregator.restored(replace(before.state, ledger=ledger), before.rows)
    await held.save(tx, before, step)
    return step.state.ledger


async def _live(tx: Transaction) -> list[SurveyRow]:
    """Surveys that have a state and have not come to an end."""
    found = await tx.fetch_all("SELECT id FROM surveys WHERE head_nonce IS NOT NULL ORDER BY id")
    rows = [await states.find(tx, bytes(each["id"]), change=True) for each in found]
    return [row for row in rows if row is not None and row.state not in FINAL]


async def _give_up(tx: Transaction, row: SurveyRow) -> None:
    """A survey that nobody can read any more: it came to its end after the backup, and its key
    was destroyed then.
    """
    await states.update(tx, row.id, state=str(Phase.ABORTED), due_at=None, version=row.version + 1)
