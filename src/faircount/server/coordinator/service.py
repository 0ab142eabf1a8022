"""The coordinator (S1) as a service: it stores every step of the protocol before it replies.

A step is read, made and written in one transaction, and its messages are sent after the commit. If
the server crashes before the commit, nothing happened; if it crashes afterwards, the messages are
computed again from the stored state (`resume`).

    a participant's message        written together with all that wait (`group_commit`); reads
                                   only the rows of the senders
    an owner's request             closes, extends or aborts a survey, reissues an invitation
    a statement of the aggregator  arrives through `outbox`, which also sends what comes next

A survey with something to send has a row in the table `outbox`, written in the same transaction as
the step, so that no message to the aggregator is forgotten.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TypeVar

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ProtocolError
from faircount.protocol import (
    Coordinator,
    Message,
    Step,
    SurveyParameters,
    coordinator_step,
    encode,
    end_phase,
    resume,
)
from faircount.protocol.roles.anchor import anchor_coordinator_step
from faircount.protocol.roles.coordinator import (
    Out,
    PhaseAttempt,
    RowAddress,
    coordinator_step_for_many,
    end_without_aggregator,
    request_abort,
)
from faircount.protocol.roles.limits import decode_client_message
from faircount.protocol.roles.reissue import reissue
from faircount.protocol.roles.rows import PostStepReader, StepRows
from faircount.protocol.survey.endings import TOO_FEW, EndCode, Ending, ending_of
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    Aborted,
    Reason,
    Rejection,
    Reservation,
    Signed,
    reject,
)
from faircount.protocol.wire.signing import SigningKey, verify_message
from faircount.server.common.base import (
    Server,
    check_people,
    find_owned_survey,
    find_survey,
    max_listed,
    parse_parameters,
)
from faircount.server.common.problems import conflict, not_found
from faircount.server.common.tokens import Caller
from faircount.server.coordinator.group_commit import MAX_GROUP, GroupCommit
from faircount.storage import states
from faircount.storage.database import Transaction
from faircount.storage.states import Loaded, States, SurveyRow

RETRY_MILLISECONDS = 10_000
"""When to try again to end a phase that could not be ended.

A restored coordinator ends no phase until it has resynchronized.
"""

MAX_COMMITS = 64
"""How many surveys' group commits are kept in memory, besides those that have messages."""

INVITED = "invited"
"""The table with a row for every invitation, exchanged ones included."""

T = TypeVar("T")

MakeStep = Callable[[Loaded[Coordinator]], Step[Coordinator]]
"""Makes a step that may read any row of the survey. It waits for the database, so it runs in a
thread.
"""


class TooFewError(FaircountError):
    """A phase cannot end with a result: fewer take part than the minimum."""

    def __init__(self, taking_part: int, minimum: int) -> None:
        have = "has" if taking_part == 1 else "have"
        super().__init__(f"{taking_part} {have} answered, and {minimum} are needed")
        self.taking_part = taking_part
        self.minimum = minimum


@dataclass(frozen=True)
class PendingMessages:
    """The messages that the aggregator has not answered yet, and the key that signs requests."""

    key: SigningKey
    messages: Out


@dataclass(frozen=True)
class CoordinatorService:
    """The coordinator of one server process.

    Attributes:
        server: database, keys, anchor and clock
        states: the stored states
        commits: by survey, the messages that wait to be written together
        worker: names this process among the workers that take reports under the shared lock
        changed: set when the outbox or a deadline has changed, so that `outbox` looks at once
    """

    server: Server
    states: States[Coordinator]
    commits: dict[bytes, GroupCommit] = field(default_factory=dict)
    worker: bytes = field(default_factory=lambda: SystemEntropy().bytes(8))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, server: Server) -> "CoordinatorService":
        """The coordinator on a server."""
        return cls(server, States(Coordinator, server.keys))

    # --- participants

    async def receive(self, survey: bytes, body: bytes) -> Message:
        """Handle a participant's message and return the reply, which may be a `Rejection`."""
        # Decoded outside of the transaction: malformed bytes must not make others wait.
        message = decode_client_message(await self.server.params(survey), body)
        out: Out = (message,)
        if not isinstance(message, Rejection):
            out = await self._commit_of(survey).add(message)
        # Signed messages in the same step are for the aggregator.
        replies = [message for message in out if not isinstance(message, Signed)]
        reply = replies[0] if replies else reject(Reason.MALFORMED)
        if isinstance(reply, Rejection):
            self.server.note_rejection(survey, reply.why)
        return reply

    def _commit_of(self, survey: bytes) -> GroupCommit:
        """What writes the messages of a survey in groups."""
        if survey not in self.commits:
            # A group commit with messages is kept: with two of one survey under way, a worker could
            # let in more people than the survey has places (`_with_places_in_flight`).
            if len(self.commits) >= MAX_COMMITS:
                for known in [key for key, commit in self.commits.items() if commit.is_idle]:
                    del self.commits[known]
            self.commits[survey] = GroupCommit(lambda messages: self._write(survey, messages))
        return self.commits[survey]

    async def _write(self, survey: bytes, messages: Sequence[Message]) -> list[Out]:
        """Handle the messages of several participants in one transaction."""
        params = await self.server.params(survey)
        kinds = params.topology.coordinator.shared_messages
        can_share = self.server.database.has_workers and all(
            isinstance(message, kinds) for message in messages
        )
        if can_share:
            with suppress(_NotSharedError):
                return await self._write_group(params, messages, self.worker)
        return await self._write_group(params, messages, None, may_share_next=can_share)

    async def _write_group(
        self,
        params: SurveyParameters,
        messages: Sequence[Message],
        worker: bytes | None,
        *,
        may_share_next: bool = False,
    ) -> list[Out]:
        """Handle messages under the shared lock of the survey, or under the exclusive one.

        worker: the name of this worker under the shared lock; None under the exclusive one

        Raises:
            _NotSharedError: nothing was written, because it needs the exclusive lock
        """
        survey = params.survey
        wanted = _addresses_of(params, messages)
        async with self.server.database.write() as tx:
            row, found = await states.find_with_rows(tx, survey, wanted or (), worker)
            # check: erased-everywhere - a worker would go on with a survey that another one erased
            if row is None:
                self.server.parameter_cache.pop(survey, None)
                raise not_found("survey")
            was_recreated = row.params != params.published
            if was_recreated:
                self.server.parameter_cache.pop(survey, None)
            if was_recreated or not row.has_state:
                early = reject(Reason.EARLY, "the survey is not open yet: come back later")
                return [(early,)] * len(messages)
            if worker is not None:
                row = _with_places_in_flight(row)
            before = await self.states.load(tx, row, found=None if wanted is None else found)
            work = partial(coordinator_step_for_many, before.state, messages, before.rows)
            # Inclusion proofs of a survey that is over read parts of the manifest, and a step that
            # reads from the database must not block the event loop that serves its reads.
            is_over = row.phase in FINAL
            step, replies = await asyncio.to_thread(work) if is_over else work()
            # A survey may look full only because of those whom others may be letting in.
            if worker is not None and _is_full(replies):
                raise _NotSharedError
            # check: closing-time - a late scheduler would let reports and withdrawals in
            if row.due_at is not None and row.due_at <= self.server.clock() and step.rows:
                return _answer_late(before, messages, may_be_held=_may_be_held(row))
            if worker is None:
                await self._save(tx, before, step)
                if may_share_next:
                    await states.add_worker(tx, survey, self.worker)
            elif not await self.states.save_shared(tx, before, step, worker):
                raise _NotSharedError
        return replies

    # --- steps of the whole survey

    async def change(self, tx: Transaction, row: SurveyRow, make_step: MakeStep) -> Out:
        """Make and write a step, in a transaction that has locked the survey's row.

        Returns the messages for the aggregator.
        """
        before = await self.states.load(tx, row)
        step = await asyncio.to_thread(make_step, before)
        return await self._save_for_all(tx, before, step)

    async def _save_for_all(
        self, tx: Transaction, before: Loaded[Coordinator], step: Step[Coordinator]
    ) -> Out:
        """Write a step of the whole survey, and return the messages for the aggregator."""
        to_aggregator = tuple(message for message in step.messages if isinstance(message, Signed))
        await self._save(tx, before, step, to_aggregator)
        # What was found about a part is stored beside the state. It is progress all the same, so
        # that what is missing is asked for again after the shortest pause.
        if step.rows:
            await tx.execute("UPDATE outbox SET tries = 0 WHERE survey = ?", before.row.id)
        return to_aggregator

    async def _save(
        self,
        tx: Transaction,
        before: Loaded[Coordinator],
        step: Step[Coordinator],
        to_aggregator: Out = (),
    ) -> None:
        after = step.state
        # Most messages of participants write rows only, and change nothing for the aggregator.
        if after is before.state:
            await self.states.save(tx, before, step)
            return
        pending = to_aggregator
        is_counting = after.phase is Phase.COUNTING and after.final is None
        # A step of the counting phase returns all that is pending: computing it again would read
        # every report once more.
        if not (is_counting and to_aggregator):
            pending = await asyncio.to_thread(resume, after, PostStepReader(before.rows, step))
        row = await self.states.save(tx, before, step)
        if after.phase_attempt != before.state.phase_attempt:
            await self._set_deadline(tx, row, after)
        if pending:
            await note_outbox(tx, row.id, self.server.clock())
        else:
            await tx.execute("DELETE FROM outbox WHERE survey = ?", row.id)
        self.changed.set()

    async def _set_deadline(self, tx: Transaction, row: SurveyRow, after: Coordinator) -> None:
        """Set the deadline of a phase that has just begun, if it has one."""
        since = self.server.clock()
        due = due_at(after, since)
        await states.update(tx, row.id, due_at=due, held_since=None, since=since, extended=0)

    async def pending_messages(self, survey: bytes) -> PendingMessages | None:
        """The messages that the aggregator has not answered; None before the survey is open."""
        return await self._read(
            survey,
            lambda loaded: PendingMessages(loaded.state.key, resume(loaded.state, loaded.rows)),
        )

    async def parts_to_send(self, survey: bytes) -> Sequence[int]:
        """Numbers of the parts whose encrypted shares may be sent at the same time now."""
        found = await self._read(
            survey,
            lambda loaded: loaded.state.rules.parts_to_send(loaded.state, StepRows(loaded.rows)),
        )
        return found or ()

    async def part_shares(self, survey: bytes, number: int) -> Message | None:
        """The encrypted shares of such a part; None if they must not leave any more."""
        out = await self._read(
            survey,
            lambda loaded: loaded.state.rules.part_shares(
                loaded.state, StepRows(loaded.rows), number
            ),
        )
        return out[0] if out else None

    async def _read(self, survey: bytes, look: Callable[[Loaded[Coordinator]], T]) -> T | None:
        """What a function finds in a survey, in a thread; None before the survey is open."""
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or not row.has_state:
                return None
            return await asyncio.to_thread(look, await self.states.load(tx, row))

    # --- the aggregator

    async def receive_statement(self, survey: bytes, statement: Message) -> Out:
        """Handle a statement of the aggregator, and return the messages to send next."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, for_update=True)
            if row is None or not row.has_state:
                return ()
            out = await self.change(tx, row, lambda loaded: self._anchored_step(loaded, statement))
            await _store_reservation(tx, row, statement)
        # Only after the commit: until then the old key may still be needed.
        await self.states.destroy_old_key(self.server.database, survey)
        return out

    def _anchored_step(self, before: Loaded[Coordinator], statement: Message) -> Step[Coordinator]:
        step = coordinator_step(before.state, statement, before.rows)
        # check: coordinator-anchor - a coordinator rolled back sends a second aggregate share
        return anchor_coordinator_step(self.server.anchor, before.state, step)

    async def end_without_aggregator(self, survey: bytes) -> None:
        """Abort a survey that a restored aggregator has lost, and send nothing more about it."""
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, for_update=True)
            if row is not None and row.has_state and row.phase not in FINAL:
                ending = Ending(EndCode.AGGREGATOR_RESTORED)
                await self.change(
                    tx,
                    row,
                    lambda loaded: end_without_aggregator(loaded.state, ending, loaded.rows),
                )
            # The request to abort is not sent: the aggregator could not handle it.
            await tx.execute("DELETE FROM outbox WHERE survey = ?", survey)
        await self.states.destroy_old_key(self.server.database, survey)

    # --- the owner

    async def close(self, caller: Caller, survey: bytes, seen: PhaseAttempt | None = None) -> None:
        """End the current phase, if it is still the one that the owner has `seen`.

        With too few participants this is refused, and the phase stays open: closing it out of
        habit must not discard the answers. Owners who mean it abort the survey.
        """
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            # The owner's click may come after the deadline has already ended that phase.
            if seen not in (None, (row.phase, row.attempt)):
                return
            try:
                await self.end(tx, row, may_abort=False)
            except TooFewError as few:
                detail = (
                    f"{few}, so the survey stays open: give people more time (survey extend), or "
                    "end it for good without a result (survey abort)"
                )
                numbers = {"answers": few.taking_part, "minimum": few.minimum}
                raise conflict(detail).with_code("too_few_answers", **numbers) from None

    async def end_at_deadline(self, tx: Transaction, row: SurveyRow) -> None:
        """End a phase whose deadline has passed.

        `TooFewError` if it must be held instead: once, for the grace period of the parameters.
        """
        await self.end(tx, row, may_abort=not _may_be_held(row))

    async def end(self, tx: Transaction, row: SurveyRow, *, may_abort: bool) -> None:
        """End a phase; if that is not possible yet, it is tried again.

        may_abort: whether a survey with too few participants ends without a result; otherwise
            `TooFewError`, and the transaction must be rolled back
        """
        before = await self.states.load(tx, row)
        step = await asyncio.to_thread(
            partial(end_phase, before.state, reader=before.rows, sink=before.sink)
        )
        shortfall = _shortfall(before.state, step.state)
        if shortfall is not None and not may_abort:
            raise TooFewError(*shortfall)
        # An owner may close it before its time. The time stays until the next phase sets another,
        # so that nobody is let in while the end is tried again.
        now = self.server.clock()
        closed_at = now if row.due_at is None else min(row.due_at, now)
        await states.update(tx, row.id, due_at=closed_at)
        await self._save_for_all(tx, before, step)
        self.changed.set()

    async def hold(self, survey: bytes) -> None:
        """Hold a phase open that has too few participants at its deadline.

        It simply goes on until the grace period is over, so holding is no phase of the protocol:
        nothing was fixed, and the aggregator has heard nothing. Whoever was stored is in the same
        one row as before, so nobody is counted twice. There is one manifest later, and with it one
        sum.
        """
        now = self.server.clock()
        async with self.server.database.write() as tx:
            row = await states.find(tx, survey, for_update=True)
            # Another worker may have held it, or the owner extended it, since we looked.
            if row is None or row.held_since is not None or (row.due_at or now + 1) > now:
                return
            # From now on and not from the deadline: a server that was down takes no time away.
            grace = parse_parameters(row.params).grace
            await states.update(
                tx,
                survey,
                due_at=now + 1000 * grace,
                held_since=now,
                version=row.version + 1,
            )
        self.changed.set()

    async def extend(self, caller: Caller, survey: bytes, seconds: int) -> None:
        """Extend the deadline of the current phase. Its status shows by how much.

        A phase that is held gets a deadline again, so many seconds from now.
        """
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            if row.due_at is None:
                detail = "this phase has no closing time that could be extended: close it yourself"
                raise conflict(detail).with_code("no_closing_time")
            start = row.due_at if row.held_since is None else self.server.clock()
            await states.update(
                tx,
                survey,
                due_at=start + 1000 * seconds,
                held_since=None,
                extended=row.extended + seconds,
                version=row.version + 1,
            )
        self.changed.set()

    async def reissue(self, caller: Caller, survey: bytes, old: bytes, new: bytes) -> None:
        """Exchange an invitation that was not used for a new one."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            before = await self.states.load(tx, row)
            step = await asyncio.to_thread(reissue, before.state, old, new, before.rows)
            # The row of an exchanged invitation stays, so that its holder is told.
            if any(write.table == INVITED for write in step.rows):
                listed = await states.count_rows(tx, survey, INVITED) + 1
                # check: exchanged-invitations - an owner stores any number of them, one by one
                check_people(listed, max_listed(before.state.params.n_max))
            await self._save_for_all(tx, before, step)
        # Refused after the commit: the device that has answered is told that the owner asked.
        for answer in step.messages:
            if isinstance(answer, Rejection):
                raise ProtocolError(answer.detail.decode())

    async def list_respondents(self, caller: Caller, survey: bytes) -> list[bytes]:
        """List the user ids of those who have enrolled or responded.

        The owner may remind the others. Who responded is no secret; what they responded is.
        """
        async with self.server.database.read() as tx:
            row = await states.find(tx, survey)
            if row is None or row.owner != caller.id:
                raise not_found("survey")
            found = await tx.fetch_all(
                "SELECT key FROM state_rows WHERE survey = ? AND store = ?",
                survey,
                states.FIRST_MESSAGES,
            )
        return sorted(bytes(record["key"]) for record in found)

    async def abort(self, caller: Caller, survey: bytes, reason: str) -> None:
        """Ask the aggregator to abort; the survey is over when it has signed that."""
        async with self.server.database.write() as tx:
            row = await _open_survey(tx, survey, caller)
            ending = Ending(EndCode.OWNER, (), reason)
            await self.change(tx, row, lambda loaded: _request_abort_once(loaded.state, ending))

    # --- the operator

    async def stop(self, survey: bytes, reason: str) -> None:
        """End a running survey without a result: ask the aggregator to abort it."""
        async with self.server.database.write() as tx:
            row = await find_survey(tx, survey)
            _check_open(row)
            ending = Ending(EndCode.OPERATOR, (), reason)
            await self.change(tx, row, lambda loaded: _request_abort_once(loaded.state, ending))


class _NotSharedError(Exception):
    """A group of messages needs the exclusive lock of the survey."""


def _with_places_in_flight(row: SurveyRow) -> SurveyRow:
    """The row of a survey with as many participants as there may be once all workers are done.

    It is an upper bound: those who are committed, and a full group of every other worker that may
    not be committed yet. So all workers together never exceed the survey's places.
    """
    others = max(0, row.workers - 1)
    # check: places-in-flight - two workers at once would let in more people than the sum can hold
    return replace(row, participants=row.participants + others * MAX_GROUP)


def _is_full(replies: Sequence[Out]) -> bool:
    return any(
        isinstance(reply, Rejection) and reply.why is Reason.FULL
        for reply in chain.from_iterable(replies)
    )


def _shortfall(before: Coordinator, after: Coordinator) -> tuple[int, int] | None:
    """How many took part, and the minimum, if a step asks to abort because they are too few."""
    if before.final is not None or after.final is None:
        return None
    requested = after.final.message
    ending = ending_of(requested) if isinstance(requested, Aborted) else None
    if ending is None or ending.known not in TOO_FEW:
        return None
    taking_part, minimum = ending.numbers
    return taking_part, minimum


def _may_be_held(row: SurveyRow) -> bool:
    """Whether the phase goes on after its deadline if there are too few participants."""
    # check: held-once - a survey would wait beyond the grace period that participants have read
    return bool(parse_parameters(row.params).grace) and row.held_since is None


def _answer_late(
    before: Loaded[Coordinator], messages: Sequence[Message], *, may_be_held: bool
) -> list[Out]:
    """The answers after the closing time, before the phase has ended: nothing is written any more.

    Whoever asks something, or repeats what was stored in time, is answered as before.
    """
    late = reject(Reason.LATE, "the closing time has passed")
    if may_be_held:
        # For clients LATE is final, and in a moment the survey may be held open.
        why = "the closing time has passed; soon it is known whether the survey stays open"
        late = reject(Reason.EARLY, why)
    answers = list[Out]()
    for message in messages:
        step = coordinator_step(before.state, message, before.rows)
        answers.append((late,) if step.rows or step.state is not before.state else step.messages)
    return answers


def _request_abort_once(s: Coordinator, ending: Ending) -> Step[Coordinator]:
    if s.final is not None:
        return Step(s)
    return Step(*request_abort(s, ending))


def _addresses_of(params: SurveyParameters, messages: Sequence[Message]) -> list[RowAddress] | None:
    """The rows that these messages concern; None if one of them may concern all rows."""
    addresses = list[RowAddress]()
    for message in messages:
        needed = params.topology.coordinator.rows_needed(message)
        if needed is None:
            return None
        addresses += needed
    return addresses


def due_at(s: Coordinator, since: int) -> int | None:
    """When the current phase ends, in milliseconds.

    None if participants do not act in it, or the parameters give it no time.
    """
    seconds_of = dict(zip(s.params.topology.phases, s.params.phase_seconds, strict=False))
    seconds = seconds_of.get(s.phase)
    return None if seconds is None else since + 1000 * seconds


async def note_outbox(tx: Transaction, survey: bytes, now: int) -> None:
    """Record that a survey has messages for the aggregator, to be sent at once."""
    await tx.execute(
        "INSERT INTO outbox (survey, since, next_at, tries, lease_until, lease, problem) VALUES "
        "(?, ?, ?, 0, 0, ?, '') "
        "ON CONFLICT (survey) DO UPDATE SET next_at = excluded.next_at, tries = 0, problem = ''",
        survey, now, now, b"",
    )  # fmt: skip


async def _open_survey(tx: Transaction, survey: bytes, caller: Caller) -> SurveyRow:
    row = await find_owned_survey(tx, survey, caller)
    _check_open(row)
    return row


def _check_open(row: SurveyRow) -> None:
    """Refuse changes to a survey that is not open yet, or over."""
    if not row.has_state:
        raise conflict("this survey is not open yet").with_code("not_open")
    if row.phase in FINAL:
        detail = f"this survey is {row.phase}: nothing about it can be changed"
        raise conflict(detail).with_code("survey_over")


async def _store_reservation(tx: Transaction, row: SurveyRow, statement: Message) -> None:
    """Store a reservation apart from its survey: a restored aggregator must be shown them all."""
    if not isinstance(statement, Signed):
        return
    params = parse_parameters(row.params)
    content = verify_message(params.keys.aggregator, Party.AGGREGATOR, statement)
    if (
        isinstance(content, Reservation)
        # check: reservation-population - a reservation is filed under another population
        and content.population == params.population.encode()
    ):
        await tx.execute(
            "INSERT INTO reservations (population, number, survey, owner, signed) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            params.population, content.number, row.id, row.owner, encode(statement),
        )  # fmt: skip
