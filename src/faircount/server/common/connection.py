"""One connection of a server: uvicorn's, with limits on how long a caller may keep it.

uvicorn closes a connection that is idle after an answer, but waits for ever for the headers of a
request, and for a caller who does not read its answer. The time for a body is bounded in
`middleware`, which can answer.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

BODY_READY = "faircount.body_ready"
"""Says among the extensions of a request that its whole body has arrived with its headers."""
JOINED_BYTES = 4096
"""A longer part of an answer is written at once."""
HEADER_SECONDS = 15.0
"""How long the headers of a request may take, counted from the connection or the last answer."""
EVENT_SECONDS = 600.0
"""How long a stream of events lasts; whoever listens opens the next one."""
REQUEST_SECONDS = EVENT_SECONDS + 120.0
"""How long a request may last, with its answer: after that the caller is not reading any more."""


class _JoiningTransport(asyncio.Transport):
    """Writes headers and body of a short answer to the network in one call.

    uvicorn writes them one after the other. What was written waits until the answer is complete, or
    until the event loop has done what it does now, as for the headers of a stream of events.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep data until `flush`."""
        if not data:
            return
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(bytes(data))
        # A long answer must reach the real transport, which tells when a caller does not read.
        if len(data) > JOINED_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            self._transport.write(b"".join(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Write what waits, and close."""
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._waiting.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        """Whether it is closed, or about to be."""
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What is known about the connection."""
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        """Stop reading."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Go on reading."""
        self._transport.resume_reading()


class BoundedProtocol(H11Protocol):
    """A connection that is closed when its caller takes too long."""

    _timer: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        self._joining = _JoiningTransport(transport, self.loop)
        super().connection_made(self._joining)
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
            # Headers and a short body arrive together. The handler has not begun yet.
            if not self.cycle.more_body:
                self.cycle.scope["extensions"] = {BODY_READY: {}}

    def on_response_complete(self) -> None:
        """Begin to wait for the next request; also for one whose body is still being sent."""
        self._joining.flush()
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
