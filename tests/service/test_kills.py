"""S1, S2 and people's devices as processes that are killed at random moments: every survey ends, nothing is lost.

`make kills` plays 100 schedules on each database; `make test` a few. Devices go on from their files: everybody must see
that it was counted, once. With next to no noise the counts must be exactly theirs.
"""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.files import private_folder
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.service.codes import Code
from faircount.service.demo.crowd import CrowdPlan, Person
from faircount.service.processes import Process, free_port
from faircount.service.trial_survey import TrialSurvey, done, set_up

Fresh = Callable[[], str]
SCHEDULES = int(os.environ.get("FAIRCOUNT_KILLS", "1"))
MOST_KILLS = 3 if SCHEDULES == 1 else 6
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
USERS = 16
ANSWERS = {"a": 5, "b": 5, "c": 4}
CROWDS = 2
VICTIMS = ("S1", "S2", "devices")
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
                await answer.aread()  # here: a server may be killed in the middle of its answer
                if answer.status_code not in (500, 503):
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
        raise AssertionError("the server did not come back")


class Crowds:
    """People's devices, each in a file of its own, in processes that can be killed and come back."""

    def __init__(self, folder: Path, address: str, survey: TrialSurvey) -> None:
        self.running = list[Process]()
        codes = [Code(survey.params.survey, each) for each in survey.invitations[: sum(ANSWERS.values())]]
        items = [item for item, number in ANSWERS.items() for _ in range(number)]
        people = [Person(code.link(address), item) for code, item in zip(codes, items, strict=True)]
        for number in range(CROWDS):
            kept = private_folder(folder / f"crowd-{number}")
            plan = CrowdPlan(address, survey.params.survey.hex(), str(kept), tuple(people[number::CROWDS]))
            plan.write(kept / "plan.json")
            arguments = ("faircount.service.demo.crowd", str(kept / "plan.json"))
            self.running.append(Process.start(arguments, kept / "said"))

    def kill(self, at: int) -> None:
        self.running[at].kill()
        self.running[at] = self.running[at].again()

    def come_back(self) -> None:
        """Who gave up on a server that was away for long comes back."""
        for at, each in enumerate(self.running):
            if not each.alive and not _last_said(each.log):
                assert "UnreachableError" in each.last_words(), each.last_words()
                self.kill(at)

    async def ended(self) -> Counter[str]:
        """How it ended for everybody, once all processes say so."""
        while not all(said := [_last_said(each.log) for each in self.running]):
            self.come_back()
            await asyncio.sleep(0.1)
        return sum((Counter[str](each["stages"]) for each in said), Counter[str]())

    def stop(self) -> None:
        for each in self.running:
            each.kill()


def _last_said(log: Path) -> dict[str, Any]:
    """What a crowd says at its end; nothing before."""
    lines = [each for each in log.read_text().splitlines() if each.startswith("{") and '"counted"' in each]
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    return found


async def killing(servers: Servers, crowds: Crowds, chance: random.Random, until: asyncio.Event) -> Counter[str]:
    """Kill S1, S2 or some of the people's devices now and then."""
    kills = Counter[str]()
    for victim in ("devices", *chance.choices(VICTIMS, k=MOST_KILLS - 1)):
        await asyncio.sleep(chance.uniform(0.0, 1.5))
        if kills and until.is_set():
            break
        if victim == "devices":
            crowds.kill(chance.randrange(CROWDS))
        else:
            servers.kill(VICTIMS.index(victim))
            await servers.wait_until_up()
        kills[victim] += 1
    return kills


async def played(servers: Servers, chance: random.Random) -> dict[str, Any]:
    """A survey while servers and devices are killed; how it ended, and for whom."""
    over = asyncio.Event()
    await servers.wait_until_up()
    async with servers.client(0) as to_s1, servers.client(1) as to_s2:
        mechanism = Laplace(items=list(ANSWERS), epsilon=20.0, users=USERS, dropouts=4)  # noise with chance 1e-8
        survey = await set_up(to_s1, to_s2, mechanism, SERVERS, SystemEntropy())
        done(await to_s1.post(f"{survey.path}/open", json={"people": USERS}))
        crowds = Crowds(servers.folder, servers.addresses[0], survey)
        try:
            killer = asyncio.create_task(killing(servers, crowds, chance, over))
            while done(await to_s1.get(f"{survey.path}/status")).json()["users"] < sum(ANSWERS.values()):
                crowds.come_back()
                await asyncio.sleep(0.1)
            done(await to_s1.post(f"{survey.path}/close", json={"state": "submitting"}))
            result = await _ended(to_s1, survey)
            over.set()
            kills, stages = await killer, await crowds.ended()
        finally:
            crowds.stop()
        budget = done(await to_s2.get("/v1/populations/trial")).json()
    return {"result": result, "stages": stages, "kills": kills, "budget": budget}


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
    assert ended["kills"]["devices"] >= 1
    assert ended["stages"] == {"counted": sum(ANSWERS.values())}
    assert ended["result"]["state"] == "published"
    assert ended["result"]["included"] == sum(ANSWERS.values())
    assert [each["count"] for each in ended["result"]["counts"]] == list(ANSWERS.values())
    assert (ended["budget"]["receipts"], ended["budget"]["closed"]) == (1, False)  # one claim, so one batch
    assert ended["result"]["realized"]["epsilon"] <= ended["result"]["promised"]["epsilon"]
