"""The shortcut for participants' messages gives the same answers as Starlette's usual way."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import in_process
from trial_survey import begin_client, require_success, set_up

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.server.coordinator.app import coordinator_app


async def answers(app: Any, requests: list[httpx.Request]) -> list[tuple[int, str, bytes]]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport) as client:
        responses = [
            await client.send(httpx.Request(request.method, request.url, content=request.content))
            for request in requests
        ]
    return [
        (response.status_code, response.headers.get("content-type", ""), response.content)
        for response in responses
    ]


def test_both_ways_give_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            mechanism = Laplace(items=3, epsilon=20.0, users=6, dropouts=2)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
            require_success(await pair.to_s1.post(f"{survey.path}/open"))
            device = begin_client(survey, 0, 1, SystemEntropy())
            body = encode(device.waiting[0])
            path = f"http://s1{survey.path}/messages"
            requests = [
                httpx.Request("POST", path, content=body),
                httpx.Request("POST", path, content=body[:-1]),
                httpx.Request("POST", path, content=bytes(100_000)),
                httpx.Request("POST", f"http://s1/v1/surveys/{'ab' * 16}/messages", content=body),
                httpx.Request("POST", "http://s1/v1/surveys/none/messages", content=body),
                httpx.Request("POST", f"{path}/", content=body),
                httpx.Request("PUT", path, content=body),
            ]
            short = coordinator_app(pair.s1)
            # With CORS there is middleware, so the shortcut is not taken.
            long = coordinator_app(pair.s1, origins=["https://page.example"])
            await answers(short, requests[:1])  # its acknowledgement is the same from now on
            given = await answers(short, requests)
            assert given == await answers(long, requests)
            assert [status for status, *_ in given] == [200, 400, 413, 404, 404, 404, 405]

            async def fail(*_: Any) -> Any:
                raise ZeroDivisionError

            monkeypatch.setattr(type(pair.s1), "receive", fail)
            failed = await answers(short, requests[:1])
            assert failed == await answers(long, requests[:1])
            assert failed[0][:2] == (500, "application/problem+json")
            with pytest.raises(ZeroDivisionError):  # whoever runs the application logs it
                await httpx.AsyncClient(transport=httpx.ASGITransport(short)).send(requests[0])

    asyncio.run(work())
