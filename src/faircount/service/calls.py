"""Calls to a server over HTTP: the same bytes again, with growing pauses, until it answers or patience ends.

Asking again is always safe: the servers write a message once, and answer the same bytes with the same answer. What a
server will not do comes back as a problem in JSON (RFC 9457), and is raised as `RemoteError`.
"""

import json
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from secrets import randbelow
from typing import TYPE_CHECKING, Any

from faircount.core.domain import shown
from faircount.core.errors import FaircountError, RemoteError, UnreachableError

if TYPE_CHECKING:
    import httpx

BUSY = frozenset({408, 429, 500, 502, 503, 504, 507})
"""Answers of a server, or of a proxy before it, after which the same request may fare better."""

BYTES = "application/octet-stream"
ANSWER_SECONDS = 30.0
"""How long one answer may take."""

LONGEST_WORDS = 500
"""Characters of a server's own words that are shown."""


@dataclass(frozen=True)
class Patience:
    """How often a call is tried, and how long it pauses in between: twice as long each time, less up to a half."""

    tries: int = 6
    first: float = 0.25
    longest: float = 8.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def pauses(self) -> Iterator[float]:
        """The pauses between the tries. Half of each is random, so that devices do not come back all at once."""
        for number in range(self.tries - 1):
            whole = min(self.longest, self.first * 2**number)
            yield whole / 2 + whole / 2 * randbelow(1 << 16) / (1 << 16)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered with success."""

    status: int
    body: bytes
    headers: "httpx.Headers"

    def json(self) -> Any:
        """The body as JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise RemoteError("the server's answer is not JSON: is this the address of a faircount server?") from None


class RemoteServer:
    """One server: its address, the token with which to ask, and the connection. `name` is what errors call it.

    `verify` is a file with the certificates to believe, for a server whose certificate no public authority has signed.
    """

    def __init__(
        self,
        address: str,
        *,
        name: str = "the server",
        token: str | None = None,
        patience: Patience | None = None,
        http: "httpx.Client | None" = None,
        verify: str | None = None,
    ) -> None:
        self.address, self.name = address, name
        self._token, self._patience = token, patience or Patience()
        self._http = http or _connection(verify)
        if http is None:
            weakref.finalize(self, self._http.close)  # whoever takes part in one line of Python closes nothing

    def __repr__(self) -> str:
        return f"RemoteServer({self.address!r})"

    def close(self) -> None:
        """Give the connection back."""
        self._http.close()

    def call(
        self, method: str, path: str, content: bytes | None = None, *, given: Any = None, accept: str = "*/*"
    ) -> Reply:
        """The answer to a request with these bytes, or with `given` as JSON; tried again while the server is busy."""
        body = json.dumps(given).encode() if given is not None else content
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = BYTES if given is None else "application/json"
        pauses = self._patience.pauses()
        while True:
            found, problem = self._try(method, path, body, headers)
            if found is not None and found.status_code not in BUSY:
                return _reply(self.name, found)
            pause = next(pauses, None)
            if pause is None:
                words = f"{self.name} at {self.address} {problem}: nothing is lost, try again later"
                raise UnreachableError(words).coded("unreachable", server=self.name)
            self._patience.sleep(max(pause, _asked_pause(found)))

    def _try(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> "tuple[httpx.Response | None, str]":
        import httpx

        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            found = self._http.request(method, self.address + path, content=body, headers=headers)
        except httpx.TimeoutException:
            return None, "does not answer in time"
        except httpx.TransportError as problem:
            return None, f"cannot be reached ({_plain(problem)})"
        return found, f"is not ready (it answers {found.status_code})"


def _connection(verify: str | None) -> "httpx.Client":
    try:
        import httpx
    except ImportError:
        raise FaircountError("surveys over a network need more: pip install 'faircount[service]'") from None
    return httpx.Client(timeout=ANSWER_SECONDS, verify=True if verify is None else _trusting(verify))


def _trusting(path: str) -> Any:
    import ssl

    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError):
        raise FaircountError(f"{path} is no file of certificates: it holds them as PEM") from None


def _asked_pause(found: "httpx.Response | None") -> float:
    """The pause that the server asked for, if it asked for one in seconds; at most a minute."""
    asked = "" if found is None else found.headers.get("retry-after", "")
    return min(60.0, float(asked)) if asked.isdecimal() else 0.0


def _reply(name: str, found: "httpx.Response") -> Reply:
    if found.is_success or found.status_code == HTTPStatus.NOT_MODIFIED:
        return Reply(found.status_code, found.content, found.headers)
    problem = _problem(found)
    words = shown(problem.get("detail") or problem.get("title") or _phrase(found.status_code))[:LONGEST_WORDS]
    number = problem.get("reason")
    refused = RemoteError(f"{name} refuses: {words}", found.status_code, number if isinstance(number, int) else 0)
    raise refused.coded("remote", server=name)


def _problem(found: "httpx.Response") -> dict[str, Any]:
    try:
        said = found.json()
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _plain(problem: Exception) -> str:
    words = str(problem).partition("] ")[2] or str(problem)
    return words.lower()[:LONGEST_WORDS] or type(problem).__name__
