"""Metrics for Prometheus, health and readiness, on a port of their own that must not be public."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
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


class Calls(Collector):
    """How often each call was made with which status, and how long it took.

    The library's own counters take locks and go through their bounds one by one. This runs for
    every message of a participant, and in the thread of the event loop only.
    """

    def __init__(self) -> None:
        self._statuses: defaultdict[tuple[str, int], int] = defaultdict(int)
        # Of each call: how many times lie between two bounds, with those above the last one.
        self._between: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(SECONDS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def note(self, call: str, status: int, seconds: float) -> None:
        """Count a call and its time."""
        self._statuses[call, status] += 1
        self._between[call][bisect_left(SECONDS, seconds)] += 1
        self._seconds[call] += seconds

    def collect(self) -> Iterator[Metric]:
        """Return the counters, as the library asks for them."""
        requests = CounterMetricFamily(
            "faircount_requests", "Calls by name and status.", labels=["call", "status"]
        )
        for (call, status), count in self._statuses.items():
            requests.add_metric([call, str(status)], count)
        yield requests

        times = HistogramMetricFamily(
            "faircount_request_seconds", "Response time of a call.", labels=["call"]
        )
        bounds = [*map(str, map(float, SECONDS)), "+Inf"]
        for call, between in self._between.items():
            # Prometheus wants the number of times up to each bound.
            up_to = list(zip(bounds, map(float, accumulate(between)), strict=True))
            times.add_metric([call], up_to, self._seconds[call])
        yield times


@dataclass(frozen=True)
class Metrics:
    """The metrics of one server."""

    registry: CollectorRegistry
    calls: Calls
    rejections: Counter
    skew: Gauge
    outbox: Gauge
    surveys: Gauge

    @classmethod
    def create(cls) -> "Metrics":
        """Register all metrics, with their values at zero."""
        registry = CollectorRegistry()
        calls = Calls()
        registry.register(calls)
        metrics = cls(
            registry=registry,
            calls=calls,
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
