"""A long message is worked on in another process: the same answers, the coordinator asks again until they are there."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begin_client, require_success, set_up, visit_once

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.server.aggregator import service as aggregator
from faircount.server.aggregator.step_cluster import StepCluster
from faircount.server.aggregator.step_process import StepInput, StepProcesses, make_step


async def claimed(pair: Pair) -> TrialSurvey:
    """A survey that the coordinator has closed."""
    entropy = SeededStream(4)
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    for at in range(12):
        await visit_once(pair.to_s1, survey, begin_client(survey, at, at % 3, entropy), entropy)
    require_success(await pair.to_s1.post(f"{survey.path}/close"))
    return survey


def work_elsewhere(pair: Pair) -> None:
    """Every message is worked on in another process."""
    object.__setattr__(pair.s2, "long_message", 0)


def test_a_survey_whose_every_step_at_s2_is_made_in_another_process(
    tmp_path: Path, fresh_database: Callable[[], str]
) -> None:
    async def work() -> None:
        async with in_process(tmp_path, databases=(fresh_database(), fresh_database())) as pair:
            work_elsewhere(pair)
            survey = await claimed(pair)
            await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [4, 4, 4]
            assert not pair.s2.long_steps
            pair.s2.steps.step_maker.close()

    asyncio.run(work())


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Dask cluster with one worker, on loopback."""
    import distributed

    private = {
        "dashboard_address": None,
        "host": "127.0.0.1",
        "protocol": "tcp",
        "processes": False,
    }
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **private) as running:
        yield running


def test_a_survey_whose_every_step_at_s2_is_made_on_a_cluster(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no scheduler answers the coordinator is told to come again, and nothing is lost."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            work_elsewhere(pair)
            object.__setattr__(pair.s2.steps, "step_maker", StepCluster("tcp://127.0.0.1:1"))
            monkeypatch.setattr("faircount.server.aggregator.step_cluster.SECONDS_TO_ANSWER", 0.2)
            survey = await claimed(pair)
            assert await pair.scheduler.run_once()
            assert (
                "the aggregator answered 503"
                in (await pair.to_s1.get(f"{survey.path}/status")).json()["problem"]
            )
            monkeypatch.undo()
            there = StepCluster(cluster.scheduler_address)
            object.__setattr__(pair.s2.steps, "step_maker", there)
            async with pair.s1.server.database.write() as tx:
                await tx.execute("UPDATE outbox SET next_at = 0")  # the pause is over
            assert await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [4, 4, 4]
            there.close()
            await asyncio.sleep(0.1)

    asyncio.run(work())
    assert cluster.scheduler.transition_counter > 0  # the cluster did something


class InThisProcess(StepProcesses):
    """Makes the step here, when it is told to."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_go_on, self.made = asyncio.Event(), 0

    async def step(self, given: StepInput) -> Any:
        await self.may_go_on.wait()
        self.made += 1
        return make_step(given)


def test_while_s2_is_at_work_s1_is_told_to_ask_again_and_the_work_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aggregator, "ANSWER_SECONDS", 0.01)
    time = 1_800_000_000_000

    async def work() -> None:
        nonlocal time
        async with in_process(tmp_path, lambda: time) as pair:
            work_elsewhere(pair)
            slow = InThisProcess()
            object.__setattr__(pair.s2.steps, "step_maker", slow)
            survey = await claimed(pair)
            for _ in range(3):
                assert await pair.scheduler.run_once()
                assert (await pair.to_s1.get(f"{survey.path}/status")).json()[
                    "waits_for"
                ] == "an answer from the aggregator"
                time += 60_000
            assert len(pair.s2.long_steps) == 1
            slow.may_go_on.set()
            monkeypatch.setattr(aggregator, "ANSWER_SECONDS", 60.0)
            await pair.scheduler.run_once()
            assert (await pair.to_s1.get(f"{survey.path}/status")).json()["phase"] == "published"
            assert (
                slow.made
                in (
                    3,
                    4,
                )
            )  # claim, batch and sum; the coordinator may ask for the receipt just after it was given
            assert (
                require_success(await pair.to_s2.get("/v1/populations/trial")).json()[
                    "reservations"
                ]
                == 1
            )

    asyncio.run(work())
