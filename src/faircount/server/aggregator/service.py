"""The aggregator around the protocol: what its owner and the coordinator ask of it.
`steps` makes and writes its steps.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Aggregator, Ledger, Message, RowWrite
from faircount.protocol.roles.aggregator import mac_key_rows
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Refusal, Rejection, Signed
from faircount.protocol.wire.signing import verify_message
from faircount.server.aggregator.step_process import StepMaker, StepProcesses
from faircount.server.aggregator.steps import AggregatorSteps, ledger_of
from faircount.server.common import survey_keys
from faircount.server.common.base import (
    Server,
    check_people,
    draft_row,
    find_owned_survey,
    is_known_survey,
    parameters_for,
    parse_parameters,
    record_part,
)
from faircount.server.common.problems import LOST, ProblemError, conflict, not_found
from faircount.server.common.signed_requests import SignedRequest, use_once
from faircount.server.common.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name, wrapping_key_name
from faircount.storage.states import States, SurveyRow

LONG_MESSAGE = 128 * 1024
"""Bytes from which on a message is worked on in another process: about 1,900 blobs, or 900 lines
of a claim.
"""

ANSWER_SECONDS = 20.0
"""After so long the coordinator is told to ask again."""

SPARE_INVITATIONS = 100
"""Exchanged invitations for which a survey of any size has room."""

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
        """The aggregator in these surroundings; long messages are worked on elsewhere, in one
        other process unless told.
        """
        stored = States(Aggregator, server.keys)
        return cls(server, stored, AggregatorSteps(server, stored, elsewhere or StepProcesses(1)))

    # --- the owner

    async def create(self, caller: Caller, survey: bytes, published: bytes) -> bool:
        """A survey with these parameters; whether it is new."""
        params = parameters_for(survey, published)
        async with self.server.database.write() as tx:
            if await is_known_survey(tx, params, caller):
                return False
            ledger = await ledger_of(tx, params.population, caller)
            offer = await survey_keys.use(tx, self.server.keys, caller, params, params.keys.s2)
            if offer.public()["encryption_key"] != params.keys.encryption_key.hex():
                raise conflict("these parameters name another box key than this server has offered")
            row = draft_row(self.server, caller, params)
            await states.insert(tx, row)
            noise = SystemEntropy().bytes(32) if params.proven else b""
            begun = Aggregator.begin(
                params, offer.key, offer.encryption_keys, ledger, offer.value, noise_secret=noise
            )
            await self.server.use_value(params, Party.AGGREGATOR)
            await self.states.begin(tx, row, begun)
        await asyncio.to_thread(self.server.keys.destroy, wrapping_key_name(params.keys.s2))
        return True

    async def add_people(
        self, caller: Caller, survey: bytes, part: int, lines: Sequence[bytes]
    ) -> int:
        """A part of the list of invited people, each as user id and sealing key; how many are
        known now.
        """
        async with self.server.database.write() as tx:
            row = await find_owned_survey(tx, survey, caller)
            if not await record_part(tx, survey, part, b"".join(lines), None):
                return row.people
            check_people(row.people + len(lines), max_listed(parse_parameters(row.params).n_max))
            await self._before_first_step(tx, row)
            await self.states.add(tx, row, _people_rows(lines))
            people = row.people + len(lines)
            await states.update(tx, survey, people=people, version=row.version + 1)
        return people

    async def _before_first_step(self, tx: Transaction, row: SurveyRow) -> None:
        """Refuse changes to the list once the aggregator has signed something about the survey."""
        ledger = await ledger_of(tx, parse_parameters(row.params).population)
        if (await self.states.load(tx, row, ledger, wanted=())).state.statements:
            words = (
                "The aggregator has begun with this survey: its list of people cannot be changed "
                "any more"
            )
            raise conflict(words).with_code("list_fixed")

    # --- the coordinator

    async def admit(self, survey: bytes, request: SignedRequest) -> None:
        """Refuse a request that the coordinator has not signed lately, or that was here before."""
        params = await self.server.params(survey)
        nonce = request.checked_nonce(params, self.server.clock())
        async with self.server.database.write() as tx:
            await use_once(tx, nonce, self.server.clock())
            self._refuse_lost(await states.find(tx, survey))

    async def receive(self, survey: bytes, body: bytes) -> tuple[Message, ...] | None:
        """The aggregator's answers to a message of the coordinator; None while it is still at
        work on a long one.
        """
        params = await self.server.params(survey)
        if len(body) >= self.long_message:
            out = await self._long_step(survey, body)
        else:
            out = await self.steps.make(survey, body, elsewhere=False)
        if out is not None:
            await self.states.destroy_old_key(self.server.database, survey)
            self._note_refusals(survey, params.keys.s2, out)
        return out

    def _refuse_lost(self, row: SurveyRow | None) -> None:
        """A survey that ended after the backup which was put back: its keys are gone, and
        nothing can be said.
        """
        if (
            row is not None
            and row.state in FINAL
            and not self.server.keys.has(state_key_name(row.id, row.generation))
        ):
            raise ProblemError(
                410,
                LOST,
                "The aggregator was restored from a backup, and this survey cannot be read any "
                "more",
            )

    async def _long_step(self, survey: bytes, body: bytes) -> tuple[Message, ...] | None:
        """The answers, if they come in time. The same message again waits for the same work."""
        name = sha256(survey + body).digest()
        task = self.long_steps.get(name)
        if task is None:
            task = self.long_steps[name] = asyncio.create_task(
                self.steps.make(survey, body, elsewhere=True)
            )
            task.add_done_callback(lambda _: self.long_steps.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        return task.result() if done else None

    def _note_refusals(self, survey: bytes, key: bytes, out: Sequence[Message]) -> None:
        for each in out:
            said = verify_message(key, Party.AGGREGATOR, each) if isinstance(each, Signed) else each
            if isinstance(said, Refusal | Rejection):
                known = said.reason in set(Reason)
                self.server.note_rejection(
                    survey, Reason(said.reason) if known else Reason.MALFORMED
                )

    # --- budgets

    async def open_population(self, caller: Caller, name: str, opened: Ledger) -> bool:
        """A budget that is never raised; whether it is new."""
        async with self.server.database.write() as tx:
            found = await tx.fetch_one_for_update(
                "SELECT owner, ledger FROM populations WHERE name = ?", name
            )
            if found is None:
                await tx.execute(
                    "INSERT INTO populations (name, owner, ledger) VALUES (?, ?, ?)",
                    name, caller.id, stored_ledger.encode(opened),
                )  # fmt: skip
                return True
        known = stored_ledger.decode(bytes(found["ledger"]))
        same = (known.epsilon, known.delta, known.adaptive) == (
            opened.epsilon,
            opened.delta,
            opened.adaptive,
        )
        if bytes(found["owner"]) != caller.id or not same:
            words = "there is another budget of this name, and a budget is not raised"
            raise conflict(words).with_code("other_budget")
        return False

    async def ledger(self, caller: Caller, name: str) -> Ledger:
        """The budget of a population of this owner."""
        async with self.server.database.read() as tx:
            return await ledger_of(tx, name, caller, change=False)

    async def status(self, caller: Caller, survey: bytes) -> dict[str, Any]:
        """Where a survey of this owner stands at the aggregator."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise not_found("survey")
            refused = await self.server.count_rejections(tx, survey)
        return {
            "survey": survey.hex(),
            "state": row.state,
            "people": row.people,
            "rejections": refused,
        }


def max_listed(n_max: int) -> int:
    """Return how many people the list of a survey may have: an exchanged invitation is a new line.

    Everybody may lose an invitation once.
    """
    return 2 * n_max + SPARE_INVITATIONS


def _people_rows(lines: Sequence[bytes]) -> Iterator[RowWrite]:
    """The rows of these people."""
    people = {each[:USER]: each[USER:] for each in lines}
    if len(people) != len(lines):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    return mac_key_rows(people)
