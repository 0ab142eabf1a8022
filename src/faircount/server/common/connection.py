"""One connection of a server: uvicorn's, with limits on how long a caller may keep it.

uvicorn closes a connection that is idle after an answer, but waits for ever for the headers of a
request, and for a caller who does not read its answer. The time for a body is bounded in
`middleware`, which can answer.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 15.0
"""How long the headers of a request may take, counted from the connection or the last answer."""
EVENT_SECONDS = 600.0
"""How long a stream of events lasts; whoever listens opens the next one."""
REQUEST_SECONDS = EVENT_SECONDS + 120.0
"""How long a request may last, with its answer: after that the caller is not reading any more."""


class BoundedProtocol(H11Protocol):
    """A connection that is closed when its caller takes too long."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Note when a request begins."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._since = self.loop.time()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request; also for one whose body is still being sent."""
        self._since = self.loop.time()
        super().on_response_complete()

    def _look_again(self) -> None:
        is_serving = self.cycle is not None and not self.cycle.response_complete
        allowed = REQUEST_SECONDS if is_serving else HEADER_SECONDS
        left = self._since + allowed - self.loop.time()
        # check: slow-headers - callers that send a byte now and then keep all others out
        if left <= 0:
            # Not `close`, which waits until the caller has read everything.
            self.transport.abort()
            return
        self._timer = self.loop.call_later(min(left, HEADER_SECONDS), self._look_again)
