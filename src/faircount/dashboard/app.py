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

from faircount.core.errors import FaircountError
from faircount.dashboard.surveys import Surveys, advice
from faircount.service.participant_page import HEADERS

FILES = ("index.html", "dashboard.css", "main.js", "views.js")
SHARED = {"dom.js": "page/dom.js", "chart.js": "page/chart.js", "style.css": "style.css", "icon.svg": "icon.svg"}
"""What the participant's page has already: name here, path there."""

Handler = Callable[[Request], Awaitable[Response]]


def dashboard_app(surveys: Surveys, key: str, host: str) -> Starlette:
    """The application; `host` is the only name and port by which it may be called."""
    calls = {
        ("/api/advice", "POST"): lambda path, given: advice(given),
        ("/api/surveys", "GET"): lambda path, given: {"surveys": surveys.all()},
        ("/api/surveys", "POST"): lambda path, given: surveys.create(given),
        ("/api/surveys/{name}", "GET"): lambda path, given: surveys.one(path["name"]),
        ("/api/surveys/{name}/result", "GET"): lambda path, given: surveys.result(path["name"]),
        ("/api/surveys/{name}/budget", "GET"): lambda path, given: surveys.budget(path["name"]),
        ("/api/surveys/{name}/{what}", "POST"): lambda path, given: surveys.wish(path["name"], path["what"], given),
        ("/api/surveys/{name}/files/{kind}", "GET"): lambda path, given: surveys.file(path["name"], path["kind"]),
    }
    routes = [Route(path, _guarded(call, key, host), methods=[method]) for (path, method), call in calls.items()]
    pages = [Route(f"/{name}", _file(name, host), methods=["GET"]) for name in (*FILES, *SHARED)]
    return Starlette(routes=[*routes, *pages, Route("/", _file("index.html", host), methods=["GET"])])


def _guarded(call: Callable[[dict[str, str], dict[str, Any]], Any], key: str, host: str) -> Handler:
    async def answer(request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.headers.get("host") != host or not hmac.compare_digest(given.encode(), key.encode()):
            return JSONResponse({"detail": "open the address that faircount dashboard has printed"}, 403)
        try:
            said = json.loads(await request.body() or b"{}")
            found = await asyncio.to_thread(call, dict(request.path_params), said)
        except (FaircountError, json.JSONDecodeError) as problem:
            return JSONResponse({"detail": str(problem)}, 409)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream", headers=HEADERS)
        return JSONResponse(found, headers=HEADERS)

    return answer


def _file(name: str, host: str) -> Handler:
    shared = SHARED.get(name)
    path = files("faircount") / "dashboard" / "web" / name if shared is None else files("faircount") / "web" / shared
    content, kind = path.read_bytes(), mimetypes.guess_type(name)[0]

    async def answer(request: Request) -> Response:
        if request.headers.get("host") != host:
            return Response("another host", 403)
        return Response(content, media_type=kind, headers=HEADERS)

    return answer
