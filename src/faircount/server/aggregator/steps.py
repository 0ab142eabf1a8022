"""The aggregator's steps: made from what is stored, anchored, written, and only then answered.

    what is begun and not finished is finished first
    read -> make the step, here or in another process
    -> note what is about to be done -> anchor -> write

The anchor moves before the state is written, so a crash in between leaves an anchor that is
ahead. The aggregator draws nothing: the same message leads there again. So the message is
written down first (`started_steps`), and after a crash it is done again before anything else of
its population, whoever asks first. A step is written only if nothing has changed since it was
read; else it is made again.
"""

import asyncio
from dataclasses import dataclass

from faircount.protocol import Aggregator, Ledger, Message, Step, compare_and_swap
from faircount.protocol.roles.aggregator import aggregate_with
from faircount.protocol.roles.anchor import anchor_aggregator_step
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.roles.rows import part_key
from faircount.protocol.survey import stored_ledger
from faircount.protocol.topologies.two_servers import messages
from faircount.server.aggregator.step_process import StepBytes, StepMaker
from faircount.server.common.base import Server, parse_parameters
from faircount.server.common.problems import ProblemError, conflict, not_found
from faircount.server.common.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name
from faircount.storage.states import Loaded, States, SurveyRow

Answers = tuple[Message, ...]


@dataclass(frozen=True)
class Read:
    """What a step begins with: a survey and the ledger of its population, as they were read."""

    row: SurveyRow
    ledger: Ledger
    loaded: Loaded[Aggregator]

    @property
    def state(self) -> Aggregator:
        """The survey."""
        return self.loaded.state


@dataclass(frozen=True)
class AggregatorSteps:
    """The steps of one aggregator."""

    server: Server
    states: States[Aggregator]
    elsewhere: StepMaker

    async def make(self, survey: bytes, body: bytes, *, elsewhere: bool) -> Answers:
        """The answers to a message of the coordinator; when this returns, what they say is on
        the disk.
        """
        while True:
            await self._finish_begun(survey, body)
            out = await self._attempt(survey, body, elsewhere=elsewhere)
            if out is not None:
                return out

    async def _finish_begun(self, survey: bytes, body: bytes) -> None:
        """Do again what was begun in this population and not written, unless it is this very
        message.
        """
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
        key = self.server.keys.get(state_key_name(other.id, other.generation))
        begun = key.decrypt(_place(other.id), bytes(found["encrypted"]))
        if (other.id, begun) != (survey, body):
            await self._attempt(other.id, begun, elsewhere=False)

    async def _attempt(self, survey: bytes, body: bytes, *, elsewhere: bool) -> Answers | None:
        """One step; None if something else came in between."""
        async with self.server.database.read() as tx:  # rows are read while the step is made
            read = await self._read(tx, survey)
            given = (
                await asyncio.to_thread(
                    StepBytes.of, read.state, read.loaded.rows, read.ledger, body
                )
                if elsewhere
                else None
            )
            if given is None:
                step = await asyncio.to_thread(_made, read, body)
        if given is not None:
            step = await asyncio.to_thread((await self.elsewhere.step(given)).step)
        check_manifest_parts(read.row.people, step)
        if step.state.newest != read.state.newest and not await self._note_begun(read, body):
            return None
        return await self._write(read, step)

    async def _read(self, tx: Transaction, survey: bytes) -> Read:
        row = await states.find(tx, survey)
        if row is None:
            raise not_found("survey")
        ledger = await ledger_of(tx, parse_parameters(row.params).population, change=False)
        return Read(row, ledger, await self.states.load(tx, row, ledger))

    async def _unchanged(self, tx: Transaction, read: Read) -> bool:
        """Whether survey and ledger are as they were read; nobody else changes them before this
        transaction ends.
        """
        now = await states.find(tx, read.row.id, change=True)
        ledger = await ledger_of(tx, read.ledger.population)
        return now is not None and (now.version, ledger) == (read.row.version, read.ledger)

    async def _note_begun(self, read: Read, body: bytes) -> bool:
        """Write down a message whose step is about to be anchored; False if something else came
        in between.
        """
        key = self.server.keys.get(state_key_name(read.row.id, read.row.generation))
        async with self.server.database.write() as tx:
            if not await self._unchanged(tx, read):
                return False
            noted = await tx.execute(
                "INSERT INTO started_steps (population, survey, encrypted) VALUES (?, ?, ?) ON "
                "CONFLICT (population) DO NOTHING",
                read.ledger.population, read.row.id, key.encrypt(_place(read.row.id), body),
            )  # fmt: skip
            if noted:
                return True
            found = await tx.fetch_one(
                "SELECT survey FROM started_steps WHERE population = ?", read.ledger.population
            )
            return found is not None and bytes(found["survey"]) == read.row.id

    async def _write(self, read: Read, step: Step[Aggregator]) -> Answers | None:
        async with self.server.database.write() as tx:
            if not await self._unchanged(tx, read):
                return None
            # The anchor may answer late, and a step that it refuses reads no rows.
            made = await asyncio.to_thread(
                anchor_aggregator_step, self.server.anchor, read.state, step, read.loaded.rows
            )
            await _write_ledger(tx, read.ledger, made.state.ledger)
            await self.states.save(tx, read.loaded, made)
            await tx.execute("DELETE FROM started_steps WHERE survey = ?", read.row.id)
        return made.messages


def _made(read: Read, body: bytes) -> Step[Aggregator]:
    message = decode_signed(body)
    return aggregate_with(read.ledger, read.state, message, read.loaded.rows)[1]


def check_manifest_parts(people: int, step: Step[Aggregator]) -> None:
    """Refuse to store parts of a manifest for more people than are on the list.

    Whoever creates a survey names its coordinator, and could store gigabytes in its name.
    """
    parts = [write.key for write in step.rows if write.table == "manifest_parts"]
    most = people // messages.REPORTS_PER_PART
    # check: stored-parts - a made-up coordinator fills the disk with parts of a manifest
    if any(key >= part_key(most) for key in parts):
        raise conflict(f"this manifest has more entries than the {people} people on the list")


def _place(survey: bytes) -> bytes:
    return b"begun" + survey


async def ledger_of(
    tx: Transaction, population: str, caller: Caller | None = None, *, change: bool = True
) -> Ledger:
    """The ledger of a population; with `change` nobody else changes it before this transaction
    ends.
    """
    look = tx.fetch_one_for_update if change else tx.fetch_one
    found = await look("SELECT owner, ledger FROM populations WHERE name = ?", population)
    if found is None or (caller is not None and bytes(found["owner"]) != caller.id):
        raise ProblemError(
            409, "no-population", "this population has no budget here: open one first"
        )
    return stored_ledger.decode(bytes(found["ledger"]))


async def _write_ledger(tx: Transaction, before: Ledger, after: Ledger) -> None:
    if after == before:
        return
    found = await tx.fetch_one("SELECT ledger FROM populations WHERE name = ?", before.population)
    stored = before if found is None else stored_ledger.decode(bytes(found["ledger"]))
    data = stored_ledger.encode(compare_and_swap(stored, before, after))
    await tx.execute("UPDATE populations SET ledger = ? WHERE name = ?", data, before.population)
