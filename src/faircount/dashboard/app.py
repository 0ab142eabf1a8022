"""The dashboard as a web application for the owner's own browser.

It listens on loopback only. A request needs the key that is made anew at every start and follows
the # in the printed address, so that no other user or program of the computer can act for the
owner. Requests for another host name are refused: that stops a foreign page whose name was pointed
to this address (DNS rebinding).
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
from faircount.dashboard.error_payload import error_payload
from faircount.dashboard.question_fields import read_file
from faircount.dashboard.sheets import describe_sheet
from faircount.dashboard.surveys import Surveys
from faircount.server.common.http import without_redirects
from faircount.server.common.participant_page import HEADERS

SHARED = {
    "dom.js": "page/dom.js",
    "chart.js": "page/chart.js",
    "certainty.js": "page/certainty.js",
    "dialog.js": "page/dialog.js",
    "endings.js": "page/endings.js",
    "language.js": "page/language.js",
    "style.css": "style.css",
    # The owner sees the sentences that participants will read.
    "participant_strings.js": "page/strings.js",
    "participant_several_strings.js": "page/several_strings.js",
    "level_strings.js": "page/level_strings.js",
    "icon.svg": "icon.svg",
}
"""Files shared with the participant's page: name here, path there."""

_NO_KEY = RefusedError("open the address that faircount dashboard printed").with_code("stranger")

Handler = Callable[[Request], Awaitable[Response]]
Call = Callable[[dict[str, str], dict[str, Any]], Any]
"""From path parameters and JSON values to the bytes of a file, or values for JSON."""


def dashboard_app(surveys: Surveys, key: str, host: str) -> Starlette:
    """The application; `host` is the only host name and port at which it responds."""
    routes = [
        Route(path, _guard(call, key, host), methods=[method])
        for (path, method), call in _calls(surveys).items()
    ]
    content = _page_files()
    pages = [
        Route(f"/{name}", _file_handler(data, name, host), methods=["GET"])
        for name, data in content.items()
    ]
    index = Route("/", _file_handler(content["index.html"], "index.html", host))
    return without_redirects(Starlette(routes=[*routes, *pages, index]))


def _calls(surveys: Surveys) -> dict[tuple[str, str], Call]:
    """The API by path and method."""
    survey = "/api/surveys/{name}"
    return {
        ("/api/advice", "POST"): lambda _, form: surveys.advice(form),
        ("/api/people", "POST"): lambda _, values: describe_sheet(values),
        ("/api/questions", "POST"): lambda _, values: read_file(values),
        ("/api/surveys", "GET"): lambda *_: {"surveys": surveys.all()},
        ("/api/surveys", "POST"): lambda _, form: surveys.create(form),
        (survey, "GET"): lambda path, _: surveys.one(path["name"]),
        (f"{survey}/form", "GET"): lambda path, _: surveys.form(path["name"]),
        (f"{survey}/result", "GET"): lambda path, _: surveys.result(path["name"]),
        (f"{survey}/trend", "GET"): lambda path, _: surveys.trend(path["name"]),
        (f"{survey}/aggregator", "GET"): lambda path, _: surveys.aggregator_status(path["name"]),
        (f"{survey}/people", "GET"): lambda path, _: {"people": surveys.people(path["name"])},
        (f"{survey}/people/{{at}}", "GET"): lambda path, _: surveys.invitation(
            path["name"], path["at"]
        ),
        (f"{survey}/files/{{kind}}", "GET"): lambda path, _: surveys.file(
            path["name"], path["kind"]
        ),
        (f"{survey}/people/{{at}}/reissue", "POST"): lambda path, _: surveys.reissue(
            path["name"], path["at"]
        ),
        (f"{survey}/mail", "GET"): lambda path, _: surveys.mail_status(path["name"]),
        (f"{survey}/mail", "POST"): lambda path, values: surveys.mail(path["name"], values),
        # `Surveys.request` refuses whatever is not the name of a request.
        (f"{survey}/{{what}}", "POST"): lambda path, values: surveys.request(
            path["name"], path["what"], values
        ),
    }


def _page_files() -> dict[str, bytes]:
    """Every file of the page, by name."""
    own = {path.name: path for path in (files("faircount") / "dashboard" / "web").iterdir()}
    shared = {name: files("faircount") / "web" / path for name, path in SHARED.items()}
    return {name: path.read_bytes() for name, path in {**own, **shared}.items()}


def _guard(call: Call, key: str, host: str) -> Handler:
    async def respond(request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        # Compared in constant time, so that response times do not give the key away.
        has_key = hmac.compare_digest(token.encode(), key.encode())
        if (
            # check: dashboard-host - a foreign page whose name was pointed here acts for the owner
            request.headers.get("host") != host
            # check: dashboard-key - another user or program of the computer acts for the owner
            or not has_key
        ):
            return JSONResponse(error_payload(_NO_KEY), 403, HEADERS)
        try:
            values = _json_object(await request.body())
            # In a thread, because a slow server must not block the other calls of the page.
            found = await asyncio.to_thread(call, dict(request.path_params), values)
        except FaircountError as problem:
            return JSONResponse(error_payload(problem), 409, HEADERS)
        if isinstance(found, bytes):
            return Response(found, media_type="application/octet-stream", headers=HEADERS)
        return JSONResponse(found, headers=HEADERS)

    return respond


def _json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body; an empty body is an empty object."""
    try:
        values = json.loads(body or b"{}")
    # RecursionError: lists in lists without end.
    except (ValueError, RecursionError):
        values = None
    # check: dashboard-body - a form of another page, which sends no JSON object
    if not isinstance(values, dict):
        raise ParameterError("send one JSON object, or nothing").with_code("bad_call")
    return values


def _file_handler(content: bytes, name: str, host: str) -> Handler:
    kind = mimetypes.guess_type(name)[0]

    async def respond(request: Request) -> Response:
        # The files hold no secret, so they need no key; the browser sends none for scripts.
        # check: dashboard-page-host - a foreign name shows the owner's page as its own
        if request.headers.get("host") != host:
            return Response("another host", 403)
        return Response(content, media_type=kind, headers=HEADERS)

    return respond
