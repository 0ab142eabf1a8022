"""Metrics for Prometheus, and whether a server is well: on a port of their own, which must not be public."""

from collections import Counter as Counted
from collections.abc import Callable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from faircount.core.errors import FaircountError
from faircount.protocol.wire.messages import Reason
from faircount.service.server import Server

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Limits of the classes in which times are counted."""


@dataclass(frozen=True)
class Metrics:
    """What one server counts."""

    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    rejections: Counter
    skew: Gauge
    outbox: Gauge
    surveys: Gauge
    counted: dict[tuple[str, int], tuple[Counter, Histogram]] = field(default_factory=dict)

    @classmethod
    def fresh(cls) -> "Metrics":
        """All at zero."""
        registry = CollectorRegistry()
        made = cls(
            registry,
            Counter("faircount_requests", "Calls by name and status.", ["call", "status"], registry=registry),
            Histogram("faircount_request_seconds", "Time of a call.", ["call"], registry=registry, buckets=SECONDS),
            Counter("faircount_rejections", "Messages that were not used, by reason.", ["reason"], registry=registry),
            Gauge("faircount_clock_skew_seconds", "By how much S2's clock is ahead of S1's.", registry=registry),
            Gauge("faircount_outbox", "Surveys that wait for an answer of S2.", registry=registry),
            Gauge("faircount_surveys", "Surveys by state.", ["state"], registry=registry),
        )
        for reason in Reason:  # all are there from the beginning, so that a first one is seen as a rise
            made.rejections.labels(reason.name.lower())
        return made

    def note_call(self, call: str, status: int, seconds: float) -> None:
        """Count an answer. What a call is counted in is looked up once: the library is slow at that."""
        found = self.counted.get((call, status))
        if found is None:
            found = self.counted[call, status] = self.requests.labels(call, str(status)), self.seconds.labels(call)
        found[0].inc()
        found[1].observe(seconds)

    async def refresh(self, server: Server, skew_milliseconds: int) -> None:
        """Take over what the database knows."""
        async with server.database.read() as tx:
            found = await tx.all("SELECT state, count(*) AS number FROM surveys GROUP BY state")
            waiting = await tx.one("SELECT count(*) AS number FROM outbox")
        self.surveys.clear()
        for state, number in Counted({each["state"]: each["number"] for each in found}).items():
            self.surveys.labels(state).set(number)
        self.outbox.set(0 if waiting is None else waiting["number"])
        self.skew.set(skew_milliseconds / 1000)


def private_app(server: Server, metrics: Metrics, skew: Callable[[], int] = lambda: 0) -> Starlette:
    """Health, readiness and metrics."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(_: Request) -> Response:
        try:
            async with server.database.write() as tx:
                await tx.run("UPDATE meta SET value = value WHERE name = 'role'")
        except FaircountError:
            return PlainTextResponse("the database cannot be written\n", 503)
        return PlainTextResponse("ready\n")

    async def shown(_: Request) -> Response:
        try:
            await metrics.refresh(server, skew())
        except FaircountError:
            metrics.surveys.clear()  # what is not known is not shown
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", shown)]
    return Starlette(routes=routes)
