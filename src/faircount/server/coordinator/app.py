"""The coordinator's HTTP API.

Participants send messages and read parameters, status and result without a token: a message itself
shows that its sender was invited. Everything else is for the owner of a survey, who authenticates
with a token. Every call of an owner may be repeated with the same content and then changes nothing.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from faircount.protocol import encode
from faircount.protocol.roles.limits import max_message_bytes
from faircount.protocol.survey.operators import SIGNATURE_BYTES
from faircount.protocol.survey.phases import FINAL, Phase
from faircount.protocol.wire.messages import Reason, Rejection, reject
from faircount.server.common import connection, survey_keys
from faircount.server.common.base import Server, delete_survey, describe_operator
from faircount.server.common.http import (
    BYTES,
    PARAMETERS,
    PART,
    BytesResponse,
    MessagesFirst,
    exception_handlers,
    json_response,
    part_number_of,
    problem_response,
    read_body,
    read_json,
    split_list,
    survey_id_of,
    without_redirects,
)
from faircount.server.common.operator_calls import operator_routes
from faircount.server.common.participant_page import page_routes
from faircount.server.common.problems import ProblemError, problem_of_rejection
from faircount.server.common.settings import MAX_EXTENSION
from faircount.server.common.tokens import Scope
from faircount.server.coordinator import status, survey_setup
from faircount.server.coordinator.outbox import Scheduler
from faircount.server.coordinator.service import CoordinatorService
from faircount.server.coordinator.survey_setup import ACCESS

POLL_SECONDS = 1.0
"""How often a stream of events checks whether the status has changed."""


class OpenRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `open`.

    invited: how many people the owner has invited, to detect a missing part
    seconds: until the closing time, if that is earlier than the parameters allow
    """

    invited: int | None = None
    seconds: int | None = None


class CloseRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `close`: the phase that the owner saw, so that a repeated call ends no other one."""

    phase: str | None = None
    attempt: int = 0


class ExtendRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `extend`. seconds: how much longer the phase lasts."""

    seconds: int


class AbortRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `abort`. reason: a text that everybody can read."""

    reason: str = ""


class CoordinatorCalls:
    """The handlers, one method per call."""

    def __init__(self, service: CoordinatorService) -> None:
        self.service = service

    @property
    def server(self) -> Server:
        """Database, keys and clock of this server."""
        return self.service.server

    async def params(self, request: Request) -> Response:
        """Return the published parameters, which never change."""
        params = await self.server.stored_params(survey_id_of(request))
        # Fixed for good under this id, so browsers and proxies may cache them for a year.
        headers = {
            "ETag": f'"{params.digest.hex()}"',
            "Cache-Control": "public, max-age=31536000, immutable",
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(params.published, media_type="application/json", headers=headers)

    async def message(self, request: Request) -> ASGIApp:
        """Receive a participant's message and return the coordinator's answer."""
        survey = survey_id_of(request)
        params = await self.server.params(survey)
        try:
            # Anybody may call this: a body longer than any valid message is not read.
            body = await read_body(request, max_message_bytes(params))
        except ProblemError:
            # Another worker may have erased the survey, and its owner may have made one with the
            # same id and longer messages: then the next attempt is read.
            if await self.server.stored_params(survey) is not params:
                again = reject(Reason.EARLY, "this survey was made again: send the message again")
                return problem_response(problem_of_rejection(again))
            raise
        answer = await self.service.receive(survey, body)
        if isinstance(answer, Rejection):
            return problem_response(problem_of_rejection(answer))
        return BytesResponse(encode(answer))

    async def status(self, request: Request) -> Response:
        """Return the status of a survey."""
        return await self._status_response(survey_id_of(request))

    async def _status_response(self, survey: bytes, code: int = 200) -> Response:
        return json_response(await status.status(self.service, survey), code)

    async def events(self, request: Request) -> Response:
        """Send the status whenever it changes, as server-sent events, until the survey is over.

        A stream ends after some minutes; whoever still listens opens the next one.
        """
        survey = survey_id_of(request)
        # An unknown survey is refused here: a stream that has begun cannot change its HTTP status.
        await status.status(self.service, survey)
        return StreamingResponse(self._status_changes(survey), media_type="text/event-stream")

    async def _status_changes(self, survey: bytes) -> AsyncIterator[bytes]:
        last: status.CoordinatorStatus | None = None
        ends_at = time.monotonic() + connection.EVENT_SECONDS
        # check: stream-time - streams of events that nobody closes keep all others out
        while (last is None or last.phase not in FINAL) and time.monotonic() < ends_at:
            try:
                current = await status.status(self.service, survey)
            except ProblemError:
                # Erased meanwhile: the stream ends, and the next one is answered with 404.
                return
            if current != last:
                yield b"data: " + msgspec.json.encode(current) + b"\n\n"
            else:
                # A comment keeps proxies from closing an idle connection.
                yield b": still here\n\n"
            last = current
            await asyncio.sleep(POLL_SECONDS)

    async def result(self, request: Request) -> Response:
        """Return the result in JSON, or the signed statement of the aggregator in bytes."""
        survey = survey_id_of(request)
        if BYTES in request.headers.get("accept", ""):
            final_statement = await status.final_statement(self.service, survey)
            return Response(encode(final_statement), media_type=BYTES)
        return json_response(await status.result(self.service, survey))

    async def create_survey_keys(self, request: Request) -> Response:
        """Create fresh keys for a new survey."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        created = await survey_keys.create(self.server.database, self.server.keys, caller)
        public = created.public()
        # Nothing is encrypted to the coordinator, so its encryption key is not published.
        return json_response(
            {
                "signing_key": public["signing_key"],
                "commitment": public["commitment"],
                **describe_operator(self.server.operator),
            },
            201,
        )

    async def create(self, request: Request) -> Response:
        """Create a survey with the parameters in the body."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        published = await read_body(request, PARAMETERS)
        is_new = await survey_setup.create(self.service, caller, survey, published)
        return await self._status_response(survey, 201 if is_new else 200)

    async def operator(self, _: Request) -> Response:
        """Return who runs this server: name, public key and fingerprint."""
        return json_response(describe_operator(self.server.operator))

    async def operators(self, request: Request) -> Response:
        """Return the signatures of the operators of both servers under the parameters."""
        return json_response(await survey_setup.list_operators(self.service, survey_id_of(request)))

    async def add_operator(self, request: Request) -> Response:
        """Add the signature of the aggregator's operator, 64 bytes."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        signature = await read_body(request, SIGNATURE_BYTES)
        await survey_setup.add_operator(self.service, caller, survey, signature)
        return await self._status_response(survey)

    async def invite(self, request: Request) -> Response:
        """Add a part of the list of people: access values of 32 bytes."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        part = part_number_of(request)
        access_values = split_list(await read_body(request, PART), ACCESS)
        invited = await survey_setup.add_people(self.service, caller, survey, part, access_values)
        return json_response({"invited": invited})

    async def open(self, request: Request) -> Response:
        """Open the survey to participants."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        wanted = await read_json(request, OpenRequest)
        if wanted.seconds is not None and not 0 < wanted.seconds <= MAX_EXTENSION:
            raise ProblemError(400, "malformed", f"seconds must be 1 to {MAX_EXTENSION}")
        await survey_setup.open_survey(self.service, caller, survey, wanted.invited, wanted.seconds)
        return await self._status_response(survey)

    async def close(self, request: Request) -> Response:
        """End the current phase."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        wanted = await read_json(request, CloseRequest)
        # A deadline may have ended the phase since the owner looked: then the next one stays open.
        seen = None
        if wanted.phase is not None:
            if wanted.phase not in set(Phase):
                raise ProblemError(400, "malformed", "there is no such phase")
            seen = (Phase(wanted.phase), wanted.attempt)
        await self.service.close(caller, survey, seen)
        return await self._status_response(survey)

    async def extend(self, request: Request) -> Response:
        """Extend the current phase."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        wanted = await read_json(request, ExtendRequest)
        if not 0 < wanted.seconds <= MAX_EXTENSION:
            raise ProblemError(400, "malformed", f"seconds must be 1 to {MAX_EXTENSION}")
        await self.service.extend(caller, survey, wanted.seconds)
        return await self._status_response(survey)

    async def reissue(self, request: Request) -> Response:
        """Replace an unused invitation: two access values of 32 bytes, the old one first."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        values = split_list(await read_body(request, 2 * ACCESS), ACCESS)
        if len(values) != 2:
            raise ProblemError(400, "malformed", "give two access values, the old one first")
        await self.service.reissue(caller, survey, *values)
        return await self._status_response(survey)

    async def list_respondents(self, request: Request) -> Response:
        """Return the ids of the people who have responded, 16 bytes each."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        user_ids = await self.service.list_respondents(caller, survey_id_of(request))
        return Response(b"".join(user_ids), media_type=BYTES)

    async def delete(self, request: Request) -> Response:
        """Delete a survey that is over or was never opened."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        await delete_survey(self.server, caller, survey_id_of(request))
        return Response(status_code=204)

    async def abort(self, request: Request) -> Response:
        """End the survey without a result."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        survey = survey_id_of(request)
        wanted = await read_json(request, AbortRequest)
        # The reason becomes part of a signed statement, so its length is bounded.
        await self.service.abort(caller, survey, wanted.reason[:500])
        return await self._status_response(survey)

    async def reservations(self, request: Request) -> Response:
        """Return the aggregator's signed reservations from a population's budget."""
        caller = await self.server.authenticator.require(request, Scope.OWNER)
        population = request.query_params.get("population", "")
        found = await status.reservations(self.service, caller, population)
        return json_response({"reservations": found})

    async def all_reservations(self, request: Request) -> Response:
        """Return the aggregator's signed reservations from a population's budget, of all owners."""
        await self.server.authenticator.require(request, Scope.OPERATOR)
        population = request.query_params.get("population", "")
        return json_response(
            {"reservations": await status.all_reservations(self.service, population)}
        )


def coordinator_app(
    service: CoordinatorService, scheduler: Scheduler | None = None, origins: Sequence[str] = ()
) -> Starlette:
    """Build the coordinator's application.

    scheduler: keeps deadlines and talks to the aggregator while the application runs
    origins: of other pages whose scripts may respond for participants; they cannot send a token,
    so they cannot make an owner's call
    """
    calls = CoordinatorCalls(service)
    survey = "/v1/surveys/{survey}"
    routes = [
        # Starlette tries routes in order, and most calls are messages.
        Route(f"{survey}/messages", calls.message, methods=["POST"]),
        Route("/v1/survey-keys", calls.create_survey_keys, methods=["POST"]),
        Route("/v1/reservations", calls.reservations, methods=["GET"]),
        Route(survey, calls.create, methods=["PUT"]),
        Route(survey, calls.delete, methods=["DELETE"]),
        Route(f"{survey}/params", calls.params, methods=["GET"]),
        Route(f"{survey}/status", calls.status, methods=["GET"]),
        Route(f"{survey}/events", calls.events, methods=["GET"]),
        Route(f"{survey}/result", calls.result, methods=["GET"]),
        Route("/v1/operator", calls.operator, methods=["GET"]),
        Route(f"{survey}/operators", calls.operators, methods=["GET"]),
        Route(f"{survey}/operators", calls.add_operator, methods=["PUT"]),
        Route(f"{survey}/invited/{{part}}", calls.invite, methods=["PUT"]),
        Route(f"{survey}/open", calls.open, methods=["POST"]),
        Route(f"{survey}/close", calls.close, methods=["POST"]),
        Route(f"{survey}/extend", calls.extend, methods=["POST"]),
        Route(f"{survey}/abort", calls.abort, methods=["POST"]),
        *page_routes(),
        Route(f"{survey}/reissue", calls.reissue, methods=["POST"]),
        Route(f"{survey}/answered", calls.list_respondents, methods=["GET"]),
        *operator_routes(service),
        Route("/v1/operator/reservations", calls.all_reservations, methods=["GET"]),
    ]
    middleware = []
    if origins:
        # No Authorization among the headers: browsers then refuse to send a token from there.
        cors = Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type"],
        )
        middleware.append(cors)
    app = MessagesFirst(
        calls.message,
        routes=routes,
        middleware=middleware,
        exception_handlers=exception_handlers(),
        lifespan=_lifespan(service, scheduler),
    )
    return without_redirects(app)


def _lifespan(service: CoordinatorService, scheduler: Scheduler | None) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.server.destroy_used_keys()
        task = None if scheduler is None else asyncio.create_task(scheduler.run())
        yield
        # The scheduler uses the database, so it stops first.
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await service.server.database.close()

    return lifespan
