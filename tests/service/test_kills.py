"""S1, S2 and people's devices as processes that are killed at random moments: every survey ends, nothing is lost.

`make kills` plays 100 schedules on each database; `make test` a few. A seed draws the kind of survey, who vanishes and
who is killed when. Everybody has an item of its own and there is next to no noise, so a count of 2 is somebody counted
twice, and a 0 of somebody who stayed is an answer lost. Devices go on from their files: who stayed sees that it was
counted. (In two-stage, which promises nothing to people who are alone with their item, there are two items.)
"""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from forked import Forked, load_first
from trial_survey import TrialSurvey, done, set_up

from faircount.core.entropy import SystemEntropy
from faircount.core.files import private_folder
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, SurveyParameters, Topology
from faircount.protocol.survey.remaining_privacy import realized
from faircount.protocol.survey.states import FINAL
from faircount.service.codes import Code
from faircount.service.demo.crowd import CrowdPlan, Person
from faircount.service.processes import free_port

Fresh = Callable[[], str]
SCHEDULES = int(os.environ.get("FAIRCOUNT_KILLS", "2"))
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
USERS = 8
MINIMUM = 5
MOST_VANISH = 2
MOST_KILLS = 6
PART = 3  # lines: claims of `servers` have three parts
CROWDS = 2
VICTIMS = ("S1", "S2", "devices")
PATIENCE = 300.0
"""Seconds until a survey must have ended: far more than it takes."""

load_first(
    ["faircount.cli.coordinator", "faircount.service.run", "faircount.service.client", "alembic.command", "asyncpg"]
)


@dataclass(frozen=True)
class Kind:
    """A kind of survey: how shares travel, what is promised, and whether it may end without a result if some vanish."""

    topology: Topology
    mechanism: FrequencyMechanism
    terms: dict[str, Any]
    may_abort: bool = False


def _almost_noiseless(topology: Topology) -> Kind:
    """Noise with chance 1e-8."""
    return Kind(topology, Laplace(items=USERS, users=USERS, epsilon=20.0, dropouts=USERS - MINIMUM), {})


def _kinds() -> dict[str, Kind]:
    helped = TSSPrime(
        items=2, users=USERS, p=1 - 1e-7, alpha=0.5, gamma=1e15, floor=3, phi=1, dropouts=USERS - MINIMUM
    )  # it counts everybody, and so promises next to nothing
    return {
        "servers with proofs": Kind(SERVERS, ServerLaplace(items=USERS, users=USERS, epsilon=40.0), {}),
        "servers without proofs": _almost_noiseless(SERVERS),
        "masked": _almost_noiseless(MASKED),
        "explicit": _almost_noiseless(EXPLICIT),
        "two-stage": Kind(TWO_STAGE, helped, {"epsilon": 1.0, "k": 2}, may_abort=True),
    }


KINDS = _kinds()


@dataclass(frozen=True)
class Schedule:
    """What is drawn for one survey; `visits` has, for everybody, how often it comes before it vanishes, if it does."""

    kind: Kind
    visits: tuple[int | None, ...]
    chance: random.Random

    @classmethod
    def drawn(cls, number: int) -> "Schedule":
        """The schedule of a number; any five in a row are of all kinds."""
        order = random.Random(SEED).sample(list(KINDS), len(KINDS))  # noqa: S311 - schedules that can be played again
        kind = KINDS[order[number % len(KINDS)]]
        chance = random.Random(f"{SEED} {number}")  # noqa: S311 - as above
        gone = chance.sample(range(USERS), chance.randint(0, MOST_VANISH))
        phases = len(kind.topology.phases)
        return cls(kind, tuple(chance.randrange(phases) if at in gone else None for at in range(USERS)), chance)

    @property
    def stay(self) -> list[int]:
        """Who does not vanish."""
        return [at for at, visits in enumerate(self.visits) if visits is None]


class Servers:
    """Both servers as processes that can be killed and come back."""

    def __init__(self, folder: Path, urls: tuple[str, str]) -> None:
        self.folder, self.ports = folder, (free_port(), free_port())
        s1, s2 = (f"http://127.0.0.1:{each}" for each in self.ports)
        common = ("--private-port", "-1")
        commands = [
            ("faircount", "coordinator", "--data", f"{folder}/s1", "--database", urls[0], "--port", str(self.ports[0]),
             "--aggregator", s2, *common),
            ("faircount", "aggregator", "--data", f"{folder}/s2", "--database", urls[1], "--port", str(self.ports[1]),
             *common),
        ]  # fmt: skip
        self.addresses = s1, s2
        self.running = [Forked.start(each, folder / f"log-{at}", PART) for at, each in enumerate(commands)]

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
                assert self.running[at].alive, self.running[at].log.read_text()
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


@dataclass
class Crowd:
    """Some people's devices, each in a file of its own, in a process; `begin` is where its words begin in the log."""

    process: Forked
    begin: int = 0

    def kill(self) -> None:
        """It ends, and comes back: what it has seen before no longer counts."""
        self.process.kill()
        self.begin = self.process.log.stat().st_size
        self.process = self.process.again()

    def said(self) -> dict[str, Any]:
        """The last whole line that it has said since it was started."""
        said = self.process.log.read_bytes()[self.begin :].decode(errors="replace")
        lines = [each for each in said.splitlines(keepends=True) if each.startswith("{") and each.endswith("\n")]
        if not self.process.alive and not (lines and "counted" in lines[-1]):
            assert "UnreachableError" in said, said  # it gave up on a server that was away for long: it comes back
            self.kill()
            return {}
        found: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        return found


def started_crowds(folder: Path, address: str, survey: TrialSurvey, schedule: Schedule) -> list[Crowd]:
    """Everybody, in processes."""
    items = survey.params.mechanism.domain.labels
    links = [Code(survey.params.survey, each).link(address) for each in survey.invitations]
    people = [Person(link, str(items[at % len(items)]), schedule.visits[at]) for at, link in enumerate(links)]
    crowds = []
    for number in range(CROWDS):
        kept = private_folder(folder / f"crowd-{number}")
        plan = CrowdPlan(address, survey.params.survey.hex(), str(kept), tuple(people[number::CROWDS]))
        plan.write(kept / "plan.json")
        arguments = ("faircount.service.demo.crowd", str(kept / "plan.json"))
        crowds.append(Crowd(Forked.start(arguments, kept / "said")))
    return crowds


async def killing(servers: Servers, crowds: list[Crowd], chance: random.Random, until: asyncio.Event) -> Counter[str]:
    """Kill S1, S2 or some of the people's devices now and then."""
    kills = Counter[str]()
    for victim in chance.choices(VICTIMS, k=MOST_KILLS):
        await asyncio.sleep(chance.uniform(0.0, 0.8))
        if kills and until.is_set():
            break
        if victim == "devices":
            chance.choice(crowds).kill()
        else:
            servers.kill(VICTIMS.index(victim))
            await servers.wait_until_up()
        kills[victim] += 1
    return kills


async def to_the_end(
    to_s1: httpx.AsyncClient, survey: TrialSurvey, crowds: list[Crowd]
) -> tuple[Counter[str], frozenset[int]]:
    """The owner: it closes a phase that all devices have seen, until everybody knows how it ended.

    How it did for how many people, and who of them saw that it was counted.
    """
    while True:
        now = done(await to_s1.get(f"{survey.path}/status")).json()
        phase = {"state": now["state"], "attempt": now["attempt"]}
        said = [each.said() for each in crowds]
        if now["state"] in FINAL and all("counted" in each for each in said):
            stages = sum((Counter[str](each["stages"]) for each in said), Counter[str]())
            return stages, frozenset(at * CROWDS + crowd for crowd, each in enumerate(said) for at in each["counted"])
        everybody = all(each.get("phase") == list(phase.values()) for each in said)
        if everybody and now["state"] in survey.params.topology.phases:
            await to_s1.post(f"{survey.path}/close", json=phase)  # again, if it is not heard: it ends no other phase
        await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Ended:
    """How a survey ended, at both servers and for everybody."""

    params: SurveyParameters
    result: dict[str, Any]
    stages: Counter[str]
    know: frozenset[int]  # who has seen that it was counted
    kills: Counter[str]
    budget: dict[str, Any]
    at_s2: dict[str, Any]


async def played(servers: Servers, schedule: Schedule) -> Ended:
    """A survey while servers and devices are killed."""
    over, kind = asyncio.Event(), schedule.kind
    await servers.wait_until_up()
    async with servers.client(0) as to_s1, servers.client(1) as to_s2:
        done(await to_s2.put("/v1/populations/people", json={"epsilon": 100.0, "delta": 0.999999999}))
        terms = {"population": "people", "minimum": MINIMUM, **kind.terms}
        survey = await set_up(to_s1, to_s2, kind.mechanism, kind.topology, SystemEntropy(), **terms)
        done(await to_s1.post(f"{survey.path}/open", json={"people": USERS}))
        crowds = started_crowds(servers.folder, servers.addresses[0], survey, schedule)
        try:
            async with asyncio.TaskGroup() as both:
                killer = both.create_task(killing(servers, crowds, schedule.chance, over))
                stages, know = await to_the_end(to_s1, survey, crowds)
                over.set()
        finally:
            for each in crowds:
                each.process.kill()
        result = done(await to_s1.get(f"{survey.path}/result")).json()
        budget = done(await to_s2.get("/v1/populations/people")).json()
        at_s2 = done(await to_s2.get(f"{survey.path}/status")).json()
    return Ended(survey.params, result, stages, know, killer.result(), budget, at_s2)


@pytest.fixture
def servers(tmp_path: Path, fresh_database: Fresh) -> Iterator[Servers]:
    running = Servers(tmp_path, (fresh_database(), fresh_database()))
    yield running
    running.stop()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_a_survey_ends_with_everybody_who_stayed(servers: Servers, number: int) -> None:
    schedule = Schedule.drawn(number)
    ended = asyncio.run(asyncio.wait_for(played(servers, schedule), PATIENCE))
    assert ended.kills
    assert ended.budget["closed"] is False
    assert ended.at_s2["state"] == ended.result["state"]
    assert not {"conflict", "wrong_blobs"} & set(ended.at_s2["rejections"])  # S1 never sent another batch
    if ended.result["state"] == "published":
        check_published(ended, schedule)
    else:
        check_aborted(ended, schedule)


def check_published(ended: Ended, schedule: Schedule) -> None:
    """Who stayed is counted and knows it; nobody is counted twice; the guarantee is what this set gives.

    Somebody who was to vanish after its last message may know it too, if its process was killed and came once more.
    """
    result, params = ended.result, ended.params
    counts = [each["count"] for each in result["counts"]]
    for item, count in enumerate(counts):
        stayed = sum(at % len(counts) == item for at in schedule.stay)
        assert stayed <= count <= USERS // len(counts)
    assert result["included"] == sum(counts)
    assert ended.know >= set(schedule.stay)
    assert len(ended.know) == ended.stages["counted"] <= result["included"]
    assert [each["status"] for each in ended.budget["surveys"]] == ["spent"]
    assert ended.budget["receipts"] == 1  # one claim, so one batch
    left = realized(params.mechanism, result["included"], params.epsilon, result["places"] or None)
    assert result["realized"] == {"epsilon": pytest.approx(left.epsilon), "delta": pytest.approx(left.delta)}
    assert left.epsilon <= params.epsilon
    assert left.delta <= params.delta


def check_aborted(ended: Ended, schedule: Schedule) -> None:
    """Kills alone end no survey; where people have vanished it may end, nothing is left reserved and all know it."""
    assert schedule.kind.may_abort, ended.result
    assert len(schedule.stay) < USERS, ended.result
    assert {each["status"] for each in ended.budget["surveys"]} <= {"spent", "released"}
    assert ended.stages["no result"] >= len(schedule.stay)
