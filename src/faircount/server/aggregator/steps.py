"""How the aggregator makes a step durable: recorded, anchored, written, and only then answered.

    do in another process what does not depend on other messages, if there is such work
    finish a step that was started and not written, if there is one
    read -> make the step, here or in another process
    -> record that it has started -> advance the anchor -> write

The anchor advances before the state is written, so a crash in between leaves an anchor that is
ahead of the database, as if the database had been rolled back. Only the same message leads to the
value that the anchor has. Therefore the message is recorded first (`started_steps`), and after a
crash its step is made again before any other step of the population, whoever asks first. The
aggregator draws no randomness, so it is the same step.

Making a step takes long and holds no lock. It is written only if survey and ledger have not
changed since they were read; otherwise it is made again.
"""

import asyncio
import logging
from dataclasses import dataclass

from faircount.protocol import Aggregator, Ledger, Message, Step, compare_and_swap
from faircount.protocol.roles.aggregator import aggregator_step_with, stop
from faircount.protocol.roles.aggregator.rules import WorkAhead
from faircount.protocol.roles.anchor import anchor_aggregator_step
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.roles.rows import MemoryRows, PrecomputedReader, StepRows, part_key
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.endings import Ending
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.wire.messages import Signed, decode
from faircount.server.aggregator.step_process import StepInput, Workers
from faircount.server.common.base import Server, find_survey, parse_parameters
from faircount.server.common.problems import ProblemError, conflict, not_found
from faircount.server.common.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name
from faircount.storage.states import Loaded, States, SurveyRow

Replies = tuple[Message, ...]
_log = logging.getLogger("faircount.aggregator")


@dataclass(frozen=True)
class Snapshot:
    """A survey and the ledger of its population, as they were when a step began."""

    row: SurveyRow
    ledger: Ledger
    loaded: Loaded[Aggregator]

    @property
    def state(self) -> Aggregator:
        """The state of the survey."""
        return self.loaded.state


@dataclass(frozen=True)
class AggregatorSteps:
    """The steps of one aggregator.

    Attributes:
        server: database, keys and anchor
        states: the stored states
        workers: do long work in other processes
    """

    server: Server
    states: States[Aggregator]
    workers: Workers

    async def make(self, survey: bytes, body: bytes, *, in_worker: bool) -> Replies:
        """Handle a message of the coordinator; the step is on disk when this returns its replies.

        in_worker: whether to do what takes long in another process
        """
        computed = MemoryRows()
        if in_worker:
            computed = await self._work_ahead(survey, body)
        while True:
            await self._finish_started(survey, body)
            out = await self._attempt(survey, body, computed, in_worker=in_worker)
            if out is not None:
                return out

    async def _work_ahead(self, survey: bytes, body: bytes) -> MemoryRows:
        """Do work for a message before its step, beside that for other messages.

        The rows that the step then reads. The step checks the message itself, and uses only rows
        that were computed for exactly this message.
        """
        async with self.server.database.read() as tx:
            snapshot = await self._read(tx, survey)
            work = await asyncio.to_thread(_find_work, snapshot, body)
        if work is None:
            return MemoryRows()
        return work.rows(await self.workers.run(work))

    async def _finish_started(self, survey: bytes, body: bytes) -> None:
        """Make the step that was started in this population, unless it is for this message."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None:
                raise not_found("survey")
            found = await tx.fetch_one(
                "SELECT survey, encrypted FROM started_steps WHERE population = ?",
                parse_parameters(row.params).population,
            )
            if found is None:
                return
            other = await states.find(tx, bytes(found["survey"]))
        if other is None:
            return
        # Encrypted under the key of its survey, and destroyed with it.
        key = self.server.keys.get(state_key_name(other.id, other.generation))
        started = key.decrypt(_associated_data(other.id), bytes(found["encrypted"]))
        if (other.id, started) != (survey, body):
            await self._attempt(other.id, started, MemoryRows(), in_worker=False)

    async def _attempt(
        self, survey: bytes, body: bytes, computed: MemoryRows, *, in_worker: bool
    ) -> Replies | None:
        """Make and write one step; None if something else was written meanwhile."""
        step_input = None
        # The step reads its rows while it is made, so the block lasts as long as it does.
        async with self.server.database.read() as tx:
            snapshot = await self._read(tx, survey)
            if in_worker:
                step_input = await asyncio.to_thread(
                    StepInput.of, snapshot.state, snapshot.loaded.rows, snapshot.ledger, body
                )
            if step_input is None:
                step = await asyncio.to_thread(_make_in_thread, snapshot, body, computed)
        if step_input is not None:
            step_result = await self.workers.run(step_input)
            step = await asyncio.to_thread(step_result.step)
        check_manifest_parts(snapshot.row.invited, step)
        # Only a step that signs a statement advances the anchor.
        is_anchored = step.state.chain_end != snapshot.state.chain_end
        if is_anchored and not await self._record_start(snapshot, body):
            return None
        return await self._write(snapshot, step)

    async def _read(self, tx: Transaction, survey: bytes) -> Snapshot:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        ledger = await ledger_of(tx, parse_parameters(row.params).population, for_update=False)
        return Snapshot(row, ledger, await self.states.load(tx, row, ledger))

    async def _is_unchanged(self, tx: Transaction, snapshot: Snapshot) -> bool:
        """Whether survey and ledger are as they were read; locks both in this transaction."""
        now = await states.find(tx, snapshot.row.id, for_update=True)
        ledger = await ledger_of(tx, snapshot.ledger.population)
        return now is not None and (now.version, ledger) == (snapshot.row.version, snapshot.ledger)

    async def _record_start(self, snapshot: Snapshot, body: bytes) -> bool:
        """Record the message of a step before the anchor advances.

        False if something else was written meanwhile, or another survey of the population has
        started a step.
        """
        key = self.server.keys.get(state_key_name(snapshot.row.id, snapshot.row.generation))
        async with self.server.database.write() as tx:
            if not await self._is_unchanged(tx, snapshot):
                return False
            recorded = await tx.execute(
                "INSERT INTO started_steps (population, survey, encrypted) VALUES (?, ?, ?) ON "
                "CONFLICT (population) DO NOTHING",
                snapshot.ledger.population,
                snapshot.row.id,
                key.encrypt(_associated_data(snapshot.row.id), body),
            )
            if recorded:
                return True
            # A step that this survey started before a crash may be recorded again. One of another
            # survey must be finished first, since both advance the anchor of the ledger.
            found = await tx.fetch_one(
                "SELECT survey FROM started_steps WHERE population = ?", snapshot.ledger.population
            )
            return found is not None and bytes(found["survey"]) == snapshot.row.id

    async def stop(self, survey: bytes, ending: Ending) -> None:
        """End a running survey because the operator wants it; nothing happens if it is over."""
        async with self.server.database.write() as tx:
            row = await find_survey(tx, survey)
            if row.phase in FINAL:
                return
            # Locked like the survey: another survey may reserve at the same time.
            ledger = await ledger_of(tx, parse_parameters(row.params).population)
            snapshot = Snapshot(row, ledger, await self.states.load(tx, row, ledger))
            step = await asyncio.to_thread(stop, snapshot.state, ending, snapshot.loaded.rows)
            # No message is recorded first: if the anchor is ahead after a crash, the next step of
            # this survey ends it as well.
            await self._write_anchored(tx, snapshot, step)

    async def _write(self, snapshot: Snapshot, step: Step[Aggregator]) -> Replies | None:
        async with self.server.database.write() as tx:
            # check: step-unchanged - a step overwrites what was written since it was read
            if not await self._is_unchanged(tx, snapshot):
                return None
            anchored = await self._write_anchored(tx, snapshot, step)
        _log_reservation(snapshot.ledger, anchored.state.ledger)
        return anchored.messages

    async def _write_anchored(
        self, tx: Transaction, snapshot: Snapshot, step: Step[Aggregator]
    ) -> Step[Aggregator]:
        """Advance the anchor and write the step, or the one with which a refused step ends."""
        # In a thread: the anchor may be slow. The reader may belong to a block that has ended, but
        # a step that the anchor refuses reads no rows.
        anchored = await asyncio.to_thread(
            anchor_aggregator_step, self.server.anchor, snapshot.state, step, snapshot.loaded.rows
        )
        await _write_ledger(tx, snapshot.ledger, anchored.state.ledger)
        await self.states.save(tx, snapshot.loaded, anchored)
        # With the step, in one transaction: it is finished.
        await tx.execute("DELETE FROM started_steps WHERE survey = ?", snapshot.row.id)
        return anchored


def _find_work(snapshot: Snapshot, body: bytes) -> WorkAhead | None:
    """What another process can do before the step for this message is made."""
    signed = decode_signed(body)
    if not isinstance(signed, Signed):
        return None
    rules = snapshot.state.params.topology.aggregator
    return rules.work_ahead(snapshot.state, StepRows(snapshot.loaded.rows), decode(signed.payload))


def _make_in_thread(snapshot: Snapshot, body: bytes, computed: MemoryRows) -> Step[Aggregator]:
    """Make a step in this process, in a thread."""
    rows = PrecomputedReader(snapshot.loaded.rows, computed)
    _, step = aggregator_step_with(snapshot.ledger, snapshot.state, decode_signed(body), rows)
    return step


def check_manifest_parts(people: int, step: Step[Aggregator]) -> None:
    """Refuse to store parts of a manifest for more people than are on the list.

    Whoever creates a survey names its coordinator, and could store gigabytes in its name.
    """
    parts = [write.key for write in step.rows if write.table == "manifest_parts"]
    most = people // messages.REPORTS_PER_PART
    # check: stored-parts - a made-up coordinator fills the disk with parts of a manifest
    if any(key >= part_key(most) for key in parts):
        raise conflict(f"this manifest has more entries than the {people} people on the list")


def _log_reservation(before: Ledger, after: Ledger) -> None:
    """Log the number of a new reservation: if the anchor is lost, the operator needs it."""
    if len(after.heads) > len(before.heads):
        _log.info("reserved", extra={"population": after.population, "number": len(after.heads)})


def _associated_data(survey: bytes) -> bytes:
    return b"begun" + survey


async def ledger_of(
    tx: Transaction, population: str, caller: Caller | None = None, *, for_update: bool = True
) -> Ledger:
    """The ledger of a population.

    caller: if given, the owner of the population; others are refused
    for_update: whether to lock the row until this transaction ends
    """
    fetch = tx.fetch_one_for_update if for_update else tx.fetch_one
    found = await fetch("SELECT owner, ledger FROM populations WHERE name = ?", population)
    if (
        found is None
        # check: budget-owner - an owner spends the budget of another one's population
        or (caller is not None and bytes(found["owner"]) != caller.id)
    ):
        raise ProblemError(
            409, "no-population", "this population has no budget here: open one first"
        )
    return stored_ledger.decode(bytes(found["ledger"]))


async def _write_ledger(tx: Transaction, before: Ledger, after: Ledger) -> None:
    """Write a changed ledger, which must still be stored as it was `before`."""
    if after == before:
        return
    found = await tx.fetch_one("SELECT ledger FROM populations WHERE name = ?", before.population)
    stored = before if found is None else stored_ledger.decode(bytes(found["ledger"]))
    data = stored_ledger.encode(compare_and_swap(stored, before, after))
    await tx.execute("UPDATE populations SET ledger = ? WHERE name = ?", data, before.population)
