"""S1 and S2 in memory behind HTTP's own types, so that clients are tested without sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import httpx
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from database_copies import Copies, copies_on
from in_process import Pair, in_process
from starlette.applications import Starlette

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import SurveyParameters, coordinate, decode, encode, end_phase, propose
from faircount.protocol.play import SurveySetup, converse, set_up
from faircount.protocol.survey.states import FINAL
from faircount.protocol.survey.topology import Topology
from faircount.protocol.topologies import SERVERS
from faircount.protocol.wire.messages import Rejected
from faircount.service.aggregator_app import aggregator_app
from faircount.service.calls import Patience, RemoteServer
from faircount.service.codes import Code
from faircount.service.coordinator_app import coordinator_app
from faircount.service.owner.folder import OwnerFile, SurveyFolder, read_servers
from faircount.service.owner.invitations import numbered
from faircount.service.owner.remote import BothServers
from faircount.service.owner.survey import Survey

ADDRESS = "https://count.example.org"
AT_ONCE = Patience(tries=4, sleep=lambda seconds: None)


@dataclass
class InMemory:
    """Both servers; `before` may answer instead of S1, `after` may change or lose its answer."""

    setup: SurveySetup
    bodies: list[bytes] = field(default_factory=list)
    before: Callable[[httpx.Request], httpx.Response | None] = lambda request: None
    after: Callable[[httpx.Response], httpx.Response] = lambda response: response

    def __post_init__(self) -> None:
        self.s1, self.s2 = self.setup.s1, self.setup.s2

    @property
    def params(self) -> SurveyParameters:
        return self.setup.params

    @property
    def codes(self) -> list[Code]:
        return [Code(self.params.survey, each) for each in self.setup.invitations]

    def http(self) -> httpx.Client:
        return httpx.Client(transport=httpx.MockTransport(self._handle))

    def server(self) -> RemoteServer:
        return RemoteServer(ADDRESS, name="the survey's server", patience=AT_ONCE, http=self.http())

    def end_phase(self) -> None:
        self.s1, out = end_phase(self.s1)
        self.s1, self.s2 = converse(self.s1, self.s2, out)

    @property
    def over(self) -> bool:
        return self.s1.state in FINAL

    def _handle(self, request: httpx.Request) -> httpx.Response:
        return self.before(request) or self.after(self._answer(request))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == f"/v1/surveys/{self.params.survey.hex()}/params":
            return httpx.Response(200, content=self.params.published)
        if request.url.path != f"/v1/surveys/{self.params.survey.hex()}/messages":
            return httpx.Response(404, json={"title": "no such survey"})
        self.bodies.append(request.content)
        self.s1, (answer, *_) = coordinate(self.s1, decode(request.content))
        if isinstance(answer, Rejected):
            problem = {"detail": answer.detail.decode(), "reason": answer.reason}
            return httpx.Response(409, content=json.dumps(problem).encode())
        return httpx.Response(200, content=encode(answer))


MakeServers = Callable[..., InMemory]


@pytest.fixture
def in_memory() -> MakeServers:
    def make(users: int = 6, topology: Topology = SERVERS) -> InMemory:
        mechanism, terms = topology.trial(users, 0)
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": min(3, users), "question": "Which city?", **terms}
        return InMemory(set_up(mechanism, topology, SystemEntropy(), **agreed))

    return make


class Bridge(httpx.BaseTransport):
    """Requests of this thread, answered by applications in the thread of a portal; each by the name of its host."""

    portal: BlockingPortal
    apps: dict[str, Starlette]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.portal.call(self._send, request)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        copy = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(self.apps[request.url.host])) as client:
            found = await client.send(copy)
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)


@dataclass(frozen=True)
class BothApps:
    """The real servers with their databases in a folder, in this process; every connection of ours ends at them."""

    folder: Path
    pair: Pair

    @property
    def servers_file(self) -> Path:
        return self.folder / "servers.json"


@asynccontextmanager
async def running(folder: Path, databases: tuple[str, str] | None = None) -> AsyncIterator[Pair]:
    async with in_process(folder, databases=databases) as pair:
        scheduler = asyncio.create_task(pair.scheduler.run())
        yield pair
        scheduler.cancel()
        with suppress(asyncio.CancelledError):
            await scheduler


Serving = Callable[..., AbstractContextManager[BothApps]]


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Serving:
    """Runs both servers while a block runs; started again in the same folder, they have what they had."""
    bridge = Bridge()
    monkeypatch.setattr("faircount.service.calls._connection", lambda verify: httpx.Client(transport=bridge))

    @contextmanager
    def serve(folder: Path, databases: tuple[str, str] | None = None) -> Iterator[BothApps]:
        servers = running(folder / "servers", databases)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(servers) as pair:
            apps = {"s1": coordinator_app(pair.s1), "s2": aggregator_app(pair.s2)}
            tokens = dict(zip(apps, pair.owner_tokens, strict=True))
            known = {name: {"address": f"http://{name}", "token": token} for name, token in tokens.items()}
            made = BothApps(folder, pair)
            if not made.servers_file.exists():
                made.servers_file.write_text(json.dumps(known))
            bridge.portal, bridge.apps = portal, apps
            yield made

    return serve


@pytest.fixture
def both_apps(tmp_path: Path, serving: Serving) -> Iterator[BothApps]:
    with serving(tmp_path) as made:
        yield made


@pytest.fixture
def almost_noiseless() -> Callable[[Path, Topology, int], Survey]:
    """Makes an open survey in which noise is all but impossible, so that every answer shows."""

    def make(folder: Path, topology: Topology, users: int) -> Survey:
        mechanism, terms = topology.trial(users, 0)
        if isinstance(mechanism, TSSPrime):
            mechanism = replace(mechanism, p=1 - 1e-9)
        else:
            mechanism = Laplace(items=users, users=users, epsilon=50.0)
        s1, s2 = read_servers(folder / "servers.json")
        owner = OwnerFile(s1, s2, s1.address, (50.0, 1 - 1e-12))
        agreed = {"epsilon": 50.0, "delta": 1 - 1e-10, "minimum": users, "population": "people", **terms}
        keys = BothServers.of(owner).offers().keys
        params = propose(mechanism, keys, survey=SystemEntropy().bytes(16), topology=topology, **agreed)
        SurveyFolder(folder / "survey").create(params, owner)
        survey = Survey.at(folder / "survey")
        survey.invite(numbered(users))
        survey.servers.wish(params, "open", people=users)
        return survey

    return make


@pytest.fixture
def copies(request: pytest.FixtureRequest, fresh_database: Callable[[], str], tmp_path: Path) -> Copies:
    """A drill that asks for this is done on both kinds of databases."""
    kind = request.node.callspec.params["fresh_database"]
    server = partial(request.getfixturevalue, "postgresql_server")
    return copies_on(kind, tmp_path / "servers", fresh_database, server)
