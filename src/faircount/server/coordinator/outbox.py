"""The coordinator's scheduler: it ends phases at their deadlines and talks to the aggregator.

Deadlines and pending conversations are in the database, so they survive a restart. Several workers
may run a scheduler on the same database:

    deadlines      the first worker to lock the survey's row ends the phase; the others skip it
    conversations  a survey with messages for the aggregator has a row in `outbox`; the worker that
                   leases it talks to the aggregator, and renews the lease while it does so

A conversation that fails is tried again after a pause that doubles: 1 to 2 seconds, 2 to 4, 4 to 8,
and so on up to five minutes. Deadlines have a task of their own: an aggregator that answers slowly
delays results and no closing time.
"""

import asyncio
import logging
from asyncio import sleep
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from secrets import randbelow

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ProtocolError, StorageError
from faircount.protocol import Message
from faircount.protocol.roles.limits import MAX_SERVER_MESSAGES
from faircount.protocol.topologies.two_servers.messages import NextPartRequest, VerifiedPart
from faircount.protocol.wire.codec import peek_class
from faircount.protocol.wire.messages import PartShares, Signed
from faircount.server.coordinator.aggregator_connection import (
    AggregatorConnection,
    AggregatorError,
    LostError,
)
from faircount.server.coordinator.service import (
    RETRY_MILLISECONDS,
    CoordinatorService,
    TooFewError,
)
from faircount.storage import states
from faircount.storage.database import Transaction

LEASE = 10_000
"""Milliseconds after which another worker takes over from one that does not renew its lease."""
LONGEST_PAUSE = 300_000
"""Milliseconds between two attempts, at most."""
IDLE_SECONDS = 1.0
"""How often an idle worker looks for work that other workers have left."""
MAX_SURVEYS = 16
"""How many surveys one worker takes up together."""

PARTS_AT_ONCE = 8
"""How many parts of a large batch are on their way to the aggregator at the same time."""

REPEATS = 15
"""How often one part is repeated while the aggregator still works on it, in one conversation."""
REPEAT_SECONDS = 1.0
"""The pause before a part is repeated. The aggregator also waits before it answers."""

Answers = tuple[Message, ...] | None
"""The aggregator's answers to a message; None if it still works on it."""
Send = Callable[[Message], Awaitable[Answers]]
"""Sends a message about one survey to the aggregator."""

_log = logging.getLogger("faircount.coordinator")


def _content_class(message: Message) -> type[Message] | None:
    """The kind of content that a server has signed; the signature is verified elsewhere."""
    return peek_class(message.payload) if isinstance(message, Signed) else None


def pause_after(tries: int) -> int:
    """Return the milliseconds until the next try: doubled each time, with up to half of it random.

    The random part keeps many surveys from calling a server that has just come back all at once.
    """
    longest = min(LONGEST_PAUSE, 1000 << min(tries, 20))
    return longest // 2 + randbelow(longest // 2 + 1)


def public_sentence(problem: Exception) -> str:
    """Return what everybody may read about a problem, in the status of a survey.

    Other texts may name files of this machine, or quote what somebody sent: they go to the log.
    """
    # check: public-problem - the status would show strangers a path of the server's disk
    if isinstance(problem, AggregatorError):
        return str(problem)
    if isinstance(problem, StorageError):
        return "the coordinator cannot write now, see its log"
    if isinstance(problem, FaircountError):
        return "the servers do not agree about this survey, see the log of the coordinator"
    return f"internal error ({type(problem).__name__}), see the log of the coordinator"


@dataclass(frozen=True)
class Scheduler:
    """The scheduler of one worker; `name` identifies its leases."""

    service: CoordinatorService
    aggregator: AggregatorConnection
    name: bytes = field(default_factory=lambda: SystemEntropy().bytes(8))
    # When a phase is tried again that could not be ended at its deadline, by survey.
    retry_at: dict[bytes, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Do what is due, until the task is cancelled."""
        async with asyncio.TaskGroup() as tasks:
            # check: deadlines-apart - a slow aggregator would keep every other survey open
            tasks.create_task(self._repeat(self._keep_deadlines, partial(sleep, IDLE_SECONDS)))
            tasks.create_task(self._repeat(self._exchange_about_all, self._wait_for_change))

    async def _repeat(
        self, work: Callable[[], Awaitable[bool]], pause: Callable[[], Awaitable[None]]
    ) -> None:
        """Do one kind of work again and again; `work` returns whether there was anything to do."""
        while True:
            try:
                is_busy = await work()
            except FaircountError as problem:
                _log.warning("the scheduler will try again", extra={"problem": str(problem)})
                is_busy = False
            if not is_busy:
                await pause()

    async def _wait_for_change(self) -> None:
        """Wait until a request changes something here, or look again for others' surveys."""
        self.service.changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.service.changed.wait(), IDLE_SECONDS)

    async def run_once(self) -> bool:
        """Do everything that is due now, and return whether there was anything."""
        ended = await self._end_due_phases()
        return await self._exchange_about_all() or bool(ended)

    async def _keep_deadlines(self) -> bool:
        """End the phases that are due, and write counts of rejections; whether a phase ended."""
        ended = await self._end_due_phases()
        await self.service.server.flush_rejections()
        return bool(ended)

    async def _exchange_about_all(self) -> bool:
        """Talk about every survey that has messages for the aggregator; whether there was one."""
        leased = await self._lease_surveys()
        for survey in leased:
            await self._exchange_under_lease(survey)
        return bool(leased)

    async def _end_due_phases(self) -> int:
        """End the phases whose deadline has passed, and return how many."""
        server = self.service.server
        now = server.clock()
        async with server.database.read() as tx:
            due = await tx.fetch_all(
                "SELECT id FROM surveys WHERE due_at <= ? ORDER BY due_at", now
            )
        surveys = [bytes(row["id"]) for row in due]
        waiting = {survey: self.retry_at[survey] for survey in surveys if survey in self.retry_at}
        # What is not due any more need not be remembered.
        self.retry_at.clear()
        self.retry_at.update(waiting)
        ended = 0
        # The longest overdue first; the others follow in the next round.
        ready = [survey for survey in surveys if waiting.get(survey, 0) <= now]
        for survey in ready[:MAX_SURVEYS]:
            # The closing time itself stays as it is: participants must not come back in meanwhile.
            self.retry_at[survey] = now + RETRY_MILLISECONDS
            try:
                ended += await self._end_phase(survey)
            except Exception as problem:
                # Caught broadly: a bug that one survey triggers must not stop the others.
                self._log_problem(survey, problem)
        return ended

    async def _end_phase(self, survey: bytes) -> bool:
        """End a phase whose deadline has passed, or hold it; whether there was anything to do."""
        try:
            return await self._end_unless_locked(survey)
        # The transaction is rolled back: of the attempt to end the phase nothing is left.
        except TooFewError as too_few:
            await self.service.hold(survey)
            _log.info(
                "the survey is held open at its deadline",
                extra={"survey": survey.hex(), "problem": str(too_few)},
            )
        return True

    async def _end_unless_locked(self, survey: bytes) -> bool:
        """End a phase whose deadline has passed, unless another worker does; whether we did."""
        server = self.service.server
        async with server.database.write() as tx:
            # Another worker is ending it. Those who take its last reports are waited for.
            if not await tx.try_lock(b"ending/" + survey):
                return False
            row = await states.find(tx, survey, for_update=True)
            # Checked again under the lock: another worker may have ended it since we looked.
            if row is None or row.due_at is None or row.due_at > server.clock():
                return False
            await self.service.end_at_deadline(tx, row)
        return True

    def _log_problem(self, survey: bytes, problem: Exception) -> str:
        """Log what went wrong with a survey, and return a sentence about it for its status."""
        sentence = public_sentence(problem)
        if isinstance(problem, FaircountError):
            detail = getattr(problem, "detail", "")
            _log.warning(
                "the survey cannot continue now and will be tried again",
                extra={
                    "survey": survey.hex(),
                    "problem": f"{problem}: {detail}" if detail else str(problem),
                },
            )
        else:
            _log.error(sentence, exc_info=problem, extra={"survey": survey.hex()})
        return sentence

    async def _lease_surveys(self) -> list[bytes]:
        """Lease the surveys that have messages for the aggregator and that nobody else leases."""
        now = self.service.server.clock()
        async with self.service.server.database.write() as tx:
            # Another worker is about to lease the locked rows.
            rows = await tx.fetch_skipping_locked(
                "SELECT survey FROM outbox WHERE next_at <= ? AND lease_until <= ? "
                "ORDER BY next_at LIMIT ?",
                now,
                now,
                MAX_SURVEYS,
            )
            surveys = [bytes(row["survey"]) for row in rows]
            for survey in surveys:
                await self._extend_lease(tx, survey, now + LEASE)
        return surveys

    async def _extend_lease(self, tx: Transaction, survey: bytes, until: int) -> None:
        await tx.execute(
            "UPDATE outbox SET lease = ?, lease_until = ? WHERE survey = ?",
            self.name,
            until,
            survey,
        )

    async def _exchange_under_lease(self, survey: bytes) -> None:
        """Exchange messages about a leased survey; problems are logged, and it is tried again."""
        problem = ""
        renewing = asyncio.create_task(self._renew_lease(survey))
        try:
            await self._exchange_or_end(survey)
        except Exception as error:
            # Caught broadly: a bug that one survey triggers must not stop the others.
            problem = self._log_problem(survey, error)
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        await self._release_lease(survey, problem)

    async def _renew_lease(self, survey: bytes) -> None:
        """Renew the lease while this worker talks.

        Two workers who talk about one survey do no harm: they only send the same messages twice.
        """
        while True:
            await asyncio.sleep(LEASE / 3000)
            with suppress(FaircountError):
                async with self.service.server.database.write() as tx:
                    await self._extend_lease(tx, survey, self.service.server.clock() + LEASE)

    async def _exchange_or_end(self, survey: bytes) -> None:
        """Exchange messages; end the survey without the aggregator if it can never finish it."""
        try:
            await self._exchange_messages(survey)
        except LostError:
            await self.service.end_without_aggregator(survey)

    async def _exchange_messages(self, survey: bytes) -> None:
        """Send what is pending and what follows from the answers, until nothing is left."""
        pending_messages = await self.service.pending_messages(survey)
        if pending_messages is None:
            return
        waiting = list(pending_messages.messages)
        people = (await self.service.server.params(survey)).n_max
        key = pending_messages.key

        async def send(message: Message) -> Answers:
            return await self.aggregator.send(key, survey, message, people)

        sent = 0
        while waiting:
            # A dishonest aggregator could otherwise keep the coordinator busy for ever.
            sent += 1
            if sent > MAX_SERVER_MESSAGES:
                raise ProtocolError(
                    f"the coordinator and the aggregator exchanged {MAX_SERVER_MESSAGES} messages "
                    "without finishing"
                )
            answers = await self._send(survey, waiting.pop(0), send)
            if answers is None:
                # The aggregator still works on a long message: ask again later.
                return
            for answer in answers:
                waiting += await self.service.receive_statement(survey, answer)

    async def _send(self, survey: bytes, message: Message, send: Send) -> Answers:
        """Send a message, or all parts that may be sent together with it."""
        if _content_class(message) is PartShares:
            numbers = await self.service.parts_to_send(survey)
            if len(numbers) > 1:
                return await self._send_parts(survey, numbers, send)
        return await send(message)

    async def _send_parts(
        self, survey: bytes, numbers: Sequence[int], send: Send
    ) -> tuple[Message, ...]:
        """Send shares of several parts at a time, and return what else the aggregator answers.

        The aggregator verifies parts independently of each other, so they need not wait for its
        requests. What it has found about each is stored at once; the set of accepted reports,
        which comes with the last one, is handled after all of them.
        """
        waiting = iter(numbers)
        others = list[Message]()

        async def send_some() -> None:
            for number in waiting:
                batch = await self.service.part_shares(survey, number)
                if batch is None:
                    return
                answers = await self._send_patiently(batch, send)
                # No further part instead: the aggregator keeps every one that it has begun with.
                if answers is None:
                    return
                contents = [_content_class(answer) for answer in answers]
                for content, answer in zip(contents, answers, strict=True):
                    if content is VerifiedPart:
                        await self.service.receive_statement(survey, answer)
                    # It is on its way, or is sent again after a pause.
                    elif content is not NextPartRequest:
                        others.append(answer)
                # The set, a refusal or the end of the survey: no further part is needed now.
                if not {VerifiedPart, NextPartRequest}.intersection(contents):
                    return

        results = await asyncio.gather(
            *(send_some() for _ in range(PARTS_AT_ONCE)), return_exceptions=True
        )
        # All have stopped: nothing goes on behind the back of whoever handles the problem.
        for problem in filter(None, results):
            raise problem
        return tuple(others)

    async def _send_patiently(self, message: Message, send: Send) -> Answers:
        """Send a message, and repeat it while the aggregator works on it; None if it still does.

        A repetition waits for the work that has begun. Another message would only wait beside it.
        """
        answers = await send(message)
        for _ in range(REPEATS):
            if answers is not None:
                break
            await sleep(REPEAT_SECONDS)
            answers = await send(message)
        return answers

    async def _release_lease(self, survey: bytes, problem: str) -> None:
        """Give the lease back; a conversation that is not finished is tried again after a pause."""
        server = self.service.server
        async with server.database.write() as tx:
            row = await tx.fetch_one("SELECT tries, lease FROM outbox WHERE survey = ?", survey)
            # No row: the conversation is finished. Another name: our lease has expired meanwhile.
            if row is None or bytes(row["lease"]) != self.name:
                return
            # A success that needs another round resets the count in `note_outbox`.
            tries = int(row["tries"]) + 1
            await tx.execute(
                "UPDATE outbox SET lease_until = 0, tries = ?, next_at = ?, problem = ? "
                "WHERE survey = ?",
                tries,
                server.clock() + pause_after(tries),
                problem,
                survey,
            )
