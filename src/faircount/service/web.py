"""What both servers' calls have in common: bodies of bounded size, ids in paths, JSON, problems."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from faircount.core.errors import FaircountError
from faircount.service.problems import MEDIA_TYPE, ProblemError, of_error, unknown

T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]

BYTES = "application/octet-stream"
SMALL = 64 * 1024
"""Bytes of the longest JSON that a server reads."""
PARAMETERS = 4 * 1024 * 1024
"""Bytes of the longest parameters."""
PART = 1024 * 1024
"""Bytes of the longest part of a list."""


async def body_of(request: Request, most: int) -> bytes:
    """The body, refused unread beyond `most` bytes."""
    said = request.headers.get("content-length", "0")
    if said.isdigit() and int(said) > most:
        raise _too_long(most)
    parts, size = list[bytes](), 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_long(most)
        parts.append(part)
    return b"".join(parts)


def _too_long(most: int) -> ProblemError:
    leave = {"Connection": "close"}  # or the rest would still be received, to be thrown away
    return ProblemError(413, "too-long", f"this call takes at most {most} bytes", headers=leave)


async def json_of(request: Request, kind: type[T], most: int = SMALL) -> T:
    """The body as JSON of this kind; an empty body is an empty object."""
    data = await body_of(request, most) or b"{}"
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ProblemError(400, "malformed", f"the body is not the JSON of this call: {problem}") from None


def survey_of(request: Request) -> bytes:
    """The survey in the path: 32 hexadecimal digits, in small letters."""
    text = request.path_params["survey"]
    if len(text) != 32 or not set(text) <= set("0123456789abcdef"):
        raise unknown("survey")
    return bytes.fromhex(text)


def part_of(request: Request) -> int:
    """The number of a part in the path."""
    text = request.path_params["part"]
    if not (text.isascii() and text.isdigit()) or len(text) > 6:
        raise unknown("part: parts are numbered 0, 1, 2, ...")
    return int(text)


def lines_of(data: bytes, size: int) -> list[bytes]:
    """A list of values of one size, without anything between them."""
    if not data or len(data) % size:
        raise ProblemError(400, "malformed", f"a part is a list of values of {size} bytes each, one after the other")
    return [data[start : start + size] for start in range(0, len(data), size)]


def json_response(value: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return JSONResponse(value, status)


def problem_response(problem: ProblemError) -> Response:
    """A problem as an answer."""
    return JSONResponse(problem.body(), problem.status, dict(problem.headers), MEDIA_TYPE)


async def on_faircount_error(_: Request, error: Exception) -> Response:
    """Every error of ours becomes a problem."""
    return problem_response(of_error(error if isinstance(error, FaircountError) else FaircountError()))


async def on_unexpected_error(_: Request, __: Exception) -> Response:
    """A mistake of ours: nothing of it is told."""
    return problem_response(of_error(FaircountError()))


async def on_http_error(_: Request, error: Exception) -> Response:
    """Starlette's own: a path or a method that there is not."""
    status: int = getattr(error, "status_code", 500)
    kind = {404: "unknown", 405: "wrong-method"}.get(status, "malformed")
    headers: dict[str, str] = dict(getattr(error, "headers", None) or {})
    return problem_response(ProblemError(status, kind, "there is no such call", headers=headers))


def handlers() -> dict[Any, Any]:
    """What becomes of errors, for Starlette."""
    return {
        FaircountError: on_faircount_error,
        HTTPException: on_http_error,
        ClientDisconnect: on_disconnect,
        Exception: on_unexpected_error,
    }


async def on_disconnect(_: Request, __: Exception) -> Response:
    """Whoever asked is gone: nobody reads this answer."""
    return Response(status_code=400)


class MessagesFirst(Starlette):
    """An application whose call for messages is reached straight: most calls are these, and Starlette's way is long.

    Where there is something around all calls (for pages of others), and for every other call, the way is Starlette's.
    """

    def __init__(self, messages: Handler, **others: Any) -> None:
        super().__init__(**others)
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call."""
        found = _MESSAGES.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if found is None or self.user_middleware or scope.get("root_path"):
            await super().__call__(scope, receive, send)
            return
        scope.update(endpoint=self._messages, path_params={"survey": found[1]})
        request = Request(scope, receive)
        try:
            answer = await self._messages(request)
        except FaircountError as error:
            answer = await on_faircount_error(request, error)
        except ClientDisconnect as error:
            answer = await on_disconnect(request, error)
        except Exception as error:
            await (await on_unexpected_error(request, error))(scope, receive, send)
            raise  # to the log
        await answer(scope, receive, send)


_MESSAGES = re.compile("/v1/surveys/([^/]+)/messages")
