"""S1 around the protocol: every step is read, made and written in one transaction, and answered after it.

a user's message     with all others that wait (`group_commit`); only the rows of their senders are read
an owner's wish      setup, opening, closing, extending, aborting
S2's statement       `outbox` brings it
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from faircount.protocol import Coordinator, Message, SurveyParameters, coordinate, encode, end_phase, resume
from faircount.protocol.roles.anchor import anchored_s1
from faircount.protocol.roles.coordinate import coordinate_many
from faircount.protocol.roles.coordinator import Out, Phase, Place, Step, end_alone, give_up
from faircount.protocol.roles.limits import decode_upload
from faircount.protocol.roles.reissue import reissued
from faircount.protocol.survey.states import FINAL, State
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Receipt, Rejected, Signed, rejected
from faircount.protocol.wire.signing import SigningKey, unwrap
from faircount.service.group_commit import GroupCommit
from faircount.service.problems import conflict, unknown
from faircount.service.server import Server, own_survey, parsed
from faircount.service.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.states import Loaded, States, SurveyRow

AGAIN = 10_000
"""Milliseconds after which a deadline is tried again where nothing came of it: S1 was restored and waits for S2."""

Change = Callable[[Coordinator], Step]


@dataclass(frozen=True)
class ToSay:
    """What S1 says to S2 about a survey, and the key with which it signs."""

    key: SigningKey
    messages: Out


@dataclass(frozen=True)
class CoordinatorService:
    """S1."""

    server: Server
    states: States[Coordinator]
    commits: dict[bytes, GroupCommit] = field(default_factory=dict)
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # something is to be said to S2, or a time was set

    @classmethod
    def of(cls, server: Server) -> "CoordinatorService":
        """S1 in these surroundings."""
        return cls(server, States(Coordinator, server.keys))

    # --- users

    async def receive(self, survey: bytes, body: bytes) -> Message:
        """The answer to a user's message, a `Rejected` included."""
        message = decode_upload(await self.server.params(survey), body)
        out: Out = (message,)
        if not isinstance(message, Rejected):
            commit = self.commits.setdefault(survey, GroupCommit(lambda together: self._write(survey, together)))
            out = await commit.add(message)
        answer = next((each for each in out if not isinstance(each, Signed)), rejected(Reason.MALFORMED))
        if isinstance(answer, Rejected):
            self.server.note_rejection(survey, answer.why)
        return answer

    async def _write(self, survey: bytes, messages: Sequence[Message]) -> list[Out]:
        """Several users' messages in one transaction."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is None or row.sealed is None:
                return [(rejected(Reason.EARLY, "the survey is not open yet: come back later"),)] * len(messages)
            before = await self.states.load(tx, row, wanted=_wanted(parsed(row.params), messages))
            step = partial(coordinate_many, before.state, messages)
            over = row.state in FINAL  # then parts of the claim are read while the answers are made
            after, outs = await asyncio.to_thread(step) if over else step()
            await self._save(tx, before, after)
        return outs

    # --- steps of the whole state

    async def change(self, tx: Transaction, row: SurveyRow, change: Change) -> Out:
        """Change a survey with all of its rows, in a transaction that holds it; what S1 now has to say to S2."""
        before = await self.states.load(tx, row)
        after, out = await asyncio.to_thread(change, before.state)
        to_s2 = tuple(each for each in out if isinstance(each, Signed))
        await self._save(tx, before, after, to_s2)
        return to_s2

    async def _save(self, tx: Transaction, before: Loaded[Coordinator], after: Coordinator, to_s2: Out = ()) -> None:
        if after is before.state:
            await self.states.save(tx, before, after)
            return
        counting = after.state is State.CLAIMED and after.final is None
        speaks = to_s2 if counting and to_s2 else await asyncio.to_thread(resume, after)  # asking may read every row
        row = await self.states.save(tx, before, after)
        if after.phase != before.state.phase:
            await self._set_time(tx, row, after)
        if speaks:
            await note_outbox(tx, row.id, self.server.clock())
        else:
            await tx.run("DELETE FROM outbox WHERE survey = ?", row.id)
        self.changed.set()

    async def _set_time(self, tx: Transaction, row: SurveyRow, after: Coordinator) -> None:
        """A new phase has begun: its time, if users act in it and the parameters give one."""
        since = self.server.clock()
        await states.update(tx, row.id, due_at=due_at(after, since), since=since, extended=0)

    async def to_say(self, survey: bytes) -> ToSay | None:
        """What S1 has to say to S2 now; None before the survey is open."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.sealed is None:
                return None
            state = (await self.states.load(tx, row)).state
            return ToSay(state.key, await asyncio.to_thread(resume, state))

    # --- what S2 says

    async def hear(self, survey: bytes, answer: Message) -> Out:
        """A statement of S2; what S1 has to say next. Receipts are kept for the day on which S2 is restored."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is None or row.sealed is None:
                return ()
            out = await self.change(tx, row, lambda s: anchored_s1(self.server.anchor, s, coordinate(s, answer)))
            await _keep_receipt(tx, row, answer)
        await self.destroy_old_key(survey)
        return out

    async def end_without_s2(self, survey: bytes) -> None:
        """S2 was restored from a backup and has lost the survey: it is over, and S1 has nothing more to say to S2."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, change=True)
            if row is not None and row.sealed is not None and row.state not in FINAL:
                await self.change(tx, row, lambda s: end_alone(s, "S2 was restored from a backup"))
            await tx.run("DELETE FROM outbox WHERE survey = ?", survey)
        await self.destroy_old_key(survey)

    async def destroy_old_key(self, survey: bytes) -> None:
        """Once the last word is committed, what was live can be read by nobody any more."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
        if row is not None:
            await asyncio.to_thread(self.states.forget_old_key, row)

    # --- the owner

    async def close(self, caller: Caller, survey: bytes, seen: Phase | None = None) -> None:
        """End the phase that is open now; if it is another one than the owner has seen, nothing happens."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            if seen in (None, (row.state, row.attempt)):
                await self.end(tx, row)

    async def end(self, tx: Transaction, row: SurveyRow) -> None:
        """End a phase whose time is up; where nothing came of it, it is tried again."""
        await states.update(tx, row.id, due_at=None)
        phase = row.state, row.attempt
        await self.change(tx, row, end_phase)
        now = await states.find(tx, row.id)
        if now is not None and (now.state, now.attempt) == phase and now.state not in FINAL:
            await states.update(tx, row.id, due_at=self.server.clock() + AGAIN)
        self.changed.set()

    async def extend(self, caller: Caller, survey: bytes, seconds: int) -> None:
        """Give the phase that is open more time, visibly; never less."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            if row.due_at is None:
                raise conflict("this phase has no time that could be extended: close it when it is over")
            await states.update(
                tx, survey, due_at=row.due_at + 1000 * seconds, extended=row.extended + seconds, version=row.version + 1
            )
        self.changed.set()

    async def reissue(self, caller: Caller, survey: bytes, old: bytes, new: bytes) -> None:
        """Admit one invitation instead of another one that was not used."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            await self.change(tx, row, lambda s: (reissued(s, old, new), ()))

    async def answered(self, caller: Caller, survey: bytes) -> list[bytes]:
        """Ids of the people who have sent their first message, for the owner, who may remind the others."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise unknown("survey")
            found = await tx.all("SELECT key FROM state_rows WHERE survey = ? AND store = ?", survey, states.USERS)
        return sorted(bytes(each["key"]) for each in found)

    async def abort(self, caller: Caller, survey: bytes, reason: str) -> None:
        """Ask S2 to end the survey; it is over when S2 says so."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            await self.change(tx, row, lambda s: (s, ()) if s.final is not None else give_up(s, f"owner: {reason}"))


def _wanted(params: SurveyParameters, messages: Sequence[Message]) -> list[Place] | None:
    """The rows that these messages concern; None if any of them concerns all."""
    found = [params.topology.s1.reads(each) for each in messages]
    places = [place for each in found if each is not None for place in each]
    return None if any(each is None for each in found) else places


def due_at(s: Coordinator, since: int) -> int | None:
    """When the phase of a state ends; None if users do not act in it, or the parameters give no time."""
    phases = dict(zip(s.params.topology.phases, s.params.phases, strict=False))
    seconds = phases.get(s.state)
    return None if seconds is None else since + 1000 * seconds


async def note_outbox(tx: Transaction, survey: bytes, now: int) -> None:
    """S1 has something to say to S2, at once."""
    await tx.run(
        "INSERT INTO outbox (survey, since, next_at, tries, lease_until, lease, problem) VALUES (?, ?, ?, 0, 0, ?, '') "
        "ON CONFLICT (survey) DO UPDATE SET next_at = excluded.next_at, tries = 0, problem = ''",
        survey, now, now, b"",
    )  # fmt: skip


async def _open_survey(tx: Transaction, survey: bytes, caller: Caller) -> SurveyRow:
    row = await own_survey(tx, survey, caller)
    if row.sealed is None:
        raise conflict("this survey is not open yet")
    if row.state in FINAL:
        raise conflict(f"this survey is {row.state}: nothing about it can be changed")
    return row


async def _keep_receipt(tx: Transaction, row: SurveyRow, answer: Message) -> None:
    params = parsed(row.params)
    said = unwrap(params.keys.s2, Party.S2, answer) if isinstance(answer, Signed) else None
    if isinstance(said, Receipt) and said.population == params.population.encode():  # S2 may name another one
        await tx.run(
            "INSERT INTO receipts (population, number, survey, signed) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            params.population, said.number, row.id, encode(answer),
        )  # fmt: skip
