"""Long work is done in other processes: the same answers, the coordinator asks again until they are there."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begin_client, require_success, set_up, visit_once

from faircount.core.entropy import SeededStream
from faircount.core.errors import StorageError
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import EXPLICIT, SERVERS, Topology
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.messages import AcceptedReports
from faircount.protocol.topologies.two_servers.verification import PartWork
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.messages import PartShares
from faircount.server.aggregator import service as aggregator
from faircount.server.aggregator import step_process
from faircount.server.aggregator.step_cluster import WorkerCluster
from faircount.server.aggregator.step_process import StepInput, Work, WorkerProcesses
from faircount.server.coordinator import outbox
from faircount.server.coordinator.aggregator_connection import AggregatorError
from faircount.storage import states


async def claimed(
    pair: Pair, topology: Topology = SERVERS, *, is_proven: bool = False
) -> TrialSurvey:
    """A survey whose last phase the coordinator has ended."""
    entropy = SeededStream(4)
    mechanism: FieldMechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    if is_proven:
        mechanism = ServerLaplace(items=["a", "b", "c"], epsilon=20.0, users=12)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, topology, entropy)
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    devices = [begin_client(survey, at, at % 3, entropy) for at in range(12)]
    for phase in topology.phases:
        # A client may have several messages in a phase: what it asks, and what it sends.
        for at in [*range(12)] * 3:
            devices[at] = await visit_once(pair.to_s1, survey, devices[at], entropy)
        require_success(await pair.to_s1.post(f"{survey.path}/close"))
        if phase is not topology.phases[-1]:
            await pair.scheduler.run_once()
    return survey


class Noting(WorkerProcesses):
    """Notes which kinds of work other processes do."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.kinds: list[type] = []

    async def run(self, work: Work[Any]) -> Any:
        self.kinds.append(type(work))
        return await super().run(work)


def work_elsewhere(pair: Pair) -> None:
    """Every message is worked on in another process."""
    object.__setattr__(pair.s2, "long_message", 0)


@pytest.mark.parametrize(("topology", "kind"), [(SERVERS, PartWork), (EXPLICIT, StepInput)])
def test_a_survey_whose_long_work_at_s2_is_done_in_other_processes(
    tmp_path: Path,
    fresh_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    topology: Topology,
    kind: type,
) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 5)

    async def work() -> None:
        async with in_process(tmp_path, databases=(fresh_database(), fresh_database())) as pair:
            work_elsewhere(pair)
            workers = Noting(2)
            object.__setattr__(pair.s2.steps, "workers", workers)
            survey = await claimed(pair, topology)
            await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [4, 4, 4]
            assert not pair.s2.long_steps
            assert set(workers.kinds) == {kind}
            # Three parts of at most five reports each, verified once each.
            assert topology is not SERVERS or len(workers.kinds) == 3
            workers.close()

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


def test_a_survey_whose_batch_is_verified_on_a_cluster(
    tmp_path: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no scheduler answers the coordinator is told to come again, and nothing is lost."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            work_elsewhere(pair)
            object.__setattr__(pair.s2.steps, "workers", WorkerCluster("tcp://127.0.0.1:1"))
            monkeypatch.setattr("faircount.server.aggregator.step_cluster.SECONDS_TO_ANSWER", 0.2)
            survey = await claimed(pair)
            assert await pair.scheduler.run_once()
            assert (
                "the aggregator answered 503"
                in (await pair.to_s1.get(f"{survey.path}/status")).json()["problem"]
            )
            monkeypatch.undo()
            there = WorkerCluster(cluster.scheduler_address)
            object.__setattr__(pair.s2.steps, "workers", there)
            async with pair.s1.server.database.write() as tx:
                await tx.execute("UPDATE outbox SET next_at = 0")  # the pause is over
            assert await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [4, 4, 4]
            # Dask has sent the encrypted shares and the key, and has not kept them.
            sent = there._client.scheduler_comm
            assert sent.message_count > 0
            assert not sent.recent_message_log
            there.close()
            await asyncio.sleep(0.1)

    asyncio.run(work())
    assert cluster.scheduler.transition_counter > 0  # the cluster did something


def answer_batches_soon(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer batches before the work on them is done, and other messages after it."""
    send = pair.scheduler.aggregator.send

    async def answer_soon(key: Any, survey: bytes, message: Any, people: int) -> Any:
        is_batch = isinstance(parse(message.payload), PartShares)
        monkeypatch.setattr(aggregator, "ANSWER_SECONDS", 0.01 if is_batch else 60.0)
        return await send(key, survey, message, people)

    monkeypatch.setattr(pair.scheduler.aggregator, "send", answer_soon)


class InThisProcess(WorkerProcesses):
    """Does the work here, when it is told to."""

    def __init__(self) -> None:
        super().__init__(1)
        self.may_go_on = asyncio.Event()
        self.done = 0

    async def run(self, work: Work[Any]) -> Any:
        await self.may_go_on.wait()
        self.done += 1
        return work.run()


def test_while_s2_is_at_work_s1_is_told_to_ask_again_and_the_work_is_done_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = 1_800_000_000_000

    async def work() -> None:
        nonlocal time
        async with in_process(tmp_path, lambda: time) as pair:
            work_elsewhere(pair)
            answer_batches_soon(pair, monkeypatch)
            slow = InThisProcess()
            object.__setattr__(pair.s2.steps, "workers", slow)
            survey = await claimed(pair)
            for _ in range(3):
                assert await pair.scheduler.run_once()
                assert (await pair.to_s1.get(f"{survey.path}/status")).json()[
                    "waits_for"
                ] == "an answer from the aggregator"
                time += 60_000
            assert len(pair.s2.long_steps) == 1
            slow.may_go_on.set()
            monkeypatch.undo()
            await pair.scheduler.run_once()
            assert (await pair.to_s1.get(f"{survey.path}/status")).json()["phase"] == "published"
            # The batch was verified once, however often the coordinator asked.
            assert slow.done == 1
            assert (
                require_success(await pair.to_s2.get("/v1/populations/trial")).json()[
                    "reservations"
                ]
                == 1
            )

    asyncio.run(work())


class OneAtATime(WorkerProcesses):
    """Does one work after the other, slowly, and notes how many wait."""

    def __init__(self) -> None:
        super().__init__(1)
        self._is_free = asyncio.Lock()
        self.begun = 0
        self.unfinished = 0
        self.most = 0

    async def run(self, work: Work[Any]) -> Any:
        self.begun += 1
        self.unfinished += 1
        self.most = max(self.most, self.unfinished)
        async with self._is_free:
            await asyncio.sleep(0.05)
            self.unfinished -= 1
            return work.run()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Callable[[Pair], None]:
    """Twelve parts, more than may be on their way, at an aggregator that has no time for them."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 1)
    monkeypatch.setattr(outbox, "REPEAT_SECONDS", 0.1)
    monkeypatch.setattr(outbox, "REPEATS", 1000)

    def start(pair: Pair) -> None:
        work_elsewhere(pair)
        answer_batches_soon(pair, monkeypatch)

    return start


@pytest.mark.parametrize("is_proven", [False, True])
def test_a_slow_aggregator_gets_no_more_parts_than_may_be_on_their_way(
    tmp_path: Path, hurry: Callable[[Pair], None], is_proven: bool
) -> None:
    """It keeps every part that it has begun with, so more of them would fill its memory."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            hurry(pair)
            slow = OneAtATime()
            object.__setattr__(pair.s2.steps, "workers", slow)
            survey = await claimed(pair, is_proven=is_proven)
            assert await pair.scheduler.run_once()
            # In one conversation: no part had to wait for the pause between two.
            status = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
            assert status["phase"] == "published"
            assert slow.begun == 12
            assert slow.most <= outbox.PARTS_AT_ONCE

    asyncio.run(work())


def test_an_aggregator_that_does_not_finish_its_parts_gets_no_others(
    tmp_path: Path, hurry: Callable[[Pair], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "REPEATS", 2)
    time = 1_800_000_000_000

    async def work() -> None:
        nonlocal time
        async with in_process(tmp_path, lambda: time) as pair:
            hurry(pair)
            slow = InThisProcess()
            object.__setattr__(pair.s2.steps, "workers", slow)
            survey = await claimed(pair, is_proven=True)
            for _ in range(3):
                assert await pair.scheduler.run_once()
                assert len(pair.s2.long_steps) == outbox.PARTS_AT_ONCE
                time += 60_000
            slow.may_go_on.set()
            monkeypatch.setattr(outbox, "REPEATS", 1000)
            await pair.scheduler.run_once()
            assert (await pair.to_s1.get(f"{survey.path}/status")).json()["phase"] == "published"
            assert slow.done == 12

    asyncio.run(work())


def test_pauses_do_not_grow_while_parts_are_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verified part is stored without a new state, and is a success all the same."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 1)
    time = 1_800_000_000_000
    answered = 0

    async def work() -> None:
        nonlocal time, answered
        async with in_process(tmp_path, lambda: time) as pair:
            survey = await claimed(pair, is_proven=True)
            send = pair.scheduler.aggregator.send

            async def answer_one(key: Any, of: bytes, message: Any, people: int) -> Any:
                nonlocal answered
                if isinstance(parse(message.payload), PartShares):
                    answered += 1
                    if answered > 1:
                        raise AggregatorError("the aggregator cannot be reached")
                return await send(key, of, message, people)

            monkeypatch.setattr(pair.scheduler.aggregator, "send", answer_one)
            for verified in (1, 2, 3, 4):
                answered = 0
                assert await pair.scheduler.run_once()
                status = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
                assert (status["tries"], status["phase"]) == (1, "counting")
                async with pair.s1.server.database.read() as tx:
                    found = await states.count_rows(tx, survey.params.survey, "verified_parts")
                assert found == verified
                time += 2000
            answered = -100
            await pair.scheduler.run_once()
            assert (await pair.to_s1.get(f"{survey.path}/status")).json()["phase"] == "published"

    asyncio.run(work())


def test_when_only_the_set_was_lost_not_every_part_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without proofs the coordinator stores nothing about a part, and the set answers any part."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 1)
    time = 1_800_000_000_000
    sent = 0
    lost = 0

    async def work() -> None:
        nonlocal time, sent
        async with in_process(tmp_path, lambda: time) as pair:
            survey = await claimed(pair)
            send = pair.scheduler.aggregator.send

            async def lose_set(key: Any, of: bytes, message: Any, people: int) -> Any:
                nonlocal sent, lost
                answers = await send(key, of, message, people)
                sent += isinstance(parse(message.payload), PartShares)
                if not lost and isinstance(parse(answers[-1].payload), AcceptedReports):
                    lost += 1
                    raise AggregatorError("the aggregator cannot be reached")
                return answers

            monkeypatch.setattr(pair.scheduler.aggregator, "send", lose_set)
            assert await pair.scheduler.run_once()
            assert (sent, lost) == (12, 1)
            time += 60_000
            assert await pair.scheduler.run_once()
            assert sent <= 12 + outbox.PARTS_AT_ONCE
            assert (await pair.to_s1.get(f"{survey.path}/status")).json()["phase"] == "published"

    asyncio.run(work())


class FakePool:
    """A pool whose works end when the test says so."""

    def __init__(self, *_: object) -> None:
        self.futures: list[Future[bytes]] = []

    def submit(self, *_: object) -> Future[bytes]:
        self.futures.append(Future())
        return self.futures[-1]


def test_of_works_that_fail_together_none_ends_the_next_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise its processes would stay, and what they work on would begin again elsewhere."""
    pools: list[FakePool] = []
    monkeypatch.setattr(
        step_process, "ProcessPoolExecutor", lambda *_: pools.append(FakePool()) or pools[-1]
    )

    async def work() -> None:
        workers = WorkerProcesses(1)
        nothing = PartWork(b"", b"", b"", b"", b"", b"")
        first, second = (asyncio.create_task(workers.run(nothing)) for _ in range(2))
        await asyncio.sleep(0)
        (broken,) = pools
        broken.futures[0].set_exception(BrokenProcessPool())
        with pytest.raises(StorageError):
            await first
        third = asyncio.create_task(workers.run(nothing))
        await asyncio.sleep(0)
        broken.futures[1].set_exception(BrokenProcessPool())
        with pytest.raises(StorageError):
            await second
        fourth = asyncio.create_task(workers.run(nothing))
        await asyncio.sleep(0)
        assert [len(pool.futures) for pool in pools] == [2, 2]
        for future in pools[1].futures:
            future.set_result(b"done")
        assert await asyncio.gather(third, fourth) == [b"done", b"done"]

    asyncio.run(work())
