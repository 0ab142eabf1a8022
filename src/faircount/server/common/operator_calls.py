"""What the operator of a server can do with any survey on it, over HTTP with an operator's token.

    list        who has which survey, and how it stands
    stop        end a running survey without a result, for a reason that everybody can read
    owner       hand a survey to another owner, for example one whose token was revoked
    erase       delete a survey that is over

An operator acts on its own server only. No call shows or changes a report, or gives budget back.
"""

from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from faircount.server.common.base import Server, delete_survey, hand_over_survey
from faircount.server.common.http import json_response, read_json, survey_id_of
from faircount.server.common.tokens import Caller, Scope

LONGEST_REASON = 500
"""Characters of a reason; the rest is cut off, because the reason is part of a signed statement."""


class Service(Protocol):
    """A coordinator or an aggregator, as an operator sees it."""

    @property
    def server(self) -> Server:
        """Database, keys and clock."""

    async def stop(self, survey: bytes, reason: str) -> None:
        """End a running survey without a result."""


class StopRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `stop`. reason: a text that everybody can read."""

    reason: str = ""


class HandOverRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `owner`. to: the id of another owner, as the operator's list of tokens shows it."""

    to: str


class OperatorCalls:
    """The handlers, one method per call."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def _require_operator(self, request: Request) -> None:
        # check: operator-only - an owner stops or erases the surveys of others
        await self.service.server.authenticator.require(request, Scope.OPERATOR)

    async def list_surveys(self, request: Request) -> Response:
        """List all surveys on this server with their owners."""
        await self._require_operator(request)
        async with self.service.server.database.read() as tx:
            rows = await tx.fetch_all("SELECT id, owner, phase, since FROM surveys ORDER BY since")
            names = await tx.fetch_all("SELECT holder, name FROM tokens")
        # Names of revoked tokens, too: their surveys are those that somebody must take over.
        name_of = {bytes(row["holder"]): row["name"] for row in names}
        surveys = [
            {
                "survey": bytes(row["id"]).hex(),
                "phase": row["phase"],
                "since": row["since"],
                "owner": bytes(row["owner"]).hex(),
                "owner_name": name_of.get(bytes(row["owner"]), ""),
            }
            for row in rows
        ]
        return json_response({"surveys": surveys})

    async def stop(self, request: Request) -> Response:
        """End a running survey of any owner without a result."""
        await self._require_operator(request)
        survey = survey_id_of(request)
        wanted = await read_json(request, StopRequest)
        await self.service.stop(survey, wanted.reason[:LONGEST_REASON])
        return Response(status_code=204)

    async def hand_over(self, request: Request) -> Response:
        """Give a survey of any owner to another owner."""
        await self._require_operator(request)
        survey = survey_id_of(request)
        wanted = await read_json(request, HandOverRequest)
        await hand_over_survey(self.service.server, None, survey, wanted.to)
        return Response(status_code=204)

    async def erase(self, request: Request) -> Response:
        """Delete a survey of any owner that is over; what it has spent stays in the budget."""
        await self._require_operator(request)
        # No owner is asked, and nothing but the survey itself goes: budget and reservations stay.
        await delete_survey(self.service.server, None, survey_id_of(request))
        return Response(status_code=204)

    async def hand_over_own(self, request: Request) -> Response:
        """Give one's own survey to another owner."""
        caller: Caller = await self.service.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        wanted = await read_json(request, HandOverRequest)
        await hand_over_survey(self.service.server, caller, survey, wanted.to)
        return Response(status_code=204)


def operator_routes(service: Service) -> list[Route]:
    """Return the calls of an operator, and with which owners hand their surveys over."""
    calls = OperatorCalls(service)
    survey = "/v1/operator/surveys/{survey}"
    return [
        Route("/v1/operator/surveys", calls.list_surveys, methods=["GET"]),
        Route(f"{survey}/stop", calls.stop, methods=["POST"]),
        Route(f"{survey}/owner", calls.hand_over, methods=["POST"]),
        Route(survey, calls.erase, methods=["DELETE"]),
        Route("/v1/surveys/{survey}/owner", calls.hand_over_own, methods=["POST"]),
    ]
