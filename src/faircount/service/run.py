"""Run S1 or S2 as a process: its calls on one port, health and metrics on another one that is private."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import uvicorn

from faircount.core.errors import FaircountError, ParameterError
from faircount.core.files import private_folder, write_durably
from faircount.service.aggregator import AggregatorService
from faircount.service.aggregator_app import aggregator_app
from faircount.service.coordinator import CoordinatorService
from faircount.service.coordinator_app import coordinator_app
from faircount.service.logs import set_up_logs
from faircount.service.metrics import Metrics, private_app
from faircount.service.observed import Observed, RequestLimit
from faircount.service.outbox import Scheduler
from faircount.service.s2_link import S2Link
from faircount.service.server import Server
from faircount.service.settings import AggregatorSettings, CoordinatorSettings, ServerSettings
from faircount.service.step_process import StepMaker, StepProcesses
from faircount.service.tokens import Scope, add_token, fresh_token
from faircount.storage.anchor import FolderAnchor
from faircount.storage.database import connect
from faircount.storage.keys import KeyFolder

if TYPE_CHECKING:
    from starlette.types import ASGIApp

S2_SECONDS = 60.0
"""How long S1 waits for one answer of S2."""

_log = logging.getLogger("faircount")


async def opened(settings: ServerSettings) -> Server:
    """A server's surroundings, with its database made or brought up to date."""
    private_folder(settings.folder)
    database = await connect(settings.database_url, settings.role)
    keys, anchor = KeyFolder(settings.key_folder), FolderAnchor(settings.anchor_folder)
    return Server(database, keys, anchor, operator=settings.operator)


async def new_token(settings: ServerSettings, scope: Scope, label: str = "", expires_at: int | None = None) -> str:
    """A fresh token that this server admits; it is kept nowhere, so give it to its holder now."""
    server, token = await opened(settings), fresh_token()
    async with server.database.write() as tx:
        await add_token(tx, token, scope, label, expires_at)
    await server.database.close()
    return token


async def first_tokens(server: Server, folder: Path) -> None:
    """At the first start: a token of each kind, in files that only this server's user can read."""
    for scope in Scope:
        async with server.database.write() as tx:
            if await tx.one("SELECT hash FROM tokens WHERE scope = ?", str(scope)) is not None:
                continue
            token = fresh_token()
            write_durably(folder / f"{scope}-token", token.encode() + b"\n")
            await add_token(tx, token, scope, "first start")


def _tls(settings: ServerSettings) -> dict[str, Any]:
    if not settings.tls_certificate:
        return {}
    return {"ssl_certfile": settings.tls_certificate, "ssl_keyfile": settings.tls_key}


def _config(app: "ASGIApp", host: str, port: int, **more: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=10, **more,
    )  # fmt: skip


async def _serve(settings: ServerSettings, app: "ASGIApp", private: "ASGIApp", metrics: Metrics) -> None:
    """Listen on both ports until the process is told to stop."""
    watched = Observed(app, metrics, RequestLimit(settings.requests_per_second, settings.burst))
    proxies = {"proxy_headers": bool(settings.trusted_proxies), "forwarded_allow_ips": settings.trusted_proxies}
    main = uvicorn.Server(_config(watched, settings.host, settings.public_port, **proxies, **_tls(settings)))
    _log.info("listening", extra={"port": settings.public_port, "role": settings.role})
    if settings.metrics_port is None:
        await main.serve()
        return
    beside = _Beside(_config(private, settings.private_host, settings.metrics_port))
    beside_runs = asyncio.create_task(beside.serve())
    await main.serve()
    beside.should_exit = True
    await beside_runs


class _Beside(uvicorn.Server):
    """A second server of this process: signals are for the first one."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None."""
        yield


def _counting(server: Server, metrics: Metrics) -> Server:
    """The server, which now also counts rejections for Prometheus."""
    return replace(server, on_rejection=lambda reason: metrics.rejections.labels(reason).inc())


async def serve_coordinator(settings: CoordinatorSettings) -> None:
    """S1, until it is told to stop."""
    metrics = Metrics.fresh()
    server = _counting(await opened(settings), metrics)
    await first_tokens(server, settings.folder)
    s1 = CoordinatorService.of(server)
    async with httpx.AsyncClient(base_url=settings.aggregator, timeout=S2_SECONDS, verify=_trust(settings)) as client:
        link = S2Link(client, server.clock)
        app = coordinator_app(s1, Scheduler(s1, link), settings.origins)
        await _serve(settings, app, private_app(server, metrics, lambda: link.skew), metrics)


def _trust(settings: CoordinatorSettings) -> "ssl.SSLContext":
    """Whom S1 believes to be S2, and what it shows of itself."""
    try:
        context = ssl.create_default_context(cafile=settings.aggregator_ca or None)
        if settings.client_certificate:
            context.load_cert_chain(settings.client_certificate)
    except (OSError, ssl.SSLError) as problem:
        raise ParameterError(f"a certificate cannot be used: {problem}") from None
    return context


async def serve_aggregator(settings: AggregatorSettings) -> None:
    """S2, until it is told to stop."""
    metrics = Metrics.fresh()
    server = _counting(await opened(settings), metrics)
    await first_tokens(server, settings.folder)
    app = aggregator_app(AggregatorService.of(server, _elsewhere(settings)))
    await _serve(settings, app, private_app(server, metrics), metrics)


def _elsewhere(settings: AggregatorSettings) -> StepMaker:
    """Who works on long messages."""
    if not settings.scheduler:
        return StepProcesses(settings.processes)
    from faircount.service.step_cluster import StepCluster

    return StepCluster(settings.scheduler)


def run(settings: ServerSettings, serve: Callable[[Any], Any]) -> None:
    """The process of a server."""
    set_up_logs(settings.log_level)
    try:
        asyncio.run(serve(settings))
    except KeyboardInterrupt:
        return
    except OSError as problem:
        raise FaircountError(f"the {settings.role} cannot listen: {problem}") from None
