"""S1 talks to S2 and keeps its deadlines: what is due is in the database, so that it survives a restart.

Several workers may run this: a deadline is kept by whoever holds the survey's line when it is due, and a conversation
belongs to whoever has the lease. What fails is tried again after 1, 2, 4, ... seconds, at most five minutes.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import randbelow

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ProtocolError
from faircount.protocol.play import MOST_MESSAGES
from faircount.service.coordinator import AGAIN, CoordinatorService
from faircount.service.s2_link import LostError, S2Link
from faircount.storage import states
from faircount.storage.database import Transaction

LEASE = 10_000
"""Milliseconds after which another worker takes over from one that does not renew its lease: it was killed."""
LONGEST_PAUSE = 300_000
IDLE_SECONDS = 1.0
"""How often a worker looks for what other workers have left."""
MOST_AT_ONCE = 16
"""Surveys that one worker takes up together."""

_log = logging.getLogger("faircount.s1")


def pause(tries: int) -> int:
    """Milliseconds before the next try: twice as long each time, less up to a half."""
    whole = min(LONGEST_PAUSE, 1000 << min(tries, 20))
    return whole // 2 + randbelow(whole // 2 + 1)


@dataclass(frozen=True)
class Scheduler:
    """One worker's scheduler."""

    service: CoordinatorService
    link: S2Link
    name: bytes = field(default_factory=lambda: SystemEntropy().bytes(8))

    async def run(self) -> None:
        """Do what is due, for ever."""
        while True:
            try:
                busy = await self.once()
                await self.service.server.flush_rejections()
            except FaircountError as problem:
                _log.warning("the scheduler will try again", extra={"problem": str(problem)})
                busy = False
            if not busy:
                self.service.changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.service.changed.wait(), IDLE_SECONDS)

    async def once(self) -> bool:
        """Everything that is due now, once; whether there was anything."""
        ended = await self._deadlines()
        leased = await self._lease()
        for survey in leased:
            await self.talk(survey)
        return bool(ended or leased)

    async def _deadlines(self) -> int:
        """End the phases whose time is up. A line that another worker holds is left to it."""
        server = self.service.server
        ended = 0
        async with server.database.read() as tx:
            due = await tx.all("SELECT id FROM surveys WHERE due_at <= ? ORDER BY due_at", server.clock())
        for each in due[:MOST_AT_ONCE]:
            try:
                ended += await self._end_phase(bytes(each["id"]))
            except Exception as trouble:  # an error of ours in one survey must not stop the others
                self._note_error(bytes(each["id"]), trouble)
                async with server.database.write() as tx:
                    await states.update(tx, bytes(each["id"]), due_at=server.clock() + AGAIN)
        return ended

    async def _end_phase(self, survey: bytes) -> bool:
        """End a phase whose time is up, unless somebody else does; whether it was ended here."""
        server = self.service.server
        async with server.database.write() as tx:
            still = await tx.free("SELECT id FROM surveys WHERE id = ? AND due_at <= ?", survey, server.clock())
            row = None if not still else await states.find(tx, survey, change=True)
            if row is not None:
                await self.service.end(tx, row)
        return row is not None

    def _note_error(self, survey: bytes, trouble: Exception) -> str:
        """Say in the log what went wrong with a survey; in words, for `talk` to keep."""
        if isinstance(trouble, FaircountError):
            problem = str(trouble)
            _log.warning(
                "the survey cannot go on now, and is tried again", extra={"survey": survey.hex(), "problem": problem}
            )
        else:
            problem = f"an error of this program: {type(trouble).__name__}"
            _log.error(problem, exc_info=trouble, extra={"survey": survey.hex()})
        return problem

    async def _lease(self) -> list[bytes]:
        """Surveys that have something to say to S2 and that nobody else takes care of now."""
        now = self.service.server.clock()
        async with self.service.server.database.write() as tx:
            found = await tx.free(
                "SELECT survey FROM outbox WHERE next_at <= ? AND lease_until <= ? ORDER BY next_at LIMIT ?",
                now, now, MOST_AT_ONCE,
            )  # fmt: skip
            surveys = [bytes(each["survey"]) for each in found]
            for survey in surveys:
                await self._hold(tx, survey, now + LEASE)
        return surveys

    async def _hold(self, tx: Transaction, survey: bytes, until: int) -> None:
        await tx.run("UPDATE outbox SET lease = ?, lease_until = ? WHERE survey = ?", self.name, until, survey)

    async def talk(self, survey: bytes) -> None:
        """Say what is to be said until S2 and S1 have nothing more to say, or something fails."""
        problem, renewing = "", asyncio.create_task(self._keep_lease(survey))
        try:
            await self._converse(survey)
        except Exception as trouble:  # an error of ours in one survey must not stop the others
            problem = self._note_error(survey, trouble)
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
        await self._release(survey, problem)

    async def _keep_lease(self, survey: bytes) -> None:
        """While this worker talks, nobody else does; two who talk would only ask S2 the same twice."""
        while True:
            await asyncio.sleep(LEASE / 3000)
            with suppress(FaircountError):
                async with self.service.server.database.write() as tx:
                    await self._hold(tx, survey, self.service.server.clock() + LEASE)

    async def _converse(self, survey: bytes) -> None:
        """The conversation; S1 ends a survey alone that S2 can never read again."""
        try:
            await self._exchange(survey)
        except LostError:
            await self.service.end_without_s2(survey)

    async def _exchange(self, survey: bytes) -> None:
        to_say = await self.service.to_say(survey)
        if to_say is None:
            return
        waiting, left = list(to_say.messages), MOST_MESSAGES
        while waiting:
            if (left := left - 1) < 0:
                raise ProtocolError(f"S1 and S2 exchanged {MOST_MESSAGES} messages without coming to an end")
            answers = await self.link.send(to_say.key, survey, waiting.pop(0))
            if answers is None:  # S2 is at work on it: ask again later
                return
            for answer in answers:
                waiting += await self.service.hear(survey, answer)

    async def _release(self, survey: bytes, problem: str) -> None:
        """Give the lease back; what is not answered yet is tried again after a pause."""
        server = self.service.server
        async with server.database.write() as tx:
            found = await tx.one("SELECT tries, lease FROM outbox WHERE survey = ?", survey)
            if found is None or bytes(found["lease"]) != self.name:
                return
            tries = int(found["tries"]) + 1
            await tx.run(
                "UPDATE outbox SET lease_until = 0, tries = ?, next_at = ?, problem = ? WHERE survey = ?",
                tries, server.clock() + pause(tries), problem, survey,
            )  # fmt: skip
