"""Two workers of each server share one PostgreSQL, and callers race over both.

Withdrawals, reissued invitations, enrolments, tokens, surveys handed over, stopped and erased: in
every race nothing is counted twice, nothing that was acknowledged is lost, and what was revoked or
erased is so at both workers.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import Pair, in_process
from trial_survey import (
    TrialSurvey,
    begin_client,
    fetch_survey_keys,
    open_trial,
    register_invitations,
    require_success,
    send_message,
    set_up,
)

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import EXPLICIT, MASKED, SERVERS, Invitation, Topology, encode, propose
from faircount.protocol.wire.messages import Acknowledgement, Message, Reason, Rejection
from faircount.server.common import base
from faircount.server.common.tokens import (
    Scope,
    add_token,
    fresh_token,
    list_tokens,
    revoke_tokens,
    rotate_token,
    token_hash,
)
from faircount.storage.keys import KeyFolder

OPERATOR = "token-of-the-operator"
PEOPLE = 24


@dataclass(frozen=True)
class Workers:
    """Two workers of each server, on the same two databases."""

    first: Pair
    second: Pair

    @property
    def coordinators(self) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        return self.first.to_s1, self.second.to_s1

    @property
    def aggregators(self) -> tuple[httpx.AsyncClient, httpx.AsyncClient]:
        return self.first.to_s2, self.second.to_s2


@pytest.fixture
def start(tmp_path: Path, postgresql_database: Callable[[], str]) -> Callable[[], Any]:
    """Starts both workers of both servers; SQLite has one process, so it is PostgreSQL."""
    databases = (postgresql_database(), postgresql_database())
    tokens = (fresh_token(), fresh_token())

    @asynccontextmanager
    async def run() -> AsyncIterator[Workers]:
        async with (
            in_process(tmp_path, databases=databases, tokens=tokens) as first,
            in_process(tmp_path, databases=databases, tokens=tokens) as second,
        ):
            for server in (first.s1.server, first.s2.server):
                async with server.database.write() as tx:
                    await add_token(tx, OPERATOR, Scope.OPERATOR, name="operator")
            yield Workers(first, second)

    return run


async def open_large(workers: Workers) -> TrialSurvey:
    """A survey that is open, almost without noise; a third of its people may stay away."""
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=PEOPLE, dropouts=PEOPLE // 3)
    first, second = workers.first, workers.second
    survey = await set_up(first.to_s1, second.to_s2, mechanism, SERVERS, SystemEntropy())
    require_success(await second.to_s1.post(f"{survey.path}/open"))
    return survey


async def race(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    """The answers of calls that are all under way at once."""
    return list(await asyncio.gather(*calls))


async def close_and_count(workers: Workers, survey: TrialSurvey) -> dict[str, Any]:
    """Close a survey at both workers at once, play it to its end at both, and return the result."""
    seen = {"phase": "submitting", "attempt": 0}
    closed = await race([s1.post(f"{survey.path}/close", json=seen) for s1 in workers.coordinators])
    assert {answer.status_code for answer in closed} == {200}
    for _ in range(50):
        await race([workers.first.scheduler.run_once(), workers.second.scheduler.run_once()])
        answer = await workers.second.to_s1.get(f"{survey.path}/result")
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("the survey does not end")


def operate(to_server: httpx.AsyncClient, method: str, path: str, body: Any = None) -> Any:
    """A call of the operator."""
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    return to_server.request(method, path, json=body, headers=headers)


def test_withdrawals_race_with_answers_and_nobody_is_counted_who_withdrew(
    start: Callable[[], Any],
) -> None:
    """Everybody sends the report to both workers, every third person a withdrawal as well."""

    async def work() -> None:
        async with start() as workers:
            survey = await open_large(workers)
            role = SERVERS.client
            devices = [begin_client(survey, at, 0, SystemEntropy()) for at in range(PEOPLE)]
            leavers = [role.withdraw(device).waiting[0] for device in devices[::3]]
            strangers = [
                role.withdraw(begin_client(survey, at, 0, SystemEntropy())).waiting[0]
                for at in range(1, PEOPLE, 3)
            ]
            reports = [device.waiting[0] for device in devices]
            answers = await race(
                [
                    send_message(to_s1, survey, message)
                    for message in [*reports, *leavers]
                    for to_s1 in workers.coordinators
                ]
            )
            # The owner has every invitation, and withdraws from another device.
            refused = await race(
                [
                    send_message(to_s1, survey, message)
                    for message in strangers
                    for to_s1 in workers.coordinators
                ]
            )
            assert {answer.why for answer in refused} == {Reason.INVITATION_USED}
            withdrawals = answers[2 * PEOPLE :]
            assert all(isinstance(answer, Acknowledgement) for answer in withdrawals)
            # A report after its own withdrawal is rejected; all others are acknowledged.
            stayed = [at for at in range(PEOPLE) if at % 3]
            kept = [answers[2 * at + worker] for at in stayed for worker in (0, 1)]
            assert all(isinstance(answer, Acknowledgement) for answer in kept)
            status = (await workers.second.to_s1.get(f"{survey.path}/status")).json()
            assert status["responses"] == len(stayed)
            assert status["withdrawn"] <= len(leavers)
            result = await close_and_count(workers, survey)
            assert (result["included"], round(result["counts"][0]["count"])) == (
                len(stayed),
                len(stayed),
            )

    asyncio.run(work())


def test_an_invitation_is_exchanged_or_used_and_never_both(start: Callable[[], Any]) -> None:
    """Two exchanges and one answer for every invitation, all at once, over both workers."""

    async def work() -> None:
        async with start() as workers:
            survey = await open_large(workers)
            digest = survey.params.digest
            fresh = [
                (
                    Invitation.issue(digest, SystemEntropy()),
                    Invitation.issue(digest, SystemEntropy()),
                )
                for _ in range(PEOPLE)
            ]
            exchange = f"{survey.path}/reissue"

            async def play(at: int) -> tuple[list[bool], bool]:
                """Which of the two exchanges succeeded, and whether the answer did."""
                old = survey.invitations[at].access
                report = begin_client(survey, at, 0, SystemEntropy()).waiting[0]
                first, second, answer = await race(
                    [
                        workers.first.to_s1.post(exchange, content=old + fresh[at][0].access),
                        workers.second.to_s1.post(exchange, content=old + fresh[at][1].access),
                        send_message(workers.coordinators[at % 2], survey, report),
                    ]
                )
                exchanged = [found.status_code == 200 for found in (first, second)]
                return exchanged, isinstance(answer, Acknowledgement)

            outcomes = await race([play(at) for at in range(PEOPLE)])
            for exchanged, is_answered in outcomes:
                assert sum(exchanged) + is_answered == 1
            # The new invitations are good, once each, and the aggregator learns of them.
            winners = [
                pair[0] if exchanged[0] else pair[1]
                for pair, (exchanged, is_answered) in zip(fresh, outcomes, strict=True)
                if not is_answered
            ]
            renewed = TrialSurvey(survey.params, tuple(winners))
            for part, winner in enumerate(winners, 1):
                entry = winner.user + winner.enrolment_mac_key
                path = f"{survey.path}/invited/{part}"
                require_success(await workers.second.to_s2.put(path, content=entry))
            reports = [
                begin_client(renewed, at, 1, SystemEntropy()).waiting[0]
                for at in range(len(winners))
            ]
            answers = await race(
                [
                    send_message(to_s1, survey, report)
                    for report in reports
                    for to_s1 in workers.coordinators
                ]
            )
            assert all(isinstance(answer, Acknowledgement) for answer in answers)
            result = await close_and_count(workers, survey)
            counts = [round(entry["count"]) for entry in result["counts"]]
            assert counts == [PEOPLE - len(winners), len(winners), 0]

    asyncio.run(work())


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED], ids=str)
def test_of_two_devices_with_one_invitation_one_enrols(
    topology: Topology, start: Callable[[], Any]
) -> None:
    async def work() -> None:
        async with start() as workers:
            mechanism = Laplace(items=2, users=8, epsilon=20.0, dropouts=2)
            survey = await set_up(
                workers.first.to_s1, workers.first.to_s2, mechanism, topology, SystemEntropy(),
                minimum=6,
            )  # fmt: skip
            require_success(await workers.second.to_s1.post(f"{survey.path}/open"))
            devices = [
                [begin_client(survey, at, 0, SystemEntropy()) for _ in range(4)] for at in range(8)
            ]

            async def enrol(at: int) -> list[Message]:
                return await race(
                    [
                        send_message(workers.coordinators[number % 2], survey, device.waiting[0])
                        for number, device in enumerate(devices[at])
                    ]
                )

            for answers in await race([enrol(at) for at in range(8)]):
                refused = [answer for answer in answers if isinstance(answer, Rejection)]
                assert len(refused) == 3
                assert {answer.why for answer in refused} == {Reason.INVITATION_USED}
            status = (await workers.second.to_s1.get(f"{survey.path}/status")).json()
            assert (status["responses"], status["withdrawn"]) == (8, 0)

    asyncio.run(work())


def test_tokens_replaced_and_revoked_at_once_leave_at_most_one_and_old_ones_never_return(
    start: Callable[[], Any],
) -> None:
    """A backup may hold any token that ever was valid: only those in the anchor stay refused."""

    async def work() -> None:
        async with start() as workers:
            servers = (workers.first.s2.server, workers.second.s2.server)
            async with servers[0].database.write() as tx:
                await add_token(tx, "first-token", Scope.OWNER, name="Ada")
                (holder,) = [token.id for token in await list_tokens(tx) if token.name == "Ada"]

            async def rotate(number: int) -> str:
                server = servers[number % 2]
                async with server.database.write() as tx:
                    return await rotate_token(tx, server.anchor, holder)

            async def revoke(number: int) -> str:
                server = servers[number % 2]
                async with server.database.write() as tx:
                    await revoke_tokens(tx, server.anchor, holder)
                return ""

            made = ["first-token"]
            for _ in range(6):
                calls = [rotate(number) for number in range(4)] + [revoke(0), revoke(1)]
                made += filter(None, await race(calls))
            async with servers[1].database.read() as tx:
                rows = await tx.fetch_all(
                    "SELECT hash FROM tokens WHERE holder = ? AND revoked_at IS NULL",
                    bytes.fromhex(holder),
                )
            valid = {bytes(row["hash"]) for row in rows}
            assert len(valid) <= 1
            dead = [token for token in made if token_hash(token) not in valid]
            path = "/v1/populations/none"
            statuses = await race(
                [
                    to_s2.get(path, headers={"Authorization": f"Bearer {token}"})
                    for token in dead
                    for to_s2 in workers.aggregators
                ]
            )
            assert {answer.status_code for answer in statuses} == {401}
            # As if a backup of any moment were restored: every old token is in the database again.
            async with servers[0].database.write() as tx:
                await tx.execute("DELETE FROM tokens WHERE holder = ?", bytes.fromhex(holder))
                for token in dead:
                    await add_token(tx, token, Scope.OWNER, holder=bytes.fromhex(holder))
            statuses = await race(
                [
                    to_s2.get(path, headers={"Authorization": f"Bearer {token}"})
                    for token in dead
                    for to_s2 in workers.aggregators
                ]
            )
            assert {answer.status_code for answer in statuses} == {401}

    asyncio.run(work())


def test_a_token_revoked_while_a_body_arrives_is_refused(start: Callable[[], Any]) -> None:
    """Whoever has stolen a token begins a call before it is revoked, and ends it afterwards."""

    async def work() -> None:
        async with start() as workers:
            survey = await open_trial(workers.first.to_s1, workers.first.to_s2)
            server = workers.first.s1.server
            revoked = asyncio.Event()
            begun = asyncio.Event()

            async def slow_body() -> AsyncIterator[bytes]:
                yield b'{"reason":'
                begun.set()
                await revoked.wait()
                yield b' "mine now"}'

            path = f"{survey.path}/abort"
            call = asyncio.create_task(workers.second.to_s1.post(path, content=slow_body()))
            await begun.wait()
            # The call is past its first look at the token when it waits for the rest of the body.
            await asyncio.sleep(0.3)
            async with server.database.write() as tx:
                (holder,) = [token.id for token in await list_tokens(tx) if token.surveys]
                await revoke_tokens(tx, server.anchor, holder)
            revoked.set()
            assert (await call).status_code == 401
            status = (await workers.first.to_s1.get(f"{survey.path}/status")).json()
            assert status["phase"] == "submitting"

    asyncio.run(work())


def test_a_survey_is_handed_to_one_of_many(start: Callable[[], Any]) -> None:
    async def work() -> None:
        async with start() as workers:
            survey = await open_trial(workers.first.to_s1, workers.first.to_s2)
            receivers = [fresh_token() for _ in range(6)]
            async with workers.first.s1.server.database.write() as tx:
                for number, token in enumerate(receivers):
                    await add_token(tx, token, Scope.OWNER, name=f"receiver-{number}")
                ids = {token.name: token.id for token in await list_tokens(tx)}
            extend = f"{survey.path}/extend"
            calls = list[Any]()
            for number in range(6):
                to_s1 = workers.coordinators[number % 2]
                body = {"to": ids[f"receiver-{number}"]}
                calls.append(to_s1.post(f"{survey.path}/owner", json=body))
                calls.append(to_s1.post(extend, json={"seconds": 1}))
            answers = await race(calls)
            handed = [answer.status_code for answer in answers[::2]]
            assert Counter(handed) == {204: 1, 404: 5}
            receiver = receivers[handed.index(204)]
            # The old owner has nothing to say any more, and the new one has, at both workers.
            for to_s1 in workers.coordinators:
                assert (await to_s1.post(extend, json={"seconds": 1})).status_code == 404
                headers = {"Authorization": f"Bearer {receiver}"}
                now = await to_s1.post(extend, json={"seconds": 1}, headers=headers)
                assert now.status_code in (200, 409)

    asyncio.run(work())


def test_a_survey_stopped_while_people_answer_ends_once_and_erased_stays_erased(
    start: Callable[[], Any],
) -> None:
    """Reports, withdrawals, the owner's close and both operators' stop, all at once; then erase."""

    async def work() -> None:
        async with start() as workers:
            survey = await open_large(workers)
            operated = f"/v1/operator{survey.path[3:]}"
            devices = [begin_client(survey, at, 0, SystemEntropy()) for at in range(PEOPLE)]
            reports = [device.waiting[0] for device in devices]
            calls = [
                send_message(workers.coordinators[at % 2], survey, report)
                for at, report in enumerate(reports)
            ]
            stops = [
                operate(to_server, "POST", f"{operated}/stop", {"reason": "a court order"})
                for to_server in (*workers.coordinators, *workers.aggregators)
            ]
            seen = {"phase": "submitting", "attempt": 0}
            close = workers.second.to_s1.post(f"{survey.path}/close", json=seen)
            talks = [pair.scheduler.run_once() for pair in (workers.first, workers.second)]
            answers = await race([*calls, *stops, close, *talks])
            stopped = answers[PEOPLE : PEOPLE + 4]
            assert {answer.status_code for answer in stopped} <= {204, 409}
            for _ in range(50):
                await race([pair.scheduler.run_once() for pair in (workers.first, workers.second)])
                result = await workers.second.to_s1.get(f"{survey.path}/result")
                if result.status_code == 200:
                    break
                await asyncio.sleep(0.05)
            assert result.json()["phase"] == "aborted"
            ledger = (await workers.first.to_s2.get("/v1/populations/trial")).json()
            assert len(ledger["surveys"]) <= 1
            await _erase_while_people_write(workers, survey, reports, operated)

    asyncio.run(work())


async def _erase_while_people_write(
    workers: Workers, survey: TrialSurvey, reports: Sequence[Message], operated: str
) -> None:
    """Erase the survey while messages arrive; nothing of it may be left."""
    garbage = [
        to_s1.post(f"{survey.path}/messages", content=b"?") for to_s1 in workers.coordinators
    ]
    late = [
        to_s1.get(f"{survey.path}/{what}")
        for to_s1 in workers.coordinators
        for what in ("params", "status", "result")
    ]
    writes = [
        _post_quietly(workers.coordinators[at % 2], survey, report)
        for at, report in enumerate(reports)
    ]
    erased = await race(
        [
            # Both at the first worker of the coordinator: the second one is not told.
            *(operate(workers.first.to_s1, "DELETE", operated) for _ in range(2)),
            *(operate(to_server, "DELETE", operated) for to_server in workers.aggregators),
            *writes,
            *late,
            *garbage,
        ]
    )
    assert Counter(answer.status_code for answer in erased[:2]) == {204: 1, 404: 1}
    assert Counter(answer.status_code for answer in erased[2:4]) == {204: 1, 404: 1}
    # Whoever comes now is told the same by both workers, although both knew the survey.
    for to_s1 in workers.coordinators:
        assert await _post_quietly(to_s1, survey, reports[0]) == 404
        for what in ("params", "status", "result", "operators"):
            assert (await to_s1.get(f"{survey.path}/{what}")).status_code == 404
    for pair in (workers.first, workers.second):
        for server in (pair.s1.server, pair.s2.server):
            await server.flush_rejections()
    for server in (workers.first.s1.server, workers.first.s2.server):
        assert await _rows_of(server.database, survey.params.survey) == {}
        left = [name for name in server.keys.names() if survey.params.survey.hex() in name]
        assert left == []


async def _post_quietly(to_s1: httpx.AsyncClient, survey: TrialSurvey, message: Message) -> int:
    return (await to_s1.post(f"{survey.path}/messages", content=encode(message))).status_code


async def _rows_of(database: Any, survey: bytes) -> dict[str, int]:
    """How many rows of a survey every table has, the empty ones left out."""
    columns = {"surveys": "id"}
    found = dict[str, int]()
    async with database.read() as tx:
        for table in ("surveys", "state_rows", "parts", "rejections", "outbox", "started_steps"):
            column = columns.get(table, "survey")
            rows = await tx.fetch_all(f"SELECT {column} FROM {table} WHERE {column} = ?", survey)
            found[table] = len(rows)
    return {table: rows for table, rows in found.items() if rows}


def test_a_survey_created_many_times_at_once_exists_once(start: Callable[[], Any]) -> None:
    """An owner's program repeats its calls after a timeout, while the first ones are under way."""

    async def work() -> None:
        async with start() as workers:
            first = workers.first
            keys = await fetch_survey_keys(first.to_s1, first.to_s2)
            mechanism = Laplace(items=3, epsilon=20.0, users=6, dropouts=2)
            params = propose(
                mechanism, keys, survey=SystemEntropy().bytes(16), topology=SERVERS,
                population="trial",
            )  # fmt: skip
            path = f"/v1/surveys/{params.survey.hex()}"
            budget = {"epsilon": 1000.0, "delta": 0.9}
            opened = await race(
                [s2.put("/v1/populations/trial", json=budget) for s2 in 3 * workers.aggregators]
            )
            assert {answer.status_code for answer in opened} <= {200, 201}
            created = await race(
                [s2.put(path, content=params.published) for s2 in 3 * workers.aggregators]
                + [s1.put(path, content=params.published) for s1 in 3 * workers.coordinators]
            )
            assert Counter(answer.status_code for answer in created[:6]) == {201: 1, 200: 5}
            assert Counter(answer.status_code for answer in created[6:]) == {201: 1, 200: 5}
            invitations = [Invitation.issue(params.digest, SystemEntropy()) for _ in range(6)]
            survey = TrialSurvey(params, tuple(invitations))
            await race(
                [register_invitations(pair.to_s1, pair.to_s2, survey)
                 for pair in 3 * (workers.first, workers.second)]
            )  # fmt: skip
            status = (await workers.second.to_s1.get(f"{path}/status")).json()
            assert status["invited"] == 6

    asyncio.run(work())


def test_a_draft_that_is_deleted_while_it_is_made_again_loses_no_list(
    start: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list that was acknowledged can be opened, or the survey does not exist any more."""
    destroy = KeyFolder.destroy

    def destroy_slowly(keys: KeyFolder, name: str) -> None:
        time.sleep(0.1)
        destroy(keys, name)

    destroy_state_keys = base._destroy_state_keys

    async def destroy_late(server: base.Server, survey: bytes) -> None:
        await asyncio.sleep(0.3)
        await destroy_state_keys(server, survey)

    async def work() -> None:
        async with start() as workers:
            await _delete_and_make_again(workers)
            # A disk that takes its time, so that the other worker is faster.
            monkeypatch.setattr(KeyFolder, "destroy", destroy_slowly)
            await _delete_and_make_again(workers)
            # A worker that is held up between both steps of the deletion.
            monkeypatch.setattr(base, "_destroy_state_keys", destroy_late)
            await _delete_and_make_again(workers)

    asyncio.run(work())


async def _delete_and_make_again(workers: Workers) -> None:
    first, second = workers.first, workers.second
    mechanism = Laplace(items=3, epsilon=20.0, users=6, dropouts=2)
    survey = await set_up(first.to_s1, first.to_s2, mechanism, SERVERS, SystemEntropy())
    access = b"".join(invitation.access for invitation in survey.invitations)
    told = (await first.to_s2.get(f"{survey.path}/status")).json()

    async def make_again() -> int:
        await second.to_s1.put(survey.path, content=survey.params.published)
        signature = bytes.fromhex(told["operator_signature"])
        await second.to_s1.put(f"{survey.path}/operators", content=signature)
        listed = await second.to_s1.put(f"{survey.path}/invited/0", content=access)
        return listed.status_code

    deleted, listed = await race([first.to_s1.delete(survey.path), make_again()])
    assert deleted.status_code == 204
    opened = await second.to_s1.post(f"{survey.path}/open", json={"invited": 6})
    assert (listed, opened.status_code) in ((200, 200), (200, 404), (404, 404))
