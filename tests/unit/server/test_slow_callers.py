"""Callers who keep connections: without a request, with slow bodies, and in great number."""

import asyncio
import errno
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from bounded_server import PATIENCE, BoundedServer, bounded_server, until_closed
from in_process import in_process
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from trial_survey import open_trial

from faircount.server.common import connection as connection_limits
from faircount.server.common import middleware
from faircount.server.common.http import exception_handlers, read_body
from faircount.server.common.listener import Connections, Listener, listen, raise_file_limit
from faircount.server.coordinator import app as coordinator_app

SECONDS = 0.4
DRIPS = 60
BIG = 1 << 24


async def echo(request: Request) -> Response:
    return Response(await read_body(request, 1 << 20))


async def ignore(_: Request) -> Response:
    return Response(b"not read")


async def big(_: Request) -> Response:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(BIG >> 16):
            yield bytes(1 << 16)

    return StreamingResponse(parts())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BoundedServer]:
    """A server whose limits are fractions of a second, with at most six connections per address."""
    monkeypatch.setattr(connection_limits, "HEADER_SECONDS", SECONDS)
    monkeypatch.setattr(connection_limits, "REQUEST_SECONDS", 4 * SECONDS)
    monkeypatch.setattr(middleware, "BODY_SECONDS", SECONDS)
    routes = [
        Route("/echo", echo, methods=["POST"]),
        Route("/ignore", ignore, methods=["POST"]),
        Route("/big", big),
    ]
    app = Starlette(routes=routes, exception_handlers=exception_handlers())
    with bounded_server(app, Connections(20, 6)) as running:
        yield running


def drip(caller: socket.socket, data: bytes) -> None:
    """Send one byte now and then, until the server closes or for a few seconds."""
    for byte in data:
        time.sleep(SECONDS / 4)
        try:
            caller.sendall(bytes([byte]))
        except ConnectionError:
            return


def test_a_caller_that_sends_nothing_is_disconnected(server: BoundedServer) -> None:
    with server.connect() as caller:
        assert until_closed(caller) == b""


def test_headers_byte_by_byte_are_not_waited_for(server: BoundedServer) -> None:
    with server.connect() as caller:
        drip(caller, b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n")
        assert until_closed(caller) == b""


@pytest.mark.parametrize("pause", [0.0, SECONDS / 4])
def test_a_body_that_does_not_end_is_answered_with_408(server: BoundedServer, pause: float) -> None:
    with server.connect() as caller:
        caller.sendall(b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 60\r\n\r\n")
        if pause:
            drip(caller, bytes(DRIPS - 1))
        answer = until_closed(caller)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b"too-slow" in answer


def test_a_body_that_nobody_reads_keeps_no_connection(server: BoundedServer) -> None:
    """The answer comes before the body does: then the body may last as long as headers."""
    with server.connect() as caller:
        caller.sendall(b"POST /ignore HTTP/1.1\r\nHost: here\r\nContent-Length: 60\r\n\r\n")
        drip(caller, bytes(DRIPS - 1))
        assert until_closed(caller).startswith(b"HTTP/1.1 200")


def test_a_caller_that_does_not_read_is_disconnected(server: BoundedServer) -> None:
    with server.connect() as caller:
        caller.sendall(b"GET /big HTTP/1.1\r\nHost: here\r\n\r\n")
        wait_until_none_is_open(server)


def wait_until_none_is_open(server: BoundedServer) -> None:
    ends_at = time.monotonic() + PATIENCE
    while server.connections.by_address.total():
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_an_honest_caller_is_served(server: BoundedServer) -> None:
    with server.connect() as caller:
        for _ in range(2):
            caller.sendall(b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi")
            answer = b""
            while not answer.endswith(b"\r\n\r\nhi"):
                data = caller.recv(65536)
                assert data
                answer += data


def test_one_address_does_not_keep_the_others_out(server: BoundedServer) -> None:
    callers = [server.connect() for _ in range(12)]
    try:
        answers = [is_served(caller) for caller in callers]
        assert answers == [True] * 6 + [False] * 6
        with server.connect("127.0.0.2") as other:
            assert is_served(other)
    finally:
        for caller in callers:
            caller.close()
    wait_until_none_is_open(server)
    with server.connect() as again:
        assert is_served(again)


def is_served(caller: socket.socket) -> bool:
    try:
        caller.sendall(b"POST /ignore HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n")
        return caller.recv(65536).startswith(b"HTTP/1.1 200")
    except ConnectionError:
        return False


def test_many_addresses_leave_descriptors_for_the_database() -> None:
    connections = Connections(3, 2)
    names = [connections.register(f"192.0.2.{number}") for number in range(5)]
    assert names == ["192.0.2.0", "192.0.2.1", "192.0.2.2", None, None]
    connections.unregister("192.0.2.0")
    assert connections.register("192.0.2.9")


def test_a_site_of_ipv6_counts_as_one_address() -> None:
    connections = Connections(10, 2)
    names = [connections.register(f"2001:db8::{number}") for number in range(3)]
    assert names == ["2001:db8::/64", "2001:db8::/64", None]
    assert connections.register("2001:db8:0:1::1") is not None


def test_the_limits_follow_from_the_open_files() -> None:
    few = Connections.for_files(256, 200)
    assert (few.most, few.per_address) == (192, 96)
    many = Connections.for_files(20_000, 200)
    assert (many.most, many.per_address) == (19_936, 200)
    assert raise_file_limit() >= 64


def test_without_descriptors_a_connection_is_refused_and_no_error_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """asyncio would log each failure of `accept`, thousands of times per second."""
    (listener,) = listen("127.0.0.1", 0, Connections(10, 10))
    listener.listen()
    listener.setblocking(True)
    accept = Listener._accept  # type: ignore[attr-defined]
    failures = [OSError(errno.EMFILE, "too many open files")]

    def fail_once(self: Listener) -> tuple[int, object]:
        if failures:
            raise failures.pop()
        found: tuple[int, object] = accept(self)
        return found

    monkeypatch.setattr(Listener, "_accept", fail_once, raising=False)
    with listener, socket.create_connection(listener.getsockname(), timeout=PATIENCE) as caller:
        with pytest.raises(BlockingIOError):
            listener.accept()
        assert until_closed(caller) == b""
        with socket.create_connection(listener.getsockname(), timeout=PATIENCE):
            accepted, _ = listener.accept()
            accepted.close()
            accepted.close()
    assert not listener.connections.by_address


def test_a_listener_leaves_no_descriptor_behind() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for listener in listen("127.0.0.1", 0, Connections(10, 10)):
        listener.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_stream_of_events_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "EVENT_SECONDS", SECONDS)
    monkeypatch.setattr(coordinator_app, "POLL_SECONDS", SECONDS / 4)

    async def work() -> bytes:
        async with in_process(tmp_path) as pair:
            survey = await open_trial(pair.to_s1, pair.to_s2)
            events = pair.to_s1.get(f"{survey.path}/events")
            return (await asyncio.wait_for(events, PATIENCE)).content

    assert b"still here" in asyncio.run(work())
