"""A small survey over HTTP from its set-up to its answers: for tests, trials and load tests, not for real people.

One process plays the owner and all devices here, so it holds every secret. A real owner uses `faircount survey`, a real
person `faircount answer`.
"""

from dataclasses import dataclass
from typing import Any

import httpx

from faircount.core.entropy import Entropy
from faircount.core.errors import FaircountError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.protocol import Device, Invitation, Keys, Message, SurveyParameters, Topology, encode, propose
from faircount.protocol.roles.limits import decode_answer
from faircount.protocol.wire.messages import Rejected
from faircount.protocol.wire.sealing import RealSealing

PART = 5000
"""People in one part of a list."""

BUDGET = {"epsilon": 1000.0, "delta": 0.9}


@dataclass(frozen=True)
class TrialSurvey:
    """A survey that both servers know, and the invitations of its people."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]

    @property
    def path(self) -> str:
        """Where it is, at either server."""
        return f"/v1/surveys/{self.params.survey.hex()}"


def done(answer: httpx.Response) -> httpx.Response:
    """An answer that must be a success."""
    if answer.status_code >= 300:
        raise FaircountError(f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}")
    return answer


async def offered(to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient) -> Keys:
    """Keys of both servers for one survey."""
    first, second = [done(await each.post("/v1/offers")).json() for each in (to_s1, to_s2)]
    named = (first["signing_key"], second["signing_key"], second["box_key"], first["commitment"], second["commitment"])
    return Keys(*(bytes.fromhex(each) for each in named))


async def set_up(
    to_s1: httpx.AsyncClient,
    to_s2: httpx.AsyncClient,
    mechanism: FrequencyMechanism,
    topology: Topology,
    entropy: Entropy,
    **terms: Any,
) -> TrialSurvey:
    """Offers, parameters, budget, people: a survey that is ready to be opened; both clients carry the owner's token."""
    keys = await offered(to_s1, to_s2)
    params = propose(mechanism, keys, survey=entropy.bytes(16), topology=topology, **{"population": "trial", **terms})
    made = TrialSurvey(params, tuple(Invitation.issue(params.digest, entropy) for _ in range(params.n_max)))
    if params.population == "trial":
        done(await to_s2.put("/v1/populations/trial", json=BUDGET))
    for server in (to_s2, to_s1):
        done(await server.put(made.path, content=params.published))
    await tell_people(to_s1, to_s2, made)
    return made


async def tell_people(to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient, made: TrialSurvey) -> None:
    """The list of people, in parts: access values to S1, user ids and sealing keys to S2."""
    for part, start in enumerate(range(0, len(made.invitations), PART)):
        some = made.invitations[start : start + PART]
        guests = b"".join(each.user + each.sealing_key for each in some)
        done(await to_s2.put(f"{made.path}/guests/{part}", content=guests))
        done(await to_s1.put(f"{made.path}/invited/{part}", content=b"".join(each.access for each in some)))


def begun(survey: TrialSurvey, at: int, answer: int, entropy: Entropy) -> Device:
    """A person's device with its answer drawn."""
    blank = Device(survey.invitations[at], answer)
    return survey.params.topology.client.begin(survey.params, blank, RealSealing(), entropy)


async def told(to_s1: httpx.AsyncClient, survey: TrialSurvey, message: Message) -> Message:
    """S1's answer to a message; a problem is a `Rejected` again."""
    answer = await to_s1.post(f"{survey.path}/messages", content=encode(message))
    if answer.status_code == 200:
        return decode_answer(answer.content)
    reason = answer.json().get("reason")
    if reason is None:
        raise FaircountError(f"S1 answered {answer.status_code}: {answer.text[:200]}")
    return Rejected(reason, answer.json()["detail"].encode())


async def visited(to_s1: httpx.AsyncClient, survey: TrialSurvey, device: Device, entropy: Entropy) -> Device:
    """The device after it has said one thing and heard the answer."""
    client = survey.params.topology.client
    asked = client.ask(device)
    return device if asked is None else client.hear(device, asked, await told(to_s1, survey, asked), entropy)


async def inquired(to_s1: httpx.AsyncClient, survey: TrialSurvey, device: Device, entropy: Entropy) -> Device:
    """The device after it has asked how the survey ended."""
    client = survey.params.topology.client
    asked = client.inquire(device)
    return client.hear(device, asked, await told(to_s1, survey, asked), entropy)
