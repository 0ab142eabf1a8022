"""Answers of a dishonest server: compressed, without an end, or byte by byte."""

import asyncio
import gc
import gzip
import socket
import ssl
import time
from collections.abc import Callable

import httpx
import pytest
from raw_server import RawServer, raw_server

from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.core.entropy import SeededStream
from faircount.core.errors import RemoteError, UnreachableError
from faircount.protocol.wire.messages import Rejection
from faircount.protocol.wire.signing import SigningKey
from faircount.server.coordinator.aggregator_connection import AggregatorConnection, AggregatorError
from faircount.transport import calls
from faircount.transport.calls import (
    Answer,
    RefusedAnswerError,
    fetch,
    fetch_async,
    open_client,
)
from faircount.transport.limits import MAX_STATEMENTS, max_statement_bytes

LIMIT = 1 << 16
SECONDS = 0.5
# Long after the limit of time, and not for ever: a client without limits ends, and is found out.
DRIPS = 40
PAUSE = 0.05

Call = Callable[..., Answer]


def call(server: RawServer, seconds: float = 20.0) -> Answer:
    with open_client(server.address) as client:
        return fetch(client, "GET", server.address, limit=LIMIT, seconds=seconds)


def call_in_loop(server: RawServer, seconds: float = 20.0) -> Answer:
    async def work() -> Answer:
        async with httpx.AsyncClient() as client:
            return await fetch_async(client, "GET", server.address, limit=LIMIT, seconds=seconds)

    return asyncio.run(work())


both_ways = pytest.mark.parametrize("fetch_from", [call, call_in_loop])


def send_bomb(connection: socket.socket) -> None:
    """A few kilobytes that become 16 MB, which is enough to see and not too much."""
    body = gzip.compress(bytes(16 << 20))
    assert len(body) < LIMIT
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def send_without_end(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"1000\r\n" + bytes(0x1000) + b"\r\n"
    for _ in range(64 * LIMIT // 0x1000):
        connection.sendall(chunk)
    connection.sendall(b"0\r\n\r\n")


def drip_body(connection: socket.socket) -> None:
    connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {DRIPS}\r\n\r\n".encode())
    for _ in range(DRIPS):
        time.sleep(PAUSE)
        connection.sendall(b"x")


def drip_headers(connection: socket.socket) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":
        time.sleep(PAUSE)
        connection.sendall(bytes([byte]))


@both_ways
def test_a_compressed_answer_is_neither_asked_for_nor_read(fetch_from: Call) -> None:
    with raw_server(send_bomb) as server:
        with pytest.raises(RefusedAnswerError, match="compressed"):
            fetch_from(server)
        assert b"accept-encoding: identity" in server.requests[0].lower()


@both_ways
def test_an_answer_without_an_end_is_cut_off(fetch_from: Call) -> None:
    with raw_server(send_without_end) as server, pytest.raises(RefusedAnswerError, match="longer"):
        fetch_from(server)


@both_ways
def test_an_answer_that_announces_too_much_is_refused_unread(fetch_from: Call) -> None:
    def announce(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {LIMIT + 1}\r\n\r\n".encode())
        # Nothing follows: a client that wants to read waits here until its time is over.
        connection.recv(1)

    with raw_server(announce) as server, pytest.raises(RefusedAnswerError, match="longer"):
        fetch_from(server)


@both_ways
@pytest.mark.parametrize("drip", [drip_body, drip_headers])
def test_an_answer_byte_by_byte_ends_with_the_time_of_the_call(
    fetch_from: Call, drip: Callable[[socket.socket], None]
) -> None:
    with raw_server(drip) as server, pytest.raises(httpx.TimeoutException):
        fetch_from(server, SECONDS)


@both_ways
def test_an_honest_answer_is_read(fetch_from: Call) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    with raw_server(answer) as server:
        assert fetch_from(server).body == b"hello"


def test_redirects_are_not_followed() -> None:
    def redirect(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 307 No\r\nLocation: /else\r\nContent-Length: 0\r\n\r\n")

    with raw_server(redirect) as server:
        assert call(server).status == 307
        assert len(server.requests) == 1


@both_ways
def test_a_request_is_freed_with_its_call(fetch_from: Call) -> None:
    """The coordinator sends parts of half a megabyte, thousands of them in a large survey."""

    def respond(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def count_requests() -> int:
        return sum(isinstance(found, httpx.Request) for found in gc.get_objects())

    with raw_server(respond) as server:
        fetch_from(server)
        gc.collect()
        before = count_requests()
        gc.disable()
        try:
            assert fetch_from(server).body == b"ok"
            assert count_requests() == before
        finally:
            gc.enable()


def test_proxies_of_the_environment_have_the_same_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with open_client("http://127.0.0.1:2") as client:
        transports = [client._transport, *filter(None, client._mounts.values())]
        assert len(transports) > 1
        for transport in transports:
            assert isinstance(transport, httpx.HTTPTransport)
            assert isinstance(transport._pool._network_backend, calls._TimedBackend)


def test_only_who_may_use_tls_loads_the_certificates_of_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count_trusted(address: str) -> int:
        with open_client(address) as client:
            transport = client._transport
            assert isinstance(transport, httpx.HTTPTransport)
            context = transport._pool._ssl_context
            assert context is not None
            assert context.verify_mode == ssl.CERT_REQUIRED
            assert context.check_hostname
            return context.cert_store_stats()["x509_ca"]

    assert count_trusted("https://127.0.0.1:2") > 0
    assert count_trusted("http://127.0.0.1:2") == 0
    monkeypatch.setenv("HTTP_PROXY", "https://127.0.0.1:1")
    assert count_trusted("http://127.0.0.1:2") > 0


@pytest.mark.parametrize("script", [send_bomb, send_without_end])
def test_owners_and_participants_refuse_them_too(script: Callable[[socket.socket], None]) -> None:
    with raw_server(script) as server:
        remote = RemoteServer(server.address, retry=RetryPolicy(attempts=3))
        with pytest.raises(RemoteError, match="Ask its operator"):
            remote.call("GET", "/", limit=LIMIT)
        # Tried once: another try would only read it again.
        assert len(server.requests) == 1
        remote.close()


def test_owners_and_participants_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls.fetch, "__kwdefaults__", {**FETCH_DEFAULTS, "seconds": SECONDS})
    with raw_server(drip_headers) as server:
        remote = RemoteServer(server.address, retry=RetryPolicy(attempts=1))
        with pytest.raises(UnreachableError, match="in time"):
            remote.call("GET", "/")
        remote.close()


FETCH_DEFAULTS = fetch.__kwdefaults__


@pytest.mark.parametrize("script", [send_bomb, send_without_end, drip_headers])
def test_the_coordinator_refuses_them_from_the_aggregator(
    script: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = {**fetch_async.__kwdefaults__, "seconds": SECONDS}
    monkeypatch.setattr(calls.fetch_async, "__kwdefaults__", defaults)
    monkeypatch.setattr("faircount.transport.limits.STATEMENTS", LIMIT)
    key = SigningKey.generate(SeededStream(1))

    async def work(address: str) -> None:
        async with httpx.AsyncClient(base_url=address) as client:
            await AggregatorConnection(client).send(key, bytes(16), Rejection(1), 8)

    with raw_server(script) as server, pytest.raises(AggregatorError):
        asyncio.run(work(server.address))


def test_the_limit_of_statements_follows_from_the_number_of_people() -> None:
    assert max_statement_bytes(8) < 5 << 20
    assert max_statement_bytes(100_000) > 100_000 * 300
    assert max_statement_bytes(1 << 31) == MAX_STATEMENTS
