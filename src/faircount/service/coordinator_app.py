"""S1's calls over HTTP."""

import asyncio
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

from faircount.protocol import encode
from faircount.protocol.roles.limits import longest_uploads
from faircount.protocol.survey.states import FINAL, State
from faircount.protocol.wire.messages import Rejected
from faircount.service import status, survey_setup
from faircount.service.coordinator import CoordinatorService
from faircount.service.outbox import Scheduler
from faircount.service.participant_page import page_routes
from faircount.service.problems import ProblemError, of_rejected
from faircount.service.server import delete_survey
from faircount.service.settings import MOST_EXTENSION
from faircount.service.survey_setup import ACCESS
from faircount.service.tokens import Scope
from faircount.service.web import (
    BYTES,
    PARAMETERS,
    PART,
    MessagesFirst,
    body_of,
    handlers,
    json_of,
    json_response,
    lines_of,
    part_of,
    problem_response,
    survey_of,
)

EVENT_SECONDS = 1.0
"""How often a stream of events looks whether something has changed."""


class OpenWish(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `open`. people: how many the owner has told S1 of."""

    people: int | None = None


class CloseWish(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `close`: the phase that the owner has seen in the status, so that a repeated call ends no other one."""

    state: str | None = None
    attempt: int = 0


class ExtendWish(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `extend`. seconds: how much longer the phase lasts."""

    seconds: int


class AbortWish(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `abort`. reason: in words, for everybody to read."""

    reason: str = ""


class CoordinatorCalls:
    """One method per call."""

    def __init__(self, s1: CoordinatorService) -> None:
        self.s1 = s1
        self.longest: dict[bytes, int] = {}  # bytes of a user's longest message, by survey

    async def params(self, request: Request) -> Response:
        """The published parameters; they never change."""
        found = await self.s1.server.params(survey_of(request))
        headers = {"ETag": f'"{found.digest.hex()}"', "Cache-Control": "public, max-age=31536000, immutable"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(found.published, media_type="application/json", headers=headers)

    async def message(self, request: Request) -> Response:
        """A user's message, and S1's answer to it."""
        survey = survey_of(request)
        if survey not in self.longest:
            self.longest[survey] = max(longest_uploads(await self.s1.server.params(survey)).values())
        body = await body_of(request, self.longest[survey])
        answer = await self.s1.receive(survey, body)
        if isinstance(answer, Rejected):
            return problem_response(of_rejected(answer))
        return Response(encode(answer), media_type=BYTES)

    async def status(self, request: Request) -> Response:
        """Where the survey stands."""
        return json_response(await status.status(self.s1, survey_of(request)))

    async def events(self, request: Request) -> Response:
        """The status again whenever it has changed, as server-sent events, until the survey is over."""
        survey = survey_of(request)
        await status.status(self.s1, survey)
        return StreamingResponse(self._changes(survey), media_type="text/event-stream")

    async def _changes(self, survey: bytes) -> AsyncIterator[bytes]:
        last: dict[str, Any] = {}
        while last.get("state") not in FINAL:
            now = await status.status(self.s1, survey)
            yield b"data: " + msgspec.json.encode(now) + b"\n\n" if now != last else b": still here\n\n"
            last = now
            await asyncio.sleep(EVENT_SECONDS)

    async def result(self, request: Request) -> Response:
        """The result in JSON; as S2's signed bytes for whoever asks for bytes."""
        survey = survey_of(request)
        if BYTES in request.headers.get("accept", ""):
            return Response(encode(await status.last_word(self.s1, survey)), media_type=BYTES)
        return json_response(await status.result(self.s1, survey))

    async def offer(self, request: Request) -> Response:
        """Fresh keys for a survey to come."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        made = (await survey_setup.offer(self.s1, caller)).public()
        public = {name: made[name] for name in ("signing_key", "commitment")}
        return json_response({**public, "operator": self.s1.server.operator}, 201)

    async def create(self, request: Request) -> Response:
        """A survey with the parameters in the body."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey = survey_of(request)
        new = await survey_setup.create(self.s1, caller, survey, await body_of(request, PARAMETERS))
        return json_response(await status.status(self.s1, survey), 201 if new else 200)

    async def invite(self, request: Request) -> Response:
        """A part of the list of people: access values of 32 bytes."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, part = survey_of(request), part_of(request)
        lines = lines_of(await body_of(request, PART), ACCESS)
        return json_response({"people": await survey_setup.add_people(self.s1, caller, survey, part, lines)})

    async def open(self, request: Request) -> Response:
        """Let users in."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, wish = survey_of(request), await json_of(request, OpenWish)
        await survey_setup.open_survey(self.s1, caller, survey, wish.people)
        return json_response(await status.status(self.s1, survey))

    async def close(self, request: Request) -> Response:
        """End the phase that is open now."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, wish = survey_of(request), await json_of(request, CloseWish)
        if wish.state is not None and wish.state not in set(State):
            raise ProblemError(400, "malformed", "there is no such state")
        seen = None if wish.state is None else (State(wish.state), wish.attempt)
        await self.s1.close(caller, survey, seen)
        return json_response(await status.status(self.s1, survey))

    async def extend(self, request: Request) -> Response:
        """Give the phase that is open more time."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, wish = survey_of(request), await json_of(request, ExtendWish)
        if not 0 < wish.seconds <= MOST_EXTENSION:
            raise ProblemError(400, "malformed", f"seconds must be 1 to {MOST_EXTENSION}")
        await self.s1.extend(caller, survey, wish.seconds)
        return json_response(await status.status(self.s1, survey))

    async def reissue(self, request: Request) -> Response:
        """Another invitation instead of one that was not used: two access values of 32 bytes, the old one first."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, values = survey_of(request), lines_of(await body_of(request, 2 * ACCESS), ACCESS)
        if len(values) != 2:
            raise ProblemError(400, "malformed", "give two access values, the old one first")
        await self.s1.reissue(caller, survey, *values)
        return json_response(await status.status(self.s1, survey))

    async def answered(self, request: Request) -> Response:
        """Ids of the people who have answered, 16 bytes each."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        return Response(b"".join(await self.s1.answered(caller, survey_of(request))), media_type=BYTES)

    async def delete(self, request: Request) -> Response:
        """Remove a survey that is over, or was never opened."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        await delete_survey(self.s1.server, caller, survey_of(request))
        return Response(status_code=204)

    async def abort(self, request: Request) -> Response:
        """End the survey without a result."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        survey, wish = survey_of(request), await json_of(request, AbortWish)
        await self.s1.abort(caller, survey, wish.reason[:500])
        return json_response(await status.status(self.s1, survey))

    async def receipts(self, request: Request) -> Response:
        """S2's receipts about a population."""
        caller = await self.s1.server.door.admit(request, Scope.OWNER)
        population = request.query_params.get("population", "")
        return json_response({"receipts": await status.receipts(self.s1, caller, population)})


def coordinator_app(
    s1: CoordinatorService, scheduler: Scheduler | None = None, origins: Sequence[str] = ()
) -> Starlette:
    """S1 as an application; with a scheduler it keeps its deadlines and talks to S2 while it runs.

    `origins` are those of other pages whose scripts may take part: they can send no token, so no owner's call.
    """
    calls, survey = CoordinatorCalls(s1), "/v1/surveys/{survey}"
    routes = [
        Route(f"{survey}/messages", calls.message, methods=["POST"]),  # first: most calls are these
        Route("/v1/offers", calls.offer, methods=["POST"]),
        Route("/v1/receipts", calls.receipts, methods=["GET"]),
        Route(survey, calls.create, methods=["PUT"]),
        Route(survey, calls.delete, methods=["DELETE"]),
        Route(f"{survey}/params", calls.params, methods=["GET"]),
        Route(f"{survey}/status", calls.status, methods=["GET"]),
        Route(f"{survey}/events", calls.events, methods=["GET"]),
        Route(f"{survey}/result", calls.result, methods=["GET"]),
        Route(f"{survey}/invited/{{part}}", calls.invite, methods=["PUT"]),
        Route(f"{survey}/open", calls.open, methods=["POST"]),
        Route(f"{survey}/close", calls.close, methods=["POST"]),
        Route(f"{survey}/extend", calls.extend, methods=["POST"]),
        Route(f"{survey}/abort", calls.abort, methods=["POST"]),
        *page_routes(),
        Route(f"{survey}/reissue", calls.reissue, methods=["POST"]),
        Route(f"{survey}/answered", calls.answered, methods=["GET"]),
    ]
    shared = Middleware(
        CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["Content-Type"]
    )
    around = [shared] if origins else []
    return MessagesFirst(
        calls.message, routes=routes, middleware=around, exception_handlers=handlers(), lifespan=_life(s1, scheduler)
    )


def _life(s1: CoordinatorService, scheduler: Scheduler | None) -> Any:
    @asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await s1.server.destroy_used_keys()
        running = None if scheduler is None else asyncio.create_task(scheduler.run())
        yield
        if running is not None:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        await s1.server.database.close()

    return life
