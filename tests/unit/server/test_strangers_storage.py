"""What an owner can make a server keep: limits that follow from the parameters of a survey."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import Pair, in_process
from trial_survey import fetch_survey_keys, open_trial, require_success

from faircount.core.entropy import SeededStream, SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, SurveyParameters, encode, propose
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import split_into_parts
from faircount.protocol.topologies.two_servers.messages import ManifestEntry
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.signing import SigningKey, sign
from faircount.server.aggregator.app import MAX_MESSAGE, max_message
from faircount.server.common import survey_keys
from faircount.server.common.base import max_listed
from faircount.server.common.signed_requests import signed_headers
from faircount.storage.keys import wrapping_key_name

PEOPLE = 8


async def survey_of_a_stranger(pair: Pair, users: int) -> tuple[SurveyParameters, SigningKey]:
    """A survey at the aggregator alone, whose coordinator is a key that its owner made up."""
    made_up = SigningKey.generate(SeededStream(5))
    keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
    mechanism = Laplace(items=["a", "b", "c"], epsilon=1.0, users=users, dropouts=2)
    params = propose(
        mechanism,
        replace(keys, coordinator=made_up.public),
        survey=SystemEntropy().bytes(16),
        topology=SERVERS,
        population="trial",
    )
    budget = {"epsilon": 1000.0, "delta": 0.9}
    require_success(await pair.to_s2.put("/v1/populations/trial", json=budget))
    path = f"/v1/surveys/{params.survey.hex()}"
    require_success(await pair.to_s2.put(path, content=params.published))
    return params, made_up


def test_parts_of_a_manifest_for_people_who_are_not_invited_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 4)

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            params, key = await survey_of_a_stranger(pair, 1000)
            path = f"/v1/surveys/{params.survey.hex()}"
            people = b"".join(bytes([place]) * 48 for place in range(PEOPLE))
            require_success(await pair.to_s2.put(f"{path}/invited/0", content=people))
            entries = [
                ManifestEntry(place.to_bytes(16, "big"), *([bytes(32)] * 4)) for place in range(400)
            ]
            statuses = []
            for part in split_into_parts(params, entries):
                body = encode(sign(key, Party.COORDINATOR, part))
                now = pair.s2.server.clock()
                headers = signed_headers(key, params.survey, "POST", f"{path}/messages", body, now)
                answer = await pair.to_s2.post(f"{path}/messages", content=body, headers=headers)
                statuses.append(answer.status_code)
            async with pair.s2.server.database.read() as tx:
                stored = await tx.fetch_all(
                    "SELECT key FROM state_rows WHERE store = 'manifest_parts'"
                )
            # Two parts of four for eight people; nothing follows from a part out of order.
            assert len(stored) == PEOPLE // 4
            assert statuses[:3] == [200, 200, 409]

    asyncio.run(work())


def test_a_survey_has_no_more_people_than_it_was_made_for(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            params, _ = await survey_of_a_stranger(pair, PEOPLE)
            path = f"/v1/surveys/{params.survey.hex()}"
            most = max_listed(PEOPLE)
            people = b"".join(place.to_bytes(2, "big") * 24 for place in range(most + 1))
            too_many = await pair.to_s2.put(f"{path}/invited/0", content=people)
            assert (too_many.status_code, too_many.json()["code"]) == (409, "too_many_people")
            require_success(await pair.to_s2.put(f"{path}/invited/0", content=people[48:]))
            one_more = await pair.to_s2.put(f"{path}/invited/1", content=people[:48])
            assert one_more.status_code == 409
            # The same part again is no new people.
            again = await pair.to_s2.put(f"{path}/invited/0", content=people[48:])
            assert again.json() == {"invited": most}

    asyncio.run(work())


@pytest.mark.parametrize("name", ["%00", "staff%1b%5b2J", "%e2%80%aestaff", "a%0ab"])
def test_the_name_of_a_population_cannot_write_into_a_terminal(tmp_path: Path, name: str) -> None:
    """The operator reads it: restore and reopen print it."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            budget = {"epsilon": 1.0, "delta": 0.1}
            answer = await pair.to_s2.put(f"/v1/populations/{name}", json=budget)
            assert (answer.status_code, "control characters" in answer.text) == (400, True)

    asyncio.run(work())


def test_an_owner_does_not_exchange_invitations_without_end(tmp_path: Path) -> None:
    """Every exchanged invitation leaves a row, so that its holder is told."""

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2, users=PEOPLE)
            current = survey.invitations[0].access
            statuses = []
            for number in range(max_listed(survey.params.n_max) - PEOPLE + 1):
                fresh = number.to_bytes(32, "big")
                exchange = current + fresh
                answer = await pair.to_s1.post(f"{survey.path}/reissue", content=exchange)
                statuses.append(answer.status_code)
                current = fresh
            assert statuses == [200] * (len(statuses) - 1) + [409]
            assert answer.json()["code"] == "too_many_people"
            # The last exchange that was made, again.
            previous = (number - 2).to_bytes(32, "big") + (number - 1).to_bytes(32, "big")
            require_success(await pair.to_s1.post(f"{survey.path}/reissue", content=previous))

    asyncio.run(work())


def test_the_coordinator_admits_as_many_as_the_parameters_say(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            keys = await fetch_survey_keys(pair.to_s1, pair.to_s2)
            mechanism = Laplace(items=["a", "b", "c"], epsilon=1.0, users=PEOPLE, dropouts=2)
            params = propose(mechanism, keys, survey=bytes(16), topology=SERVERS)
            path = f"/v1/surveys/{params.survey.hex()}"
            require_success(await pair.to_s1.put(path, content=params.published))
            people = b"".join(bytes([place]) * 32 for place in range(PEOPLE + 1))
            too_many = await pair.to_s1.put(f"{path}/invited/0", content=people)
            assert (too_many.status_code, too_many.json()["code"]) == (409, "too_many_people")
            require_success(await pair.to_s1.put(f"{path}/invited/0", content=people[32:]))

    asyncio.run(work())


def test_a_message_of_a_small_survey_is_small(tmp_path: Path) -> None:
    async def work() -> None:
        async with in_process(tmp_path) as pair:
            params, key = await survey_of_a_stranger(pair, PEOPLE)
            path = f"/v1/surveys/{params.survey.hex()}/messages"
            body = bytes(max_message(PEOPLE) + 1)
            now = pair.s2.server.clock()
            headers = signed_headers(key, params.survey, "POST", path, body, now)
            answer = await pair.to_s2.post(path, content=body, headers=headers)
            assert answer.status_code == 413

    asyncio.run(work())
    assert max_message(PEOPLE) < 5 << 20
    assert max_message(1 << 31) == MAX_MESSAGE


def test_survey_keys_that_no_survey_names_make_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey_keys, "MAX_UNUSED", 3)

    async def work() -> None:
        async with in_process(tmp_path) as pair:
            used = await open_trial(pair.to_s1, pair.to_s2)
            made = []
            for _ in range(7):
                answer = require_success(await pair.to_s2.post("/v1/survey-keys")).json()
                made.append(bytes.fromhex(answer["signing_key"]))
                await asyncio.sleep(0.01)
            keys = pair.s2.server.keys
            assert [keys.has(wrapping_key_name(name)) for name in made] == [False] * 4 + [True] * 3
            async with pair.s2.server.database.read() as tx:
                rows = await tx.fetch_all("SELECT id FROM survey_keys")
            assert {bytes(row["id"]) for row in rows} == {used.params.keys.aggregator, *made[-3:]}

    asyncio.run(work())
