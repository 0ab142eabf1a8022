"""Whole surveys over HTTP calls, both servers in this process, on both kinds of database."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    ask_for_outcome,
    begin_client,
    fetch_survey_keys,
    require_success,
    send_message,
    set_up,
    visit_once,
)

from faircount.core.entropy import SeededStream
from faircount.core.errors import StorageError
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, ClientState, Invitation, encode, propose
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.messages import Report
from faircount.protocol.wire.messages import Acknowledgement, Reason, Rejection
from faircount.server.common.clock import format_time
from faircount.server.coordinator import service
from faircount.server.coordinator.aggregator_connection import AggregatorConnection, AggregatorError
from faircount.server.coordinator.outbox import Scheduler
from faircount.storage import pages
from faircount.storage.database import Database, Transaction

Fresh = Callable[[], str]
ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1, 2, 2, 1, 2]
TOKENS = "owner-at-s1", "owner-at-s2"


@dataclass
class World:
    """Both databases, a clock that stands still unless it is moved, and randomness that repeats itself."""

    folder: Path
    databases: tuple[str, str]
    entropy: SeededStream
    time: int = 1_800_000_000_000

    def start(self) -> Any:
        """Both servers, as after a restart: everything comes from what they have written."""
        return in_process(self.folder, lambda: self.time, self.databases, TOKENS)

    async def survey(self, pair: Pair, users: int = len(ANSWERS), **terms: Any) -> TrialSurvey:
        mechanism = Laplace(
            items=["a", "b", "c"], epsilon=20.0, users=users, dropouts=4
        )  # noise with chance 1e-8
        return await set_up(
            pair.to_s1,
            pair.to_s2,
            mechanism,
            SERVERS,
            self.entropy,
            **{"phase_seconds": (60,), **terms},
        )

    def devices(self, survey: TrialSurvey) -> list[ClientState]:
        return [begin_client(survey, at, answer, self.entropy) for at, answer in enumerate(ANSWERS)]

    async def answered(
        self, pair: Pair, survey: TrialSurvey, devices: list[ClientState]
    ) -> list[ClientState]:
        visits = (visit_once(pair.to_s1, survey, device, self.entropy) for device in devices)
        return list(await asyncio.gather(*visits))


@pytest.fixture
def world(tmp_path: Path, fresh_database: Fresh, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 5)  # 12 reports are three parts
    return World(tmp_path, (fresh_database(), fresh_database()), SeededStream(1))


def from_device_of(device: ClientState, other: ClientState) -> Report:
    """The report of another client, as if this client's device had made it."""
    first, report = device.waiting[0], other.waiting[0]
    assert isinstance(first, Report)
    assert isinstance(report, Report)
    return replace(report, device_key=first.device_key)


async def status(pair: Pair, survey: TrialSurvey) -> dict[str, Any]:
    found: dict[str, Any] = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
    return found


def play(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(work())  # type: ignore[arg-type]  # a coroutine


def test_a_survey_with_both_servers_restarted_after_every_step(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair)
        async with world.start() as pair:
            opened = require_success(
                await pair.to_s1.post(f"{survey.path}/open", json={"invited": 12})
            ).json()
            assert (opened["phase"], opened["closes_at"]) == (
                "submitting",
                "2027-01-15T08:01:00.000Z",
            )
        devices = world.devices(survey)[:-1]
        async with world.start() as pair:
            devices = await world.answered(pair, survey, devices)
            assert all(client.acknowledgements for client in devices)
        async with world.start() as pair:
            now = await status(pair, survey)
            assert (now["responses"], now["invited"], now["waits_for"][:12]) == (
                11,
                12,
                "participants",
            )
            closed = require_success(
                await pair.to_s1.post(f"{survey.path}/close", json={"phase": "submitting"})
            ).json()
            assert (closed["phase"], closed["waits_for"]) == (
                "counting",
                "an answer from the aggregator",
            )
        async with world.start() as pair:
            assert await pair.scheduler.run_once()
        async with world.start() as pair:
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (result["phase"], result["included"]) == ("published", 11)
            assert [entry["count"] for entry in result["counts"]] == [
                2,
                4,
                5,
            ]  # the last device did not answer
            told_all = [
                await ask_for_outcome(pair.to_s1, survey, device, world.entropy)
                for device in devices
            ]
            assert all(client.counted for client in told_all)
            budget = require_success(await pair.to_s2.get("/v1/populations/trial")).json()
            assert [entry["status"] for entry in budget["surveys"]] == ["spent"]
            assert (
                len(
                    require_success(
                        await pair.to_s1.get("/v1/reservations?population=trial")
                    ).json()["reservations"]
                )
                == 1
            )

    play(work)


def test_a_deadline_is_kept_once_by_many_workers_and_not_before_its_time(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair, world.start() as other:
            survey = await world.survey(pair)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            devices = world.devices(survey)
            await world.answered(pair, survey, devices[:6])
            await world.answered(other, survey, devices[6:])
            assert not await pair.scheduler.run_once()
            require_success(await pair.to_s1.post(f"{survey.path}/extend", json={"seconds": 30}))
            world.time += 60_000
            assert not await pair.scheduler.run_once()
            world.time += 30_000
            await asyncio.gather(pair.scheduler.run_once(), other.scheduler.run_once())
            world.time += 1_000_000
            while (await status(pair, survey))["phase"] != "published":
                await other.scheduler.run_once()
            result = require_success(await other.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [2, 4, 6]
            assert (
                require_success(await pair.to_s2.get("/v1/populations/trial")).json()[
                    "reservations"
                ]
                == 1
            )

    play(work)


def test_same_bytes_again_are_fine_and_other_bytes_are_refused_on_every_worker(
    world: World,
) -> None:
    async def work() -> None:
        async with world.start() as pair, world.start() as other:
            survey = await world.survey(pair)
            device, again = (
                begin_client(survey, 0, 1, world.entropy),
                begin_client(survey, 0, 2, world.entropy),
            )
            other_bytes = from_device_of(device, again)
            early = await send_message(pair.to_s1, survey, device.waiting[0])
            assert isinstance(early, Rejection)
            assert early.why is Reason.EARLY
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            for servers in (pair, other, pair):
                assert isinstance(
                    await send_message(servers.to_s1, survey, device.waiting[0]), Acknowledgement
                )
                refused = await send_message(servers.to_s1, survey, other_bytes)
                assert isinstance(refused, Rejection)
                assert refused.why is Reason.CONFLICT
            now = await status(pair, survey)
            assert (now["responses"], now["rejections"]) == (
                1,
                {"conflict": 2, "early": 1},
            )  # one was counted at `other`
            await other.s1.server.flush_rejections()
            assert (await status(pair, survey))["rejections"] == {"conflict": 3, "early": 1}

    play(work)


class Unwritable(Database):
    """A database whose next writes fail at their end, as on a full disk."""

    def __init__(self, real: Database) -> None:
        self.real, self.fails = real, 0
        self.has_workers = real.has_workers

    def read(self) -> Any:
        return self.real.read()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        async with self.real.write() as tx:
            yield tx
            if self.fails:
                self.fails -= 1
                raise StorageError("the disk is full")

    async def close(self) -> None:
        await self.real.close()


def test_nothing_is_acknowledged_that_was_not_written(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            database = Unwritable(pair.s1.server.database)
            object.__setattr__(pair.s1, "server", replace(pair.s1.server, database=database))
            body = world.devices(survey)[0].waiting[0]
            database.fails = 1
            answer = await pair.to_s1.post(f"{survey.path}/messages", content=encode(body))
            assert (answer.status_code, answer.json()["type"]) == (
                503,
                "urn:faircount:problem:not-now",
            )
            assert (await status(pair, survey))["responses"] == 0
            assert isinstance(await send_message(pair.to_s1, survey, body), Acknowledgement)
            assert (await status(pair, survey))["responses"] == 1

    play(work)


def test_while_s2_is_away_the_status_says_so_and_it_goes_on_when_s2_is_back(world: World) -> None:
    class Away(AggregatorConnection):
        async def send(self, *_: Any) -> Any:
            raise AggregatorError("The aggregator cannot be reached: ConnectError")

    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            await world.answered(pair, survey, world.devices(survey))
            world.time += 30_000
            require_success(await pair.to_s1.post(f"{survey.path}/close"))
            away = Scheduler(pair.s1, Away(pair.to_s2, pair.scheduler.aggregator.clock))
            asked_at = format_time(world.time)
            for tries in (1, 2, 3):
                assert await away.run_once()
                now = await status(pair, survey)
                # Since it was asked first: another attempt does not begin another wait.
                assert now["waiting_since"] == asked_at
                assert (now["waits_for"], now["tries"], now["problem"]) == (
                    "an answer from the aggregator", tries, "The aggregator cannot be reached: ConnectError",
                )  # fmt: skip
                assert not await away.run_once()  # not before the pause is over
                world.time += 1000 * 2**tries
            assert await pair.scheduler.run_once()
            ended = await status(pair, survey)
            assert (ended["phase"], ended["waiting_since"]) == ("published", None)

    play(work)


def test_a_survey_made_again_with_longer_messages_receives_them_on_every_worker(
    world: World,
) -> None:
    async def work() -> None:
        async with world.start() as pair, world.start() as other:
            survey = await world.survey(pair)
            report = begin_client(survey, 0, 1, world.entropy).waiting[0]
            for servers in (pair, other):
                early = await send_message(servers.to_s1, survey, report)
                assert isinstance(early, Rejection)
            require_success(await pair.to_s1.delete(survey.path))
            # Nothing was opened, so an owner may use the id for other parameters.
            keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
            mechanism = Laplace(items=400, epsilon=20.0, users=12, dropouts=4)
            params = propose(mechanism, keys, survey=survey.params.survey, topology=SERVERS)
            require_success(await pair.to_s1.put(survey.path, content=params.published))
            invitation = Invitation.issue(params.digest, world.entropy)
            longer = TrialSurvey(params, (invitation,))
            report = begin_client(longer, 0, 1, world.entropy).waiting[0]
            for servers in (pair, other, other):
                early = await send_message(servers.to_s1, longer, report)
                assert isinstance(early, Rejection)
                assert early.why is Reason.EARLY

    play(work)


def test_a_coordinator_of_many_surveys_keeps_what_writes_them_for_a_few(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_COMMITS", 2)

    async def work() -> None:
        async with world.start() as pair:
            for _ in range(4):
                survey = await world.survey(pair)
                require_success(await pair.to_s1.post(f"{survey.path}/open"))
                devices = await world.answered(pair, survey, world.devices(survey))
                assert all(device.acknowledgements for device in devices)
            assert len(pair.s1.commits) == 2

    play(work)


def test_a_survey_beyond_the_budget_is_refused_before_anything_opens(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            small = require_success(
                await pair.to_s2.put("/v1/populations/small", json={"epsilon": 25.0, "delta": 0.1})
            ).json()
            assert (small["epsilon"], small["spent"]["epsilon"]) == (25.0, 0.0)
            outcomes = []
            for _ in range(2):
                mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
                survey = await set_up(
                    pair.to_s1, pair.to_s2, mechanism, SERVERS, world.entropy, population="small"
                )
                require_success(await pair.to_s1.post(f"{survey.path}/open"))
                await world.answered(pair, survey, world.devices(survey))
                require_success(await pair.to_s1.post(f"{survey.path}/close"))
                await pair.scheduler.run_once()
                outcomes.append(
                    require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
                )
            assert [outcome["phase"] for outcome in outcomes] == ["published", "aborted"]
            assert (outcomes[1]["ending"]["code"], outcomes[1]["spent"]) == ("over_budget", False)
            left = require_success(await pair.to_s2.get("/v1/populations/small")).json()
            assert [entry["status"] for entry in left["surveys"]] == ["spent"]
            raised = await pair.to_s2.put(
                "/v1/populations/small", json={"epsilon": 50.0, "delta": 0.1}
            )
            assert raised.status_code == 409

    play(work)


def test_only_the_rows_of_those_who_send_are_read(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair, users=40)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            devices = [begin_client(survey, at, 0, world.entropy) for at in range(40)]
            read = list[int]()
            load = pair.s1.states.load

            async def counted(*args: Any, **named: Any) -> Any:
                found = await load(*args, **named)
                read.append(sum(1 for _ in found.rows.rows()))
                return found

            pair.s1.states.load = counted  # type: ignore[method-assign]  # to look
            for device in devices:
                await visit_once(pair.to_s1, survey, device, world.entropy)
            await visit_once(pair.to_s1, survey, devices[0], world.entropy)
            assert (await status(pair, survey))["responses"] == 40
            # An invitation; the repeated one finds its report, too.
            # A worker that was alone the first time reads it twice.
            assert len(read) in (41, 42)
            assert (set(read[:-1]), read[-1]) == ({1}, 2)

    play(work)


class Counting(Database):
    """A database that notes how many lines of `state_rows` each answer has."""

    def __init__(self, real: Database) -> None:
        self.real, self.lines = real, list[int]()
        self.has_workers = real.has_workers

    def read(self) -> Any:
        return self._noting(self.real.read)

    def write(self) -> Any:
        return self._noting(self.real.write)

    @asynccontextmanager
    async def _noting(self, block: Callable[[], Any]) -> AsyncIterator[Transaction]:
        async with block() as tx:
            real = tx.fetch_all

            async def all_(statement: str, *values: Any) -> Any:
                found = await real(statement, *values)
                self.lines += [len(found)] * ("state_rows" in statement)
                return found

            tx.fetch_all = all_
            yield tx

    async def close(self) -> None:
        await self.real.close()


@pytest.mark.parametrize("proofs", [False, True])
def test_steps_over_everybody_read_a_page_at_a_time(
    world: World, proofs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claim, answers about proofs, batch, sum and scrubbing read all users, and never more than five at once."""
    monkeypatch.setattr(pages, "PAGE", 5)

    async def work() -> None:
        async with world.start() as pair:
            proven = ServerLaplace(items=["a", "b", "c"], epsilon=40.0, users=12)
            plain = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
            survey = await set_up(
                pair.to_s1, pair.to_s2, proven if proofs else plain, SERVERS, world.entropy
            )
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            begun = world.devices(survey)
            devices = await world.answered(pair, survey, begun)
            noted = [Counting(service.server.database) for service in (pair.s1, pair.s2)]
            for service, database in zip(
                (pair.s1, pair.s2, pair.s2.steps), (*noted, noted[1]), strict=True
            ):
                object.__setattr__(service, "server", replace(service.server, database=database))
            require_success(await pair.to_s1.post(f"{survey.path}/close"))
            await pair.scheduler.run_once()
            result = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert [entry["count"] for entry in result["counts"]] == [2, 4, 6]
            for counting in noted:
                assert (max(counting.lines), sum(counting.lines) > 12) == (5, True)
            told_all = [
                await ask_for_outcome(pair.to_s1, survey, device, world.entropy)
                for device in devices
            ]
            assert all(client.counted for client in told_all)
            other_bytes = from_device_of(begun[0], world.devices(survey)[0])
            again = await send_message(pair.to_s1, survey, other_bytes)
            assert isinstance(again, Rejection)
            assert (
                again.why is Reason.CONFLICT
            )  # the hash of what was sent first is kept, under the new key

    play(work)


def test_an_unused_invitation_is_exchanged_and_a_used_one_is_not(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            used, lost = survey.invitations[:2]
            fresh = Invitation.issue(survey.params.digest, world.entropy)
            await visit_once(
                pair.to_s1, survey, begin_client(survey, 0, 1, world.entropy), world.entropy
            )
            for old, status_code in ((used, 409), (lost, 200), (lost, 200)):
                answer = await pair.to_s1.post(
                    f"{survey.path}/reissue", content=old.access + fresh.access
                )
                assert answer.status_code == status_code
            old_way = await send_message(
                pair.to_s1, survey, begin_client(survey, 1, 1, world.entropy).waiting[0]
            )
            assert isinstance(old_way, Rejection)
            exchanged = replace(survey, invitations=(used, fresh, *survey.invitations[2:]))
            after = await visit_once(
                pair.to_s1, exchanged, begin_client(exchanged, 1, 1, world.entropy), world.entropy
            )
            assert after.acknowledgements
            answered = require_success(await pair.to_s1.get(f"{survey.path}/answered")).content
            assert answered == b"".join(sorted((used.user, fresh.user)))

    play(work)


def test_a_survey_is_deleted_when_it_is_over_and_not_before(world: World) -> None:
    async def work() -> None:
        async with world.start() as pair:
            survey = await world.survey(pair)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            assert (await pair.to_s1.delete(survey.path)).status_code == 409
            require_success(
                await pair.to_s1.post(
                    f"{survey.path}/abort", json={"reason": "a mistake in the question"}
                )
            )
            await pair.scheduler.run_once()
            ended = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (ended["phase"], ended["reason"]) == (
                "aborted",
                "the coordinator (S1) reports: the owner ended the survey: a mistake in the question",
            )
            for client in (pair.to_s1, pair.to_s2):
                assert (await client.delete(survey.path)).status_code == 204
                assert (await client.get(f"{survey.path}/status")).status_code == 404
                assert (
                    await client.put(survey.path, content=survey.params.published)
                ).status_code == 409
            assert not [
                name
                for name in (*pair.s1.server.keys.names(), *pair.s2.server.keys.names())
                if "survey" in name
            ]

    play(work)


def test_an_error_in_one_survey_stops_no_other(world: World) -> None:
    """Whatever the aggregator sends, the coordinator goes on with other surveys, and the status says what is wrong with this one."""

    async def work() -> None:
        async with world.start() as pair:
            surveys = [await world.survey(pair, phase_seconds=()) for _ in range(2)]
            for survey in surveys:
                require_success(await pair.to_s1.post(f"{survey.path}/open"))
                await world.answered(pair, survey, world.devices(survey))
                require_success(await pair.to_s1.post(f"{survey.path}/close"))
            receive_statement = pair.s1.receive_statement

            async def broken(survey: bytes, statement: Any) -> Any:
                if survey == surveys[1].params.survey:
                    return await receive_statement(survey, statement)
                return {}[survey]

            object.__setattr__(pair.s1, "receive_statement", broken)
            assert await pair.scheduler.run_once()
            first, second = [await status(pair, survey) for survey in surveys]
            assert (first["phase"], first["problem"]) == (
                "counting",
                "internal error (KeyError), see the log of the coordinator",
            )
            assert second["phase"] == "published"

    play(work)
