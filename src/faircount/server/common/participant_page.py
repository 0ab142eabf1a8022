"""The participant's page as a server sends it: the files of `web/`, under a strict policy."""

from collections.abc import Iterable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from faircount.server.common.http import Handler
from faircount.server.common.page_files import (
    INDEX,
    PageFile,
    hash_files,
    make_bundle,
    page_files,
    policy,
)

POLICY = "; ".join(policy())
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # An invitation is in the fragment of the address, and must not be sent to other sites.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Browsers revalidate by ETag every time: a fix of the page must reach everybody.
    "Cache-Control": "no-cache",
}


def page_routes() -> list[Route]:
    """Return the routes of the page at the coordinator."""
    return _routes(page_files(), HEADERS)


def bundle_routes(coordinator: str) -> list[Route]:
    """Return the routes of the page at another server than the coordinator."""
    bundle = make_bundle(coordinator)
    return _routes(bundle.files, {**HEADERS, "Content-Security-Policy": bundle.policy})


def _routes(page: Iterable[PageFile], headers: dict[str, str]) -> list[Route]:
    """Return a route for every file, one for / and one for the hashes."""
    files = tuple(page)
    routes = [Route("/page.json", _hashes_handler(files, headers), methods=["GET"])]
    # One route per file: a path can never leave the folder.
    for file in files:
        handler = _file_handler(file, headers)
        routes.append(Route(f"/{file.path}", handler, methods=["GET"]))
        if file.path == INDEX:
            routes.append(Route("/", handler, methods=["GET"]))
    return routes


def _file_handler(file: PageFile, page_headers: dict[str, str]) -> Handler:
    tag = f'"{file.hash}"'
    headers = {**page_headers, "ETag": tag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return answer


def _hashes_handler(page: tuple[PageFile, ...], headers: dict[str, str]) -> Handler:
    hashes = {"page": hash_files(page), "files": {file.path: file.hash for file in page}}

    async def answer(_: Request) -> Response:
        """Serve the hash of the page and of each of its files."""
        return JSONResponse(hashes, headers=headers)

    return answer
