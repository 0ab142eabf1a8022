"""HTTP calls to a server, repeated with growing pauses until it answers or the attempts run out.

Repeating a call is always safe. The servers store a message once and answer the same bytes with the
same answer, so a client that has not seen an answer sends its request again. A server rejects a
request with a problem document in JSON (RFC 9457), which is raised as `RemoteError`. How long an
answer may be and how long it may take is bounded in `faircount.transport`.
"""

import json
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from secrets import randbelow
from typing import TYPE_CHECKING, Any

from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError, RemoteError, UnreachableError
from faircount.transport.limits import SMALL_ANSWER

if TYPE_CHECKING:
    import httpx

    from faircount.transport.calls import Answer

# Answers of a server, or of a proxy in front of it, after which the same request may succeed later.
BUSY = frozenset({408, 429, 500, 502, 503, 504, 507})

BYTES = "application/octet-stream"

LONGEST_REQUESTED_PAUSE = 60.0

# A server's own text is shown to people, so a dishonest server must not be able to fill the screen.
MAX_DETAIL_CHARACTERS = 500

RESERVED_VALUES = frozenset({"self", "code", "cause", "server"})


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is attempted. The pauses in between double up to the longest one.

    patience: seconds after which no further attempt is made; attempts may take long where a server
        does not even refuse connections
    """

    attempts: int = 6
    first_pause: float = 0.25
    longest_pause: float = 8.0
    patience: float = 8.0
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def pauses(self) -> Iterator[float]:
        """Pauses between the attempts, in seconds."""
        for attempt in range(self.attempts - 1):
            pause = min(self.longest_pause, self.first_pause * 2**attempt)
            # Half of a pause is random, so that clients do not all return in the same moment after
            # a server was down.
            yield pause / 2 + pause / 2 * randbelow(1 << 16) / (1 << 16)


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's answer to a request that succeeded."""

    status: int
    body: bytes
    headers: "httpx.Headers"

    def json(self) -> Any:
        """Decode the body as JSON."""
        try:
            return json.loads(self.body)
        # Brackets in brackets without an end exceed the recursion limit.
        except (ValueError, RecursionError):
            message = "the server's answer is not JSON: is this the address of a faircount server?"
            raise RemoteError(message).with_code("not_faircount") from None


class RemoteServer:
    """A connection to one server.

    address: where the server is, without a slash at the end
    name: how error messages call it
    label: how the values of an error call it, for pages in other languages; `name` if not given
    token: the caller's access token
    retry: how often a call is attempted
    http: an open connection to use instead of an own one
    verify: a file of certificates to trust, for a server with its own certificate authority
    """

    def __init__(
        self,
        address: str,
        *,
        name: str = "the server",
        label: str | None = None,
        token: str | None = None,
        retry: RetryPolicy | None = None,
        http: "httpx.Client | None" = None,
        verify: str | None = None,
    ) -> None:
        self.address = address
        self.name = name
        self.label = label or name
        self._token = token
        self._retry = retry or RetryPolicy()
        self._http = http or _open_connection(address, verify)
        # `fc.connect(link).answer(...)` leaves nobody who would close our own connection.
        if http is None:
            weakref.finalize(self, self._http.close)

    def __repr__(self) -> str:
        return f"RemoteServer({self.address!r})"

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        *,
        json_body: Any = None,
        accept: str = "*/*",
        limit: int = SMALL_ANSWER,
    ) -> Reply:
        """Send a request with these bytes, or with `json_body`, until the server answers.

        limit: the most bytes that the answer may have
        """
        headers = {"Accept": accept}
        if json_body is not None:
            content = json.dumps(json_body).encode()
            headers["Content-Type"] = "application/json"
        elif content is not None:
            headers["Content-Type"] = BYTES
        pauses = self._retry.pauses()
        last_attempt_at = time.monotonic() + self._retry.patience
        while True:
            answer, problem = self._attempt(method, path, content, headers, limit)
            if answer is not None and answer.status not in BUSY:
                return self._check_answer(answer)
            pause = next(pauses, None)
            if pause is None or time.monotonic() > last_attempt_at:
                message = (
                    f"{self.name} at {self.address} {problem}: nothing is lost, try again later"
                )
                raise UnreachableError(message).with_code(
                    "unreachable", server=self.label, address=self.address
                )
            self._retry.sleep(max(pause, _requested_pause(answer)))

    def _attempt(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: dict[str, str],
        limit: int,
    ) -> "tuple[Answer | None, str]":
        """The answer, if any, and what is wrong in case it is not usable."""
        # Imported late: httpx is an optional dependency, and takes long to load.
        import httpx

        from faircount.transport.calls import RefusedAnswerError, fetch

        # Added to the headers only here, so that no error message can contain the token.
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        url = self.address + path
        try:
            answer = fetch(
                self._http,
                method,
                url,
                content=content,
                headers=headers,
                limit=limit,
            )
        except httpx.TimeoutException:
            return None, "does not answer in time"
        except httpx.TransportError as error:
            return None, f"cannot be reached ({_describe_transport_error(error)})"
        except RefusedAnswerError as error:
            # Not tried again: nothing but another server gives another answer.
            message = f"{self.name} at {self.address}: {error}. Ask its operator"
            raise RemoteError(message).with_code("not_faircount") from None
        return answer, f"is not ready (it answers {answer.status})"

    def _check_answer(self, answer: "Answer") -> Reply:
        """The reply of a request that succeeded; anything else is raised as `RemoteError`."""
        # 304 answers the question whether something has changed, so it is no error.
        if 200 <= answer.status < 300 or answer.status == HTTPStatus.NOT_MODIFIED:
            return Reply(answer.status, answer.body, answer.headers)
        problem = _read_problem(answer)
        detail = problem.get("detail") or problem.get("title") or _status_phrase(answer.status)
        # Control characters of a dishonest server could rewrite the text on a terminal.
        detail = escape_controls(detail)[:MAX_DETAIL_CHARACTERS]
        reason = problem.get("reason")
        if not isinstance(reason, int):
            reason = 0
        error = RemoteError(f"{self.name} refuses: {detail}", answer.status, reason)
        raise error.with_code("remote", **_error_values(problem), server=self.label)


def _open_connection(address: str, verify: str | None) -> "httpx.Client":
    try:
        from faircount.transport.calls import open_client
    except ImportError:
        message = "surveys over a network need more packages: pip install 'faircount[service]'"
        raise FaircountError(message).with_code("not_installed") from None
    return open_client(address, None if verify is None else _load_certificates(verify))


def _load_certificates(path: str) -> Any:
    import ssl

    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError):
        message = f"{path} holds no certificates: give a file in PEM format"
        raise FaircountError(message).with_code("certificates", file=path) from None


def _requested_pause(answer: "Answer | None") -> float:
    """The pause in seconds that the server asks for with Retry-After, if it does."""
    seconds = "" if answer is None else answer.headers.get("retry-after", "")
    # Bounded, or a dishonest server could keep a client waiting for ever.
    return min(LONGEST_REQUESTED_PAUSE, float(seconds)) if seconds.isdecimal() else 0.0


def _error_values(problem: dict[str, Any]) -> dict[str, str | int]:
    """The code of a server's problem, or else its type, and the integers that belong to it.

    A page fills these values into its own sentences. Texts of the server are left out, because the
    page would show them as if they were its own.
    """
    kind = str(problem.get("type", "")).rpartition(":")[2].replace("-", "_")
    values: dict[str, str | int] = {}
    given = problem.get("values")
    if isinstance(given, dict):
        for name, value in given.items():
            # A server must not choose the names that we set ourselves, such as which server it is.
            # Not isinstance, because True and False are integers for Python.
            if type(value) is int and name not in RESERVED_VALUES:
                values[str(name)] = value
    values["cause"] = str(problem.get("code") or kind)[:MAX_DETAIL_CHARACTERS]
    return values


def _read_problem(answer: "Answer") -> dict[str, Any]:
    """The problem document in an answer; empty if a proxy answered with something else."""
    try:
        problem = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return problem if isinstance(problem, dict) else {}


def _status_phrase(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _describe_transport_error(error: Exception) -> str:
    """The message of the operating system, without its number in brackets."""
    # "[Errno 111] Connection refused" -> "connection refused"
    message = str(error).partition("] ")[2] or str(error)
    return message.lower()[:MAX_DETAIL_CHARACTERS] or type(error).__name__
