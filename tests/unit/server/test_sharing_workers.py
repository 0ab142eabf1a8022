"""Two workers of the coordinator take reports of one survey at the same time, on PostgreSQL.

Most tests hold the group of one worker just before its commit and look at what the other one does
meanwhile: it takes other people's reports, and waits for everything that could contradict the group.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begin_client, require_success, send_message, set_up

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, ClientState, Invitation, Message, RowWrite, Step
from faircount.protocol.roles.coordinator import invitation_rows
from faircount.protocol.survey.devices import Notice
from faircount.protocol.wire.messages import Acknowledgement, Reason, Rejection
from faircount.server.common.tokens import fresh_token
from faircount.server.coordinator import group_commit, service
from faircount.storage import states

PEOPLE = 12
# Long enough for a call that does not wait to end; no test fails if a call takes longer.
MOMENT = 0.3
# A test that waits so long hangs.
FOR_EVER = 60.0

Start = Callable[[], Any]


@dataclass(frozen=True)
class Workers:
    """Two workers of each server on the same databases, and a survey that is open at both."""

    first: Pair
    second: Pair
    survey: TrialSurvey

    def person(self, place: int) -> ClientState:
        """Somebody with a report that is not sent."""
        return begin_client(self.survey, place, place % 3, SystemEntropy())

    def report(self, place: int) -> Message:
        return self.person(place).waiting[0]

    async def send(self, worker: Pair, message: Message) -> Message:
        return await send_message(worker.to_s1, self.survey, message)

    async def responses(self) -> int:
        status = require_success(await self.second.to_s1.get(f"{self.survey.path}/status")).json()
        return int(status["responses"])

    async def stored(self) -> int:
        """Reports in the database."""
        async with self.first.s1.server.database.read() as tx:
            return await states.count_rows(tx, self.survey.params.survey, states.FIRST_MESSAGES)

    async def result(self) -> dict[str, Any]:
        """The result of the survey, which was closed."""
        for _ in range(100):
            await asyncio.gather(self.first.scheduler.run_once(), self.second.scheduler.run_once())
            answer = await self.second.to_s1.get(f"{self.survey.path}/result")
            if answer.status_code == 200:
                found: dict[str, Any] = answer.json()
                return found
            await asyncio.sleep(0.05)
        raise AssertionError("the survey does not end")


@pytest.fixture
def start(tmp_path: Path, postgresql_database: Callable[[], str]) -> Start:
    """Starts two workers of each server; each has taken one report, so that it is known."""
    databases = (postgresql_database(), postgresql_database())
    tokens = (fresh_token(), fresh_token())

    @asynccontextmanager
    async def run() -> AsyncIterator[Workers]:
        async with (
            in_process(tmp_path, databases=databases, tokens=tokens) as first,
            in_process(tmp_path, databases=databases, tokens=tokens) as second,
        ):
            mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=PEOPLE, dropouts=8)
            survey = await set_up(
                first.to_s1, second.to_s2, mechanism, SERVERS, SystemEntropy(), grace=3600
            )
            require_success(await second.to_s1.post(f"{survey.path}/open"))
            workers = Workers(first, second, survey)
            for place, worker in enumerate((first, second)):
                assert isinstance(
                    await workers.send(worker, workers.report(place)), Acknowledgement
                )
            yield workers

    return run


@pytest.fixture(autouse=True)
def groups_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a survey of a few people has room for what other workers may have in flight."""
    monkeypatch.setattr(group_commit, "MAX_GROUP", 1)
    monkeypatch.setattr(service, "MAX_GROUP", 1)


class Held:
    """A worker whose next groups are held before their commit, until it is released."""

    def __init__(self, worker: Pair) -> None:
        self._is_written = asyncio.Event()
        self._go_on = asyncio.Event()
        for name in ("save", "save_shared"):
            self._hold(worker, name)

    def _hold(self, worker: Pair, name: str) -> None:
        real = getattr(worker.s1.states, name)

        async def hold(*arguments: Any) -> Any:
            written = await real(*arguments)
            self._is_written.set()
            await self._go_on.wait()
            return written

        setattr(worker.s1.states, name, hold)

    async def wait_until_written(self) -> None:
        await asyncio.wait_for(self._is_written.wait(), FOR_EVER)

    def go_on(self) -> None:
        self._go_on.set()

    async def release(self) -> None:
        """Let the group go on, after what others do had a moment to go wrong."""
        await asyncio.sleep(MOMENT)
        self.go_on()


def test_nobody_waits_for_the_group_of_another_worker(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            held = Held(workers.first)
            waiting = asyncio.create_task(workers.send(workers.first, workers.report(2)))
            await held.wait_until_written()
            # While the first worker has not committed, the second one answers.
            for place in (3, 4):
                answer = await workers.send(workers.second, workers.report(place))
                assert isinstance(answer, Acknowledgement)
            assert (waiting.done(), await workers.responses()) == (False, 4)
            held.go_on()
            assert isinstance(await waiting, Acknowledgement)
            assert (await workers.responses(), await workers.stored()) == (5, 5)

    asyncio.run(work())


def test_of_two_reports_of_one_person_at_two_workers_one_counts(start: Start) -> None:
    """The same bytes are acknowledged twice; other bytes are not."""

    async def work() -> None:
        async with start() as workers:
            held = Held(workers.first)
            report = workers.report(2)
            waiting = asyncio.create_task(workers.send(workers.first, report))
            await held.wait_until_written()
            other_bytes = replace(workers.report(2), device_key=report.device_key)  # type: ignore[attr-defined]
            sent = [report, other_bytes, workers.report(2)]
            others = [
                asyncio.create_task(workers.send(workers.second, message)) for message in sent
            ]
            await held.release()
            assert isinstance(await waiting, Acknowledgement)
            same, other, other_device = await asyncio.gather(*others)
            assert isinstance(same, Acknowledgement)
            refused = [answer.why for answer in (other, other_device)]
            assert refused == [Reason.CONFLICT, Reason.INVITATION_USED]
            assert (await workers.responses(), await workers.stored()) == (3, 3)

    asyncio.run(work())


def test_no_more_people_are_let_in_than_there_are_places(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            crowded = await with_uninvited(workers, 8)
            for place in range(2, PEOPLE - 1):
                await workers.send(workers.first, workers.report(place))
            held = Held(workers.first)
            waiting = asyncio.create_task(workers.send(workers.first, workers.report(PEOPLE - 1)))
            await held.wait_until_written()
            # One place was left, and the first worker is filling it.
            late = asyncio.create_task(workers.send(workers.second, crowded.report(PEOPLE)))
            await held.release()
            assert isinstance(await waiting, Acknowledgement)
            refused = await late
            assert isinstance(refused, Rejection)
            assert refused.why is Reason.FULL
            assert await workers.stored() == PEOPLE

    asyncio.run(work())


def test_a_crowd_at_both_workers_gets_exactly_the_places(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            crowded = await with_uninvited(workers, 8)
            sent = [
                (worker, crowded.report(place))
                for place, worker in enumerate(
                    [workers.first, workers.second] * (PEOPLE // 2 + 3), 2
                )
            ]
            answers = await asyncio.gather(*(workers.send(*letter) for letter in sent))
            taken = sum(isinstance(answer, Acknowledgement) for answer in answers)
            assert (taken, await workers.stored()) == (PEOPLE - 2, PEOPLE)
            assert await workers.responses() == PEOPLE
            refused = Counter(answer.why for answer in answers if isinstance(answer, Rejection))
            assert refused == {Reason.FULL: len(sent) - taken}

    asyncio.run(work())


def test_after_the_closing_time_nobody_is_told_that_a_survey_with_places_is_full(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For clients that is final, and the survey may be held open in a moment."""
    # What another worker may have in flight would fill the survey.
    monkeypatch.setattr(group_commit, "MAX_GROUP", PEOPLE)
    monkeypatch.setattr(service, "MAX_GROUP", PEOPLE)

    async def work() -> None:
        async with start() as workers:
            s1 = workers.first.s1
            survey = workers.survey.params.survey
            async with s1.server.database.write() as tx:
                await states.update(tx, survey, due_at=s1.server.clock() - 1)
            # Another device with an invitation that was used leaves a notice, which is too late.
            group = [workers.report(0), workers.report(2)]
            answers = [reply for (reply,) in await s1._write(survey, group)]
            assert [answer.why for answer in answers] == [Reason.EARLY, Reason.EARLY]  # type: ignore[attr-defined]
            assert await workers.stored() == 2

    asyncio.run(work())


async def with_uninvited(workers: Workers, count: int) -> Workers:
    """The same workers with more invitations than places, which no owner can make."""
    survey = workers.survey
    digest = survey.params.digest
    extra = tuple(Invitation.issue(digest, SystemEntropy()) for _ in range(count))
    s1 = workers.first.s1
    async with s1.server.database.write() as tx:
        row = await states.find(tx, survey.params.survey, for_update=True)
        assert row is not None
        await s1.states.add(tx, row, invitation_rows(person.access for person in extra))
    return replace(workers, survey=replace(survey, invitations=survey.invitations + extra))


def test_what_is_acknowledged_while_a_survey_closes_is_counted(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            for place in range(2, 8):
                await workers.send(workers.second, workers.report(place))
            held = Held(workers.first)
            waiting = asyncio.create_task(workers.send(workers.first, workers.report(8)))
            await held.wait_until_written()
            closing = asyncio.create_task(workers.second.to_s1.post(f"{workers.survey.path}/close"))
            # Whoever comes after the owner has asked for it waits, too: closing is not put off.
            await asyncio.sleep(MOMENT)
            late = asyncio.create_task(workers.send(workers.second, workers.report(9)))
            await held.release()
            assert isinstance(await waiting, Acknowledgement)
            require_success(await closing)
            refused = await late
            assert isinstance(refused, Rejection)
            assert refused.why is Reason.LATE
            result = await workers.result()
            assert (result["included"], await workers.stored()) == (9, 9)

    asyncio.run(work())


def test_nothing_is_acknowledged_once_the_batch_is_being_fixed(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            for place in range(2, 8):
                await workers.send(workers.second, workers.report(place))
            held = Held(workers.second)
            closing = asyncio.create_task(workers.second.to_s1.post(f"{workers.survey.path}/close"))
            await held.wait_until_written()
            late = asyncio.create_task(workers.send(workers.first, workers.report(8)))
            await held.release()
            require_success(await closing)
            refused = await late
            assert isinstance(refused, Rejection)
            assert refused.why is Reason.LATE
            assert (await workers.result())["included"] == 8

    asyncio.run(work())


def test_a_withdrawal_waits_for_the_report_that_another_worker_takes(start: Start) -> None:
    async def work() -> None:
        async with start() as workers:
            for place in range(2, 8):
                await workers.send(workers.second, workers.report(place))
            held = Held(workers.first)
            leaver = workers.person(8)
            waiting = asyncio.create_task(workers.send(workers.first, leaver.waiting[0]))
            await held.wait_until_written()
            withdrawal = SERVERS.client.withdraw(leaver).waiting[0]
            leaving = asyncio.create_task(workers.send(workers.second, withdrawal))
            await held.release()
            assert isinstance(await waiting, Acknowledgement)
            assert isinstance(await leaving, Acknowledgement)
            assert await workers.responses() == 8
            require_success(await workers.first.to_s1.post(f"{workers.survey.path}/close"))
            assert (await workers.result())["included"] == 8

    asyncio.run(work())


def test_only_new_reports_are_written_together(start: Start) -> None:
    """A notice is about what somebody else may be writing, so its worker must be alone."""

    async def work() -> None:
        async with start() as workers:
            s1 = workers.first.s1
            user = workers.survey.invitations[0].user
            survey = workers.survey.params.survey
            async with s1.server.database.write() as tx:
                row, found = await states.find_with_rows(tx, survey, (), s1.worker)
                assert row is not None
                before = await s1.states.load(tx, row, found=found)
                notice = RowWrite("notices", user, bytes((Notice.OTHER_DEVICE,)))
                new_key = RowWrite("keys", bytes(32), user)
                known_report = RowWrite("first_messages", user, None, bytes(32), is_new=False)
                steps = [
                    Step(before.state, rows=(notice,)),
                    Step(before.state, rows=(new_key,)),
                    Step(before.state, rows=(known_report,)),
                    Step(replace(before.state)),
                ]
                written = [
                    await s1.states.save_shared(tx, before, step, s1.worker) for step in steps
                ]
                assert written == [False] * 4
                nothing = Step(before.state)
                assert await s1.states.save_shared(tx, before, nothing, s1.worker)

    asyncio.run(work())


def test_workers_that_have_ended_are_forgotten_and_their_reports_are_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "MAX_WORKERS", 3)

    async def work() -> None:
        async with start() as workers:
            survey = workers.survey.params.survey
            s1 = workers.first.s1
            for place in (2, 3):
                await workers.send(workers.first, workers.report(place))
            known = list[int]()
            for name in (b"third", b"third", b"fourth"):
                async with s1.server.database.write() as tx:
                    await states.find(tx, survey, for_update=True)
                    await states.add_worker(tx, survey, name)
                    row = await states.find(tx, survey)
                    assert row is not None
                    known.append(row.workers)
                    assert row.participants == 4
            assert known == [3, 3, 1]
            # Both workers are new again, and say so.
            for place, worker in ((4, workers.first), (5, workers.second), (6, workers.first)):
                answer = await workers.send(worker, workers.report(place))
                assert isinstance(answer, Acknowledgement)
            assert (await workers.responses(), await workers.stored()) == (7, 7)

    asyncio.run(work())
