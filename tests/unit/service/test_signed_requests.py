"""Requests from S1 to S2: signed, each valid once, and only for a while."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, done, set_up

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Receipt, Rejected, SyncRequest, SyncState
from faircount.protocol.wire.roster_messages import BadEntries, SealRequest
from faircount.protocol.wire.signing import SigningKey, sign, unwrap
from faircount.service import aggregator_steps
from faircount.service.aggregator_steps import ledger_of
from faircount.service.s2_link import MOST_ANSWERS, LinkError, S2Link, joined, split
from faircount.service.signed_requests import TIME, WINDOW, signed_headers
from faircount.storage import states


async def prepared(pair: Pair) -> tuple[TrialSurvey, SigningKey]:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SeededStream(2))
    done(await pair.to_s1.post(f"{survey.path}/open"))
    s1 = await pair.s1.to_say(survey.params.survey)
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


def test_without_a_signature_nothing_of_a_message_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """S2 looks at the signature of a request, S1 and S2 at that of the message, before they build what it holds."""
    lists = [BadEntries(bytes(16), bytes(32), (1,) * 50), SealRequest(bytes(16), bytes(32), ())]
    for unsigned in lists:
        assert [type(each) for each in split(joined((unsigned,)))] == [Rejected]

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await prepared(pair)
            path, id_, now = f"{survey.path}/messages", survey.params.survey, pair.s2.server.clock()
            for body in map(encode, lists):
                headers = signed_headers(key, id_, "POST", path, body, now)
                (said,) = split((await pair.to_s2.post(path, content=body, headers=headers)).content)
                assert isinstance(said, Rejected)
                assert said.why is Reason.UNSIGNED
            monkeypatch.setattr(aggregator_steps, "decode_signed", None)  # whoever calls it now fails
            stranger = signed_headers(SigningKey.generate(SeededStream(9)), id_, "POST", path, body, now)
            assert (await pair.to_s2.post(path, content=body, headers=stranger)).status_code == 401

    asyncio.run(work())


@pytest.mark.parametrize("population", [b"others", b"\xff"])
def test_a_receipt_for_people_of_another_survey_is_not_kept(tmp_path: Path, population: bytes) -> None:
    """A lying S2 had S1 show its receipt among those of others, or stopped S1 with a name that is no text."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, _ = await prepared(pair)
            id_ = survey.params.survey
            async with pair.s2.server.database.read() as tx:
                ledger = await ledger_of(tx, survey.params.population, change=False)
                s2 = (await pair.s2.states.load(tx, await states.find(tx, id_), ledger)).state
            true = Receipt(id_, bytes(32), b"0", b"0", survey.params.population.encode(), 1, 1, bytes(32))
            for said in (replace(true, population=population), true):
                await pair.s1.hear(id_, sign(s2.key, Party.S2, said))
            async with pair.s1.server.database.read() as tx:
                kept = await tx.all("SELECT population, signed FROM receipts")
            wanted = survey.params.population, encode(sign(s2.key, Party.S2, true))
            assert [(each["population"], bytes(each["signed"])) for each in kept] == [wanted]

    asyncio.run(work())


def test_an_s2_that_says_very_much_at_once_is_not_listened_to() -> None:
    """For each of its words S1 may send a part of a claim in return."""
    word = Rejected(int(Reason.EARLY))
    assert len(split(joined((word,) * MOST_ANSWERS))) == MOST_ANSWERS
    with pytest.raises(LinkError, match="more than 16 things"):
        split(joined((word,) * (MOST_ANSWERS + 1)))
