"""Users' messages take a shorter way through S1's application than other calls; what they are answered is the same."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from in_process import in_process
from trial_survey import begun, done, set_up

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.service.coordinator_app import coordinator_app


async def answers(app: Any, requests: list[httpx.Request]) -> list[tuple[int, str, bytes]]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport) as client:
        found = [await client.send(httpx.Request(each.method, each.url, content=each.content)) for each in requests]
    return [(each.status_code, each.headers.get("content-type", ""), each.content) for each in found]


def test_both_ways_give_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            mechanism = Laplace(items=3, epsilon=20.0, users=6, dropouts=2)
            survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SystemEntropy())
            done(await pair.to_s1.post(f"{survey.path}/open"))
            device = begun(survey, 0, 1, SystemEntropy())
            body, path = encode(device.waiting[0]), f"http://s1{survey.path}/messages"
            requests = [
                httpx.Request("POST", path, content=body),
                httpx.Request("POST", path, content=body[:-1]),
                httpx.Request("POST", path, content=bytes(100_000)),
                httpx.Request("POST", f"http://s1/v1/surveys/{'ab' * 16}/messages", content=body),
                httpx.Request("POST", "http://s1/v1/surveys/none/messages", content=body),
                httpx.Request("POST", f"{path}/", content=body),
                httpx.Request("PUT", path, content=body),
            ]
            short, long = coordinator_app(pair.s1), coordinator_app(pair.s1, origins=["https://page.example"])
            await answers(short, requests[:1])  # its acknowledgement is the same from now on
            heard = await answers(short, requests)
            assert heard == await answers(long, requests)
            assert [status for status, *_ in heard] == [200, 400, 413, 404, 404, 307, 405]

            async def mistake(*_: Any) -> Any:
                raise ZeroDivisionError

            monkeypatch.setattr(type(pair.s1), "receive", mistake)
            failed = await answers(short, requests[:1])
            assert failed == await answers(long, requests[:1])
            assert failed[0][:2] == (500, "application/problem+json")
            with pytest.raises(ZeroDivisionError):  # whoever runs the application logs it
                await httpx.AsyncClient(transport=httpx.ASGITransport(short)).send(requests[0])

    asyncio.run(work())
