"""An application behind faircount's own sockets and connections, in a thread of this process."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp

from faircount.server.common.listener import Connections, listen
from faircount.server.common.metrics import Metrics
from faircount.server.common.middleware import RequestLimit, RequestMiddleware
from faircount.server.run import server_config

PATIENCE = 30.0
"""Seconds after which a test fails in which the other side does nothing."""


@dataclass(frozen=True)
class BoundedServer:
    """A running server and what it counts."""

    port: int
    connections: Connections

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, sender: str = "127.0.0.1") -> socket.socket:
        """Open a connection from an address of this machine."""
        return socket.create_connection(
            ("127.0.0.1", self.port), timeout=PATIENCE, source_address=(sender, 0)
        )


@contextmanager
def bounded_server(app: ASGIApp, connections: Connections) -> Iterator[BoundedServer]:
    """Serve an application; its limits on time are those of the modules, which a test may set."""
    listeners = listen("127.0.0.1", 0, connections)
    public = RequestMiddleware(app, Metrics.create(), RequestLimit(1000.0, 1000))
    config = server_config(public)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(list(listeners))), daemon=True
    )
    port = listeners[0].getsockname()[1]
    thread.start()
    ends_at = time.monotonic() + PATIENCE
    while not server.started and time.monotonic() < ends_at:
        time.sleep(0.01)
    try:
        yield BoundedServer(port, connections)
    finally:
        server.should_exit = True
        server.force_exit = True
        thread.join(PATIENCE)


def until_closed(connection: socket.socket) -> bytes:
    """Return what arrives until the other side closes; a timeout fails the test."""
    received = b""
    while True:
        try:
            data = connection.recv(65536)
        except ConnectionError:
            return received
        if not data:
            return received
        received += data
