"""The real servers with their databases, in this process, for tests of clients and owners.

Connections that faircount opens end at these servers, without sockets. A folder of tests uses the
fixtures by importing them in its conftest.py.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from in_process import Pair, in_process
from starlette.applications import Starlette

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.owner.invitations import numbered_people
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.protocol import Topology, propose
from faircount.server.aggregator.app import aggregator_app
from faircount.server.coordinator.app import coordinator_app


class Bridge(httpx.BaseTransport):
    """Passes requests of this thread to applications in a portal's thread, by host name."""

    portal: BlockingPortal
    apps: dict[str, Starlette]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and wait for the response."""
        return self.portal.call(self._send, request)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        copy = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read()
        )
        if request.url.host not in self.apps:
            raise httpx.ConnectError("no such host")
        transport = httpx.ASGITransport(self.apps[request.url.host])
        async with httpx.AsyncClient(transport=transport) as client:
            response = await client.send(copy)
        return httpx.Response(
            response.status_code, headers=response.headers, content=response.content
        )


@dataclass(frozen=True)
class BothApps:
    """Both running servers, and the folder of their owner."""

    folder: Path
    pair: Pair

    @property
    def servers_file(self) -> Path:
        """What `faircount survey create --servers` reads."""
        return self.folder / "servers.json"


OPERATORS = ("One", "Two")
"""Who runs the servers of these tests."""

Serving = Callable[..., AbstractContextManager[BothApps]]


@asynccontextmanager
async def _run_pair(folder: Path, databases: tuple[str, str] | None) -> AsyncIterator[Pair]:
    async with in_process(folder, databases=databases, operators=OPERATORS) as pair:
        scheduler = asyncio.create_task(pair.scheduler.run())
        yield pair
        scheduler.cancel()
        with suppress(asyncio.CancelledError):
            await scheduler


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Runs both servers while a block runs; started again in the same folder, they continue."""
    bridge = Bridge()
    monkeypatch.setattr(
        "faircount.client.calls._open_connection", lambda *_: httpx.Client(transport=bridge)
    )

    @contextmanager
    def serve(folder: Path, databases: tuple[str, str] | None = None) -> Iterator[BothApps]:
        servers = _run_pair(folder / "servers", databases)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(servers) as pair:
            bridge.portal = portal
            bridge.apps = {"s1": coordinator_app(pair.s1), "s2": aggregator_app(pair.s2)}
            both = BothApps(folder, pair)
            # Servers that are started again still have the tokens of the first time.
            if not both.servers_file.exists():
                tokens = zip(bridge.apps, pair.owner_tokens, strict=True)
                access = {
                    name: {"address": f"http://{name}", "token": token} for name, token in tokens
                }
                both.servers_file.write_text(json.dumps(access))
            yield both

    return serve


@pytest.fixture
def both_apps(tmp_path: Path, serving: Serving) -> Iterator[BothApps]:
    """Both servers, running during one test."""
    with serving(tmp_path) as both:
        yield both


@pytest.fixture
def almost_noiseless() -> Callable[[Path, Topology, int], Survey]:
    """Makes an open survey whose noise is almost certainly 0, so that every answer shows."""

    def make(folder: Path, topology: Topology, users: int) -> Survey:
        mechanism, terms = topology.example(users, 0)
        if isinstance(mechanism, TSSPrime):
            mechanism = replace(mechanism, p=1 - 1e-9)
        else:
            mechanism = Laplace(items=users, users=users, epsilon=50.0)
        s1, s2 = read_servers(folder / "servers.json")
        owner = OwnerFile(s1, s2, s1.address, (50.0, 1 - 1e-12))
        defaults = {
            "epsilon": 50.0,
            "delta": 1 - 1e-10,
            "minimum": users,
            "population": "people",
        }
        fresh = BothServers.of(owner).survey_keys()
        params = propose(
            mechanism,
            fresh.keys,
            s1_operator=fresh.s1_operator,
            s2_operator=fresh.s2_operator,
            survey=SystemEntropy().bytes(16),
            topology=topology,
            **{**defaults, **terms},
        )
        SurveyFolder(folder / "survey").create(params, owner)
        survey = Survey.at(folder / "survey")
        survey.invite(numbered_people(users))
        survey.servers.request(params, "open", invited=users)
        return survey

    return make
