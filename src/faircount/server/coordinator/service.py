"""The coordinator around the protocol: every step is read, made and written in one transaction, and
answered after it.

a client's message   together with all that wait (`group_commit`); reads only its sender's rows
an owner's wish      setup, opening, closing, extending, aborting
the aggregator's statement       `outbox` brings it
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from faircount.protocol import (
    Coordinator,
    Message,
    Step,
    SurveyParameters,
    coordinate,
    encode,
    end_phase,
    resume,
)
from faircount.protocol.roles.anchor import anchor_coordinator_step
from faircount.protocol.roles.coordinator import (
    Out,
    PhaseAttempt,
    Place,
    coordinate_many,
    end_without_aggregator,
    give_up,
)
from faircount.protocol.roles.limits import decode_upload
from faircount.protocol.roles.reissue import reissued
from faircount.protocol.roles.rows import RowsAfter
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Rejection, Reservation, Signed, reject
from faircount.protocol.wire.signing import SigningKey, verify_message
from faircount.server.common.base import Server, find_owned_survey, parse_parameters
from faircount.server.common.problems import conflict, not_found
from faircount.server.common.tokens import Caller
from faircount.server.coordinator.group_commit import GroupCommit
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.states import Loaded, States, SurveyRow

AGAIN = 10_000
"""Milliseconds after which a deadline is tried again where nothing came of it: the coordinator
was restored and waits for the aggregator.
"""

Change = Callable[[Loaded[Coordinator]], Step[Coordinator]]
"""A step of the whole survey: it may read any row, so it is made in a thread of its own."""


@dataclass(frozen=True)
class ToSay:
    """What the coordinator says to the aggregator about a survey, and the key with which it
    signs.
    """

    key: SigningKey
    messages: Out


@dataclass(frozen=True)
class CoordinatorService:
    """S1."""

    server: Server
    states: States[Coordinator]
    commits: dict[bytes, GroupCommit] = field(default_factory=dict)
    changed: asyncio.Event = field(
        default_factory=asyncio.Event
    )  # something is to be said to the aggregator, or a time was set

    @classmethod
    def of(cls, server: Server) -> "CoordinatorService":
        """The coordinator in these surroundings."""
        return cls(server, States(Coordinator, server.keys))

    # --- users

    async def receive(self, survey: bytes, body: bytes) -> Message:
        """The answer to a user's message, a `Rejection` included."""
        message = decode_upload(await self.server.params(survey), body)
        out: Out = (message,)
        if not isinstance(message, Rejection):
            commit = self.commits.setdefault(
                survey, GroupCommit(lambda together: self._write(survey, together))
            )
            out = await commit.add(message)
        answer = next(
            (each for each in out if not isinstance(each, Signed)), reject(Reason.MALFORMED)
        )
        if isinstance(answer, Rejection):
            self.server.note_rejection(survey, answer.why)
        return answer

    async def _write(self, survey: bytes, messages: Sequence[Message]) -> list[Out]:
        """Several users' messages in one transaction."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is None or row.head_nonce is None:
                return [
                    (reject(Reason.EARLY, "the survey is not open yet: come back later"),)
                ] * len(messages)
            before = await self.states.load(
                tx, row, wanted=_wanted(parse_parameters(row.params), messages)
            )
            work = partial(coordinate_many, before.state, messages, before.rows)
            over = row.state in FINAL  # then parts of the claim are read while the answers are made
            step, outs = await asyncio.to_thread(work) if over else work()
            # check: closing-time - a late scheduler would let reports and withdrawals in
            if row.due_at is not None and row.due_at <= self.server.clock() and step.rows:
                return _answer_late(before, messages)
            await self._save(tx, before, step)
        return outs

    # --- steps of the whole state

    async def change(self, tx: Transaction, row: SurveyRow, change: Change) -> Out:
        """Change a survey with all of its rows, in a transaction that holds it; what the
        coordinator now has to say to the aggregator.
        """
        before = await self.states.load(tx, row)
        step = await asyncio.to_thread(change, before)
        to_aggregator = tuple(message for message in step.messages if isinstance(message, Signed))
        await self._save(tx, before, step, to_aggregator)
        return to_aggregator

    async def _save(
        self,
        tx: Transaction,
        before: Loaded[Coordinator],
        step: Step[Coordinator],
        to_aggregator: Out = (),
    ) -> None:
        after = step.state
        if after is before.state:
            await self.states.save(tx, before, step)
            return
        counting = after.phase is Phase.COUNTING and after.final is None
        speaks = to_aggregator
        if not (counting and to_aggregator):
            # Asking may read every row, so it is done in another thread.
            speaks = await asyncio.to_thread(resume, after, RowsAfter(before.rows, step))
        row = await self.states.save(tx, before, step)
        if after.phase_attempt != before.state.phase_attempt:
            await self._set_time(tx, row, after)
        if speaks:
            await note_outbox(tx, row.id, self.server.clock())
        else:
            await tx.execute("DELETE FROM outbox WHERE survey = ?", row.id)
        self.changed.set()

    async def _set_time(self, tx: Transaction, row: SurveyRow, after: Coordinator) -> None:
        """A new phase has begun: its time, if users act in it and the parameters give one."""
        since = self.server.clock()
        await states.update(tx, row.id, due_at=due_at(after, since), since=since, extended=0)

    async def to_say(self, survey: bytes) -> ToSay | None:
        """What the coordinator has to say to the aggregator now; None before the survey is open."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.head_nonce is None:
                return None
            held = await self.states.load(tx, row)
            return ToSay(held.state.key, await asyncio.to_thread(resume, held.state, held.rows))

    # --- what the aggregator says

    async def hear(self, survey: bytes, answer: Message) -> Out:
        """A statement of the aggregator; what the coordinator has to say next. Receipts are kept
        for the day on which the aggregator is restored.
        """
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is None or row.head_nonce is None:
                return ()
            out = await self.change(
                tx,
                row,
                lambda held: anchor_coordinator_step(
                    self.server.anchor, held.state, coordinate(held.state, answer, held.rows)
                ),
            )
            await _keep_receipt(tx, row, answer)
        await self.states.destroy_old_key(self.server.database, survey)
        return out

    async def end_without_s2(self, survey: bytes) -> None:
        """The aggregator was restored from a backup and has lost the survey: it is over, and the
        coordinator has nothing more to say to the aggregator.
        """
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is not None and row.head_nonce is not None and row.state not in FINAL:
                ending = Ending(EndCode.AGGREGATOR_RESTORED)
                await self.change(
                    tx, row, lambda held: end_without_aggregator(held.state, ending, held.rows)
                )
            await tx.execute("DELETE FROM outbox WHERE survey = ?", survey)
        await self.states.destroy_old_key(self.server.database, survey)

    # --- the owner

    async def close(self, caller: Caller, survey: bytes, seen: PhaseAttempt | None = None) -> None:
        """End the phase that is open now; if it is another one than the owner has seen, nothing
        happens.
        """
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            if seen in (None, (row.state, row.attempt)):
                await self.end(tx, row)

    async def end(self, tx: Transaction, row: SurveyRow) -> None:
        """End a phase whose time is up; where nothing came of it, it is tried again."""
        # An owner may close it before its time. The time stays until the next phase sets another.
        now = self.server.clock()
        closed_at = now if row.due_at is None else min(row.due_at, now)
        await states.update(tx, row.id, due_at=closed_at)
        await self.change(
            tx, row, lambda held: end_phase(held.state, reader=held.rows, sink=held.sink)
        )
        self.changed.set()

    async def extend(self, caller: Caller, survey: bytes, seconds: int) -> None:
        """Give the phase that is open more time, visibly; never less."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            if row.due_at is None:
                words = "this phase has no time that could be extended: close it when it is over"
                raise conflict(words).with_code("no_closing_time")
            await states.update(
                tx,
                survey,
                due_at=row.due_at + 1000 * seconds,
                extended=row.extended + seconds,
                version=row.version + 1,
            )
        self.changed.set()

    async def reissue(self, caller: Caller, survey: bytes, old: bytes, new: bytes) -> None:
        """Admit one invitation instead of another one that was not used."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            await self.change(tx, row, lambda held: reissued(held.state, old, new, held.rows))

    async def answered(self, caller: Caller, survey: bytes) -> list[bytes]:
        """Ids of the people who have sent their first message, for the owner, who may remind the
        others.
        """
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise not_found("survey")
            found = await tx.fetch_all(
                "SELECT key FROM state_rows WHERE survey = ? AND store = ?", survey, states.USERS
            )
        return sorted(bytes(each["key"]) for each in found)

    async def abort(self, caller: Caller, survey: bytes, reason: str) -> None:
        """Ask the aggregator to end the survey; it is over when the aggregator says so."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            ending = Ending(EndCode.OWNER, (), reason)
            await self.change(tx, row, lambda held: _give_up(held.state, ending))


def _answer_late(before: Loaded[Coordinator], messages: Sequence[Message]) -> list[Out]:
    """The answers after the closing time, before the phase has ended: nothing is written any more.

    Whoever asks something, or repeats what was stored in time, is answered as before.
    """
    answers = list[Out]()
    for message in messages:
        step = coordinate(before.state, message, before.rows)
        late = reject(Reason.LATE, "the closing time has passed")
        answers.append((late,) if step.rows or step.state is not before.state else step.messages)
    return answers


def _give_up(s: Coordinator, ending: Ending) -> Step[Coordinator]:
    """Ask for the end, unless that was done before."""
    return Step(s) if s.final is not None else Step(*give_up(s, ending))


def _wanted(params: SurveyParameters, messages: Sequence[Message]) -> list[Place] | None:
    """The rows that these messages concern; None if any of them concerns all."""
    found = [params.topology.coordinator.rows_needed(each) for each in messages]
    places = [place for each in found if each is not None for place in each]
    return None if any(each is None for each in found) else places


def due_at(s: Coordinator, since: int) -> int | None:
    """When the phase of a state ends; None if users do not act in it, or the parameters give no
    time.
    """
    phases = dict(zip(s.params.topology.phases, s.params.phases, strict=False))
    seconds = phases.get(s.phase)
    return None if seconds is None else since + 1000 * seconds


async def note_outbox(tx: Transaction, survey: bytes, now: int) -> None:
    """The coordinator has something to say to the aggregator, at once."""
    await tx.execute(
        "INSERT INTO outbox (survey, since, next_at, tries, lease_until, lease, problem) VALUES "
        "(?, ?, ?, 0, 0, ?, '') "
        "ON CONFLICT (survey) DO UPDATE SET next_at = excluded.next_at, tries = 0, problem = ''",
        survey, now, now, b"",
    )  # fmt: skip


async def _open_survey(tx: Transaction, survey: bytes, caller: Caller) -> SurveyRow:
    row = await find_owned_survey(tx, survey, caller)
    if row.head_nonce is None:
        raise conflict("this survey is not open yet").with_code("not_open")
    if row.state in FINAL:
        words = f"this survey is {row.state}: nothing about it can be changed"
        raise conflict(words).with_code("survey_over")
    return row


async def _keep_receipt(tx: Transaction, row: SurveyRow, answer: Message) -> None:
    params = parse_parameters(row.params)
    said = (
        verify_message(params.keys.s2, Party.AGGREGATOR, answer)
        if isinstance(answer, Signed)
        else None
    )
    if (
        isinstance(said, Reservation)
        # check: receipt-population - the aggregator files a receipt under another population
        and said.population == params.population.encode()
    ):
        await tx.execute(
            "INSERT INTO reservations (population, number, survey, signed) VALUES (?, ?, ?, ?) ON "
            "CONFLICT DO NOTHING",
            params.population, said.number, row.id, encode(answer),
        )  # fmt: skip
