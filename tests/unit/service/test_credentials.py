"""Every call with wrong, missing, expired and other people's credentials. A new call is tested without being named."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import Pair, in_process
from starlette.routing import Route
from trial_survey import TrialSurvey, done, set_up

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, propose
from faircount.service import offers
from faircount.service.aggregator_app import aggregator_app
from faircount.service.coordinator_app import coordinator_app
from faircount.service.tokens import Scope, add_token
from faircount.storage.keys import KeyFolder

TAKE = offers.take

OPEN_TO_ALL = {
    ("s1", "GET", "/v1/surveys/{survey}/params"),
    ("s1", "POST", "/v1/surveys/{survey}/messages"),
    ("s1", "GET", "/v1/surveys/{survey}/status"),
    ("s1", "GET", "/v1/surveys/{survey}/events"),
    ("s1", "GET", "/v1/surveys/{survey}/result"),
}
SIGNED = {
    ("s2", "POST", "/v1/surveys/{survey}/messages"),
    ("s2", "PUT", "/v1/surveys/{survey}/messages/{message}/{part}"),
}
OPERATOR = {("s2", "POST", "/v1/populations/{population}/receipts")}


def calls(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Server, method and path of every call under /v1."""
    for name, app in (("s1", coordinator_app(pair.s1)), ("s2", aggregator_app(pair.s2))):
        for route in app.routes:
            if isinstance(route, Route) and route.path.startswith("/v1/"):
                for method in sorted(route.methods or ()):
                    if method != "HEAD":
                        yield name, method, route.path


async def tried(pair: Pair, call: tuple[str, str, str], survey: TrialSurvey, token: str | None) -> httpx.Response:
    name, method, path = call
    client = pair.to_s1 if name == "s1" else pair.to_s2
    filled = path.format(survey=survey.params.survey.hex(), part="7", population="trial", message="ab" * 32)
    headers = {"Authorization": "" if token is None else f"Bearer {token}"}
    return await client.request(method, filled, content=_body(survey, path), headers=headers)


def _body(survey: TrialSurvey, path: str) -> bytes:
    """A body that each call would take from the right caller."""
    known = {
        "{survey}": survey.params.published,
        "guests/{part}": bytes(48),
        "invited/{part}": bytes(32),
        "reissue": bytes(64),
        "extend": b'{"seconds": 5}',
        "populations/{population}": b'{"epsilon": 1, "delta": 0.1}',
        "receipts": b'{"receipts": []}',
    }
    return next((body for end, body in known.items() if path.endswith(end)), b"{}")


async def prepared(pair: Pair) -> TrialSurvey:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SeededStream(2), phases=(60,))
    for server in (pair.s1.server, pair.s2.server):
        async with server.database.write() as tx:
            await add_token(tx, "another-owner", Scope.OWNER)
            await add_token(tx, "operator", Scope.OPERATOR)
            await add_token(tx, "expired", Scope.OWNER, expires_at=server.clock() - 1)
            await add_token(tx, "expired operator", Scope.OPERATOR, expires_at=server.clock() - 1)
    return survey


def test_no_call_is_answered_without_the_right_token(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepared(pair)
            closed = [each for each in calls(pair) if each not in OPEN_TO_ALL | SIGNED]
            assert len(closed) >= 19
            before = (await pair.to_s1.get(f"{survey.path}/status")).json()
            for call in closed:
                for token in (
                    None,
                    "",
                    "wrong",
                    "expired",
                    "expired operator",
                    "x" * 5000,
                    pair.owner_tokens[1 if call[0] == "s1" else 0],
                ):
                    answer = await tried(pair, call, survey, token)
                    assert answer.status_code == 401, (call, token, answer.text)
                    assert answer.headers["content-type"] == "application/problem+json"
                other = pair.owner_tokens[call[0] == "s2"] if call in OPERATOR else "operator"
                assert (await tried(pair, call, survey, other)).status_code == 403, call
            assert (await pair.to_s1.get(f"{survey.path}/status")).json() == before

    asyncio.run(work())


def test_another_owner_sees_and_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepared(pair)
            before = (await pair.to_s1.get(f"{survey.path}/status")).json()
            about_it = [
                each
                for each in calls(pair)
                if each not in OPEN_TO_ALL | SIGNED | OPERATOR and not each[2].endswith(("/offers", "/receipts"))
            ]
            assert len(about_it) >= 15
            for call in about_it:
                answer = await tried(pair, call, survey, "another-owner")
                assert answer.status_code in (404, 409), (call, answer.status_code, answer.text)
            assert (await pair.to_s1.get(f"{survey.path}/status")).json() == before
            theirs = await pair.to_s1.get(
                "/v1/receipts?population=trial", headers={"Authorization": "Bearer another-owner"}
            )
            assert theirs.json() == {"receipts": []}

    asyncio.run(work())


def test_s2_answers_nobody_but_s1(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepared(pair)
            for token in (None, "operator", pair.owner_tokens[1]):
                for call in SIGNED:
                    assert (await tried(pair, call, survey, token)).status_code == 401

    asyncio.run(work())


def test_an_offer_is_used_by_its_owner_and_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepared(pair)
            mechanism = survey.params.mechanism
            again = propose(mechanism, survey.params.keys, survey=bytes(16), topology=SERVERS, population="trial")
            path = f"/v1/surveys/{again.survey.hex()}"
            assert (await pair.to_s2.put(path, content=again.published)).status_code == 409
            done(await pair.to_s1.post(f"{survey.path}/open"))
            assert (await pair.to_s1.put(path, content=again.published)).status_code == 409

    asyncio.run(work())


async def forgets(tx: Any, keys: Any, caller: Any, params: Any, mine: bytes) -> offers.Offer:
    """`offers.take` of a server that is then taken back to before it: its database holds the offer as unused again."""
    row = await tx.one("SELECT sealed FROM offers WHERE id = ?", mine)
    found = await TAKE(tx, keys, caller, params, mine)
    await tx.run("UPDATE offers SET sealed = ?, used_by = NULL WHERE id = ?", row["sealed"], mine)
    return found


def test_a_value_serves_one_survey_even_if_a_server_was_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database was put back, and it had crashed before it destroyed the offer's key: the anchor still knows."""
    monkeypatch.setattr(offers, "take", forgets)
    monkeypatch.setattr(KeyFolder, "destroy", lambda self, name: None)

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepared(pair)
            path = f"/v1/surveys/{bytes(16).hex()}"
            again = replace(survey.params, survey=bytes(16)).published
            answer = await pair.to_s2.put(path, content=again)
            assert (answer.status_code, "used this value" in answer.text) == (409, True)
            done(await pair.to_s1.post(f"{survey.path}/open"))
            done(await pair.to_s1.put(path, content=again))
            done(await pair.to_s1.put(f"{path}/invited/0", content=bytes(range(256))))
            answer = await pair.to_s1.post(f"{path}/open")
            assert (answer.status_code, "used this value" in answer.text) == (409, True)

    asyncio.run(work())


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/surveys/zz/status", "/v1/surveys/00/status", "/v2/offers"])
def test_what_is_not_there_is_a_problem_too(tmp_path: Path, path: str) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            answer = await pair.to_s2.get(path)
            assert answer.status_code == 404
            assert answer.json()["type"] == "urn:faircount:problem:unknown"

    asyncio.run(work())
