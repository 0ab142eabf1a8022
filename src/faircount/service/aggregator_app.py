"""S2's calls over HTTP. S1 and the owner call it, and nobody else: it can stand behind a firewall."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from faircount.core.errors import FaircountError
from faircount.protocol import Ledger
from faircount.service.aggregator import SEALING_KEY, USER, AggregatorService
from faircount.service.long_messages import PART_BYTES
from faircount.service.problems import RETRY_SECONDS, ProblemError, unknown
from faircount.service.receipts import show_receipts
from faircount.service.s2_link import joined
from faircount.service.server import delete_survey
from faircount.service.signed_requests import SignedRequest
from faircount.service.tokens import Scope
from faircount.service.web import (
    BYTES,
    PARAMETERS,
    PART,
    body_of,
    handlers,
    json_of,
    json_response,
    lines_of,
    part_of,
    survey_of,
)

LONGEST_NAME = 200
FLUSH_SECONDS = 2.0
MOST_RECEIPTS = 8 * 1024 * 1024


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `PUT populations`: totals that are never raised. adaptive: surveys may depend on earlier results."""

    epsilon: float
    delta: float
    adaptive: bool = True


class ShownReceipts(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `receipts`: what `GET /v1/receipts` of S1 gave, in base64."""

    receipts: list[bytes]


class AggregatorCalls:
    """One method per call."""

    def __init__(self, s2: AggregatorService) -> None:
        self.s2 = s2

    async def offer(self, request: Request) -> Response:
        """Fresh keys for a survey to come."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        made = await self.s2.offer(caller)
        return json_response({**made.public(), "operator": self.s2.server.operator}, 201)

    async def create(self, request: Request) -> Response:
        """A survey with the parameters in the body; its population must have a budget."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        survey = survey_of(request)
        new = await self.s2.create(caller, survey, await body_of(request, PARAMETERS))
        return json_response(await self.s2.status(caller, survey), 201 if new else 200)

    async def delete(self, request: Request) -> Response:
        """Remove a survey that is over; what it has spent stays in the budget."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        await delete_survey(self.s2.server, caller, survey_of(request))
        return Response(status_code=204)

    async def guests(self, request: Request) -> Response:
        """A part of the list of people: user id and sealing key, 48 bytes together."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        survey, part = survey_of(request), part_of(request)
        lines = lines_of(await body_of(request, PART), USER + SEALING_KEY)
        return json_response({"people": await self.s2.add_people(caller, survey, part, lines)})

    async def status(self, request: Request) -> Response:
        """Where a survey stands at S2."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        return json_response(await self.s2.status(caller, survey_of(request)))

    async def message(self, request: Request) -> Response:
        """A signed message of S1, and S2's answers to it."""
        out = await self.s2.receive(survey_of(request), await _signed(request))
        if out is None:
            return Response(status_code=202, headers={"Retry-After": str(RETRY_SECONDS)})
        return Response(joined(out), media_type=BYTES)

    async def message_part(self, request: Request) -> Response:
        """A part of a long message of S1, which is named by its hash."""
        text = request.path_params["message"]
        if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
            raise unknown("message: it is named by 64 hexadecimal digits")
        await self.s2.keep_part(survey_of(request), await _signed(request), bytes.fromhex(text), part_of(request))
        return Response(status_code=204)

    async def open_population(self, request: Request) -> Response:
        """A budget."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        name, budget = _population(request), await json_of(request, Budget)
        if not 0 <= budget.delta < 1:
            raise ProblemError(400, "malformed", "delta must be at least 0 and below 1")
        opened = Ledger(name, budget.epsilon, budget.delta, budget.adaptive)
        new = await self.s2.open_population(caller, name, opened)
        return json_response(plain_budget(await self.s2.ledger(caller, name)), 201 if new else 200)

    async def population(self, request: Request) -> Response:
        """What the people of a population have left."""
        caller = await self.s2.server.door.admit(request, Scope.OWNER)
        return json_response(plain_budget(await self.s2.ledger(caller, _population(request))))

    async def receipts(self, request: Request) -> Response:
        """After a restore: S2's receipts since the backup, which open the population again."""
        await self.s2.server.door.admit(request, Scope.OPERATOR)
        name, shown = _population(request), await json_of(request, ShownReceipts, MOST_RECEIPTS)
        return json_response(plain_budget(await show_receipts(self.s2.server, name, shown.receipts)))


async def _signed(request: Request) -> SignedRequest:
    body = await body_of(request, PART_BYTES)
    return SignedRequest(request.method, request.url.path, request.headers, body)


def _population(request: Request) -> str:
    name: str = request.path_params["population"]
    if not name.strip() or len(name) > LONGEST_NAME:
        raise ProblemError(400, "malformed", f"a population needs a name of at most {LONGEST_NAME} characters")
    return name


def plain_budget(ledger: Ledger) -> dict[str, Any]:
    """A budget as JSON: totals, what is spent, and every charge."""
    epsilon, delta = ledger.spent
    return {
        "population": ledger.population,
        "epsilon": ledger.epsilon,
        "delta": ledger.delta,
        "adaptive": ledger.adaptive,
        "closed": ledger.closed,
        "receipts": len(ledger.heads),
        "spent": {"epsilon": epsilon, "delta": delta},
        "surveys": [
            {"survey": each.survey.hex(), "epsilon": each.epsilon, "delta": each.delta, "status": str(each.status)}
            for each in ledger.charges
        ],
    }


def aggregator_app(s2: AggregatorService) -> Starlette:
    """S2 as an application."""
    calls, survey, population = AggregatorCalls(s2), "/v1/surveys/{survey}", "/v1/populations/{population}"
    routes = [
        Route("/v1/offers", calls.offer, methods=["POST"]),
        Route(population, calls.open_population, methods=["PUT"]),
        Route(population, calls.population, methods=["GET"]),
        Route(f"{population}/receipts", calls.receipts, methods=["POST"]),
        Route(survey, calls.create, methods=["PUT"]),
        Route(survey, calls.delete, methods=["DELETE"]),
        Route(f"{survey}/guests/{{part}}", calls.guests, methods=["PUT"]),
        Route(f"{survey}/status", calls.status, methods=["GET"]),
        Route(f"{survey}/messages", calls.message, methods=["POST"]),
        Route(f"{survey}/messages/{{message}}/{{part}}", calls.message_part, methods=["PUT"]),
    ]
    return Starlette(routes=routes, exception_handlers=handlers(), lifespan=_life(s2))


def _life(s2: AggregatorService) -> Any:
    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await s2.server.destroy_used_keys()
        running = asyncio.create_task(_flush(s2))
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        s2.steps.elsewhere.close()
        await s2.server.database.close()

    return life


async def _flush(s2: AggregatorService) -> None:
    """Write counts of rejections now and then."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        with suppress(FaircountError):
            await s2.server.flush_rejections()
