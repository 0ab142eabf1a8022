"""The participant's page as S1 serves it: the files of `web/`, under a policy that lets nothing else run.

The hash of the whole page is reproducible from the files alone: it is the SHA-256 of the lines
`<SHA-256 of a file>  <its path>`, in the order of the paths, each ended by a line feed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from faircount.service.web import Handler

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""What is served; everything else in the folder is not."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # asked again each time, by its ETag: a mended page must arrive
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    path: str
    kind: str
    content: bytes

    @property
    def hash(self) -> str:
        """SHA-256, in hexadecimal."""
        return sha256(self.content).hexdigest()


@cache
def page_files() -> tuple[PageFile, ...]:
    """Every file that is served, in the order of the paths."""
    return tuple(sorted(_found(files("faircount") / "web", ""), key=lambda each: each.path))


def _found(folder: Traversable, before: str) -> Iterator[PageFile]:
    for each in folder.iterdir():
        kind = KINDS.get("." + each.name.rpartition(".")[2])
        if each.is_dir():
            yield from _found(each, f"{before}{each.name}/")
        elif kind is not None:
            yield PageFile(before + each.name, kind, each.read_bytes())


def page_hash() -> str:
    """The hash of the whole page."""
    return sha256("".join(f"{each.hash}  {each.path}\n" for each in page_files()).encode()).hexdigest()


def page_routes() -> list[Route]:
    """A route for every file, one for / and one for the hashes."""
    routes = [Route(f"/{each.path}", _answer(each), methods=["GET"]) for each in page_files()]
    (index,) = (each for each in page_files() if each.path == "index.html")
    return [Route("/", _answer(index), methods=["GET"]), *routes, Route("/page.json", _hashes, methods=["GET"])]


def _answer(file: PageFile) -> Handler:
    tag = f'"{file.hash}"'
    headers = {**HEADERS, "ETag": tag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.kind, headers=headers)

    return answer


async def _hashes(_: Request) -> Response:
    """The hash of the page and of each of its files."""
    return JSONResponse(
        {"page": page_hash(), "files": {each.path: each.hash for each in page_files()}}, headers=HEADERS
    )
