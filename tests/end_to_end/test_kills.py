"""Servers and clients are killed at random moments: every survey ends, and nothing is lost.

`make kills` plays 100 schedules on each database, `make test` a few. A seed draws the kind of
survey, who leaves, and which process is killed when. Every participant has an item of their own and
there is almost no noise. So a count of 2 is somebody who was counted twice, and a 0 of somebody who
stayed is a lost response. Everybody fills in a sheet of three questions: the item, a yes/no
question and, with proofs, a number, which is a power of two of their own; without proofs the third
question has any of several items, of which everybody chooses two. All questions must have counted
the same people. Clients continue from their state files, and who stayed has to see that they were
counted. In the topology two-stage there is one question with two items, because it carries no
sheets, and its guarantee does not cover people who are alone with their item.
"""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest
from forked import Forked, preload
from trial_survey import TrialSurvey, require_success, set_up

from faircount.client.invitation_codes import Code
from faircount.core.entropy import SystemEntropy
from faircount.core.files import make_private_folder
from faircount.core.questions import AnyOf, Number, OneOf, Questionnaire, Sheet, YesNo
from faircount.demo.crowd import CrowdPlan, Person
from faircount.demo.processes import free_port
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace_sheets import LaplaceSheets
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.mechanisms.sheets import SheetMechanism
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE, SurveyParameters, Topology
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.survey.remaining_privacy import remaining_guarantee

Fresh = Callable[[], str]
SCHEDULES = int(os.environ.get("FAIRCOUNT_KILLS", "2"))
SEED = int(os.environ.get("FAIRCOUNT_SEED", "0"))
USERS = 8
MINIMUM = 5
MAX_LEAVING = 2
MAX_KILLS = 6
REPORTS_PER_PART = 3  # so that batch manifests of `servers` have three parts
CROWDS = 2
VICTIMS = ("coordinator", "aggregator", "clients")
MAX_SECONDS = 300.0  # far more than a survey takes

preload(
    [
        "faircount.cli.servers",
        "faircount.server.run",
        "faircount.client.participation",
        "alembic.command",
        "asyncpg",
    ]
)


@dataclass(frozen=True)
class Kind:
    """A kind of survey.

    topology: how shares travel
    mechanism: what is published
    terms: parameters that differ from the usual ones
    may_abort: whether the survey may end without a result if somebody leaves
    """

    topology: Topology
    mechanism: FrequencyMechanism | SheetMechanism
    terms: dict[str, Any]
    may_abort: bool = False


def make_kinds() -> dict[str, Kind]:
    who = OneOf(text="Who are you?", items=tuple(str(place) for place in range(USERS)))
    odd = YesNo(text="Is your place odd?")
    # Every step of a cell costs 20, so that the noise is 0 except with probability 1e-7.
    of_users = LaplaceSheets(
        questionnaire=Questionnaire((who, odd, AnyOf(text="Which two?", items=who.items))),
        groups=split_epsilon(220.0, [[0], [1], [2]], [2, 1, USERS]),
        epsilon=220.0,
        users=USERS,
        dropouts=USERS - MINIMUM,
    )
    # Two groups of questions, so that two radii are drawn; neither is ever 1 (probability 1e-12).
    sheets = ServerSheets(
        questionnaire=Questionnaire(
            (who, odd, Number(text="Which number is yours alone?", low=0, high=2**USERS - 1))
        ),
        groups=split_epsilon(80.0, [[0, 2], [1]]),
        epsilon=80.0,
        users=USERS,
    )
    # It samples everybody, and so promises almost nothing.
    two_stage = TSSPrime(
        items=2,
        users=USERS,
        p=1 - 1e-7,
        alpha=0.5,
        gamma=1e15,
        floor=3,
        phi=1,
        dropouts=USERS - MINIMUM,
    )
    return {
        "servers with proofs": Kind(SERVERS, sheets, {}),
        "servers without proofs": Kind(SERVERS, of_users, {}),
        "masked": Kind(MASKED, of_users, {}),
        "explicit": Kind(EXPLICIT, of_users, {}),
        "two-stage": Kind(TWO_STAGE, two_stage, {"epsilon": 1.0, "k": 2}, may_abort=True),
    }


KINDS = make_kinds()


@dataclass(frozen=True)
class Schedule:
    """What is drawn for one survey.

    kind: the kind of survey
    visits: for every participant, after how many visits they leave; None if they stay
    draw: source of all further random choices
    """

    kind: Kind
    visits: tuple[int | None, ...]
    draw: random.Random

    @classmethod
    def of(cls, number: int) -> "Schedule":
        """The schedule with this number; any five in a row have all kinds."""
        # Pseudorandom, so that a schedule that fails can be played again.
        order = random.Random(SEED).sample(list(KINDS), len(KINDS))  # noqa: S311
        kind = KINDS[order[number % len(KINDS)]]
        draw = random.Random(f"{SEED} {number}")  # noqa: S311
        leaving = draw.sample(range(USERS), draw.randint(0, MAX_LEAVING))
        visits: list[int | None] = [None] * USERS
        for place in sorted(leaving):
            visits[place] = draw.randrange(len(kind.topology.phases))
        return cls(kind, tuple(visits), draw)

    @property
    def staying(self) -> list[int]:
        """Places of the participants who stay."""
        return [place for place, visits in enumerate(self.visits) if visits is None]


class Servers:
    """Both servers as processes that can be killed and started again."""

    def __init__(self, folder: Path, urls: tuple[str, str]) -> None:
        self.folder = folder
        s1_port = str(free_port())
        s2_port = str(free_port())
        self.addresses = (f"http://127.0.0.1:{s1_port}", f"http://127.0.0.1:{s2_port}")
        coordinator = (
            *("faircount", "coordinator", "--data", f"{folder}/s1", "--database", urls[0]),
            *("--port", s1_port, "--private-port", "-1", "--aggregator", self.addresses[1]),
        )
        aggregator = (
            *("faircount", "aggregator", "--data", f"{folder}/s2", "--database", urls[1]),
            *("--port", s2_port, "--private-port", "-1"),
        )
        self.running = [
            Forked.start(coordinator, folder / "log-0", REPORTS_PER_PART),
            Forked.start(aggregator, folder / "log-1", REPORTS_PER_PART),
        ]

    def kill(self, number: int) -> None:
        self.running[number].kill()
        self.running[number] = self.running[number].start_again()

    def stop(self) -> None:
        for process in self.running:
            process.kill()

    def token_file(self, number: int) -> Path:
        return self.folder / f"s{number + 1}" / "owner-token"

    def client(self, number: int) -> httpx.AsyncClient:
        token = self.token_file(number).read_text().strip()
        return httpx.AsyncClient(
            base_url=self.addresses[number],
            headers={"Authorization": f"Bearer {token}"},
            timeout=10.0,
            transport=RepeatingTransport(),
        )

    async def wait_until_up(self) -> None:
        for number, address in enumerate(self.addresses):
            while not self.token_file(number).exists():
                process = self.running[number]
                assert process.is_alive, process.log.read_text()
                await asyncio.sleep(0.05)
            async with httpx.AsyncClient(transport=RepeatingTransport()) as client:
                await client.get(f"{address}/v1/none")


class RepeatingTransport(httpx.AsyncHTTPTransport):
    """Repeats a request while the server is away or cannot write."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        for _ in range(600):
            try:
                answer = await super().handle_async_request(request)
                # Read here, because a server may be killed in the middle of its answer.
                await answer.aread()
                if answer.status_code not in (500, 503):
                    return answer
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
        raise AssertionError("the server did not come back")


@dataclass
class Crowd:
    """A process with some of the clients; its present output begins at `begin` in the log."""

    process: Forked
    begin: int = 0

    def kill(self) -> None:
        """Kill it and start it again; what it reported before no longer counts."""
        self.process.kill()
        self.begin = self.process.log.stat().st_size
        self.process = self.process.start_again()

    def progress(self) -> dict[str, Any]:
        """The last whole line of JSON that it has printed since it was started."""
        output = self.process.log.read_bytes()[self.begin :].decode(errors="replace")
        last_line = ""
        for line in output.splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                last_line = line
        if not self.process.is_alive and "counted" not in last_line:
            # It gave up on a server that was away for long, and comes back.
            assert "UnreachableError" in output, output
            self.kill()
            return {}
        progress: dict[str, Any] = json.loads(last_line or "{}")
        return progress


def sheet_of(place: int, questionnaire: Questionnaire) -> Sheet:
    """The answers of a participant, which nobody else gives."""
    if len(questionnaire) == 1:
        return (place % 2,)
    is_number = isinstance(questionnaire.questions[2], Number)
    others = tuple(sorted((place, (place + 1) % USERS)))
    return place, place % 2, 2**place if is_number else others


def start_crowds(
    folder: Path, address: str, survey: TrialSurvey, schedule: Schedule
) -> list[Crowd]:
    """Start all participants, divided among the crowds."""
    people = []
    for place, invitation in enumerate(survey.invitations):
        link = Code(survey.params.survey, invitation).link(address)
        people.append(
            Person(link, sheet_of(place, survey.params.questionnaire), schedule.visits[place])
        )
    crowds = []
    for number in range(CROWDS):
        crowd_folder = make_private_folder(folder / f"crowd-{number}")
        members = tuple(people[number::CROWDS])
        plan = CrowdPlan(address, survey.params.survey.hex(), str(crowd_folder), members)
        plan.write(crowd_folder / "plan.json")
        arguments = ("faircount.demo.crowd", str(crowd_folder / "plan.json"))
        crowds.append(Crowd(Forked.start(arguments, crowd_folder / "output")))
    return crowds


async def kill_now_and_then(
    servers: Servers, crowds: list[Crowd], draw: random.Random, is_over: asyncio.Event
) -> Counter[str]:
    """Kill servers and clients at random moments, at least once; how often each was killed."""
    kills = Counter[str]()
    for victim in draw.choices(VICTIMS, k=MAX_KILLS):
        await asyncio.sleep(draw.uniform(0.0, 0.8))
        if kills and is_over.is_set():
            break
        if victim == "clients":
            draw.choice(crowds).kill()
        else:
            servers.kill(VICTIMS.index(victim))
            await servers.wait_until_up()
        kills[victim] += 1
    return kills


async def run_to_the_end(
    to_s1: httpx.AsyncClient, survey: TrialSurvey, crowds: list[Crowd]
) -> list[dict[str, Any]]:
    """Close every phase that all clients have visited; how the survey ended for every crowd."""
    while True:
        status = require_success(await to_s1.get(f"{survey.path}/status")).json()
        phase = {"phase": status["phase"], "attempt": status["attempt"]}
        reports = [crowd.progress() for crowd in crowds]
        if status["phase"] in FINAL and all("counted" in report for report in reports):
            return reports
        has_everybody_visited = all(
            report.get("phase") == list(phase.values()) for report in reports
        )
        if has_everybody_visited and status["phase"] in survey.params.topology.phases:
            # May be repeated, because the phase is named: it cannot end another one.
            closed = await to_s1.post(f"{survey.path}/close", json=phase)
            # Too many have left for good: the owner ends the survey.
            if closed.status_code == 409 and closed.json().get("code") == "too_few_answers":
                await to_s1.post(f"{survey.path}/abort", json={"reason": "too few are left"})
        await asyncio.sleep(0.1)


@dataclass(frozen=True)
class Ending:
    """How a survey ended, at both servers and for everybody.

    params: the survey
    result: the coordinator's result
    stages: number of participants by stage
    counted: places of the participants who saw that they were counted
    kills: how often each victim was killed
    budget: the aggregator's ledger
    aggregator_status: the status at the aggregator
    """

    params: SurveyParameters
    result: dict[str, Any]
    stages: Counter[str]
    counted: frozenset[int]
    kills: Counter[str]
    budget: dict[str, Any]
    aggregator_status: dict[str, Any]


async def play(servers: Servers, schedule: Schedule) -> Ending:
    """Run a survey while servers and clients are killed."""
    kind = schedule.kind
    is_over = asyncio.Event()
    await servers.wait_until_up()
    async with servers.client(0) as to_s1, servers.client(1) as to_s2:
        total = {"epsilon": 300.0, "delta": 0.999999999}
        require_success(await to_s2.put("/v1/populations/people", json=total))
        terms = {"population": "people", "minimum": MINIMUM, **kind.terms}
        survey = await set_up(to_s1, to_s2, kind.mechanism, kind.topology, SystemEntropy(), **terms)
        require_success(await to_s1.post(f"{survey.path}/open", json={"invited": USERS}))
        crowds = start_crowds(servers.folder, servers.addresses[0], survey, schedule)
        try:
            async with asyncio.TaskGroup() as group:
                killing = kill_now_and_then(servers, crowds, schedule.draw, is_over)
                killer = group.create_task(killing)
                reports = await run_to_the_end(to_s1, survey, crowds)
                is_over.set()
        finally:
            for crowd in crowds:
                crowd.process.kill()
        result = require_success(await to_s1.get(f"{survey.path}/result")).json()
        budget = require_success(await to_s2.get("/v1/populations/people")).json()
        aggregator_status = require_success(await to_s2.get(f"{survey.path}/status")).json()

    stages = Counter[str]()
    counted = set[int]()
    for number, report in enumerate(reports):
        stages.update(report["stages"])
        counted.update(place * CROWDS + number for place in report["counted"])
    return Ending(
        survey.params,
        result,
        stages,
        frozenset(counted),
        killer.result(),
        budget,
        aggregator_status,
    )


@pytest.fixture
def servers(tmp_path: Path, fresh_database: Fresh) -> Iterator[Servers]:
    running = Servers(tmp_path, (fresh_database(), fresh_database()))
    yield running
    running.stop()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_a_survey_ends_with_everybody_who_stayed(servers: Servers, number: int) -> None:
    schedule = Schedule.of(number)
    ending = asyncio.run(asyncio.wait_for(play(servers, schedule), MAX_SECONDS))
    assert ending.kills
    assert ending.budget["closed"] is False
    assert ending.aggregator_status["phase"] == ending.result["phase"]
    # A coordinator that was killed never sent a different batch for the same survey.
    assert not {"conflict", "wrong_shares"} & set(ending.aggregator_status["rejections"])
    if ending.result["phase"] == "published":
        check_published(ending, schedule)
    else:
        check_aborted(ending, schedule)


def check_published(ending: Ending, schedule: Schedule) -> None:
    """Who stayed is counted once and knows it, and the guarantee fits the accepted reports.

    A participant who was to leave after the last message may know it too, if their process was
    killed and made one more visit.
    """
    result = ending.result
    params = ending.params
    counts, *further = [question["counts"] for question in result["questions"]]
    for position, count in enumerate(counts):
        staying = [place for place in schedule.staying if place % len(counts) == position]
        assert len(staying) <= count <= USERS // len(counts)
    assert result["included"] == sum(counts)
    if isinstance(params.mechanism, SheetMechanism):
        # Each count is 0 or 1, so the first question names everybody; the others must agree.
        included = [place for place, count in enumerate(counts) if count]
        sheets = [sheet_of(place, params.questionnaire) for place in included]
        expected = sum(params.mechanism.cells_of(sheet) for sheet in sheets)
        assert [*counts, *chain(*further)] == expected.tolist()
    assert ending.counted >= set(schedule.staying)
    assert len(ending.counted) == ending.stages["counted"] <= result["included"]
    assert [survey["status"] for survey in ending.budget["surveys"]] == ["spent"]
    assert ending.budget["reservations"] == 1  # one batch manifest, so one batch
    left = remaining_guarantee(
        params.mechanism, result["included"], params.epsilon, result["places"] or None
    )
    assert result["realized"] == {
        "epsilon": pytest.approx(left.epsilon),
        "delta": pytest.approx(left.delta),
    }
    assert left.epsilon <= params.epsilon
    assert left.delta <= params.delta


def check_aborted(ending: Ending, schedule: Schedule) -> None:
    """Kills alone end no survey.

    If people left it may end without a result. Then all know it, and no budget stays reserved.
    """
    assert schedule.kind.may_abort, ending.result
    assert len(schedule.staying) < USERS, ending.result
    assert {survey["status"] for survey in ending.budget["surveys"]} <= {"spent", "cancelled"}
    assert ending.stages["no result"] >= len(schedule.staying)
