"""Both servers in one process, without sockets: for tests, and to see how calls fit together."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from starlette.applications import Starlette

from faircount.protocol.survey.operators import Operator
from faircount.protocol.wire.signing import SigningKey
from faircount.server.aggregator.app import aggregator_app
from faircount.server.aggregator.service import AggregatorService
from faircount.server.common.anchor_identity import open_anchor
from faircount.server.common.base import Server
from faircount.server.common.clock import Clock, now
from faircount.server.common.tokens import Scope, add_token, fresh_token
from faircount.server.coordinator.aggregator_connection import AggregatorConnection
from faircount.server.coordinator.app import coordinator_app
from faircount.server.coordinator.outbox import Scheduler
from faircount.server.coordinator.service import CoordinatorService
from faircount.server.run import operator_in
from faircount.storage.database import connect
from faircount.storage.keys import KeyFolder

ROLES = {"s1": "coordinator", "s2": "aggregator"}


@dataclass(frozen=True)
class Pair:
    """Both servers, and a client of each with its owner's token.

    The coordinator's scheduler does not run by itself: `scheduler.once` does what is due.
    """

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
    operators: tuple[str, str] = ("", ""),
) -> AsyncIterator[Pair]:
    """Run both servers with their files in a folder.

    databases: URLs of both databases; by default files in the folder
    tokens: the owner's tokens at the coordinator and the aggregator; by default fresh ones
    operators: names of the organizations that run them
    """
    if databases is None:
        databases = (f"sqlite:///{folder}/s1.sqlite", f"sqlite:///{folder}/s2.sqlite")
    if tokens is None:
        tokens = (fresh_token(), fresh_token())
    async with AsyncExitStack() as stack:
        first = await server_in(folder / "s1", databases[0], "s1", clock, operators[0])
        stack.push_async_callback(first.database.close)
        second = await server_in(folder / "s2", databases[1], "s2", clock, operators[1])
        stack.push_async_callback(second.database.close)
        await _add_owner(first, tokens[0])
        await _add_owner(second, tokens[1])
        s1 = CoordinatorService.of(first)
        s2 = AggregatorService.of(second)
        to_s1 = await stack.enter_async_context(_client_of(coordinator_app(s1), "s1", tokens[0]))
        to_s2 = await stack.enter_async_context(_client_of(aggregator_app(s2), "s2", tokens[1]))
        link = AggregatorConnection(to_s2, clock, is_authentic=True)
        yield Pair(s1, s2, to_s1, to_s2, Scheduler(s1, link), tokens)


async def server_in(
    folder: Path,
    url: str,
    role: str,
    clock: Clock = now,
    operator: str = "",
    *,
    has_new_anchor: bool = False,
) -> Server:
    """The environment of one server, s1 or s2: its database, keys, anchor and clock."""
    folder.mkdir(parents=True, exist_ok=True)
    database = await connect(url, ROLES[role])
    keys = KeyFolder(folder / "keys")
    anchor = await open_anchor(
        database, folder / "anchor", ROLES[role], has_new_anchor=has_new_anchor
    )
    return Server(database, keys, anchor, operator_in(operator, keys), clock)


def rename_operator(server: Server, name: str, key: SigningKey | None = None) -> None:
    """Let another operator run a server from now on, or the same one under another name."""
    operator = Operator(name, key or server.operator.key)
    # A server that was started again with other settings: everything else stays as it is.
    object.__setattr__(server, "operator", operator)


async def _add_owner(server: Server, token: str) -> None:
    async with server.database.write() as tx:
        await add_token(tx, token, Scope.OWNER)


def _client_of(app: Starlette, name: str, token: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url=f"http://{name}",
        headers={"Authorization": f"Bearer {token}"},
    )
