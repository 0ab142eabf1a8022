"""Around every call: a limit on requests per address, a line in the log, and metrics. Plain ASGI."""

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from faircount.service.metrics import Metrics
from faircount.service.problems import ProblemError
from faircount.service.web import problem_response

MOST_ADDRESSES = 10_000
"""Addresses that are remembered; the ones that were quiet for longest are forgotten first."""

_log = logging.getLogger("faircount.calls")


@dataclass
class RequestLimit:
    """A bucket of requests per address: it fills at a steady rate, and every request takes one."""

    per_second: float
    burst: int
    left: "OrderedDict[str, tuple[float, float]]" = field(default_factory=OrderedDict)

    def admits(self, address: str, now: float) -> bool:
        """Whether this address may make a request now."""
        before, since = self.left.pop(address, (float(self.burst), now))
        tokens = min(float(self.burst), before + (now - since) * self.per_second)
        self.left[address] = (max(0.0, tokens - 1), now)
        if len(self.left) > MOST_ADDRESSES:
            self.left.popitem(last=False)
        return tokens >= 1


@dataclass(frozen=True)
class Observed:
    """An application with its limit, log and metrics."""

    app: ASGIApp
    metrics: Metrics
    limit: RequestLimit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One call; everything else passes through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, sent = time.perf_counter(), 500, 0

        async def noted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            sent += len(message.get("body", b""))
            await send(message)

        address = (scope.get("client") or ("", 0))[0]
        try:
            if self.limit.admits(address, begun):
                await self.app(scope, receive, noted)
            else:
                await _TOO_MANY(scope, receive, noted)
        finally:
            self._note(scope, status, sent, time.perf_counter() - begun)

    def _note(self, scope: Scope, status: int, sent: int, seconds: float) -> None:
        endpoint = scope.get("endpoint")
        call = getattr(endpoint, "__name__", "none")
        self.metrics.note_call(call, status, seconds)
        level = logging.DEBUG if status < 400 and call == "message" else logging.INFO
        if not _log.isEnabledFor(level):
            return
        survey = scope.get("path_params", {}).get("survey", "")
        known = {"survey": survey} if len(survey) == 32 and survey.isalnum() else {}
        said = {"call": call, "status": status, "milliseconds": round(seconds * 1000, 1), "bytes": sent, **known}
        _log.log(level, "call", extra=said)


_TOO_MANY = problem_response(
    ProblemError(429, "too-many-requests", "too many requests from this address: wait", headers={"Retry-After": "1"})
)
