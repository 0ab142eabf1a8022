"""HTTP calls whose answer is bounded in bytes and in time.

Whoever answers may be dishonest, or may not be the server that was meant. So every call has three
limits, whichever part of faircount makes it:

    encoding  a compressed answer is not asked for, and refused before it is read: a few megabytes
              could decompress to many gigabytes
    bytes     the body is counted while it arrives, and beyond the limit of its kind of call the
              connection is closed
    time      one limit for the whole call: limits per read never end a call whose answer arrives
              byte by byte

Redirects are not followed.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.request import getproxies

import httpcore
import httpx

from faircount.core.errors import FaircountError
from faircount.transport.limits import (
    CALL_SECONDS,
    CONNECT_SECONDS,
    KIB,
    READ_SECONDS,
    SMALL_ANSWER,
)

WRITE_CHUNK = 64 * KIB
"""Bytes that are written before the time is looked at again."""

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)


class RefusedAnswerError(FaircountError):
    """An answer that was not read, or not to its end: compressed, or longer than it may be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer within all limits."""

    status: int
    headers: httpx.Headers
    body: bytes


def open_client(address: str, verify: ssl.SSLContext | None = None) -> httpx.Client:
    """Return a client whose calls end in time when they are made with `fetch`.

    address: where the server is; all calls go there
    verify: an SSL context, instead of the certificates that the system trusts
    """
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    if verify is None and address.startswith("http://") and not getproxies():
        # Loading the certificates takes longer than several calls on one machine, and only a proxy
        # could need them here. The context trusts nobody.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client = httpx.Client(timeout=timeout, verify=True if verify is None else verify)
    # httpx has no option for this, and none for a total time. Proxies from the environment have
    # transports of their own.
    for transport in (client._transport, *client._mounts.values()):
        pool = getattr(transport, "_pool", None)
        if pool is not None:
            pool._network_backend = _TimedBackend(httpcore.SyncBackend())
    return client


def fetch(
    client: httpx.Client,
    method: str,
    url: str,
    *,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    limit: int = SMALL_ANSWER,
    seconds: float = CALL_SECONDS,
) -> Answer:
    """Make a call; `limit` is the most bytes that its answer may have."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        request = client.build_request(method, url, content=content, headers=_plain(headers))
        response = client.send(request, stream=True)
        try:
            check_headers(response.headers, limit)
            body = bytearray()
            for chunk in response.iter_bytes():
                _add(body, chunk, limit)
            return Answer(response.status_code, response.headers, bytes(body))
        finally:
            response.close()
            _forget_request(response)
    finally:
        _deadline.reset(token)


async def fetch_async(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    *,
    content: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    limit: int = SMALL_ANSWER,
    seconds: float = CALL_SECONDS,
) -> Answer:
    """Make a call like `fetch`, in an event loop."""
    try:
        # check: answer-time - an answer that arrives byte by byte would hold its caller for ever
        async with asyncio.timeout(seconds):
            request = client.build_request(method, url, content=content, headers=_plain(headers))
            response = await client.send(request, stream=True)
            try:
                check_headers(response.headers, limit)
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    _add(body, chunk, limit)
                return Answer(response.status_code, response.headers, bytes(body))
            finally:
                await response.aclose()
                _forget_request(response)
    except TimeoutError:
        raise httpx.ReadTimeout("the call took too long") from None


def _forget_request(response: httpx.Response) -> None:
    """Free a response, and the request with its body, as soon as nobody uses them."""
    # The stream of a response refers to the response. Without this hundreds of megabytes of large
    # requests would wait until Python looks for objects that refer to each other.
    response.stream = httpx.ByteStream(b"")


def _plain(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Return the headers of a request that asks for no compression; httpx would ask for it."""
    return {**(headers or {}), "Accept-Encoding": "identity"}


def check_headers(headers: httpx.Headers, limit: int) -> None:
    """Refuse an answer by its headers, before any byte of its body is read."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    # check: compressed-answer - 3 MB that decompress to 23 GB
    if encoding not in ("", "identity"):
        raise RefusedAnswerError("the answer is compressed, which nobody asked for")
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise _too_long(limit)


def _add(body: bytearray, chunk: bytes, limit: int) -> None:
    # check: answer-size - an answer without an end would fill the memory
    if len(body) + len(chunk) > limit:
        raise _too_long(limit)
    body += chunk


def _too_long(limit: int) -> RefusedAnswerError:
    return RefusedAnswerError(f"the answer is longer than {limit} bytes, the most for this call")


# --- the time limit below httpx: headers too may arrive byte by byte -----------------------------


def _cap_timeout(timeout: float | None) -> float | None:
    """Return the timeout of one operation: as given, and at most what is left of the call."""
    # check: call-time - an answer that arrives byte by byte would hold its caller for ever
    ends_at = _deadline.get()
    if ends_at is None:
        return timeout
    left = ends_at - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the call took too long")
    return left if timeout is None else min(timeout, left)


class _TimedStream(httpcore.NetworkStream):
    """A connection on which no operation outlasts the call that it belongs to."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _cap_timeout(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), WRITE_CHUNK):
            self._inner.write(buffer[start : start + WRITE_CHUNK], _cap_timeout(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._inner.start_tls(ssl_context, server_hostname, _cap_timeout(timeout))
        )

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _TimedBackend(httpcore.NetworkBackend):
    """Opens connections with a limit of time."""

    def __init__(self, inner: httpcore.NetworkBackend) -> None:
        self._inner = inner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        opened = self._inner.connect_tcp(
            host, port, _cap_timeout(timeout), local_address, socket_options
        )
        return _TimedStream(opened)
