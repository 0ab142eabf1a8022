"""Every call with wrong, missing, expired and other owners' credentials.

The calls are read from the routes, so a new call is tested as well.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import Pair, in_process
from starlette.routing import Route
from trial_survey import TrialSurvey, require_success, set_up

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, propose
from faircount.protocol.wire.codec import Party
from faircount.server.aggregator.app import aggregator_app
from faircount.server.common import survey_keys
from faircount.server.common.tokens import Scope, add_token
from faircount.server.coordinator.app import coordinator_app
from faircount.storage.keys import KeyFolder

USE_SURVEY_KEYS = survey_keys.use

OPEN_TO_ALL = {
    ("s1", "GET", "/v1/surveys/{survey}/params"),
    ("s1", "POST", "/v1/surveys/{survey}/messages"),
    ("s1", "GET", "/v1/surveys/{survey}/status"),
    ("s1", "GET", "/v1/surveys/{survey}/events"),
    ("s1", "GET", "/v1/surveys/{survey}/result"),
    ("s1", "GET", "/v1/surveys/{survey}/operators"),
    ("s1", "GET", "/v1/operator"),
    ("s2", "GET", "/v1/operator"),
}
SIGNED = {("s2", "POST", "/v1/surveys/{survey}/messages")}
REOPEN = ("s2", "POST", "/v1/populations/{population}/reservations")


def is_for_operators(call: tuple[str, str, str]) -> bool:
    return call == REOPEN or call[2].startswith("/v1/operator/")


def calls(pair: Pair) -> Iterator[tuple[str, str, str]]:
    """Yield server, method and path of every call under /v1."""
    for name, app in (("s1", coordinator_app(pair.s1)), ("s2", aggregator_app(pair.s2))):
        for route in app.routes:
            if isinstance(route, Route) and route.path.startswith("/v1/"):
                for method in sorted(route.methods or ()):
                    if method != "HEAD":
                        yield name, method, route.path


async def send(
    pair: Pair, call: tuple[str, str, str], survey: TrialSurvey, token: str | None
) -> httpx.Response:
    name, method, path = call
    client = pair.to_s1 if name == "s1" else pair.to_s2
    filled = path.format(survey=survey.params.survey.hex(), part="7", population="trial")
    headers = {"Authorization": "" if token is None else f"Bearer {token}"}
    return await client.request(method, filled, content=_body(survey, path), headers=headers)


def _body(survey: TrialSurvey, path: str) -> bytes:
    """Return a body that the call would accept from the right caller."""
    known = {
        "{survey}": survey.params.published,
        # Three entries of 32 bytes for the coordinator, or two of 48 bytes for the aggregator.
        "invited/{part}": bytes(range(96)),
        "reissue": bytes(64),
        "extend": b'{"seconds": 5}',
        "owner": b'{"to": "00"}',
        "populations/{population}": b'{"epsilon": 1, "delta": 0.1}',
        "reservations": b'{"reservations": []}',
    }
    return next((body for end, body in known.items() if path.endswith(end)), b"{}")


async def prepare_survey(pair: Pair) -> TrialSurvey:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(
        pair.to_s1, pair.to_s2, mechanism, SERVERS, SeededStream(2), phase_seconds=(60,)
    )
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
            survey = await prepare_survey(pair)
            protected = [call for call in calls(pair) if call not in OPEN_TO_ALL | SIGNED]
            assert len(protected) >= 19
            before = (await pair.to_s1.get(f"{survey.path}/status")).json()
            for call in protected:
                for token in (
                    None,
                    "",
                    "wrong",
                    "expired",
                    "expired operator",
                    "x" * 5000,
                    pair.owner_tokens[1 if call[0] == "s1" else 0],
                ):
                    answer = await send(pair, call, survey, token)
                    assert answer.status_code == 401, (call, token, answer.text)
                    assert answer.headers["content-type"] == "application/problem+json"
                other = pair.owner_tokens[call[0] == "s2"] if is_for_operators(call) else "operator"
                assert (await send(pair, call, survey, other)).status_code == 403, call
            assert (await pair.to_s1.get(f"{survey.path}/status")).json() == before

    asyncio.run(work())


def test_another_owner_sees_and_changes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepare_survey(pair)
            before = (await pair.to_s1.get(f"{survey.path}/status")).json()
            about_survey = [
                call
                for call in calls(pair)
                if call not in OPEN_TO_ALL | SIGNED
                and not is_for_operators(call)
                and not call[2].endswith(("/survey-keys", "/reservations"))
            ]
            assert len(about_survey) >= 15
            for call in about_survey:
                answer = await send(pair, call, survey, "another-owner")
                assert answer.status_code in (404, 409), (call, answer.status_code, answer.text)
            assert (await pair.to_s1.get(f"{survey.path}/status")).json() == before
            theirs = await pair.to_s1.get(
                "/v1/reservations?population=trial",
                headers={"Authorization": "Bearer another-owner"},
            )
            assert theirs.json() == {"reservations": []}

    asyncio.run(work())


def test_the_aggregator_answers_nobody_but_the_coordinator(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepare_survey(pair)
            for token in (None, "operator", pair.owner_tokens[1]):
                for call in SIGNED:
                    assert (await send(pair, call, survey, token)).status_code == 401

    asyncio.run(work())


def test_survey_keys_are_used_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepare_survey(pair)
            mechanism = survey.params.mechanism
            again = propose(
                mechanism,
                survey.params.keys,
                survey=bytes(16),
                topology=SERVERS,
                population="trial",
            )
            path = f"/v1/surveys/{again.survey.hex()}"
            assert (await pair.to_s2.put(path, content=again.published)).status_code == 409
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            assert (await pair.to_s1.put(path, content=again.published)).status_code == 409

    asyncio.run(work())


async def use_and_forget(
    tx: Any, keys: Any, caller: Any, params: Any, mine: bytes
) -> survey_keys.SurveyKeys:
    """Use survey keys like a server whose database is then rolled back: they look unused."""
    row = await tx.fetch_one("SELECT encrypted FROM survey_keys WHERE id = ?", mine)
    found = await USE_SURVEY_KEYS(tx, keys, caller, params, mine)
    await tx.execute(
        "UPDATE survey_keys SET encrypted = ?, used_by = NULL WHERE id = ?", row["encrypted"], mine
    )
    return found


def test_a_value_serves_one_survey_even_if_a_server_was_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database was restored and the wrapping key not yet destroyed: the anchor still knows."""
    monkeypatch.setattr(survey_keys, "use", use_and_forget)
    monkeypatch.setattr(KeyFolder, "destroy", lambda self, name: None)

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await prepare_survey(pair)
            path = f"/v1/surveys/{bytes(16).hex()}"
            params = replace(survey.params, survey=bytes(16))
            again = params.published
            answer = await pair.to_s2.put(path, content=again)
            assert (answer.status_code, "used this value" in answer.text) == (409, True)
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            require_success(await pair.to_s1.put(path, content=again))
            signature = pair.s2.server.operator.sign(params, Party.AGGREGATOR)
            require_success(await pair.to_s1.put(f"{path}/operators", content=signature))
            require_success(await pair.to_s1.put(f"{path}/invited/0", content=bytes(range(256))))
            answer = await pair.to_s1.post(f"{path}/open")
            assert (answer.status_code, "used this value" in answer.text) == (409, True)

    asyncio.run(work())


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/surveys/zz/status", "/v1/surveys/00/status", "/v2/survey-keys"]
)
def test_an_unknown_path_is_answered_with_a_problem(tmp_path: Path, path: str) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            answer = await pair.to_s2.get(path)
            assert answer.status_code == 404
            assert answer.json()["type"] == "urn:faircount:problem:unknown"

    asyncio.run(work())
