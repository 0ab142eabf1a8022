"""Strange times, numbers and headers are refused in a sentence; none becomes an internal error."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import in_process
from trial_survey import begin_client, open_trial, require_success, visit_once

from faircount.client.calls import RemoteServer
from faircount.core.entropy import SeededStream
from faircount.core.errors import RemoteError, StorageError
from faircount.dashboard.progress import predict_too_few
from faircount.owner.remote import BothServers
from faircount.protocol.wire.messages import Rejection
from faircount.protocol.wire.signing import SigningKey
from faircount.server.common.clock import format_time
from faircount.server.common.problems import LOST, problem_type
from faircount.server.common.signed_requests import LATEST_TIME, TIME, read_time
from faircount.server.coordinator.aggregator_connection import (
    AggregatorConnection,
    AggregatorError,
    LostError,
)
from faircount.server.coordinator.outbox import Scheduler, public_sentence

KEY = SigningKey.generate(SeededStream(1))
DEEP = b"[" * 200_000
STRANGE_TIMES = ["9" * 30, "9" * 5000, "-1", "1e3", "", "now", "1_000", "²", str(LATEST_TIME + 1)]


def ask(*answers: httpx.Response, is_authentic: bool = False) -> AggregatorConnection:
    """A connection that has got these answers, the last one again and again."""
    waiting = list(answers)

    def answer(_: httpx.Request) -> httpx.Response:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    async def work() -> AggregatorConnection:
        async with httpx.AsyncClient(
            transport=httpx.MockTransport(answer), base_url="http://s2"
        ) as client:
            connection = AggregatorConnection(
                client, lambda: 1_800_000_000_000, is_authentic=is_authentic
            )
            await connection.send(KEY, bytes(16), Rejection(1), 8)
            return connection

    return asyncio.run(work())


@pytest.mark.parametrize("time", STRANGE_TIMES)
def test_a_strange_time_of_the_aggregator_is_an_answer_that_cannot_be_used(time: str) -> None:
    """An `OverflowError` in its place would come again with every try, for ever."""
    wrong_time = httpx.Response(401, headers=[(TIME.encode(), time.encode("latin-1"))])
    with pytest.raises(AggregatorError, match="a time that is not valid"):
        ask(wrong_time)


def test_the_last_time_of_all_is_a_time() -> None:
    wrong_time = httpx.Response(401, headers={TIME: str(LATEST_TIME)})
    assert ask(wrong_time, httpx.Response(200)).skew == LATEST_TIME - 1_800_000_000_000
    assert read_time("0") == 0


@pytest.mark.parametrize(
    "body",
    [DEEP, b'{"detail":' + DEEP, b"[]", b"\xff", b'{"type": [1], "detail": {"a": 1}}', b"null"],
)
def test_a_strange_problem_of_the_aggregator_is_an_answer_that_cannot_be_used(body: bytes) -> None:
    with pytest.raises(AggregatorError, match="answered 500"):
        ask(httpx.Response(500, content=body))


@pytest.mark.parametrize("is_authentic", [False, True])
def test_an_unsigned_ending_is_believed_from_the_aggregator_only(is_authentic: bool) -> None:
    """Without TLS anybody in between can answer so, and a single answer would end a survey."""
    lost = httpx.Response(410, json={"type": problem_type(LOST), "detail": "restored"})
    with pytest.raises(AggregatorError, match="answered 410") as raised:
        ask(lost, is_authentic=is_authentic)
    assert isinstance(raised.value, LostError) == is_authentic


def test_a_survey_goes_on_after_an_ending_that_nobody_signed(tmp_path: Path) -> None:
    lost = httpx.Response(410, json={"type": problem_type(LOST), "detail": "restored"})
    time = 1_800_000_000_000

    async def work() -> None:
        nonlocal time
        entropy = SeededStream(3)
        async with (
            in_process(tmp_path, lambda: time) as pair,
            httpx.AsyncClient(
                transport=httpx.MockTransport(lambda _: lost), base_url="http://s2"
            ) as in_between,
        ):
            survey = await open_trial(pair.to_s1, pair.to_s2)
            for place in range(6):
                device = begin_client(survey, place, place % 3, entropy)
                await visit_once(pair.to_s1, survey, device, entropy)
            require_success(await pair.to_s1.post(f"{survey.path}/close"))
            forger = Scheduler(pair.s1, AggregatorConnection(in_between, lambda: time))
            await forger.run_once()
            status = (await pair.to_s1.get(f"{survey.path}/status")).json()
            assert (status["phase"], status["problem"]) == (
                "counting",
                "the aggregator answered 410",
            )
            time += 600_000
            await pair.scheduler.run_once()
            ended = require_success(await pair.to_s1.get(f"{survey.path}/result")).json()
            assert (ended["phase"], ended["included"]) == ("published", 6)

    asyncio.run(work())


def test_words_of_the_aggregator_go_to_the_log_and_not_to_the_status() -> None:
    detail = json.dumps({"detail": "/var/lib/secret \ud800 \x1b[2J"}).encode()
    with pytest.raises(AggregatorError) as caught:
        ask(httpx.Response(503, content=detail))
    assert public_sentence(caught.value) == "the aggregator answered 503"
    assert caught.value.detail == r"/var/lib/secret \ud800 \x1b[2J"


def test_the_status_shows_no_path_of_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2)
            require_success(await pair.to_s1.post(f"{survey.path}/abort", json={"reason": ""}))

            async def fail(*_: Any) -> Any:
                raise StorageError(f"{tmp_path}/anchor/lock cannot be written")

            monkeypatch.setattr(AggregatorConnection, "send", fail)
            assert await pair.scheduler.run_once()
            shown = await pair.to_s1.get(f"{survey.path}/status")
            assert shown.json()["problem"] == "the coordinator cannot write now, see its log"
            assert str(tmp_path) not in shown.text

    asyncio.run(work())


@pytest.mark.parametrize("milliseconds", [2**53 * 1000, -(2**62), 10**30])
def test_a_time_beyond_the_calendar_is_its_last_moment(milliseconds: int) -> None:
    assert format_time(milliseconds) == "9999-12-31T23:59:59.999Z"


def test_a_phase_may_last_longer_than_the_calendar(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2, phase_seconds=(2**52,))
            status = require_success(await pair.to_s1.get(f"{survey.path}/status")).json()
            assert status["closes_at"] == "9999-12-31T23:59:59.999Z"

    asyncio.run(work())


STRANGE_HEADERS = [
    (b"host", b"["),
    (b"host", b"a b/[::1"),
    (b"host", b"\xff"),
    (b"content-length", b"\xb2"),
    (b"content-length", b"9" * 5000),
    (b"authorization", b"Bearer \xff\xfe"),
    (b"faircount-time", b"9" * 5000),
    (b"faircount-nonce", b"\xb2" * 16),
    (b"faircount-signature", b"\xff"),
    (b"content-digest", b"sha-256=:\xff:"),
    (b"if-none-match", b"\xff"),
    (b"accept", b"\xff" * 100),
]


@pytest.mark.parametrize(
    "header", STRANGE_HEADERS, ids=lambda header: f"{header[0]} {header[1]!r}"[:40]
)
def test_strange_headers_are_no_internal_error(tmp_path: Path, header: tuple[bytes, bytes]) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2)
            paths = ("messages", "status", "params", "result", "invited/0", "status/")
            for client in (pair.to_s1, pair.to_s2):
                for path in paths:
                    for method in ("GET", "POST", "PUT"):
                        request = client.build_request(
                            method, f"{survey.path}/{path}", content=b"x"
                        )
                        kept = [
                            pair_ for pair_ in request.headers.raw if pair_[0].lower() != header[0]
                        ]
                        strange = httpx.Request(
                            method, request.url, headers=[*kept, header], content=b"x"
                        )
                        answer = await client.send(strange)
                        assert answer.status_code < 500, (method, path)

    asyncio.run(work())


STATUS: dict[str, Any] = {
    "phase": "submitting",
    "attempt": 0,
    "responses": 3,
    "withdrawn": 1,
    "invited": 8,
    "minimum": 5,
    "opened_at": "2027-01-15T08:00:00.000Z",
    "since": "2027-01-15T08:00:00.000Z",
    "closes_at": "2027-01-16T08:00:00.000Z",
    "held_since": None,
    "waits_for": "users",
    "next": "",
    "waiting_since": None,
    "tries_again_at": None,
    "problem": "",
    "rejections": {"late": 1},
}


def owner_of(body: bytes) -> BothServers:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    http = httpx.Client(transport=transport)
    return BothServers(RemoteServer("http://s1", http=http), RemoteServer("http://s2", http=http))


class NoParameters:
    """All that the calls need of parameters."""

    survey = bytes(16)
    population = "people"


PARAMS: Any = NoParameters()


@pytest.mark.parametrize(
    "change",
    [
        {"responses": "three"},
        {"responses": -1},
        {"responses": 10**30},
        {"responses": True},
        {"phase": "unheard of"},
        {"phase": None},
        {"closes_at": "20270115"},
        {"closes_at": "99999-01-15T08:00:00Z"},
        {"closes_at": 5},
        {"held_since": 5},
        {"since": None},
        {"waiting_since": 5},
        {"withdrawn": -1},
        {"opened_at": "2027-01-15T08:00:00"},
        {"rejections": {"late": "many"}},
        {"rejections": []},
        {"waits_for": "x" * 100_000},
    ],
    ids=str,
)
def test_an_owner_refuses_a_status_that_makes_no_sense(change: dict[str, Any]) -> None:
    with pytest.raises(RemoteError, match="makes no sense"):
        owner_of(json.dumps(STATUS | change).encode()).status(PARAMS)


@pytest.mark.parametrize("body", [DEEP, b"[]", b"7", b'{"spent": 1}', b'{"signing_key": "xyz"}'])
def test_an_owner_refuses_answers_of_another_shape(body: bytes) -> None:
    owner = owner_of(body)
    calls = [
        lambda: owner.status(PARAMS),
        lambda: owner.aggregator_status(PARAMS),
        lambda: owner.request(PARAMS, "open"),
        lambda: owner.budget("people"),
        lambda: owner.reservations(PARAMS),
        lambda: owner.accepted_places(PARAMS),
        owner.survey_keys,
    ]
    for call in calls:
        with pytest.raises(RemoteError):
            call()


def test_an_owner_reads_a_sensible_status() -> None:
    found = owner_of(json.dumps(STATUS).encode()).status(PARAMS)
    assert found == STATUS
    backwards = {**STATUS, "closes_at": STATUS["opened_at"]}
    assert predict_too_few(backwards) is None
    assert predict_too_few({**STATUS, "opened_at": None}) is None
