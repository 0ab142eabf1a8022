"""A server on loopback that sends what a test tells it, byte by byte if need be."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 20.0
"""Seconds after which a test fails in which the other side does nothing."""

Script = Callable[[socket.socket], None]


@dataclass
class RawServer:
    """The port, and what the callers sent up to the end of their headers."""

    port: int
    requests: list[bytes] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def raw_server(script: Script) -> Iterator[RawServer]:
    """Answer every connection with a script, after the headers of its request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        server = RawServer(listener.getsockname()[1])
        stopped = threading.Event()

        def serve_one(connection: socket.socket) -> None:
            with connection:
                connection.settimeout(PATIENCE)
                request = b""
                try:
                    while b"\r\n\r\n" not in request:
                        request += connection.recv(65536)
                    server.requests.append(request)
                    script(connection)
                except OSError:
                    return  # the caller has closed the connection

        def serve() -> None:
            while not stopped.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                serve_one(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            stopped.set()
            thread.join(PATIENCE)
