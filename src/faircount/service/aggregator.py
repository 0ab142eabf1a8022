"""S2 around the protocol: what its owner and S1 ask of it. `aggregator_steps` makes and writes its steps."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Aggregator, Ledger, Message, Row, rows_of
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.states import FINAL
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Refused, Rejected, Signed
from faircount.protocol.wire.sealing import KeyPair
from faircount.protocol.wire.signing import SigningKey, unwrap
from faircount.service import long_messages, offers
from faircount.service.aggregator_steps import AggregatorSteps, ledger_of
from faircount.service.long_messages import LongMessage
from faircount.service.problems import LOST, ProblemError, conflict, unknown
from faircount.service.server import Server, new_part, new_row, own_survey, parameters_for, parsed, same_survey
from faircount.service.signed_requests import SignedRequest, use_once
from faircount.service.step_process import StepMaker, StepProcesses
from faircount.service.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import offer_key, survey_key
from faircount.storage.states import States, SurveyRow

LONG_MESSAGE = 128 * 1024
"""Bytes from which on a message is worked on in another process: about 1,900 blobs, or 900 lines of a claim."""

ANSWER_SECONDS = 20.0
"""After so long S1 is told to ask again."""

USER, SEALING_KEY = 16, 32
"""Bytes of the two halves of a line about a person."""


@dataclass(frozen=True)
class AggregatorService:
    """S2."""

    server: Server
    states: States[Aggregator]
    steps: AggregatorSteps
    long_steps: dict[bytes, "asyncio.Task[tuple[Message, ...]]"] = field(default_factory=dict)
    long_message: int = LONG_MESSAGE

    @classmethod
    def of(cls, server: Server, elsewhere: StepMaker | None = None) -> "AggregatorService":
        """S2 in these surroundings; long messages are worked on elsewhere, in one other process unless told."""
        stored = States(Aggregator, server.keys)
        return cls(server, stored, AggregatorSteps(server, stored, elsewhere or StepProcesses(1)))

    # --- the owner

    async def offer(self, caller: Caller) -> offers.Offer:
        """Fresh keys for a survey to come."""
        async with self.server.database.write() as tx:
            return await offers.make(tx, self.server.keys, caller)

    async def create(self, caller: Caller, survey: bytes, published: bytes) -> bool:
        """A survey with these parameters; whether it is new."""
        params = parameters_for(survey, published)
        async with self.server.database.write() as tx:
            if await same_survey(tx, params, caller):
                return False
            ledger = await ledger_of(tx, params.population, caller)
            offer = await offers.take(tx, self.server.keys, caller, params, params.keys.s2)
            if offer.public()["box_key"] != params.keys.box.hex():
                raise conflict("these parameters name another box key than this server has offered")
            row = new_row(self.server, caller, params)
            await states.insert(tx, row)
            noise = SystemEntropy().bytes(32) if params.proven else b""
            begun = Aggregator.begin(params, offer.key, offer.box, {}, ledger, offer.value, noise_secret=noise)
            await self.server.use_value(params, Party.S2)
            await self.states.begin(tx, row, begun)
        await asyncio.to_thread(self.server.keys.destroy, offer_key(params.keys.s2))
        return True

    async def add_people(self, caller: Caller, survey: bytes, part: int, lines: Sequence[bytes]) -> int:
        """A part of the list of invited people, each as user id and sealing key; how many are known now."""
        async with self.server.database.write() as tx:
            row = await own_survey(tx, survey, caller)
            if not await new_part(tx, survey, part, b"".join(lines), None):
                return row.people
            await self._before_first_step(tx, row)
            await self.states.add(tx, row, _people_rows(row, lines))
            people = row.people + len(lines)
            await states.update(tx, survey, people=people, version=row.version + 1)
        return people

    async def _before_first_step(self, tx: Transaction, row: SurveyRow) -> None:
        """Refuse changes to the list once S2 has signed something about the survey."""
        ledger = await ledger_of(tx, parsed(row.params).population)
        if (await self.states.load(tx, row, ledger, wanted=())).state.statements:
            raise conflict("S2 has begun with this survey: its list of people cannot be changed any more")

    # --- S1

    async def receive(self, survey: bytes, request: SignedRequest) -> tuple[Message, ...] | None:
        """S2's answers to a request that S1 signed; None while it is still at work on a long one."""
        params = await self.server.params(survey)
        nonce = request.checked_nonce(params, self.server.clock())
        async with self.server.database.write() as tx:
            await use_once(tx, nonce, self.server.clock())
            self._refuse_lost(await states.find(tx, survey))
        body = await self._whole(survey, request.body) if request.names_parts else request.body
        if len(body) >= self.long_message:
            out = await self._long_step(survey, body)
        else:
            out = await self.steps.make(survey, body, elsewhere=False)
        if out is not None:
            await self.destroy_old_key(survey)
            self._note_refusals(survey, params.keys.s2, out)
        return out

    def _refuse_lost(self, row: SurveyRow | None) -> None:
        """A survey that ended after the backup which was put back: its keys are gone, and nothing can be said."""
        if row is not None and row.state in FINAL and not self.server.keys.has(survey_key(row.id, row.generation)):
            raise ProblemError(410, LOST, "S2 was restored from a backup, and this survey cannot be read any more")

    async def keep_part(self, survey: bytes, request: SignedRequest, message: bytes, part: int) -> None:
        """A part of a long message."""
        nonce = request.checked_nonce(await self.server.params(survey), self.server.clock())
        async with self.server.database.write() as tx:
            await use_once(tx, nonce, self.server.clock())
            row = await states.find(tx, survey)
            if row is not None:
                key = self.server.keys.get(survey_key(survey, row.generation))
                await long_messages.keep(tx, key, survey, message, part, request.body)

    async def _whole(self, survey: bytes, name: bytes) -> bytes:
        """The long message of this name."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None:
                raise unknown("survey")
            key = self.server.keys.get(survey_key(survey, row.generation))
            return await long_messages.put_together(tx, key, survey, LongMessage.read(name))

    async def _long_step(self, survey: bytes, body: bytes) -> tuple[Message, ...] | None:
        """The answers, if they come in time. The same message again waits for the same work."""
        name = sha256(survey + body).digest()
        task = self.long_steps.get(name)
        if task is None:
            task = self.long_steps[name] = asyncio.create_task(self.steps.make(survey, body, elsewhere=True))
            task.add_done_callback(lambda _: self.long_steps.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        return task.result() if done else None

    async def destroy_old_key(self, survey: bytes) -> None:
        """Once the last word is committed, what was sealed to S2 can be opened by nobody any more."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
        if row is not None:
            await asyncio.to_thread(self.states.forget_old_key, row)

    def _note_refusals(self, survey: bytes, key: bytes, out: Sequence[Message]) -> None:
        for each in out:
            said = unwrap(key, Party.S2, each) if isinstance(each, Signed) else each
            if isinstance(said, Refused | Rejected):
                known = said.reason in set(Reason)
                self.server.note_rejection(survey, Reason(said.reason) if known else Reason.MALFORMED)

    # --- budgets

    async def open_population(self, caller: Caller, name: str, opened: Ledger) -> bool:
        """A budget that is never raised; whether it is new."""
        async with self.server.database.write() as tx:
            found = await tx.held("SELECT owner, ledger FROM populations WHERE name = ?", name)
            if found is None:
                await tx.run(
                    "INSERT INTO populations (name, owner, ledger) VALUES (?, ?, ?)",
                    name, caller.id, stored_ledger.encode(opened),
                )  # fmt: skip
                return True
        known = stored_ledger.decode(bytes(found["ledger"]))
        same = (known.epsilon, known.delta, known.adaptive) == (opened.epsilon, opened.delta, opened.adaptive)
        if bytes(found["owner"]) != caller.id or not same:
            raise conflict("there is another budget of this name, and a budget is not raised")
        return False

    async def ledger(self, caller: Caller, name: str) -> Ledger:
        """The budget of a population of this owner."""
        async with self.server.database.read() as tx:
            return await ledger_of(tx, name, caller, change=False)

    async def status(self, caller: Caller, survey: bytes) -> dict[str, Any]:
        """Where a survey of this owner stands at S2."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise unknown("survey")
            refused = await self.server.rejected(tx, survey)
        return {"survey": survey.hex(), "state": row.state, "people": row.people, "rejections": refused}


def _people_rows(row: SurveyRow, lines: Sequence[bytes]) -> list[Row]:
    """The rows of these people, as the state's own stored form makes them."""
    params = parsed(row.params)
    people = {each[:USER]: each[USER:] for each in lines}
    if len(people) != len(lines):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    no_key, no_box = SigningKey(bytes(32)), KeyPair(b"", bytes(32))
    return list(rows_of(Aggregator(params, no_key, no_box, people, Ledger(params.population, 1.0, 0.0))))
