"""HTTP helpers of both servers: bounded bodies, ids in paths, JSON, and errors as problems."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from faircount.core.errors import FaircountError
from faircount.server.common.problems import (
    MEDIA_TYPE,
    ProblemError,
    not_found,
    problem_of_error,
)
from faircount.server.common.tokens import AUTHENTICATED

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[ASGIApp]]

BYTES = "application/octet-stream"
SMALL = 64 * 1024
"""Maximum size of a JSON body, in bytes."""
PARAMETERS = 4 * 1024 * 1024
"""Maximum size of survey parameters, in bytes."""
PART = 1024 * 1024
"""Maximum size of one part of a list, in bytes."""


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body; beyond `limit` bytes the request is refused and the rest is not read."""
    # Not through Starlette's headers and stream, which take longer than a short body.
    for name, value in request.scope["headers"]:
        if name == b"content-length" and value.isdigit() and int(value[:20]) > limit:
            raise _too_long(limit)
    # The header may lie or be missing (chunked encoding), so the bytes are counted as well.
    chunks: list[bytes] = []
    size = 0
    is_complete = False
    while not is_complete:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise _too_long(limit)
        is_complete = not message.get("more_body", False)
    # check: revoked-meanwhile - a thief begins a call, and ends its body after the token is revoked
    if (is_still_valid := request.scope.get(AUTHENTICATED)) is not None:
        await is_still_valid()
    return b"".join(chunks)


def _too_long(limit: int) -> ProblemError:
    # On a connection that stays open the server would have to receive the rest to discard it.
    headers = {"Connection": "close"}
    return ProblemError(413, "too-long", f"this call takes at most {limit} bytes", headers=headers)


async def read_json(request: Request, kind: type[T], limit: int = SMALL) -> T:
    """Read the body as JSON of this type; an empty body counts as an empty object."""
    data = await read_body(request, limit) or b"{}"
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ProblemError(
            400, "malformed", f"the body is not the JSON of this call: {problem}"
        ) from None


def survey_id_of(request: Request) -> bytes:
    """Return the survey id in the path: 32 hexadecimal digits in lower case."""
    # One spelling per survey: caches, logs and signatures over paths rely on it.
    text = request.path_params["survey"]
    try:
        survey = bytes.fromhex(text)
    except ValueError:
        raise not_found("survey") from None
    if len(survey) != 16 or survey.hex() != text:
        raise not_found("survey")
    return survey


def part_number_of(request: Request) -> int:
    """Return the part number in the path."""
    # `isdigit` alone accepts digits of other scripts, and `int` is slow for very long numbers.
    text = request.path_params["part"]
    if not (text.isascii() and text.isdigit()) or len(text) > 6:
        raise not_found("part: parts are numbered 0, 1, 2, ...")
    return int(text)


def split_list(data: bytes, size: int) -> list[bytes]:
    """Split a body into values of `size` bytes, which follow each other without separators."""
    if not data or len(data) % size:
        raise ProblemError(
            400,
            "malformed",
            f"a part is a list of values of {size} bytes each, without separators",
        )
    return [data[start : start + size] for start in range(0, len(data), size)]


class BytesResponse:
    """A response of bytes: Starlette's own takes longer than the answer to a participant."""

    __slots__ = ("_body",)

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Send the response."""
        headers = [
            (b"content-length", b"%d" % len(self._body)),
            (b"content-type", BYTES.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})


def json_response(value: Any, status: int = 200) -> Response:
    """Build a response in JSON, from plain values or a Struct."""
    return JSONResponse(msgspec.to_builtins(value), status)


def problem_response(problem: ProblemError) -> Response:
    """Build the response that describes a problem."""
    return JSONResponse(problem.body(), problem.status, dict(problem.headers), MEDIA_TYPE)


async def on_faircount_error(_: Request, error: Exception) -> Response:
    """Turn an error of faircount into a problem."""
    known = error if isinstance(error, FaircountError) else FaircountError()
    return problem_response(problem_of_error(known))


async def on_unexpected_error(_: Request, __: Exception) -> Response:
    """Answer after an unexpected exception, whose text may contain secrets and stays here."""
    return problem_response(problem_of_error(FaircountError()))


async def on_http_error(_: Request, error: Exception) -> Response:
    """Turn Starlette's own errors into problems: an unknown path or a wrong method."""
    status: int = getattr(error, "status_code", 500)
    kind = {404: "unknown", 405: "wrong-method"}.get(status, "malformed")
    # Among these is `Allow`, which a 405 must have.
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    return problem_response(ProblemError(status, kind, "there is no such call", headers=headers))


async def on_disconnect(_: Request, __: Exception) -> Response:
    """Answer a caller who has disconnected: nobody will read it."""
    return Response(status_code=400)


def exception_handlers() -> dict[Any, Any]:
    """Return the exception handlers of an application, for Starlette."""
    return {
        FaircountError: on_faircount_error,
        HTTPException: on_http_error,
        ClientDisconnect: on_disconnect,
        Exception: on_unexpected_error,
    }


def without_redirects(app: Starlette) -> Starlette:
    """Return an application that answers a path with a slash too many with 404."""
    # check: redirect-host - a redirect would send people to whatever host a request names
    app.router.redirect_slashes = False
    return app


class MessagesFirst(Starlette):
    """An application with a shortcut for participants' messages, by far the most frequent call.

    The shortcut skips Starlette's routing and middleware stack, which take longer than the call
    itself. All other calls, and all calls if middleware is installed (CORS), take the usual way.
    """

    def __init__(self, messages: Handler, **others: Any) -> None:
        super().__init__(**others)
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI call."""
        survey = self._survey_of_message(scope)
        if survey is None:
            await super().__call__(scope, receive, send)
            return
        # The request middleware reads both to log the call, as it does after Starlette's routing.
        scope.update(endpoint=self._messages, path_params={"survey": survey})
        request = Request(scope, receive)
        response: ASGIApp
        try:
            response = await self._messages(request)
        except FaircountError as error:
            response = await on_faircount_error(request, error)
        except ClientDisconnect as error:
            response = await on_disconnect(request, error)
        except Exception as error:
            response = await on_unexpected_error(request, error)
            await response(scope, receive, send)
            # As Starlette does: the caller is answered, and the server logs the exception.
            raise
        await response(scope, receive, send)

    def _survey_of_message(self, scope: Scope) -> str | None:
        """Return the survey in the path if the shortcut applies to this call."""
        if self.user_middleware or scope["type"] != "http" or scope["method"] != "POST":
            return None
        if scope.get("root_path"):
            return None
        match = _MESSAGES.fullmatch(scope["path"])
        return None if match is None else match[1]


_MESSAGES = re.compile("/v1/surveys/([^/]+)/messages")
