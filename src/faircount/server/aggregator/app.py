"""The aggregator's HTTP API.

Only the coordinator and owners call it, and operators after a restore; participants never do. So it
can stand behind a firewall, unless it serves the participant's page for the coordinator.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError
from faircount.protocol import Ledger
from faircount.server.aggregator.reservations import reopen_population
from faircount.server.aggregator.service import MAC_KEY_BYTES, USER_BYTES, AggregatorService
from faircount.server.common import survey_keys
from faircount.server.common.base import Server, delete_survey, describe_operator
from faircount.server.common.framing import frame_messages
from faircount.server.common.http import (
    BYTES,
    PARAMETERS,
    PART,
    exception_handlers,
    json_response,
    part_number_of,
    read_body,
    read_json,
    split_list,
    survey_id_of,
    without_redirects,
)
from faircount.server.common.operator_calls import operator_routes
from faircount.server.common.participant_page import bundle_routes
from faircount.server.common.problems import RETRY_SECONDS, ProblemError
from faircount.server.common.signed_requests import SignedRequest
from faircount.server.common.tokens import Scope

LONGEST_NAME = 200
"""Characters of a population's name, at most."""
FLUSH_SECONDS = 2.0
"""How often counts of rejections are written."""
MAX_RESERVATIONS = 8 * 1024 * 1024
"""Maximum size of the list of reservations that an operator shows after a restore, in bytes."""
SMALL_MESSAGE = 4 * 1024 * 1024
MESSAGE_PER_PERSON = 8 * 1024
MAX_MESSAGE = 64 * 1024 * 1024
"""Maximum size of a message of the coordinator in a survey of few, for each person, and of many.

In `servers`, manifests and batches are sent in parts of less than 1 MiB. A roster of 10,000 people
takes 1.1 MB, and the unmask shares for 1,000 of them who dropped out of `masked` about 10 MB.
"""


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `PUT populations`: totals that are never raised.

    adaptive: surveys may depend on the results of earlier ones
    """

    epsilon: float
    delta: float
    adaptive: bool = True


class ShownReservations(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `reservations`: the coordinator's answer to `GET /v1/reservations`, in base64.

    newest: the number of the newest one, which the operator states if the anchor is lost
    """

    reservations: list[bytes]
    newest: int | None = None


class AggregatorCalls:
    """The handlers, one method per call."""

    def __init__(self, service: AggregatorService) -> None:
        self.service = service

    @property
    def server(self) -> Server:
        """Database, keys and clock of this server."""
        return self.service.server

    async def create_survey_keys(self, request: Request) -> Response:
        """Create fresh keys for a new survey."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        created = await survey_keys.create(self.server.database, self.server.keys, caller)
        operator = describe_operator(self.server.operator)
        return json_response({**created.public(), **operator}, 201)

    async def operator(self, _: Request) -> Response:
        """Return who runs this server: name, public key and fingerprint."""
        return json_response(describe_operator(self.server.operator))

    async def create(self, request: Request) -> Response:
        """Create a survey with the parameters in the body; its population must have a budget."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        published = await read_body(request, PARAMETERS)
        is_new = await self.service.create(caller, survey, published)
        return json_response(await self.service.status(caller, survey), 201 if is_new else 200)

    async def delete(self, request: Request) -> Response:
        """Delete a survey that is over; what it has spent stays in the budget."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        await delete_survey(self.server, caller, survey_id_of(request))
        return Response(status_code=204)

    async def invite(self, request: Request) -> Response:
        """Add a part of the list of people: user id and enrolment MAC key, 48 bytes together."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        part = part_number_of(request)
        lines = split_list(await read_body(request, PART), USER_BYTES + MAC_KEY_BYTES)
        invited = await self.service.add_people(caller, survey, part, lines)
        return json_response({"invited": invited})

    async def status(self, request: Request) -> Response:
        """Return the status of a survey at the aggregator."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        return json_response(await self.service.status(caller, survey_id_of(request)))

    async def message(self, request: Request) -> Response:
        """Receive a signed message of the coordinator and return the aggregator's answers."""
        survey = survey_id_of(request)
        # Not `request.url`, which is made of the Host header and fails for strange ones.
        signed = SignedRequest(request.method, request.scope["path"], request.headers)
        # Before the body is read: a caller who is not the coordinator must not make the aggregator
        # keep 64 MiB in memory.
        await self.service.require_signed(survey, signed)
        params = await self.server.params(survey)
        body = await read_body(request, max_message(params.n_max))
        signed.check_body(body)
        out = await self.service.receive(survey, body)
        # Still at work: an open request would time out, so the coordinator asks again.
        if out is None:
            return Response(status_code=202, headers={"Retry-After": str(RETRY_SECONDS)})
        return Response(frame_messages(out), media_type=BYTES)

    async def open_population(self, request: Request) -> Response:
        """Create the budget of a population."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        name = _population_of(request)
        budget = await read_json(request, Budget)
        if not 0 <= budget.delta < 1:
            raise ProblemError(400, "malformed", "delta must be at least 0 and below 1")
        ledger = Ledger(name, budget.epsilon, budget.delta, budget.adaptive)
        is_new = await self.service.open_population(caller, name, ledger)
        current = await self.service.ledger(caller, name)
        return json_response(plain_budget(current), 201 if is_new else 200)

    async def population(self, request: Request) -> Response:
        """Return the budget of a population and what is spent of it."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        ledger = await self.service.ledger(caller, _population_of(request))
        return json_response(plain_budget(ledger))

    async def reservations(self, request: Request) -> Response:
        """Reopen a population after a restore with the reservations signed since the backup."""
        # Not the owner, who could gain from showing too little.
        await self.server.authenticator.require(request, Scope.OPERATOR)
        name = _population_of(request)
        shown = await read_json(request, ShownReservations, MAX_RESERVATIONS)
        ledger = await reopen_population(self.server, name, shown.reservations, shown.newest)
        return json_response(plain_budget(ledger))


def max_message(people: int) -> int:
    """Return how many bytes a message of the coordinator may have in a survey of so many people.

    Whoever owns a survey names its coordinator: the limit keeps a made-up one from storing more
    here than its survey needs.
    """
    # check: message-size - a made-up coordinator stores as much as it likes
    return min(SMALL_MESSAGE + MESSAGE_PER_PERSON * people, MAX_MESSAGE)


def _population_of(request: Request) -> str:
    name: str = request.path_params["population"]
    # The name is signed in every reservation and is part of a key of the anchor.
    if not name.strip() or len(name) > LONGEST_NAME:
        raise ProblemError(
            400, "malformed", f"a population needs a name of at most {LONGEST_NAME} characters"
        )
    # check: population-name - an owner writes into the terminal of the operator
    if escape_controls(name) != name:
        raise ProblemError(400, "malformed", "the name of a population has no control characters")
    return name


def plain_budget(ledger: Ledger) -> dict[str, Any]:
    """Return a budget as JSON: the totals, what is spent, and the charge of every survey."""
    epsilon, delta = ledger.spent
    charges = [
        {
            "survey": charge.survey.hex(),
            "epsilon": charge.epsilon,
            "delta": charge.delta,
            "status": str(charge.status),
        }
        for charge in ledger.charges
    ]
    return {
        "population": ledger.population,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "adaptive": ledger.adaptive,
        "closed": ledger.closed,
        "reservations": len(ledger.heads),
        "spent": {"epsilon": epsilon, "delta": delta},
        "surveys": charges,
    }


def aggregator_app(service: AggregatorService, page_for: str = "") -> Starlette:
    """Build the aggregator's application.

    page_for: address of the coordinator whose page this server shows too, if any
    """
    calls = AggregatorCalls(service)
    survey = "/v1/surveys/{survey}"
    population = "/v1/populations/{population}"
    routes = [
        Route("/v1/survey-keys", calls.create_survey_keys, methods=["POST"]),
        Route("/v1/operator", calls.operator, methods=["GET"]),
        Route(population, calls.open_population, methods=["PUT"]),
        Route(population, calls.population, methods=["GET"]),
        Route(f"{population}/reservations", calls.reservations, methods=["POST"]),
        Route(survey, calls.create, methods=["PUT"]),
        Route(survey, calls.delete, methods=["DELETE"]),
        Route(f"{survey}/invited/{{part}}", calls.invite, methods=["PUT"]),
        Route(f"{survey}/status", calls.status, methods=["GET"]),
        Route(f"{survey}/messages", calls.message, methods=["POST"]),
        *operator_routes(service),
    ]
    if page_for:
        routes += bundle_routes(page_for)
    app = Starlette(
        routes=routes, exception_handlers=exception_handlers(), lifespan=_lifespan(service)
    )
    return without_redirects(app)


def _lifespan(service: AggregatorService) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.server.destroy_used_keys()
        task = asyncio.create_task(_flush_rejections(service))
        yield
        # Whatever uses the database stops before the database is closed.
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        service.steps.workers.close()
        await service.server.database.close()

    return lifespan


async def _flush_rejections(service: AggregatorService) -> None:
    """Write counts of rejections every few seconds."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        # If the database does not work now, the counts stay in memory until it does.
        with suppress(FaircountError):
            await service.server.flush_rejections()
