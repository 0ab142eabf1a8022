"""The files of the participant's page, and the static bundle that another origin can serve.

The coordinator serves the page, and whoever serves a page decides what it does. So the same files
can come from somewhere else (an owner's site, a static host, the aggregator), with the coordinator
as a source of data only. The bundle is `web/` with another `index.html`, which

    names the coordinator,
    has a policy that lets scripts call the coordinator and nobody else,
    has the hash of every script and style sheet (subresource integrity).

Anybody can compute the hash of a page or a bundle from the files alone: it is the SHA-256 of the
lines `<SHA-256 of a file>  <its path>`, sorted by path, each ended by a line feed.
"""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import urlsplit

from faircount.core.errors import ParameterError

MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""The files that are served, by suffix; all others in the folder are not."""

INDEX = "index.html"
MAIN = "page/main.js"
STYLE = "style.css"

_SCRIPT_TAG = f'<script type="module" src="{MAIN}"></script>'
_STYLE_TAG = f'<link rel="stylesheet" href="{STYLE}">'


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

    @property
    def integrity(self) -> str:
        """The hash as browsers compare it (subresource integrity)."""
        return _integrity(self.content)


def _integrity(content: bytes) -> str:
    return f"sha256-{b64encode(sha256(content).digest()).decode()}"


@cache
def page_files() -> tuple[PageFile, ...]:
    """Return all files that the coordinator serves, sorted by path."""
    return tuple(sorted(_walk(files("faircount") / "web", ""), key=lambda file: file.path))


def _walk(folder: Traversable, prefix: str) -> Iterator[PageFile]:
    for entry in folder.iterdir():
        media_type = MEDIA_TYPES.get("." + entry.name.rpartition(".")[2])
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif media_type is not None:
            yield PageFile(prefix + entry.name, media_type, entry.read_bytes())


def hash_files(page: Iterable[PageFile]) -> str:
    """Return the hash of a whole page, whose files are sorted by path."""
    lines = "".join(f"{file.hash}  {file.path}\n" for file in page)
    return sha256(lines.encode()).hexdigest()


def page_hash() -> str:
    """Return the hash of the page that the coordinator serves."""
    return hash_files(page_files())


def policy(scripts: str = "", server: str = "'self'") -> tuple[str, ...]:
    """Return the content security policy of a page, one directive each.

    scripts: a further source of scripts, besides the page's own files
    server: what scripts may call
    """
    # The page handles responses before they are encrypted: no script, style, request or frame of
    # another origin is allowed, and no string becomes code (Trusted Types).
    return (
        "default-src 'none'",
        f"script-src 'self'{scripts and ' '}{scripts}",
        "style-src 'self'",
        "img-src 'self'",
        f"connect-src {server}",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )


@dataclass(frozen=True, slots=True)
class Bundle:
    """The page for another origin than the coordinator's.

    files: all of its files, sorted by path
    policy: the content security policy, for a server that sends it as a header
    """

    files: tuple[PageFile, ...]
    policy: str

    @property
    def hash(self) -> str:
        """The hash of the whole bundle."""
        return hash_files(self.files)


@cache
def make_bundle(coordinator: str) -> Bundle:
    """Make the page that calls the coordinator at this address; always the same bytes."""
    server, origin = _split_address(coordinator)
    page = {file.path: file for file in page_files()}
    scripts = [file for path, file in page.items() if path.endswith(".js")]
    # check: bundle-integrity - whoever serves one of the files changes what the page does
    hashes = {f"./{file.path}": file.integrity for file in scripts}
    import_map = json.dumps({"integrity": hashes}, sort_keys=True, separators=(",", ":"))
    directives = policy(f"'{_integrity(import_map.encode())}'", origin)
    # Browsers take every directive but this one from a page itself.
    inside = [directive for directive in directives if not directive.startswith("frame-ancestors")]
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{escape("; ".join(inside))}">',
        '<meta name="referrer" content="no-referrer">',
        f'<meta name="faircount-server" content="{escape(server)}">',
        f'<link rel="stylesheet" href="{STYLE}" integrity="{page[STYLE].integrity}">',
        f'<script type="importmap">{import_map}</script>',
        # For browsers that do not read hashes in import maps.
        *(
            f'<link rel="modulepreload" href="{file.path}" integrity="{file.integrity}">'
            for file in scripts
        ),
        f'<script type="module" src="{MAIN}" integrity="{page[MAIN].integrity}"></script>',
    )
    index = page[INDEX].content.decode()
    # The policy comes before everything that it governs.
    index = _replace_once(index, f"    {_STYLE_TAG}\n", "")
    index = _replace_once(index, f"    {_SCRIPT_TAG}\n", "")
    index = _replace_once(index, '<meta charset="utf-8">', '<meta charset="utf-8">' + _lines(head))
    page[INDEX] = PageFile(INDEX, MEDIA_TYPES[".html"], index.encode())
    return Bundle(tuple(page.values()), "; ".join(directives))


def _split_address(coordinator: str) -> tuple[str, str]:
    """Return a coordinator's address with a slash at its end, and its origin."""
    parts = urlsplit(coordinator)
    # Quotes, spaces of any kind and semicolons would end the source or the directive in which the
    # origin stands, and a star would stand for any host.
    # check: bundle-address - an address adds sources to the policy of the page
    is_plain = coordinator.isascii() and not re.search(r"[^!-~]|[*'\";,\\]", coordinator)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ParameterError(f"an address looks like https://count.example.org: {coordinator!r}")
    origin = f"{parts.scheme}://{parts.netloc}"
    return f"{origin}{parts.path.rstrip('/')}/", origin


def _lines(tags: Iterable[str]) -> str:
    return "".join(f"\n    {tag}" for tag in tags)


def _replace_once(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise AssertionError(f"{INDEX} must have {old!r} once")
    return text.replace(old, new)
