"""A small survey over HTTP from its set-up to its reports, for tests and load tests.

One process plays the owner and all clients here, so it holds every secret. A real owner uses
`faircount survey`, a real participant `faircount answer`.
"""

from dataclasses import dataclass
from typing import Any

import httpx

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError
from faircount.core.questions import Sheet
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import (
    SERVERS,
    ClientState,
    Invitation,
    Keys,
    Message,
    SurveyParameters,
    Topology,
    encode,
    propose,
)
from faircount.protocol.roles.limits import decode_response
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import Rejection

INVITATIONS_PER_CALL = 5000

# More than any test spends.
BUDGET = {"epsilon": 1000.0, "delta": 0.9}


@dataclass(frozen=True)
class TrialSurvey:
    """A survey that both servers know, and its invitations."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]

    @property
    def path(self) -> str:
        """The path of the survey at either server."""
        return f"/v1/surveys/{self.params.survey.hex()}"


def require_success(answer: httpx.Response) -> httpx.Response:
    """The answer, which must be a success."""
    if answer.status_code >= 300:
        request = answer.request
        raise FaircountError(
            f"{request.method} {request.url.path}: {answer.status_code} {answer.text}"
        )
    return answer


async def fetch_survey_keys(to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient) -> Keys:
    """Ask both servers for the keys of one survey."""
    first = require_success(await to_s1.post("/v1/survey-keys")).json()
    second = require_success(await to_s2.post("/v1/survey-keys")).json()
    return Keys(
        coordinator=bytes.fromhex(first["signing_key"]),
        aggregator=bytes.fromhex(second["signing_key"]),
        encryption_key=bytes.fromhex(second["encryption_key"]),
        coordinator_commitment=bytes.fromhex(first["commitment"]),
        aggregator_commitment=bytes.fromhex(second["commitment"]),
        s1_operator_key=bytes.fromhex(first["operator_key"]),
        s2_operator_key=bytes.fromhex(second["operator_key"]),
    )


async def set_up(
    to_s1: httpx.AsyncClient,
    to_s2: httpx.AsyncClient,
    mechanism: FrequencyMechanism,
    topology: Topology,
    entropy: Entropy,
    **terms: Any,
) -> TrialSurvey:
    """Register a survey and its invitations; both clients carry the owner's token.

    The survey is not open yet.
    """
    keys = await fetch_survey_keys(to_s1, to_s2)
    params = propose(
        mechanism,
        keys,
        survey=entropy.bytes(16),
        topology=topology,
        **{"population": "trial", **terms},
    )
    invitations = [Invitation.issue(params.digest, entropy) for _ in range(params.n_max)]
    survey = TrialSurvey(params, tuple(invitations))
    # A test that names its population sets the budget itself.
    if params.population == "trial":
        require_success(await to_s2.put("/v1/populations/trial", json=BUDGET))
    await register_parameters(to_s1, to_s2, params)
    await register_invitations(to_s1, to_s2, survey)
    return survey


async def register_parameters(
    to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient, params: SurveyParameters
) -> None:
    """Register parameters at both servers, and the aggregator's signature at the coordinator."""
    path = f"/v1/surveys/{params.survey.hex()}"
    told = require_success(await to_s2.put(path, content=params.published)).json()
    require_success(await to_s1.put(path, content=params.published))
    signature = bytes.fromhex(told["operator_signature"])
    require_success(await to_s1.put(f"{path}/operators", content=signature))


async def open_trial(
    to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient, users: int = 6, **terms: Any
) -> TrialSurvey:
    """A small survey in `servers` that is open, with almost no noise."""
    mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=users, dropouts=2)
    survey = await set_up(to_s1, to_s2, mechanism, SERVERS, SystemEntropy(), **terms)
    require_success(await to_s1.post(f"{survey.path}/open"))
    return survey


async def register_invitations(
    to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient, survey: TrialSurvey
) -> None:
    """Register access values at the coordinator, user ids and MAC keys at the aggregator."""
    starts = range(0, len(survey.invitations), INVITATIONS_PER_CALL)
    for part, start in enumerate(starts):
        invitations = survey.invitations[start : start + INVITATIONS_PER_CALL]
        guests = b"".join(
            invitation.user + invitation.enrolment_mac_key for invitation in invitations
        )
        require_success(await to_s2.put(f"{survey.path}/invited/{part}", content=guests))
        access = b"".join(invitation.access for invitation in invitations)
        require_success(await to_s1.put(f"{survey.path}/invited/{part}", content=access))


def begin_client(
    survey: TrialSurvey, place: int, answer: int | Sheet, entropy: Entropy
) -> ClientState:
    """The client of an invitation, with its report drawn."""
    sheet = answer if isinstance(answer, tuple) else (answer,)
    blank = ClientState(survey.invitations[place], sheet)
    return survey.params.topology.client.start(survey.params, blank, StandardCrypto(), entropy)


async def send_message(to_s1: httpx.AsyncClient, survey: TrialSurvey, message: Message) -> Message:
    """The coordinator's reply; a problem document becomes a `Rejection` again."""
    answer = await to_s1.post(f"{survey.path}/messages", content=encode(message))
    if answer.status_code == 200:
        return decode_response(answer.content)
    reason = answer.json().get("reason")
    if reason is None:
        raise FaircountError(f"The coordinator answered {answer.status_code}: {answer.text[:200]}")
    return Rejection(reason, answer.json()["detail"].encode())


async def visit_once(
    to_s1: httpx.AsyncClient, survey: TrialSurvey, client: ClientState, entropy: Entropy
) -> ClientState:
    """Send one pending message; the client after the reply."""
    role = survey.params.topology.client
    message = role.next_message(client)
    if message is None:
        return client
    return role.handle_response(
        client, message, await send_message(to_s1, survey, message), entropy
    )


async def ask_for_outcome(
    to_s1: httpx.AsyncClient, survey: TrialSurvey, client: ClientState, entropy: Entropy
) -> ClientState:
    """Ask how the survey ended; the client after the reply."""
    role = survey.params.topology.client
    message = role.outcome_request(client)
    return role.handle_response(
        client, message, await send_message(to_s1, survey, message), entropy
    )
