"""S1 and S2 as processes that are killed at random moments: every survey ends, nothing acknowledged is lost.

`make kills` plays 100 schedules on each database; `make test` a few. With next to no noise the counts must be those of
exactly the users whom the result counts, everybody who was acknowledged among them.
"""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Device
from faircount.service.processes import Process, free_port
from faircount.service.trial_survey import TrialSurvey, begun, done, inquired, set_up, visited

Fresh = Callable[[], str]
SCHEDULES = int(os.environ.get("FAIRCOUNT_KILLS", "1"))
MOST_KILLS = 3 if SCHEDULES == 1 else 6
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
USERS = 16
PATIENCE = 480.0
"""Seconds until a survey must have ended: far more than it takes."""


class Servers:
    """Both servers as processes that can be killed and come back."""

    def __init__(self, folder: Path, urls: tuple[str, str]) -> None:
        self.folder, self.ports = folder, (free_port(), free_port())
        s1, s2 = (f"http://127.0.0.1:{each}" for each in self.ports)
        common = ("--private-port", "-1")
        self.commands = [
            ("faircount", "coordinator", "--data", f"{folder}/s1", "--database", urls[0], "--port", str(self.ports[0]),
             "--aggregator", s2, *common),
            ("faircount", "aggregator", "--data", f"{folder}/s2", "--database", urls[1], "--port", str(self.ports[1]),
             *common),
        ]  # fmt: skip
        self.addresses = s1, s2
        self.running = [Process.start(each, folder / f"log-{at}") for at, each in enumerate(self.commands)]

    def kill(self, at: int) -> None:
        self.running[at].kill()
        self.running[at] = self.running[at].again()

    def stop(self) -> None:
        for each in self.running:
            each.kill()

    def client(self, at: int) -> httpx.AsyncClient:
        token = (self.folder / f"s{at + 1}" / "owner-token").read_text().strip()
        return httpx.AsyncClient(
            base_url=self.addresses[at], headers={"Authorization": f"Bearer {token}"}, timeout=10.0,
            transport=_Patient(),
        )  # fmt: skip

    async def wait_until_up(self) -> None:
        for at, address in enumerate(self.addresses):
            while not (self.folder / f"s{at + 1}" / "owner-token").exists():
                assert self.running[at].alive, self.running[at].last_words()
                await asyncio.sleep(0.05)
            async with httpx.AsyncClient(transport=_Patient()) as client:
                await client.get(f"{address}/v1/none")


class _Patient(httpx.AsyncHTTPTransport):
    """Sends the same request again while the server is away or cannot write."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        for _ in range(600):
            try:
                answer = await super().handle_async_request(request)
                if answer.status_code not in (500, 503):
                    return answer
                await answer.aread()
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
        raise AssertionError("the server did not come back")


async def killing(servers: Servers, chance: random.Random, until: asyncio.Event) -> int:
    """Kill S1 or S2 now and then."""
    kills = 0
    while not until.is_set() and kills < MOST_KILLS:
        await asyncio.sleep(chance.uniform(0.0, 1.5))
        servers.kill(chance.randrange(2))
        kills += 1
        await servers.wait_until_up()
    return kills


async def played(servers: Servers, chance: random.Random) -> dict[str, Any]:
    """A survey while the servers are killed; how it ended, and the devices as they are then."""
    entropy, over = SystemEntropy(), asyncio.Event()
    await servers.wait_until_up()
    async with servers.client(0) as to_s1, servers.client(1) as to_s2:
        mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=USERS, dropouts=4)  # noise with chance 1e-8
        survey = await set_up(to_s1, to_s2, mechanism, SERVERS, entropy)
        killer = asyncio.create_task(killing(servers, chance, over))
        done(await to_s1.post(f"{survey.path}/open", json={"people": USERS}))
        devices = [begun(survey, at, at % 3, entropy) for at in range(USERS - 2)]
        devices = list(await asyncio.gather(*(_slowly(to_s1, survey, each, chance) for each in devices)))
        done(await to_s1.post(f"{survey.path}/close", json={"state": "submitting"}))
        result = await _ended(to_s1, survey)
        over.set()
        kills = await killer
        told = [await inquired(to_s1, survey, each, entropy) for each in devices]
        budget = done(await to_s2.get("/v1/populations/trial")).json()
    return {"result": result, "devices": told, "kills": kills, "budget": budget}


async def _slowly(to_s1: httpx.AsyncClient, survey: TrialSurvey, device: Device, chance: random.Random) -> Device:
    await asyncio.sleep(chance.uniform(0.0, 2.0))
    return await visited(to_s1, survey, device, SystemEntropy())


async def _ended(to_s1: httpx.AsyncClient, survey: TrialSurvey) -> dict[str, Any]:
    while True:
        answer = await to_s1.get(f"{survey.path}/result")
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        await asyncio.sleep(0.1)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_a_survey_ends_with_everybody_who_was_acknowledged(tmp_path: Path, fresh_database: Fresh, number: int) -> None:
    chance = random.Random(f"{SEED} {number}")  # noqa: S311 - schedules that can be played again
    servers = Servers(tmp_path, (fresh_database(), fresh_database()))
    try:
        ended = asyncio.run(asyncio.wait_for(played(servers, chance), PATIENCE))
    finally:
        servers.stop()
    assert ended["kills"] >= 1
    assert all(each.acknowledgements for each in ended["devices"])
    assert ended["result"]["state"] == "published"
    assert ended["result"]["included"] == USERS - 2
    assert all(each.counted for each in ended["devices"])
    assert [each["count"] for each in ended["result"]["counts"]] == [5, 5, 4]
    assert (ended["budget"]["receipts"], ended["budget"]["closed"]) == (1, False)  # one claim, so one batch
    assert ended["result"]["realized"]["epsilon"] <= ended["result"]["promised"]["epsilon"]
