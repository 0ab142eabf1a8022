"""Middleware around every call: limits per address and on the time of a body, log and metrics.

Plain ASGI.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faircount.server.common.addresses import Network, counted_as, is_proxy, original_address
from faircount.server.common.connection import BODY_READY
from faircount.server.common.http import problem_response
from faircount.server.common.metrics import Metrics
from faircount.server.common.problems import ProblemError

MAX_ADDRESSES = 10_000
"""How many addresses are remembered; the one that was idle longest is forgotten first."""

BODY_SECONDS = 20.0
"""How long a body may take, besides a second for every `BODY_BYTES_PER_SECOND` of it."""
BODY_BYTES_PER_SECOND = 16 * 1024

HSTS = (b"strict-transport-security", b"max-age=31536000")
"""Whoever has once come over TLS does not come without it for a year."""

_log = logging.getLogger("faircount.calls")


@dataclass
class RequestLimit:
    """A token bucket per address: it refills at a steady rate, and every request takes a token."""

    per_second: float
    burst: int
    buckets: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def allows(self, address: str, now: float) -> bool:
        """Whether this address may make a request now; takes a token if so."""
        before, since = self.buckets.pop(address, (float(self.burst), now))
        tokens = min(float(self.burst), before + (now - since) * self.per_second)
        # Inserted last, so that the first entry is always the address that was idle longest.
        self.buckets[address] = (max(0.0, tokens - 1), now)
        # Bounded: a caller with many addresses must not fill the memory.
        if len(self.buckets) > MAX_ADDRESSES:
            self.buckets.popitem(last=False)
        return tokens >= 1


class TimedBody:
    """The body of one request, which must arrive at a steady pace."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._started: float | None = None
        self._size = 0
        self._is_complete = False
        self.is_answered = False

    async def receive(self) -> Message:
        """Return the next part of the body, or how the connection ended."""
        if self._is_complete:
            return await self._receive()
        loop = asyncio.get_running_loop()
        if self._started is None:
            self._started = loop.time()
        ends_at = self._started + BODY_SECONDS + self._size / BODY_BYTES_PER_SECOND
        try:
            # check: slow-body - callers that never end their bodies keep all others out
            async with asyncio.timeout_at(ends_at):
                message = await self._receive()
        except TimeoutError:
            # An answer that has begun, such as a stream of events, can only end.
            if self.is_answered:
                return {"type": "http.disconnect"}
            raise ProblemError(
                408,
                "too-slow",
                "the body of this request arrives too slowly: send it again",
                headers={"Connection": "close"},
            ) from None
        self._size += len(message.get("body", b""))
        self._is_complete = not message.get("more_body", False)
        return message


@dataclass(frozen=True)
class RequestMiddleware:
    """An application with its limits, log and metrics.

    proxies: whose X-Forwarded-For and X-Forwarded-Proto are believed
    """

    app: ASGIApp
    metrics: Metrics
    limit: RequestLimit
    proxies: tuple[Network, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP call; other ASGI events (lifespan) pass through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        # If the application fails before it answers, the server answers with 500.
        status = 500
        size = 0
        timed = None
        # Nobody waits for a body that has arrived with the headers, as short ones do.
        if BODY_READY not in (scope.get("extensions") or ()):
            timed = TimedBody(receive)
            receive = timed.receive
        is_secure = self._is_secure(scope)

        async def send_and_measure(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                if timed is not None:
                    timed.is_answered = True
                if is_secure:
                    message = {**message, "headers": [*message.get("headers", ()), HSTS]}
            size += len(message.get("body", b""))
            await send(message)

        try:
            if self.limit.allows(counted_as(self._address(scope)), start):
                await self.app(scope, receive, send_and_measure)
            else:
                await _TOO_MANY_REQUESTS(scope, receive, send_and_measure)
        finally:
            self._record(scope, status, size, time.perf_counter() - start)

    def _address(self, scope: Scope) -> str:
        """Return the address of the caller, also behind trusted proxies."""
        peer: str = (scope.get("client") or ("", 0))[0]
        if not self.proxies:
            return peer
        return original_address(peer, _header(scope, b"x-forwarded-for"), self.proxies)

    def _is_secure(self, scope: Scope) -> bool:
        """Whether the caller came over TLS, to this server or to a trusted proxy."""
        if scope.get("scheme") == "https":
            return True
        if not self.proxies:
            return False
        peer = (scope.get("client") or ("", 0))[0]
        forwarded = _header(scope, b"x-forwarded-proto")
        return forwarded.strip() == "https" and is_proxy(peer, self.proxies)

    def _record(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        """Count a call in the metrics and write its log line."""
        endpoint = scope.get("endpoint")
        call = getattr(endpoint, "__name__", "none")
        self.metrics.calls.note(call, status, seconds)
        # Thousands of participants' messages would hide everything else in the log.
        level = logging.DEBUG if status < 400 and call == "message" else logging.INFO
        if not _log.isEnabledFor(level):
            return
        fields: dict[str, Any] = {
            "call": call,
            "status": status,
            "milliseconds": round(seconds * 1000, 1),
            "bytes": size,
        }
        # Only what looks like a survey id: callers can put anything into a path.
        survey = scope.get("path_params", {}).get("survey", "")
        if len(survey) == 32 and survey.isalnum():
            fields["survey"] = survey
        _log.log(level, "call", extra=fields)


def _header(scope: Scope, name: bytes) -> str:
    """Return a header; one that was sent several times is a list."""
    values = [value for key, value in scope["headers"] if key == name]
    return b",".join(values).decode("latin-1")


_TOO_MANY_REQUESTS = problem_response(
    ProblemError(
        429,
        "too-many-requests",
        "too many requests from this address: wait a second and try again",
        headers={"Retry-After": "1"},
    )
)
