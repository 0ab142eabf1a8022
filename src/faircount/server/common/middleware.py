"""Middleware around every call: a rate limit per address, a log line, and metrics. Plain ASGI."""

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faircount.server.common.http import problem_response
from faircount.server.common.metrics import Metrics
from faircount.server.common.problems import ProblemError

MAX_ADDRESSES = 10_000
"""How many addresses are remembered; the one that was idle longest is forgotten first."""

_log = logging.getLogger("faircount.calls")


@dataclass
class RequestLimit:
    """A token bucket per address: it refills at a steady rate, and every request takes a token."""

    per_second: float
    burst: int
    buckets: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def admits(self, address: str, now: float) -> bool:
        """Whether this address may make a request now; takes a token if so."""
        before, since = self.buckets.pop(address, (float(self.burst), now))
        tokens = min(float(self.burst), before + (now - since) * self.per_second)
        # Inserted last, so that the first entry is always the address that was idle longest.
        self.buckets[address] = (max(0.0, tokens - 1), now)
        # Bounded: a caller with many addresses must not fill the memory.
        if len(self.buckets) > MAX_ADDRESSES:
            self.buckets.popitem(last=False)
        return tokens >= 1


@dataclass(frozen=True)
class RequestMiddleware:
    """An application with its rate limit, log and metrics."""

    app: ASGIApp
    metrics: Metrics
    limit: RequestLimit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one HTTP call; other ASGI events (lifespan) pass through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        # If the application fails before it answers, the server answers with 500.
        status = 500
        size = 0

        async def send_and_measure(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            size += len(message.get("body", b""))
            await send(message)

        # Behind a trusted proxy uvicorn has replaced the proxy's address by the caller's.
        address = (scope.get("client") or ("", 0))[0]
        try:
            if self.limit.admits(address, start):
                await self.app(scope, receive, send_and_measure)
            else:
                await _TOO_MANY_REQUESTS(scope, receive, send_and_measure)
        finally:
            self._record(scope, status, size, time.perf_counter() - start)

    def _record(self, scope: Scope, status: int, size: int, seconds: float) -> None:
        """Count a call in the metrics and write its log line."""
        endpoint = scope.get("endpoint")
        call = getattr(endpoint, "__name__", "none")
        self.metrics.note_call(call, status, seconds)
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


_TOO_MANY_REQUESTS = problem_response(
    ProblemError(
        429,
        "too-many-requests",
        "too many requests from this address: wait a second and try again",
        headers={"Retry-After": "1"},
    )
)
