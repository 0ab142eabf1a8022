"""Requests from the coordinator to the aggregator: signed, valid once, for a few minutes."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import Pair, in_process
from trial_survey import TrialSurvey, require_success, set_up

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Reason, Rejection, Reservation, SyncRequest, SyncState
from faircount.protocol.wire.roster_messages import RejectedEntries, RosterEntry, RosterProposal
from faircount.protocol.wire.signing import SigningKey, sign, verify_message
from faircount.server.aggregator import app as aggregator_app
from faircount.server.aggregator import steps
from faircount.server.aggregator.steps import ledger_of
from faircount.server.common.framing import frame_messages
from faircount.server.common.signed_requests import (
    DIGEST,
    TIME,
    WINDOW,
    content_digest,
    signed_headers,
)
from faircount.server.coordinator.aggregator_connection import (
    MAX_ANSWERS,
    AggregatorConnection,
    AggregatorError,
    split_messages,
)
from faircount.storage import states


async def open_survey(pair: Pair) -> tuple[TrialSurvey, SigningKey]:
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=12, dropouts=4)
    survey = await set_up(pair.to_s1, pair.to_s2, mechanism, SERVERS, SeededStream(2))
    require_success(await pair.to_s1.post(f"{survey.path}/open"))
    s1 = await pair.s1.pending_messages(survey.params.survey)
    assert s1 is not None
    return survey, s1.key


def test_a_request_is_answered_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            path = f"{survey.path}/messages"
            id_ = survey.params.survey
            now = pair.s2.server.clock()
            body = encode(sign(key, Party.COORDINATOR, SyncRequest(id_)))
            headers = signed_headers(key, id_, "POST", path, body, now)
            answer = await pair.to_s2.post(path, content=body, headers=headers)
            (state,) = split_messages(answer.content)
            assert isinstance(
                verify_message(survey.params.keys.aggregator, Party.AGGREGATOR, state), SyncState
            )
            again = await pair.to_s2.post(path, content=body, headers=headers)
            assert (again.status_code, again.json()["type"]) == (
                401,
                "urn:faircount:problem:unsigned",
            )

    asyncio.run(work())


def test_other_keys_bodies_paths_and_times_are_refused(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            path = f"{survey.path}/messages"
            id_ = survey.params.survey
            now = pair.s2.server.clock()
            body = encode(sign(key, Party.COORDINATOR, SyncRequest(id_)))
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
                {
                    **signed_headers(key, id_, "POST", path, body, now),
                    DIGEST: content_digest(body + b"x"),
                },
                {**signed_headers(key, id_, "POST", path, body, now), DIGEST: "sha-256=:?:"},
                {},
            ]
            for headers in wrong:
                answer = await pair.to_s2.post(path, content=body, headers=headers)
                assert (answer.status_code, answer.json()["type"]) == (
                    401,
                    "urn:faircount:problem:unsigned",
                )
            for time in (now - WINDOW - 5000, now + WINDOW + 5000):
                headers = signed_headers(key, id_, "POST", path, body, time)
                answer = await pair.to_s2.post(path, content=body, headers=headers)
                assert (answer.status_code, answer.json()["type"]) == (
                    401,
                    "urn:faircount:problem:wrong-time",
                )

    asyncio.run(work())


def test_a_body_is_read_only_after_its_signature_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise anybody who reaches the aggregator could make it keep long bodies in memory."""
    chunks_read = []

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            path = f"{survey.path}/messages"
            id_ = survey.params.survey
            now = pair.s2.server.clock()
            message = encode(sign(key, Party.COORDINATOR, SyncRequest(id_)))

            async def body() -> AsyncIterator[bytes]:
                chunks_read.append(message)
                yield message

            for signer, status in ((SigningKey.generate(SeededStream(9)), 401), (key, 200)):
                assert not chunks_read
                headers = signed_headers(signer, id_, "POST", path, message, now)
                answer = await pair.to_s2.post(path, content=body(), headers=headers)
                assert answer.status_code == status
            assert chunks_read == [message]
            monkeypatch.setattr(aggregator_app, "MAX_MESSAGE", len(message) - 1)
            headers = signed_headers(key, id_, "POST", path, message, now)
            assert (
                await pair.to_s2.post(path, content=message, headers=headers)
            ).status_code == 413

    asyncio.run(work())


def test_a_message_of_some_megabytes_is_one_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            roster = (RosterEntry(bytes(16), bytes(32), bytes(32), bytes(32)),) * 30_000
            message = sign(
                key, Party.COORDINATOR, RosterProposal(survey.params.survey, bytes(32), roster)
            )
            assert len(encode(message)) > 3 << 20
            answers = await AggregatorConnection(pair.to_s2, pair.s2.server.clock).send(
                key, survey.params.survey, message, survey.params.n_max
            )
            assert answers is not None
            assert len(answers) == 1

    asyncio.run(work())


def test_two_clocks_that_disagree_cost_one_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            clock = pair.s2.server.clock
            connection = AggregatorConnection(pair.to_s2, lambda: clock() - 3_600_000)
            message = sign(key, Party.COORDINATOR, SyncRequest(survey.params.survey))
            for _ in range(2):
                answers = await connection.send(key, survey.params.survey, message, 12)
                assert answers is not None
                assert len(answers) == 1
            assert abs(connection.skew - 3_600_000) < 60_000

    asyncio.run(work())


@pytest.mark.parametrize("body", [b"\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff"])
def test_a_truncated_answer_is_refused(body: bytes) -> None:
    with pytest.raises(AggregatorError):
        split_messages(body)


def test_without_a_signature_nothing_of_a_message_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both servers check the signature before they decode what a message contains.

    The aggregator checks that of the request first, and both check that of the message.
    """
    lists = [
        RejectedEntries(bytes(16), bytes(32), (1,) * 50),
        RosterProposal(bytes(16), bytes(32), ()),
    ]
    for unsigned in lists:
        assert list(map(type, split_messages(frame_messages((unsigned,))))) == [Rejection]

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, key = await open_survey(pair)
            path = f"{survey.path}/messages"
            id_ = survey.params.survey
            now = pair.s2.server.clock()
            for body in map(encode, lists):
                headers = signed_headers(key, id_, "POST", path, body, now)
                (rejection,) = split_messages(
                    (await pair.to_s2.post(path, content=body, headers=headers)).content
                )
                assert isinstance(rejection, Rejection)
                assert rejection.why is Reason.UNSIGNED
            monkeypatch.setattr(steps, "decode_signed", None)  # whoever calls it now fails
            stranger = signed_headers(
                SigningKey.generate(SeededStream(9)), id_, "POST", path, body, now
            )
            assert (await pair.to_s2.post(path, content=body, headers=stranger)).status_code == 401

    asyncio.run(work())


@pytest.mark.parametrize("population", [b"others", b"\xff"])
def test_a_reservation_of_another_population_is_not_stored(
    tmp_path: Path, population: bytes
) -> None:
    """A dishonest aggregator could put it among another population's reservations.

    Or it could make the coordinator fail with a name that is not UTF-8.
    """

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey, _ = await open_survey(pair)
            id_ = survey.params.survey
            async with pair.s2.server.database.read() as tx:
                ledger = await ledger_of(tx, survey.params.population, for_update=False)
                s2 = (await pair.s2.states.load(tx, await states.find(tx, id_), ledger)).state
            true = Reservation(
                id_, bytes(32), b"0", b"0", survey.params.population.encode(), 1, 1, bytes(32)
            )
            for reservation in (replace(true, population=population), true):
                await pair.s1.receive_statement(id_, sign(s2.key, Party.AGGREGATOR, reservation))
            async with pair.s1.server.database.read() as tx:
                stored = await tx.fetch_all("SELECT population, signed FROM reservations")
            expected = (survey.params.population, encode(sign(s2.key, Party.AGGREGATOR, true)))
            assert [(row["population"], bytes(row["signed"])) for row in stored] == [expected]

    asyncio.run(work())


def test_too_many_messages_at_once_are_refused() -> None:
    """For each of them the coordinator may send a part of a manifest in return."""
    message = Rejection(int(Reason.EARLY))
    assert len(split_messages(frame_messages((message,) * MAX_ANSWERS))) == MAX_ANSWERS
    with pytest.raises(AggregatorError, match="more than 16 messages"):
        split_messages(frame_messages((message,) * (MAX_ANSWERS + 1)))
