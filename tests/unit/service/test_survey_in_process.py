"""A whole survey over HTTP calls, both servers in this process."""

import asyncio
from pathlib import Path

import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Device, Invitation, Keys, SurveyParameters, decode, encode, propose
from faircount.service.in_process import Pair, in_process

ANSWERS = [0, 1, 1, 2, 2, 2, 0, 1, 2, 2, 1, 2]


async def offered(pair: Pair) -> Keys:
    first = (await pair.to_s1.post("/v1/offers")).json()
    second = (await pair.to_s2.post("/v1/offers")).json()
    named = (first["signing_key"], second["signing_key"], second["box_key"], first["commitment"], second["commitment"])
    return Keys(*(bytes.fromhex(each) for each in named))


async def created(
    pair: Pair, entropy: SeededStream, users: int = len(ANSWERS)
) -> tuple[SurveyParameters, list[Invitation]]:
    keys = await offered(pair)
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=users, dropouts=4)  # noise with chance 1e-8
    params = propose(
        mechanism,
        keys,
        survey=entropy.bytes(16),
        topology=SERVERS,
        population="customers",
        phases=(60,),
    )
    invitations = [Invitation.issue(params.digest, entropy) for _ in range(users)]
    path = f"/v1/surveys/{params.survey.hex()}"
    budget = await pair.to_s2.put("/v1/populations/customers", json={"epsilon": 100.0, "delta": 0.5})
    assert budget.status_code in (200, 201), budget.text
    for client in (pair.to_s1, pair.to_s2):
        assert (await client.put(path, content=params.published)).status_code == 201
    access = b"".join(each.access for each in invitations)
    guests = b"".join(each.user + each.sealing_key for each in invitations)
    assert (await pair.to_s1.put(f"{path}/invited/0", content=access)).json() == {"people": users}
    assert (await pair.to_s2.put(f"{path}/guests/0", content=guests)).json() == {"people": users}
    return params, invitations


async def answered(pair: Pair, params: SurveyParameters, device: Device, entropy: SeededStream) -> Device:
    client = params.topology.client
    asked = client.ask(device)
    assert asked is not None
    answer = await pair.to_s1.post(f"/v1/surveys/{params.survey.hex()}/messages", content=encode(asked))
    assert answer.status_code == 200, answer.text
    return client.hear(device, asked, decode(answer.content), entropy)


async def play(folder: Path) -> None:
    entropy = SeededStream(1)
    async with in_process(folder) as pair:
        params, invitations = await created(pair, entropy)
        path, client = f"/v1/surveys/{params.survey.hex()}", params.topology.client
        assert (await pair.to_s1.post(f"{path}/open", json={"people": len(ANSWERS)})).json()["state"] == "submitting"
        blanks = [Device(each, answer) for each, answer in zip(invitations, ANSWERS, strict=True)]
        devices = [client.begin(params, each, None, entropy) for each in blanks]
        devices = list(await asyncio.gather(*(answered(pair, params, each, entropy) for each in devices[:-1])))
        assert all(each.acknowledgements for each in devices)
        status = (await pair.to_s1.get(f"{path}/status")).json()
        assert (status["users"], status["people"]) == (11, 12)
        assert (await pair.to_s1.post(f"{path}/close", json={"state": "submitting"})).json()["state"] == "claimed"
        assert await pair.scheduler.once()
        result = (await pair.to_s1.get(f"{path}/result")).json()
        assert (result["state"], result["included"]) == ("published", 11)
        assert [each["count"] for each in result["counts"]] == [2, 4, 5]  # the last device did not answer
        asked = client.inquire(devices[0])
        answer = await pair.to_s1.post(f"{path}/messages", content=encode(asked))
        assert client.hear(devices[0], asked, decode(answer.content), entropy).counted
        budget = (await pair.to_s2.get("/v1/populations/customers")).json()
        assert [each["status"] for each in budget["surveys"]] == ["spent"]


@pytest.fixture(params=["sqlite"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path


def test_a_survey_from_offers_to_result(folder: Path) -> None:
    asyncio.run(play(folder))
