"""The participant's page as the coordinator serves it: the files of `web/`, under a strict policy.

Anybody can compute the hash of the whole page from the files alone: it is the SHA-256 of the lines
`<SHA-256 of a file>  <its path>`, sorted by path, each ended by a line feed.
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

from faircount.server.common.http import Handler

MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""The files that are served, by suffix; all others in the folder are not."""

# The page handles responses before they are encrypted: no script, style, request or frame of
# another origin is allowed, and no string becomes code (Trusted Types).
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
    # An invitation is in the fragment of the address, and must not be sent to other sites.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Browsers revalidate by ETag every time: a fix of the page must reach everybody.
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    path: str
    media_type: str
    content: bytes

    @property
    def hash(self) -> str:
        """The SHA-256 of the content, in hexadecimal."""
        return sha256(self.content).hexdigest()


@cache
def page_files() -> tuple[PageFile, ...]:
    """Return all files that are served, sorted by path."""
    return tuple(sorted(_walk(files("faircount") / "web", ""), key=lambda file: file.path))


def _walk(folder: Traversable, prefix: str) -> Iterator[PageFile]:
    for entry in folder.iterdir():
        media_type = MEDIA_TYPES.get("." + entry.name.rpartition(".")[2])
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif media_type is not None:
            yield PageFile(prefix + entry.name, media_type, entry.read_bytes())


def page_hash() -> str:
    """Return the hash of the whole page."""
    lines = "".join(f"{file.hash}  {file.path}\n" for file in page_files())
    return sha256(lines.encode()).hexdigest()


def page_routes() -> list[Route]:
    """Return a route for every file, one for / and one for the hashes."""
    routes = [Route("/page.json", _serve_hashes, methods=["GET"])]
    # One route per file: a path can never leave the folder.
    for file in page_files():
        handler = _file_handler(file)
        routes.append(Route(f"/{file.path}", handler, methods=["GET"]))
        if file.path == "index.html":
            routes.append(Route("/", handler, methods=["GET"]))
    return routes


def _file_handler(file: PageFile) -> Handler:
    tag = f'"{file.hash}"'
    headers = {**HEADERS, "ETag": tag}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    return answer


async def _serve_hashes(_: Request) -> Response:
    """Serve the hash of the page and of each of its files."""
    hashes = {file.path: file.hash for file in page_files()}
    return JSONResponse({"page": page_hash(), "files": hashes}, headers=HEADERS)
