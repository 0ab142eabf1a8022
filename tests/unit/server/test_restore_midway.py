"""An old backup of the coordinator or the aggregator is put back while both talk about the end of a survey, on SQLite and on PostgreSQL.

The survey ends published or cleanly aborted; whoever is counted is counted once; the aggregator takes no second batch, and what may
have been said is spent.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from database_copies import Copies
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    ask_for_outcome,
    begin_client,
    require_success,
    set_up,
    visit_once,
)

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, RemoteError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, ClientState
from faircount.protocol.topologies.two_servers import messages
from faircount.server.coordinator.aggregator_connection import AggregatorConnection
from faircount.server.restore import RestoreOutcome

ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1]
TOKENS = "owner-at-s1", "owner-at-s2"
LATER = 400_000
"""Milliseconds after which every lease and every pause is over."""


@dataclass
class Lost(AggregatorConnection):
    """The coordinator's way to the aggregator, on which one answer of the aggregator is lost, and everything after it."""

    heard: int = 0

    async def send(self, *given: Any) -> Any:
        """An answer, unless it is the one that is lost."""
        if self.heard < 0:
            raise RemoteError("The aggregator is not reached")
        out = await super().send(*given)
        self.heard -= 1
        if self.heard < 0:
            raise RemoteError("the answer is lost")
        return out


@dataclass
class Drill:
    """A survey of eight people, and both servers again and again in one folder."""

    folder: Path
    copies: Copies
    clock: int = 1_800_000_000_000

    def run(self, work: Callable[[Pair], Any]) -> Any:
        """Do something while both servers run."""

        async def working() -> Any:
            around = in_process(self.folder, lambda: self.clock, self.copies.urls, TOKENS)
            async with around as pair:
                return await work(pair)

        return asyncio.run(working())

    async def opened(self, pair: Pair) -> TrialSurvey:
        mechanism = Laplace(
            items=3, epsilon=40.0, users=len(ANSWERS), dropouts=2
        )  # noise with chance 1e-17
        survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
        require_success(await pair.to_s1.post(f"{survey.path}/open"))
        return survey

    async def talked(self, pair: Pair, heard: int) -> None:
        """The coordinator and the aggregator talk until an answer is lost: the coordinator has heard so many, and the aggregator has said one more."""
        self.clock += LATER
        with suppress(FaircountError):
            await replace(
                pair.scheduler, aggregator=Lost(pair.to_s2, lambda: self.clock, heard=heard)
            ).run_once()

    async def ended(
        self, pair: Pair, survey: TrialSurvey, devices: list[ClientState]
    ) -> tuple[str, list[int], int]:
        """How it ended, what was counted, and how many devices were told with proof that they are in it."""
        for _ in range(20):
            self.clock += LATER
            if not await pair.scheduler.run_once():
                break
        result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
        told = [
            await ask_for_outcome(pair.to_s1, survey, device, SystemEntropy()) for device in devices
        ]
        counts = (
            [entry["count"] for entry in result["counts"]] if result["phase"] == "published" else []
        )
        budget = require_success(await pair.to_s2.get("/v1/populations/trial")).json()
        assert [entry["status"] for entry in budget["surveys"]] == ["spent"]
        assert budget["reservations"] <= 1  # one claim, so one batch
        assert budget["spent"]["epsilon"] == pytest.approx(survey.params.epsilon)
        return result["phase"], counts, sum(device.counted for device in told)


@pytest.fixture
def drill(tmp_path: Path, copies: Copies) -> Drill:
    return Drill(tmp_path / "servers", copies)


async def all_visit(
    pair: Pair, survey: TrialSurvey, devices: list[ClientState]
) -> list[ClientState]:
    return [await visit_once(pair.to_s1, survey, device, SystemEntropy()) for device in devices]


@pytest.mark.parametrize(
    ("lines", "heard"), [(4096, 0), (4096, 1), (4096, 2), (3, 2), (3, 4), (3, 6)]
)
@pytest.mark.parametrize("before", [8, 5])
def test_s1_is_put_back_to_before_its_claim(
    drill: Drill,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: int,
    lines: int,
    heard: int,
) -> None:
    """Whose answers came after the backup cannot be in the sum: without them there is no result, unless it was made.

    A claim in one part has its receipt as first answer, one in three parts as third; the last answer is the result.
    """
    monkeypatch.setattr(messages, "REPORTS_PER_PART", lines)
    copy = tmp_path / "copy"

    async def until_lost(pair: Pair) -> tuple[TrialSurvey, list[ClientState]]:
        survey = await drill.opened(pair)
        devices = [
            begin_client(survey, at, answer, SystemEntropy()) for at, answer in enumerate(ANSWERS)
        ]
        early = await all_visit(pair, survey, devices[:before])
        drill.copies.copy("s1", copy)
        late = await all_visit(pair, survey, devices[before:])
        require_success(await pair.to_s1.post(f"{survey.path}/close"))
        await drill.talked(pair, heard)
        return survey, early + late

    survey, devices = drill.run(until_lost)
    assert drill.copies.restore("s1", copy) == RestoreOutcome(resumed=(survey.params.survey,))
    found = drill.run(lambda pair: drill.ended(pair, survey, devices))
    whole = before == len(ANSWERS) or heard == (2 if lines > len(ANSWERS) else 6)
    assert found == (("published", [2, 3, 3], len(ANSWERS)) if whole else ("aborted", [], 0))


@pytest.mark.parametrize(("copied", "said"), [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)])
def test_s2_is_put_back_to_before_what_it_has_said(
    drill: Drill, tmp_path: Path, copied: int, said: int
) -> None:
    """It cannot know what it has said since: the survey is over and spent, and the coordinator gives it no second batch or sum.

    The coordinator has heard `copied` answers before the backup and `said` in all; each time the aggregator has given one more, which was lost:
    after two it is the result, with which the aggregator destroys its key.
    """
    copy = tmp_path / "copy"

    async def until_lost(pair: Pair) -> tuple[TrialSurvey, list[ClientState]]:
        survey = await drill.opened(pair)
        devices = [
            begin_client(survey, at, answer, SystemEntropy()) for at, answer in enumerate(ANSWERS)
        ]
        devices = await all_visit(pair, survey, devices)
        require_success(await pair.to_s1.post(f"{survey.path}/close"))
        if copied:
            await drill.talked(pair, copied)
        drill.copies.copy("s2", copy)
        await drill.talked(pair, said - copied)
        return survey, devices

    survey, devices = drill.run(until_lost)
    restored = drill.copies.restore("s2", copy)
    this = (survey.params.survey,)
    lost, over = said == 2 and copied < 2, copied == 2
    assert restored == RestoreOutcome(
        ended=() if lost or over else this, lost=this if lost else (), closed=("trial",)
    )
    found = drill.run(lambda pair: drill.ended(pair, survey, devices))
    assert found == (("published", [2, 3, 3], len(ANSWERS)) if over else ("aborted", [], 0))
