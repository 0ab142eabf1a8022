"""Run the coordinator or the aggregator as a process.

The calls of a server are on one port; health and metrics are on another one, which is private.
"""

import asyncio
import gc
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.files import (
    describe_os_error,
    lock_file,
    make_private_folder,
    write_durably,
)
from faircount.protocol.survey.operators import Operator
from faircount.protocol.wire.signing import SigningKey
from faircount.server.aggregator.app import aggregator_app
from faircount.server.aggregator.service import AggregatorService
from faircount.server.aggregator.step_process import WorkerProcesses, Workers
from faircount.server.common.anchor_identity import open_anchor
from faircount.server.common.base import Server
from faircount.server.common.connection import BoundedProtocol
from faircount.server.common.listener import Connections, listen, raise_file_limit
from faircount.server.common.logs import set_up_logs
from faircount.server.common.metrics import Metrics, private_app
from faircount.server.common.middleware import RequestLimit, RequestMiddleware
from faircount.server.common.settings import AggregatorSettings, CoordinatorSettings, ServerSettings
from faircount.server.common.tokens import Scope, add_token, fresh_token
from faircount.server.coordinator.aggregator_connection import AggregatorConnection
from faircount.server.coordinator.app import coordinator_app
from faircount.server.coordinator.outbox import Scheduler
from faircount.server.coordinator.service import CoordinatorService
from faircount.storage.database import connect
from faircount.storage.keys import KeyFolder

if TYPE_CHECKING:
    from starlette.types import ASGIApp

AGGREGATOR_SECONDS = 60.0
"""How long the coordinator waits for the next bytes of the aggregator."""
NEW_OBJECTS = 20_000
"""How many objects more than at the last search for garbage start the next one.

Python's 700 are fewer than the requests under way have together, and a search that finds only those
is a twentieth of a busy coordinator's time.
"""

_log = logging.getLogger("faircount")


async def open_server(settings: ServerSettings, *, has_new_anchor: bool = False) -> Server:
    """Open a server's database, keys and anchor; the database is created or upgraded.

    has_new_anchor: the operator states that the anchor which the database knew is lost
    """
    make_private_folder(settings.folder)
    database = await connect(settings.database_url, settings.role)
    keys = KeyFolder(settings.key_folder)
    anchor = await open_anchor(
        database, settings.anchor_folder, settings.role, has_new_anchor=has_new_anchor
    )
    return Server(database, keys, anchor, operator_in(settings.operator, keys))


def operator_in(name: str, keys: KeyFolder) -> Operator:
    """Return the operator of this name with the long-term key in a folder, made if missing."""
    return Operator(name, SigningKey(keys.operator_secret()))


async def create_first_tokens(server: Server, folder: Path) -> None:
    """At the first start: write a token of each scope to a file that only this user can read."""
    for scope in Scope:
        async with server.database.write() as tx:
            known = await tx.fetch_one("SELECT hash FROM tokens WHERE scope = ?", str(scope))
            if known is not None:
                continue
            token = fresh_token()
            # The file before the commit: after a crash in between, the next start replaces it. The
            # other way round there would be a token that nobody has.
            write_durably(folder / f"{scope}-token", token.encode() + b"\n")
            await add_token(tx, token, scope, name=f"first {scope}")


@dataclass(frozen=True)
class Ports:
    """The sockets of a server, on which it listens before it opens its database.

    public: for the calls of the server
    private: for health and metrics; none if they are turned off
    """

    public: Sequence[socket.socket]
    private: Sequence[socket.socket]


@contextmanager
def claim(settings: ServerSettings) -> Iterator[Ports]:
    """Claim the ports and the database for this process, or refuse before anything is written."""
    connections = Connections.for_files(
        raise_file_limit(), settings.connections_per_address, settings.proxies
    )
    with ExitStack() as stack:
        public = _bind(stack, settings.role, settings.host, settings.public_port, connections)
        private: Sequence[socket.socket] = ()
        if settings.metrics_port is not None:
            # Only monitoring calls it, from few addresses.
            plenty = Connections(connections.most, connections.most)
            private = _bind(
                stack, settings.role, settings.private_host, settings.metrics_port, plenty
            )
        make_private_folder(settings.folder)
        # Shared where several workers may run on one database.
        # check: running-server - a restore under a running server would be written over
        stack.enter_context(lock_file(settings.lock_path, shared=settings.has_workers))
        yield Ports(public, private)


def _bind(
    stack: ExitStack, role: str, host: str, port: int, connections: Connections
) -> Sequence[socket.socket]:
    try:
        return [stack.enter_context(listener) for listener in listen(host, port, connections)]
    except OSError as problem:
        raise FaircountError(
            f"the {role} cannot listen on {host} port {port}: {describe_os_error(problem)}. Stop "
            "the program that uses the port, or choose another one"
        ) from None


async def _serve(
    settings: ServerSettings, ports: Ports, app: "ASGIApp", private: "ASGIApp", metrics: Metrics
) -> None:
    """Serve on both ports until the process is told to stop."""
    limit = RequestLimit(settings.requests_per_second, settings.burst)
    options: dict[str, Any] = {}
    if settings.tls_certificate:
        options["ssl_certfile"] = settings.tls_certificate
        options["ssl_keyfile"] = settings.tls_key
    public = RequestMiddleware(app, metrics, limit, settings.proxies)
    main = _MainServer(server_config(public, **options), settings)
    if not ports.private:
        await main.serve(list(ports.public))
        return
    second = _SecondServer(server_config(private))
    second_task = asyncio.create_task(second.serve(list(ports.private)))
    # The private port closes last, so that monitoring can follow the shutdown.
    await main.serve(list(ports.public))
    second.should_exit = True
    await second_task


def server_config(app: "ASGIApp", **options: Any) -> uvicorn.Config:
    """Return how uvicorn serves an application."""
    # The middleware writes the log, without paths as callers sent them, and reads the headers of
    # proxies. A stream of events lasts for minutes, so a shutdown does not wait for it.
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        proxy_headers=False,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=10,
        **options,
    )


def search_less_for_garbage() -> None:
    """Spare a busy server most searches for objects that refer to each other."""
    # What is loaded stays: searches need not go through it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


class _MainServer(uvicorn.Server):
    """A server that says when it listens, and not before."""

    def __init__(self, config: uvicorn.Config, settings: ServerSettings) -> None:
        super().__init__(config)
        self._facts = {"port": settings.public_port, "role": settings.role}

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to answer calls."""
        await super().startup(sockets)
        search_less_for_garbage()
        if self.started:
            _log.info("listening", extra=self._facts)


class _SecondServer(uvicorn.Server):
    """A second uvicorn server in this process, which leaves signals to the first one."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield


def _with_metrics(server: Server, metrics: Metrics) -> Server:
    """Return the server, which now also counts rejections for Prometheus."""
    return replace(server, on_rejection=lambda reason: metrics.rejections.labels(reason).inc())


async def serve_coordinator(settings: CoordinatorSettings) -> None:
    """Run the coordinator until it is told to stop."""
    with claim(settings) as ports:
        metrics = Metrics.create()
        server = _with_metrics(await open_server(settings), metrics)
        await create_first_tokens(server, settings.folder)
        coordinator = CoordinatorService.of(server)
        async with httpx.AsyncClient(
            base_url=settings.aggregator, timeout=AGGREGATOR_SECONDS, verify=_tls_context(settings)
        ) as client:
            is_authentic = settings.is_aggregator_authentic
            aggregator = AggregatorConnection(client, server.clock, is_authentic=is_authentic)
            app = coordinator_app(coordinator, Scheduler(coordinator, aggregator), settings.origins)
            private = private_app(server, metrics, lambda: aggregator.skew)
            await _serve(settings, ports, app, private, metrics)


def _tls_context(settings: CoordinatorSettings) -> "ssl.SSLContext":
    """Return how the coordinator verifies the aggregator, and identifies itself to its proxy."""
    try:
        # Always verified: somebody in between could answer that a survey is lost, and end it.
        context = ssl.create_default_context(cafile=settings.aggregator_ca or None)
        if settings.client_certificate:
            context.load_cert_chain(settings.client_certificate)
    except (OSError, ssl.SSLError) as problem:
        raise ParameterError(f"a certificate cannot be used: {problem}") from None
    return context


async def serve_aggregator(settings: AggregatorSettings) -> None:
    """Run the aggregator until it is told to stop."""
    with claim(settings) as ports:
        metrics = Metrics.create()
        server = _with_metrics(await open_server(settings), metrics)
        await create_first_tokens(server, settings.folder)
        app = aggregator_app(AggregatorService.of(server, _workers(settings)), settings.page_for)
        await _serve(settings, ports, app, private_app(server, metrics), metrics)


def _workers(settings: AggregatorSettings) -> Workers:
    """Return what works on long messages: processes of this machine, or a Dask cluster."""
    if not settings.scheduler:
        return WorkerProcesses(settings.processes or os.cpu_count() or 1)
    from faircount.server.aggregator.step_cluster import WorkerCluster

    return WorkerCluster(settings.scheduler)


def run(settings: ServerSettings, serve: Callable[[Any], Any]) -> None:
    """Run a server as this process."""
    set_up_logs(settings.log_level)
    try:
        asyncio.run(serve(settings))
    except KeyboardInterrupt:
        return
    except OSError as problem:
        message = f"the {settings.role} has stopped: {describe_os_error(problem)}"
        raise FaircountError(message) from None
