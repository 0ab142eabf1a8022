"""Two workers of the coordinator take the reports of one survey, and one of them is killed.

Every participant has an item of their own, and there is almost no noise: a count of 2 is somebody
who was counted twice, and a 0 is an acknowledged report that is lost.
"""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from trial_survey import TrialSurvey, begin_client, require_success, send_message, set_up

from faircount.core.entropy import SystemEntropy
from faircount.demo.processes import Process, free_port
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Message
from faircount.protocol.wire.messages import Acknowledgement

PEOPLE = 60
KILLED_AFTER = 20
# Nobody is limited here: one address plays everybody.
LIMITS = {"REQUESTS_PER_SECOND": "1e9", "BURST": "1000000000", "PRIVATE_PORT": "-1"}


@pytest.fixture
def ports(
    tmp_path: Path, postgresql_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[int, int, int, list[Process]]]:
    """The ports of an aggregator and of two coordinators, and the processes of the latter."""
    for name, value in LIMITS.items():
        monkeypatch.setitem(os.environ, f"FAIRCOUNT_COORDINATOR_{name}", value)
        monkeypatch.setitem(os.environ, f"FAIRCOUNT_AGGREGATOR_{name}", value)
    aggregator, first, second = free_port(), free_port(), free_port()
    database = ("--database", postgresql_database())
    to_aggregator = ("--aggregator", f"http://127.0.0.1:{aggregator}")
    with ExitStack() as stack:
        s2 = ("faircount", "aggregator", "--data", f"{tmp_path}/s2", "--port", str(aggregator))
        stack.callback(Process.start(s2, tmp_path / "s2.log").stop)
        workers = list[Process]()
        for port in (first, second):
            s1 = ("faircount", "coordinator", "--data", f"{tmp_path}/s1", "--port", str(port))
            workers.append(Process.start((*s1, *database, *to_aggregator), tmp_path / "s1.log"))
            stack.callback(workers[-1].stop)
            # One after the other: the first one creates the tables.
            workers[-1].wait_until(lambda port=port: is_up(port), 120, "the coordinator")
        workers[0].wait_until(lambda: is_up(aggregator), 120, "the aggregator")
        yield aggregator, first, second, workers


def is_up(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v1/operator").status_code == 200
    except httpx.TransportError:
        return False


def client_of(folder: Path, port: int) -> httpx.AsyncClient:
    token = (folder / "owner-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60, limits=httpx.Limits()
    )


async def send_to_either(
    workers: tuple[httpx.AsyncClient, httpx.AsyncClient],
    survey: TrialSurvey,
    message: Message,
    is_acknowledged: Callable[[], None],
) -> None:
    """Send a report to one worker, and to the other one if it does not answer, until one does."""
    for attempt in range(1000):
        try:
            answer = await send_message(workers[attempt % 2], survey, message)
        except httpx.TransportError:
            await asyncio.sleep(0.01)
            continue
        assert isinstance(answer, Acknowledgement)
        is_acknowledged()
        return
    raise AssertionError("nobody answers")


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_that_it_or_the_other_has_acknowledged(
    tmp_path: Path, ports: tuple[int, int, int, list[Process]]
) -> None:
    *numbers, processes = ports
    acknowledged = list[int]()

    def note() -> None:
        acknowledged.append(1)
        if len(acknowledged) == KILLED_AFTER:
            processes[0].kill()

    async def work() -> None:
        async with (
            client_of(tmp_path / "s2", numbers[0]) as to_s2,
            client_of(tmp_path / "s1", numbers[1]) as first,
            client_of(tmp_path / "s1", numbers[2]) as second,
        ):
            items = [str(place) for place in range(PEOPLE)]
            mechanism = Laplace(items=items, epsilon=40.0, users=PEOPLE, dropouts=0)
            survey = await set_up(first, to_s2, mechanism, SERVERS, SystemEntropy())
            require_success(await second.post(f"{survey.path}/open"))
            reports = [
                begin_client(survey, place, place, SystemEntropy()).waiting[0]
                for place in range(PEOPLE)
            ]
            both = [(first, second), (second, first)]
            await asyncio.gather(
                *(
                    send_to_either(both[place % 2], survey, report, note)
                    for place, report in enumerate(reports)
                )
            )
            assert (len(acknowledged), processes[0].is_alive) == (PEOPLE, False)
            # What the killed worker had acknowledged is known to the one that takes its place.
            processes[0] = processes[0].start_again()
            try:
                processes[0].wait_until(lambda: is_up(numbers[1]), 120, "the coordinator")
                again = [await send_message(first, survey, report) for report in reports]
                assert all(isinstance(answer, Acknowledgement) for answer in again)
                require_success(await second.post(f"{survey.path}/close"))
                result = await second.get(f"{survey.path}/result")
                while result.status_code != 200:
                    await asyncio.sleep(0.2)
                    result = await second.get(f"{survey.path}/result")
            finally:
                processes[0].stop()
            assert result.json()["included"] == PEOPLE
            assert [round(entry["count"]) for entry in result.json()["counts"]] == [1] * PEOPLE

    asyncio.run(asyncio.wait_for(work(), 300))
