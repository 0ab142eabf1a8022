"""Both servers in one process, without sockets: for tests, and to look how the calls fit together."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from faircount.service.aggregator import AggregatorService
from faircount.service.aggregator_app import aggregator_app
from faircount.service.clock import Clock, now
from faircount.service.coordinator import CoordinatorService
from faircount.service.coordinator_app import coordinator_app
from faircount.service.outbox import Scheduler
from faircount.service.s2_link import S2Link
from faircount.service.server import Server
from faircount.service.tokens import Scope, add_token, fresh_token
from faircount.storage.anchor import FolderAnchor
from faircount.storage.database import connect
from faircount.storage.keys import KeyFolder


@dataclass(frozen=True)
class Pair:
    """Both servers, a client of each with its owner's token, and S1's scheduler: its `once` does what is due."""

    s1: CoordinatorService
    s2: AggregatorService
    to_s1: httpx.AsyncClient
    to_s2: httpx.AsyncClient
    scheduler: Scheduler
    owner_tokens: tuple[str, str]


@asynccontextmanager
async def in_process(
    folder: Path,
    clock: Clock = now,
    databases: tuple[str, str] | None = None,
    tokens: tuple[str, str] | None = None,
) -> AsyncIterator[Pair]:
    """Both servers with all they keep in a folder; the databases are files there unless their URLs are given.

    `tokens` are those of the owner at S1 and S2; fresh ones unless given.
    """
    urls = databases or tuple(f"sqlite:///{folder / name}.sqlite" for name in ("s1", "s2"))
    servers = [await server_in(folder / name, url, name, clock) for name, url in zip(("s1", "s2"), urls, strict=True)]
    tokens = tokens or (fresh_token(), fresh_token())
    for server, token in zip(servers, tokens, strict=True):
        async with server.database.write() as tx:
            await add_token(tx, token, Scope.OWNER)
    s1, s2 = CoordinatorService.of(servers[0]), AggregatorService.of(servers[1])
    async with AsyncExitStack() as stack:
        apps = coordinator_app(s1), aggregator_app(s2)
        to_s1, to_s2 = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    transport=httpx.ASGITransport(app),
                    base_url=f"http://{name}",
                    headers={"Authorization": f"Bearer {token}"},
                )
            )
            for app, name, token in zip(apps, ("s1", "s2"), tokens, strict=True)
        ]
        yield Pair(s1, s2, to_s1, to_s2, Scheduler(s1, S2Link(to_s2, clock)), tokens)
    for server in servers:
        await server.database.close()


async def server_in(folder: Path, url: str, role: str, clock: Clock = now) -> Server:
    """The surroundings of one of them, s1 or s2, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    database = await connect(url, {"s1": "coordinator", "s2": "aggregator"}[role])
    keys, anchor = KeyFolder(folder / "keys"), FolderAnchor(folder / "anchor")
    return Server(database, keys, anchor, clock, operator=f"operator of {role}")
