"""The dashboard as an application for the owner's own browser.

It listens on loopback only. Whoever opens it must know a key that is made anew at every start and stands after # in the
address; a request that names another host, as a page of somebody else's that was led here would, is refused.
"""

import asyncio
import hmac
import json
import mimetypes
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.dashboard.said import said
from faircount.dashboard.surveys import Surveys
from faircount.service.participant_page import HEADERS

SHARED = {
    "dom.js": "page/dom.js",
    "chart.js": "page/chart.js",
    "dialog.js": "page/dialog.js",
    "endings.js": "page/endings.js",
    "language.js": "page/language.js",
    "sureness.js": "page/sureness.js",
    "style.css": "style.css",
    "icon.svg": "icon.svg",
}
"""What the participant's page has already: name here, path there."""

_STRANGER = RefusedError("open the address that faircount dashboard has printed").coded("stranger")

Handler = Callable[[Request], Awaitable[Response]]
Call = Callable[[dict[str, str], dict[str, Any]], Any]
"""From the parts of the path and what was given in JSON to an answer: bytes of a file, or what becomes JSON."""


def dashboard_app(surveys: Surveys, key: str, host: str) -> Starlette:
    """The application; `host` is the only name and port by which it may be called."""
    survey = "/api/surveys/{name}"
    calls: dict[tuple[str, str], Call] = {
        ("/api/advice", "POST"): lambda path, given: surveys.advice(given),
        ("/api/surveys", "GET"): lambda path, given: {"surveys": surveys.all()},
        ("/api/surveys", "POST"): lambda path, given: surveys.create(given),
        (survey, "GET"): lambda path, given: surveys.one(path["name"]),
        (f"{survey}/result", "GET"): lambda path, given: surveys.result(path["name"]),
        (f"{survey}/second", "GET"): lambda path, given: surveys.second(path["name"]),
        (f"{survey}/people", "GET"): lambda path, given: {"people": surveys.people(path["name"])},
        (f"{survey}/people/{{at}}", "GET"): lambda path, given: surveys.invitation(path["name"], path["at"]),
        (f"{survey}/files/{{kind}}", "GET"): lambda path, given: surveys.file(path["name"], path["kind"]),
        (f"{survey}/{{what}}", "POST"): lambda path, given: surveys.wish(path["name"], path["what"], given),
    }
    routes = [Route(path, _guarded(call, key, host), methods=[method]) for (path, method), call in calls.items()]
    pages = [Route(f"/{name}", _file(content, name, host), methods=["GET"]) for name, content in _files().items()]
    return Starlette(routes=[*routes, *pages, Route("/", _file(_files()["index.html"], "index.html", host))])


def _files() -> dict[str, bytes]:
    """Every file of the page, by name."""
    own = (files("faircount") / "dashboard" / "web").iterdir()
    shared = {name: files("faircount") / "web" / path for name, path in SHARED.items()}
    return {name: path.read_bytes() for name, path in {**{each.name: each for each in own}, **shared}.items()}


def _guarded(call: Call, key: str, host: str) -> Handler:
    async def answer(request: Request) -> Response:
        shown = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.headers.get("host") != host or not hmac.compare_digest(shown.encode(), key.encode()):
            return JSONResponse(said(_STRANGER), 403, HEADERS)
        try:
            given = _object(await request.body())
            found = await asyncio.to_thread(call, dict(request.path_params), given)
        except FaircountError as problem:
            return JSONResponse(said(problem), 409, HEADERS)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream", headers=HEADERS)
        return JSONResponse(found, headers=HEADERS)

    return answer


def _object(body: bytes) -> dict[str, Any]:
    """What a call gives, in JSON; nothing is an empty object."""
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ParameterError("a call gives one JSON object, or nothing")
    return given


def _file(content: bytes, name: str, host: str) -> Handler:
    kind = mimetypes.guess_type(name)[0]

    async def answer(request: Request) -> Response:
        if request.headers.get("host") != host:
            return Response("another host", 403)
        return Response(content, media_type=kind, headers=HEADERS)

    return answer
