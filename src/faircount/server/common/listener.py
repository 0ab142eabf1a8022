"""The sockets on which a server listens: they bound how many connections are open.

A connection costs a file descriptor from the moment it is accepted, before anybody has sent a byte.
So connections are counted there: in total, to leave descriptors for the database, and per address,
so that one caller cannot keep all others out. Whoever comes in excess is disconnected at once.
"""

import errno
import os
import resource
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from faircount.server.common.addresses import Network, counted_as, is_proxy

OWN_FILES = 64
"""File descriptors that are left for the database, the keys and the other server."""
FEWEST_CONNECTIONS = 16
WAITING_CONNECTIONS = 2048
"""Connections that wait to be accepted, for example while the server starts."""
MAX_FILES = 1 << 16
"""As many descriptors as a server asks the system for, if it may."""

_NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)


def raise_file_limit() -> int:
    """Allow this process as many open files as the system lets it, and return how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = MAX_FILES if hard == unlimited else min(hard, MAX_FILES)
    if soft == unlimited or soft >= wanted:
        return MAX_FILES if soft == unlimited else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


@dataclass
class Connections:
    """The open connections of a server.

    most: how many there may be
    per_address: how many one address may have; a trusted proxy may have all of them
    """

    most: int
    per_address: int
    proxies: tuple[Network, ...] = ()
    by_address: Counter[str] = field(default_factory=Counter)

    @classmethod
    def for_files(
        cls, files: int, per_address: int, proxies: tuple[Network, ...] = ()
    ) -> "Connections":
        """Return the limits of a process that may open so many files."""
        most = max(FEWEST_CONNECTIONS, files - OWN_FILES)
        return cls(most, min(per_address, most // 2), proxies)

    def register(self, address: str) -> str | None:
        """Count a connection, and return the name under which it is; None if it is too many."""
        name = counted_as(address)
        # check: connections-in-total - without descriptors the database cannot be read either
        if self.by_address.total() >= self.most:
            return None
        # check: connections-per-address - one caller that sends nothing keeps all others out
        if self.by_address[name] >= self.per_address and not is_proxy(address, self.proxies):
            return None
        self.by_address[name] += 1
        return name

    def unregister(self, name: str) -> None:
        """Forget a connection that was closed."""
        self.by_address[name] -= 1
        if self.by_address[name] <= 0:
            del self.by_address[name]


class _Accepted(socket.socket):
    """A connection that is counted until it is closed."""

    def __init__(self, listener: "Listener", handle: int, name: str) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=handle)
        self._connections = listener.connections
        self._name = name

    def close(self) -> None:
        """Close the connection."""
        # asyncio may close a socket twice.
        if self.fileno() >= 0:
            self._connections.unregister(self._name)
        super().close()


class Listener(socket.socket):
    """A listening socket that refuses connections in excess.

    asyncio has no limit of its own, and if `accept` fails for want of descriptors it writes
    thousands of log lines per second. So that failure never leaves this class.
    """

    def __init__(self, family: int, connections: Connections) -> None:
        super().__init__(family, socket.SOCK_STREAM)
        self.connections = connections
        # Given up for a moment to accept, and close, a connection when there are no others.
        self._spare: int | None = os.open(os.devnull, os.O_RDONLY)

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection; BlockingIOError also means that one was refused."""
        try:
            handle, address = self._accept()  # type: ignore[attr-defined]
        except OSError as problem:
            if problem.errno not in _NO_DESCRIPTOR:
                raise
            self._refuse_with_spare()
            raise BlockingIOError from None
        name = self.connections.register(str(address[0]))
        if name is None:
            os.close(handle)
            # Not the next one at once: requests on open connections must be served in between.
            raise BlockingIOError
        return _Accepted(self, handle, name), address

    def _refuse_with_spare(self) -> None:
        """Take a connection off the queue although no descriptor is left; it would stay there."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            handle, _ = self._accept()  # type: ignore[attr-defined]
            os.close(handle)
            self._spare = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            return

    def close(self) -> None:
        """Stop listening."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        super().close()


def listen(host: str, port: int, connections: Connections) -> Sequence[Listener]:
    """Bind to all addresses of a host name; together they have the limits of `connections`."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners = list[Listener]()
    for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
        listener = Listener(family, connections)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # Or it would take the port of IPv4 too, for which there is a socket of its own.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            listener.bind(address)
            # At once: until somebody listens, another program could take the port as well.
            listener.listen(WAITING_CONNECTIONS)
        except OSError:
            for opened in (*listeners, listener):
                opened.close()
            raise
        listener.setblocking(False)
        listeners.append(listener)
    return listeners
