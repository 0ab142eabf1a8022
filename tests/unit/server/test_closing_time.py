"""The closing time holds although the scheduler is late, and an aggregator delays no deadline."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    begin_client,
    open_trial,
    require_success,
    send_message,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.protocol.wire.messages import Acknowledgement, Reason, Rejection
from faircount.server.coordinator import outbox
from faircount.server.coordinator.aggregator_connection import AggregatorConnection
from faircount.server.coordinator.outbox import Scheduler

SECONDS = 60
PATIENCE = 30.0
ENTROPY = SystemEntropy()


class Time:
    """A clock that stands still unless it is moved."""

    now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now


async def status(pair: Pair, survey: TrialSurvey) -> dict[str, Any]:
    found: dict[str, Any] = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
    return found


async def answer_all(pair: Pair, survey: TrialSurvey) -> None:
    """Everybody answers but the last one."""
    for place in range(len(survey.invitations) - 1):
        client = begin_client(survey, place, 0, ENTROPY)
        await visit_once(pair.to_s1, survey, client, ENTROPY)


def test_after_the_closing_time_nothing_is_written_although_nobody_closed(tmp_path: Path) -> None:
    time = Time()

    async def work() -> None:
        async with in_process(tmp_path, time) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2, phase_seconds=(SECONDS,))
            role = survey.params.topology.client
            clients = [begin_client(survey, place, place % 3, ENTROPY) for place in range(6)]
            early = await visit_once(pair.to_s1, survey, clients[0], ENTROPY)
            report = role.next_message(clients[0])
            late_report = role.next_message(clients[1])
            withdrawal = role.next_message(role.withdraw(early))
            assert report is not None
            assert late_report is not None
            assert withdrawal is not None
            time.now += 1000 * SECONDS
            for message in (late_report, withdrawal):
                answer = await send_message(pair.to_s1, survey, message)
                assert isinstance(answer, Rejection)
                assert answer.why is Reason.LATE
            # Who has lost the answer gets it again, also together with somebody who is late.
            answers = await asyncio.gather(
                *(send_message(pair.to_s1, survey, sent) for sent in (report, late_report))
            )
            assert isinstance(answers[0], Acknowledgement)
            assert isinstance(answers[1], Rejection)
            assert (await status(pair, survey))["responses"] == 1
            assert (await status(pair, survey))["phase"] == "submitting"

    asyncio.run(work())


def test_a_phase_that_cannot_end_stays_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The closing time is not moved while the phase is tried again."""
    time = Time()

    async def work() -> None:
        async with in_process(tmp_path, time) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2, phase_seconds=(SECONDS,))
            await answer_all(pair, survey)
            closes_at = (await status(pair, survey))["closes_at"]
            report = survey.params.topology.client.next_message(begin_client(survey, 5, 1, ENTROPY))
            assert report is not None
            time.now += 1000 * SECONDS

            async def fail(*_: Any) -> None:
                raise KeyError("a bug")

            with monkeypatch.context() as broken:
                broken.setattr(type(pair.s1), "end", fail)
                assert not await pair.scheduler.run_once()
            assert not await pair.scheduler.run_once()  # not before the pause is over
            assert (await status(pair, survey))["closes_at"] == closes_at
            answer = await send_message(pair.to_s1, survey, report)
            assert isinstance(answer, Rejection)
            assert answer.why is Reason.LATE
            time.now += outbox.RETRY_MILLISECONDS
            assert await pair.scheduler.run_once()
            assert (await status(pair, survey))["phase"] != "submitting"

    asyncio.run(work())


def test_an_aggregator_that_does_not_answer_delays_no_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time()
    monkeypatch.setattr(outbox, "IDLE_SECONDS", 0.05)

    class Silent(AggregatorConnection):
        """Takes a message and says nothing."""

        async def send(self, *_: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

    asked = asyncio.Event()

    async def work() -> None:
        async with in_process(tmp_path, time) as pair:
            first = await open_trial(pair.to_s1, pair.to_s2)
            second = await open_trial(pair.to_s1, pair.to_s2, phase_seconds=(SECONDS,))
            for survey in (first, second):
                await answer_all(pair, survey)
            require_success(await pair.to_s1.post(f"{first.path}/close"))
            scheduler = asyncio.create_task(Scheduler(pair.s1, Silent(pair.to_s2, time)).run())
            await asyncio.wait_for(asked.wait(), PATIENCE)
            time.now += 1000 * SECONDS
            async with asyncio.timeout(PATIENCE):
                while (await status(pair, second))["phase"] == "submitting":
                    await asyncio.sleep(0.05)
            assert (await status(pair, first))["phase"] == "counting"
            scheduler.cancel()
            await asyncio.wait({scheduler})

    asyncio.run(work())
