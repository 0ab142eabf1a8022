"""Metrics for Prometheus, health and readiness, on a port of their own that must not be public."""

from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from faircount.core.errors import FaircountError
from faircount.protocol.wire.messages import Reason
from faircount.server.common.base import Server
from faircount.server.common.http import without_redirects

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the histogram buckets for response times."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of one server."""

    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    rejections: Counter
    skew: Gauge
    outbox: Gauge
    surveys: Gauge
    labelled: dict[tuple[str, int], tuple[Counter, Histogram]] = field(default_factory=dict)

    @classmethod
    def create(cls) -> "Metrics":
        """Register all metrics, with their values at zero."""
        registry = CollectorRegistry()
        metrics = cls(
            registry=registry,
            requests=Counter(
                "faircount_requests",
                "Calls by name and status.",
                ["call", "status"],
                registry=registry,
            ),
            seconds=Histogram(
                "faircount_request_seconds",
                "Response time of a call.",
                ["call"],
                registry=registry,
                buckets=SECONDS,
            ),
            rejections=Counter(
                "faircount_rejections",
                "Rejected messages, by reason.",
                ["reason"],
                registry=registry,
            ),
            skew=Gauge(
                "faircount_clock_skew_seconds",
                "By how much the aggregator's clock is ahead of the coordinator's.",
                registry=registry,
            ),
            outbox=Gauge(
                "faircount_outbox",
                "Surveys that wait for an answer of the aggregator.",
                registry=registry,
            ),
            surveys=Gauge("faircount_surveys", "Surveys by phase.", ["phase"], registry=registry),
        )
        # Every reason starts at zero: Prometheus sees a rise only of a series that exists.
        for reason in Reason:
            metrics.rejections.labels(reason.name.lower())
        return metrics

    def note_call(self, call: str, status: int, seconds: float) -> None:
        """Count a call and its time."""
        # The library looks labels up slowly, and this runs for every message of a participant.
        found = self.labelled.get((call, status))
        if found is None:
            found = (self.requests.labels(call, str(status)), self.seconds.labels(call))
            self.labelled[call, status] = found
        requests, times = found
        requests.inc()
        times.observe(seconds)

    async def refresh(self, server: Server, skew_milliseconds: int) -> None:
        """Update the gauges from the database."""
        async with server.database.read() as tx:
            rows = await tx.fetch_all(
                "SELECT phase, count(*) AS number FROM surveys GROUP BY phase"
            )
            waiting = await tx.fetch_one("SELECT count(*) AS number FROM outbox")
        # Cleared first: a state without surveys has no row.
        self.surveys.clear()
        for row in rows:
            self.surveys.labels(row["phase"]).set(row["number"])
        self.outbox.set(0 if waiting is None else waiting["number"])
        self.skew.set(skew_milliseconds / 1000)


def private_app(server: Server, metrics: Metrics, skew: Callable[[], int] = lambda: 0) -> Starlette:
    """Build the application with health, readiness and metrics."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(_: Request) -> Response:
        # A write that changes nothing: a server whose disk is full can still read.
        try:
            async with server.database.write() as tx:
                await tx.execute("UPDATE meta SET value = value WHERE name = 'role'")
        except FaircountError:
            return PlainTextResponse("the database cannot be written\n", 503)
        return PlainTextResponse("ready\n")

    async def show_metrics(_: Request) -> Response:
        try:
            await metrics.refresh(server, skew())
        except FaircountError:
            # Without a database the counters are still shown, but no stale number of surveys.
            metrics.surveys.clear()
        return Response(
            generate_latest(metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    routes = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", show_metrics),
    ]
    return without_redirects(Starlette(routes=routes))
