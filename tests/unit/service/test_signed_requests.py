"""Requests from S1 to S2: signed, each valid once, and only for a while."""

import asyncio
from pathlib import Path

import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import SyncRequest, SyncState
from faircount.protocol.wire.signing import SigningKey, sign, unwrap
from faircount.service.in_process import Pair, in_process
from faircount.service.s2_link import LinkError, S2Link, split
from faircount.service.signed_requests import TIME, WINDOW, signed_headers
from faircount.service.trial_survey import TrialSurvey, done, set_up


async def prepared(pair: Pair) -> tuple[TrialSurvey, SigningKey]:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SeededStream(2))
    done(await pair.to_s1.post(f"{survey.path}/open"))
    s1 = await pair.s1.current(survey.params.survey)
    assert s1 is not None
    return survey, s1.key


def test_a_request_is_answered_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await prepared(pair)
            path, id_, now = f"{survey.path}/messages", survey.params.survey, pair.s2.server.clock()
            body = encode(sign(key, Party.S1, SyncRequest(id_)))
            headers = signed_headers(key, id_, "POST", path, body, now)
            answer = await pair.to_s2.post(path, content=body, headers=headers)
            (said,) = split(answer.content)
            assert isinstance(unwrap(survey.params.keys.s2, Party.S2, said), SyncState)
            again = await pair.to_s2.post(path, content=body, headers=headers)
            assert (again.status_code, again.json()["type"]) == (401, "urn:faircount:problem:unsigned")

    asyncio.run(work())


def test_other_keys_bodies_paths_and_times_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await prepared(pair)
            path, id_, now = f"{survey.path}/messages", survey.params.survey, pair.s2.server.clock()
            body = encode(sign(key, Party.S1, SyncRequest(id_)))
            stranger = SigningKey.generate(SeededStream(9))
            wrong = [
                signed_headers(stranger, id_, "POST", path, body, now),
                signed_headers(key, id_, "POST", path, body + b"x", now),
                signed_headers(key, id_, "POST", f"{path}/x", body, now),
                signed_headers(key, id_, "PUT", path, body, now),
                signed_headers(key, bytes(16), "POST", path, body, now),
                {**signed_headers(key, id_, "POST", path, body, now), TIME: str(now + 1)},
                {**signed_headers(key, id_, "POST", path, body, now), "faircount-nonce": "00"},
                {**signed_headers(key, id_, "POST", path, body, now), "faircount-signature": "?"},
                {},
            ]
            for headers in wrong:
                answer = await pair.to_s2.post(path, content=body, headers=headers)
                assert (answer.status_code, answer.json()["type"]) == (401, "urn:faircount:problem:unsigned")
            for time in (now - WINDOW - 5000, now + WINDOW + 5000):
                headers = signed_headers(key, id_, "POST", path, body, time)
                answer = await pair.to_s2.post(path, content=body, headers=headers)
                assert (answer.status_code, answer.json()["type"]) == (401, "urn:faircount:problem:wrong-time")

    asyncio.run(work())


def test_two_clocks_that_disagree_cost_one_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await prepared(pair)
            clock = pair.s2.server.clock
            link = S2Link(pair.to_s2, lambda: clock() - 3_600_000)
            message = sign(key, Party.S1, SyncRequest(survey.params.survey))
            for _ in range(2):
                answers = await link.send(key, survey.params.survey, message)
                assert answers is not None
                assert len(answers) == 1
            assert abs(link.skew - 3_600_000) < 60_000

    asyncio.run(work())


@pytest.mark.parametrize("body", [b"\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff"])
def test_an_answer_that_is_cut_short_is_refused(body: bytes) -> None:
    with pytest.raises(LinkError):
        split(body)
