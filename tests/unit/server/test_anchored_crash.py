"""The aggregator dies after the anchor has moved and before its state is written: what was begun is done again, before all else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, begin_client, require_success, set_up, visit_once

from faircount.core.entropy import SeededStream
from faircount.core.errors import StorageError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS

TOKENS = "owner-at-s1", "owner-at-s2"


class Dying:
    """The anchor of a server that dies just after its value has moved for the n-th time."""

    def __init__(self, real: Any, after: int) -> None:
        self.real, self.left = real, after

    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        moved: bool = self.real.advance(name, before, after)
        self.left -= 1
        if self.left == 0:
            raise StorageError("the process was killed here")
        return moved

    def current_value(self, name: bytes) -> bytes:
        value: bytes = self.real.current_value(name)
        return value


async def claimed(pair: Pair, entropy: SeededStream) -> TrialSurvey:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, entropy)
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    for at in range(12):
        await visit_once(pair.to_s1, survey, begin_client(survey, at, at % 3, entropy), entropy)
    return survey


@asynccontextmanager
async def started(
    folder: Path, urls: tuple[str, str], time: Callable[[], int]
) -> AsyncIterator[Pair]:
    async with in_process(folder, time, urls, TOKENS) as pair:
        yield pair


@pytest.mark.parametrize("moves", [1, 2])
def test_another_survey_that_comes_first_finds_the_population_in_order(
    tmp_path: Path, fresh_database: Callable[[], str], moves: int
) -> None:
    """A claim moves the anchor of the ledger, then that of the survey; without the note a second survey closed both."""
    urls, now = (fresh_database(), fresh_database()), 1_800_000_000_000

    async def work() -> None:
        nonlocal now
        entropy = SeededStream(6)
        async with started(tmp_path, urls, lambda: now) as pair:
            first, second = [await claimed(pair, entropy) for _ in range(2)]
            object.__setattr__(pair.s2.server, "anchor", Dying(pair.s2.server.anchor, moves))
            require_success(await pair.to_s1.post(f"{first.path}/close"))
            await pair.scheduler.run_once()
            assert (
                "the aggregator answered 503"
                in (await pair.to_s1.get(f"{first.path}/status")).json()["problem"]
            )
            require_success(await pair.to_s1.post(f"{second.path}/close"))
        async with started(tmp_path, urls, lambda: now) as pair:
            await pair.scheduler.run_once()  # the first one pauses: the second one comes first
            assert (
                require_success(await pair.to_s1.get(f"{second.path}/result")).json()["phase"]
                == "published"
            )
            now += 600_000
            await pair.scheduler.run_once()
            results = [
                require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
                for survey in (first, second)
            ]
            assert [[line["count"] for line in result["counts"]] for result in results] == [
                [4, 4, 4]
            ] * 2
            budget = require_success(await pair.to_s2.get("/v1/populations/trial")).json()
            assert (budget["closed"], budget["reservations"]) == (False, 2)
            assert [survey["status"] for survey in budget["surveys"]] == ["spent", "spent"]

    asyncio.run(work())
