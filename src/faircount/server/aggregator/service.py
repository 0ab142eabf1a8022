"""The aggregator (S2) as a service: what owners and the coordinator request of it.

    an owner          opens a population's budget, creates surveys, lists the invited
    the coordinator   signs every request; `AggregatorSteps` makes, anchors and writes the step

A message with thousands of encrypted shares takes long. Most of its work is done in another process
(`step_process`), for several messages at a time. If it takes too long, the coordinator is asked to
repeat the request; the repetition waits for the same work.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Annotated

from msgspec import Meta, Struct

from faircount.core.entropy import SystemEntropy
from faircount.protocol import Aggregator, Ledger, Message, RowWrite
from faircount.protocol.roles.aggregator import mac_key_rows
from faircount.protocol.roles.anchor import UNSET, ledger_name
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Refusal, Rejection, Signed
from faircount.protocol.wire.signing import verify_message
from faircount.server.aggregator.signers import find_record, record_survey
from faircount.server.aggregator.step_process import WorkerProcesses, Workers
from faircount.server.aggregator.steps import AggregatorSteps, ledger_of
from faircount.server.common import survey_keys
from faircount.server.common.base import (
    Server,
    check_people,
    draft_row,
    find_owned_survey,
    is_known_survey,
    max_listed,
    parameters_for,
    parse_parameters,
    record_part,
    sign_as_operator,
)
from faircount.server.common.problems import LOST, ProblemError, conflict, not_found
from faircount.server.common.signed_requests import SignedRequest, use_once
from faircount.server.common.tokens import Caller
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.keys import state_key_name, wrapping_key_name
from faircount.storage.states import States, SurveyRow

LONG_MESSAGE = 128 * 1024
"""Bytes from which a message is handled as a task that may take longer than its request.

About 2,700 encrypted shares, or 900 entries of a manifest. In other topologies than `servers` such
a step is made in another process; in `servers` only the verification of a part is.
"""

ANSWER_SECONDS = 20.0
"""After this time the coordinator is asked to repeat its request."""

USER_BYTES = 16
"""Bytes of a user id, the first half of a row about an invited participant."""

MAC_KEY_BYTES = 32
"""Bytes of an enrolment MAC key, the second half."""


class AggregatorStatus(Struct, frozen=True):
    """What the owner may read about a survey at the aggregator."""

    survey: Annotated[str, Meta(description="Id of the survey.")]
    phase: Annotated[str, Meta(description="The phase at the aggregator, such as `counting`.")]
    invited: Annotated[int, Meta(description="People invited.")]
    rejections: Annotated[dict[str, int], Meta(description="Rejected messages, by reason.")]
    operator_signature: Annotated[
        str, Meta(description="The operator's signature of the survey's parameters, in hex.")
    ]


@dataclass(frozen=True)
class AggregatorService:
    """The aggregator of one server process.

    Attributes:
        server: database, keys, anchor and clock
        states: the stored states
        steps: makes and writes steps
        long_steps: steps in other processes, by the hash of survey and message
        long_message: bytes from which a message is handled in another process
    """

    server: Server
    states: States[Aggregator]
    steps: AggregatorSteps
    long_steps: dict[bytes, "asyncio.Task[tuple[Message, ...]]"] = field(default_factory=dict)
    long_message: int = LONG_MESSAGE

    @classmethod
    def of(cls, server: Server, workers: Workers | None = None) -> "AggregatorService":
        """The aggregator on a server.

        workers: handle long messages; one other process unless given
        """
        surveys = States(Aggregator, server.keys)
        steps = AggregatorSteps(server, surveys, workers or WorkerProcesses(1))
        return cls(server, surveys, steps)

    # --- the owner

    async def create(self, caller: Caller, survey: bytes, published: bytes) -> bool:
        """Create a survey with these parameters; return whether it is new."""
        params = parameters_for(survey, published)
        async with self.server.database.write() as tx:
            if await is_known_survey(tx, params, caller):
                return False
            signature = sign_as_operator(self.server, params, Party.AGGREGATOR)
            ledger = await ledger_of(tx, params.population, caller)
            used_keys = await survey_keys.use(
                tx, self.server.keys, caller, params, params.keys.aggregator
            )
            # check: encryption-key-own - clients encrypt their shares with another's key
            if used_keys.public()["encryption_key"] != params.keys.encryption_key.hex():
                raise conflict(
                    "these parameters name another encryption key than that of the survey keys"
                )
            row = draft_row(self.server, caller, params, signature)
            await states.insert(tx, row)
            state = Aggregator.begin(
                params,
                used_keys.key,
                used_keys.encryption_keys,
                ledger,
                used_keys.value,
                noise_secret=SystemEntropy().bytes(32) if params.proven else b"",
            )
            await self.server.use_value(params, Party.AGGREGATOR)
            # Before the commit: a survey that signs statements is never unknown here.
            await asyncio.to_thread(record_survey, self.server.keys, params, caller, ledger)
            await self.states.begin(tx, row, state)
        # After the commit: the survey keys are part of the state now.
        await asyncio.to_thread(self.server.keys.destroy, wrapping_key_name(params.keys.aggregator))
        return True

    async def add_people(
        self, caller: Caller, survey: bytes, part: int, entries: Sequence[bytes]
    ) -> int:
        """Store a part of the list of the invited; return how many are known now.

        The owner may repeat a part. Another list under the same number is refused.

        entries: user id and enrolment MAC key of each
        """
        async with self.server.database.write() as tx:
            row = await find_owned_survey(tx, survey, caller)
            if not await record_part(tx, survey, part, b"".join(entries), None):
                return row.invited
            check_people(row.invited + len(entries), max_listed(parse_parameters(row.params).n_max))
            await self._require_no_statement(tx, row)
            await self.states.add(tx, row, _invited_rows(entries))
            invited = row.invited + len(entries)
            await states.update(tx, survey, invited=invited, version=row.version + 1)
        return invited

    async def _require_no_statement(self, tx: Transaction, row: SurveyRow) -> None:
        """Refuse changes to the list once the aggregator has signed something about the survey."""
        ledger = await ledger_of(tx, parse_parameters(row.params).population)
        loaded = await self.states.load(tx, row, ledger, found=())
        # check: list-fixed-by-statement - people are added to a batch that is fixed
        if loaded.state.statements:
            detail = (
                "the aggregator has begun with this survey: its list of people cannot be changed "
                "any more"
            )
            raise conflict(detail).with_code("list_fixed")

    # --- the coordinator

    async def require_signed(self, survey: bytes, request: SignedRequest) -> None:
        """Refuse a request that the coordinator has not signed just now, or that is repeated."""
        params = await self.server.stored_params(survey)
        # The signature is checked first: strangers must not fill the table of nonces.
        nonce = request.checked_nonce(params, self.server.clock())
        async with self.server.database.write() as tx:
            await use_once(tx, nonce, self.server.clock())
            self._refuse_lost(await states.find(tx, survey))

    async def receive(self, survey: bytes, body: bytes) -> tuple[Message, ...] | None:
        """Handle a message of the coordinator, and return the replies.

        None while a long message is still being handled: the coordinator repeats it.
        """
        params = await self.server.params(survey)
        if len(body) >= self.long_message:
            out = await self._long_step(survey, body)
        else:
            out = await self.steps.make(survey, body, in_worker=False)
        if out is not None:
            # The step is committed: if it was the final one, the old key must go now.
            await self.states.destroy_old_key(self.server.database, survey)
            self._note_refusals(survey, params.keys.aggregator, out)
        return out

    def _refuse_lost(self, row: SurveyRow | None) -> None:
        """Refuse requests about a survey that ended after the restored backup was made.

        Its keys were destroyed, so the final statement cannot be read any more.
        """
        if (
            row is not None
            and row.phase in FINAL
            and not self.server.keys.has(state_key_name(row.id, row.generation))
        ):
            raise ProblemError(
                410,
                LOST,
                "the aggregator was restored from a backup, and this survey cannot be read any "
                "more",
            )

    async def _long_step(self, survey: bytes, body: bytes) -> tuple[Message, ...] | None:
        """The replies, if they are ready in time. A repeated message waits for the same task."""
        # The task outlives this request: the coordinator's connection may time out.
        name = sha256(survey + body).digest()
        task = self.long_steps.get(name)
        if task is None:
            task = self.long_steps[name] = asyncio.create_task(
                self.steps.make(survey, body, in_worker=True)
            )
            task.add_done_callback(lambda _: self.long_steps.pop(name, None))
        done, _ = await asyncio.wait({task}, timeout=ANSWER_SECONDS)
        return task.result() if done else None

    def _note_refusals(self, survey: bytes, key: bytes, out: Sequence[Message]) -> None:
        """Count the refusals among these replies."""
        for reply in out:
            content: Message | None = reply
            if isinstance(reply, Signed):
                content = verify_message(key, Party.AGGREGATOR, reply)
            if isinstance(content, Refusal | Rejection):
                is_known = content.reason in set(Reason)
                reason = Reason(content.reason) if is_known else Reason.MALFORMED
                self.server.note_rejection(survey, reason)

    # --- the operator

    async def stop(self, survey: bytes, reason: str) -> None:
        """End a running survey without a result; the coordinator learns it with its next message.

        What was reserved for it stays spent.
        """
        await self.steps.stop(survey, Ending(EndCode.OPERATOR, (), reason))
        await self.states.destroy_old_key(self.server.database, survey)

    # --- budgets

    async def open_population(self, caller: Caller, name: str, opened: Ledger) -> bool:
        """Open a population with a budget, which is never raised; return whether it is new."""
        async with self.server.database.write() as tx:
            # Two calls may open it at once: there is no row yet that the second could wait for.
            await tx.lock(b"population/" + name.encode())
            found = await tx.fetch_one_for_update(
                "SELECT owner, ledger FROM populations WHERE name = ?", name
            )
            if found is None:
                first = await asyncio.to_thread(self._begin_ledger, caller, opened)
                await tx.execute(
                    "INSERT INTO populations (name, owner, ledger) VALUES (?, ?, ?)",
                    name, caller.id, stored_ledger.encode(first),
                )  # fmt: skip
                return True
        # A repeated call is fine.
        known = stored_ledger.decode(bytes(found["ledger"]))
        is_same = (
            known.epsilon == opened.epsilon
            and known.delta == opened.delta
            and known.adaptive == opened.adaptive
        )
        if (
            # check: population-owner - an owner learns and uses the budget of another one
            bytes(found["owner"]) != caller.id
            # check: budget-raised - a larger budget under the same name undoes the limit
            or not is_same
        ):
            raise _other_budget()
        return False

    def _begin_ledger(self, caller: Caller, opened: Ledger) -> Ledger:
        """The ledger of a population that is not stored; closed if it may have been charged."""
        record = find_record(self.server.keys, opened.population)
        # check: forgotten-budget - a budget opened after the backup comes back larger
        if record is not None and not record.is_of(caller, opened):
            raise _other_budget()
        newest = self.server.anchor.current_value(ledger_name(opened.population))
        # check: forgotten-population - a population opened after the backup has its budget again
        may_be_charged = newest != UNSET or record is not None
        return replace(opened, closed=may_be_charged)

    async def ledger(self, caller: Caller, name: str) -> Ledger:
        """The budget of a population of this owner."""
        async with self.server.database.read() as tx:
            return await ledger_of(tx, name, caller, for_update=False)

    async def status(self, caller: Caller, survey: bytes) -> AggregatorStatus:
        """The phase of a survey of this owner, and how many refusals there were."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise not_found("survey")
            rejections = await self.server.count_rejections(tx, survey)
        return AggregatorStatus(
            survey=survey.hex(),
            phase=row.phase,
            invited=row.invited,
            rejections=rejections,
            operator_signature=row.operators.hex(),
        )


def _other_budget() -> ProblemError:
    detail = "there is another budget of this name, and a budget is not raised"
    return conflict(detail).with_code("other_budget")


def _invited_rows(entries: Sequence[bytes]) -> Iterator[RowWrite]:
    """The rows of these participants: enrolment MAC keys by user id."""
    mac_keys = {entry[:USER_BYTES]: entry[USER_BYTES:] for entry in entries}
    if len(mac_keys) != len(entries):
        raise ProblemError(400, "malformed", "a person is on this part of the list twice")
    return mac_key_rows(mac_keys)
