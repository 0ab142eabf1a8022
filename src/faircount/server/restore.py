"""Backups of a server's database, and how a server goes on after it was restored from one.

A backup is a copy of the database, made while the server runs. The folders of keys and of the
anchor are not in it: keys that were destroyed must stay destroyed, and the anchor must remember
what the database has forgotten.

A restored server does not know what it has signed and sent since the backup.

    coordinator   asks the aggregator for its history before it ends any phase
    aggregator    aborts what was running and counts it as spent, since a result may have been
                  published; its populations stay closed until it is shown its own reservations

A server whose anchor is lost as well cannot know what it has signed, however new its database is.

    coordinator   aborts what was running: it may have sent its one sum already
    aggregator    as above; its operator must also state the number of the newest reservation
    both          survey keys that no survey uses yet are removed, since one of them may have been
                  used and revealed
"""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from faircount.core.errors import ParameterError, RefusedError, StorageError
from faircount.core.files import PRIVATE, make_private_file
from faircount.protocol import Aggregator, Coordinator, Ledger
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.rows import Step
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.survey.reservations import charge_of
from faircount.server.common.anchor_identity import adopt
from faircount.server.common.base import Server, parse_parameters
from faircount.server.coordinator.service import note_outbox
from faircount.storage import states
from faircount.storage.anchor import FolderAnchor
from faircount.storage.database import Transaction
from faircount.storage.keys import wrapping_key_name
from faircount.storage.sqlite import open_connection
from faircount.storage.states import States, SurveyRow

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class RestoreOutcome:
    """What happened to the surveys that were running in the backup.

    Attributes:
        resumed: they resynchronize
        ended: they were aborted and charged
        lost: they ended after the backup, when their keys were destroyed, and cannot be read
        closed: populations that stay closed until their reservations are shown
        removed_keys: how many unused survey keys were removed, because the anchor is lost
    """

    resumed: tuple[bytes, ...] = ()
    ended: tuple[bytes, ...] = ()
    lost: tuple[bytes, ...] = ()
    closed: tuple[str, ...] = ()
    removed_keys: int = 0


def back_up(url: str, target: Path) -> None:
    """Copy an SQLite database as it is now; the server may be running."""
    # Copying over an older backup would destroy it if the copy fails.
    if target.exists():
        raise RefusedError(f"{target} is there already: give every backup a name of its own")
    source = sqlite_file(url)
    if not source.exists():
        raise ParameterError(f"there is no database {source}: has this server ever been started?")
    # Created with its permissions before anything is in it.
    target.touch(PRIVATE)
    _copy(source, target)


def restore_database(url: str, source: Path, role: str) -> None:
    """Replace the database by a backup; refused if it is damaged or another server's."""
    if not source.exists():
        raise ParameterError(f"there is no backup {source}")
    try:
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as copy:
            is_sound = copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            stored_role = copy.execute("SELECT value FROM meta WHERE name = 'role'").fetchone()
    except sqlite3.Error as problem:
        raise RefusedError(f"{source} is no backup of faircount: {problem}") from None
    if (
        not is_sound
        # check: backup-role - the database of the other server has the other share
        or stored_role != (role,)
    ):
        raise RefusedError(f"{source} is damaged, or the backup of another server than the {role}")
    make_private_file(sqlite_file(url))
    _copy(source, sqlite_file(url))


def sqlite_file(url: str) -> Path:
    """The file of an SQLite address; PostgreSQL has its own tools."""
    if not url.startswith(SQLITE):
        raise RefusedError(
            "PostgreSQL has tools of its own for this, pg_dump and pg_restore: see "
            "docs/how-to/back-up-and-restore.md"
        )
    return Path(url.removeprefix(SQLITE))


def _copy(source: Path, target: Path) -> None:
    try:
        with (
            closing(open_connection(str(source))) as source_connection,
            closing(open_connection(str(target))) as target_connection,
        ):
            source_connection.backup(target_connection)
    except sqlite3.Error as problem:
        raise StorageError(f"the database cannot be copied: {problem}") from None


async def restore_coordinator(
    server: Server, new_anchor: FolderAnchor | None = None
) -> RestoreOutcome:
    """Make every running survey of a restored coordinator ask the aggregator for its history.

    new_anchor: if the anchor is lost, the one in its place; every running survey is ended then
    """
    surveys = States(Coordinator, server.keys)
    going_on = list[bytes]()
    lost = list[bytes]()
    async with server.database.write() as tx:
        for row in await _find_running(tx):
            try:
                before = await surveys.load(tx, row)
            except StorageError:
                await _mark_lost(tx, row)
                lost.append(row.id)
                continue
            # check: lost-anchor-ends - a coordinator that forgot its sum sends a second one
            if new_anchor is not None:
                step = Step(*coordinator.request_abort(before.state, _ANCHOR_LOST))
            else:
                step = coordinator.start_resync(before.state, before.rows)
            await surveys.save(tx, before, step)
            # The message is sent when the server starts.
            await note_outbox(tx, row.id, server.clock())
            going_on.append(row.id)
        unused = await _adopt(tx, new_anchor)
    await _destroy(server, unused)
    if new_anchor is not None:
        return RestoreOutcome(ended=tuple(going_on), lost=tuple(lost), removed_keys=len(unused))
    return RestoreOutcome(resumed=tuple(going_on), lost=tuple(lost))


_ANCHOR_LOST = Ending(
    EndCode.COORDINATOR_RESTORED, (), "it lost its memory of what it had sent, and sends no more"
)


async def restore_aggregator(
    server: Server, new_anchor: FolderAnchor | None = None
) -> RestoreOutcome:
    """Abort and charge every running survey of a restored aggregator, and close its populations.

    new_anchor: if the anchor is lost, the one in its place
    """
    surveys = States(Aggregator, server.keys)
    ended = list[bytes]()
    lost = list[bytes]()
    # One transaction: after a crash in the middle the restore is repeated from the beginning.
    async with server.database.write() as tx:
        ledgers = dict[str, Ledger]()
        for record in await tx.fetch_all("SELECT name, ledger FROM populations"):
            ledger = stored_ledger.decode(bytes(record["ledger"]))
            # check: restored-population-closed - budget spent since the backup is spent again
            ledgers[record["name"]] = ledger.close_after_restore(())
        for row in await _find_running(tx):
            params = parse_parameters(row.params)
            ledger = ledgers[params.population]
            try:
                ledgers[params.population] = await _abort(tx, surveys, row, ledger)
                ended.append(row.id)
            except StorageError:
                # The survey cannot be read, but its charge is known from the parameters.
                ledgers[params.population] = ledger.close_after_restore((charge_of(params),))
                await _mark_lost(tx, row)
                lost.append(row.id)
        # These steps belong to surveys that are over now, under keys that will be destroyed.
        await tx.execute("DELETE FROM started_steps")
        for name, ledger in ledgers.items():
            await tx.execute(
                "UPDATE populations SET ledger = ? WHERE name = ?",
                stored_ledger.encode(ledger),
                name,
            )
        unused = await _adopt(tx, new_anchor)
    await _destroy(server, unused)
    return RestoreOutcome((), tuple(ended), tuple(lost), tuple(sorted(ledgers)), len(unused))


async def _adopt(tx: Transaction, new_anchor: FolderAnchor | None) -> list[bytes]:
    """Take a new anchor, and remove the survey keys that no survey uses; return their names.

    Without the lost anchor nobody knows whether one was used after the backup and its value
    revealed.
    """
    if new_anchor is None:
        return []
    rows = await tx.fetch_all("SELECT id FROM survey_keys WHERE used_by IS NULL")
    # check: lost-anchor-keys - a value that was revealed once serves a second survey
    await tx.execute("DELETE FROM survey_keys WHERE used_by IS NULL")
    # In the transaction that closes and ends everything: otherwise a crash in between would leave
    # a server that starts with the new anchor as if nothing had happened.
    await adopt(tx, new_anchor)
    return [bytes(row["id"]) for row in rows]


async def _destroy(server: Server, unused: list[bytes]) -> None:
    """Destroy the wrapping keys of survey keys that were removed."""
    for name in unused:
        await asyncio.to_thread(server.keys.destroy, wrapping_key_name(name))


async def _abort(
    tx: Transaction, surveys: States[Aggregator], row: SurveyRow, ledger: Ledger
) -> Ledger:
    """Abort one survey of the aggregator; return the ledger with its charge."""
    before = await surveys.load(tx, row, ledger)
    step = aggregator.abort_after_restore(replace(before.state, ledger=ledger), before.rows)
    await surveys.save(tx, before, step)
    return step.state.ledger


async def _find_running(tx: Transaction) -> list[SurveyRow]:
    """Surveys that have a state and are not over."""
    running = list[SurveyRow]()
    found = await tx.fetch_all("SELECT id FROM surveys WHERE main_nonce IS NOT NULL ORDER BY id")
    # Locked, in the order of ids: a worker that was not stopped waits until this is committed.
    for record in found:
        row = await states.find(tx, bytes(record["id"]), for_update=True)
        if row is not None and row.phase not in FINAL:
            running.append(row)
    return running


async def _mark_lost(tx: Transaction, row: SurveyRow) -> None:
    """End a survey that nobody can read: its key was destroyed when it ended after the backup."""
    await states.update(tx, row.id, phase=str(Phase.ABORTED), due_at=None, version=row.version + 1)
