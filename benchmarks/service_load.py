"""How fast S1 takes submissions, and a whole `servers` survey end to end, both servers as processes: `make load`.

Beside it an empty handler with the same web server, database and group commit, which stores the bytes and looks at none
of them: what there is to reach. `ratio_to_empty` is of the CPU times of both servers per request, which a busy machine
does not change; requests per second and latencies need a quiet one. One process plays the owner and all devices, so
this is no measure of privacy.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, encode
from faircount.service.processes import Process, free_port
from faircount.service.trial_survey import TrialSurvey, begun, done, set_up

HERE = Path(__file__)
ITEMS = [f"item {at}" for at in range(30)]
UNLIMITED = {"REQUESTS_PER_SECOND": "1e9", "BURST": "1000000000", "PRIVATE_PORT": "-1", "LOG_LEVEL": "warning"}


@dataclass(frozen=True)
class Pace:
    """How requests went."""

    per_second: float
    p50_milliseconds: float
    p99_milliseconds: float
    cpu_microseconds: float
    statuses: dict[int, int]

    @classmethod
    def of(cls, seconds: float, cpu: float, times: Sequence[tuple[float, int]]) -> "Pace":
        ordered = sorted(each for each, _ in times)
        counts: dict[int, int] = {}
        for _, status in times:
            counts[status] = counts.get(status, 0) + 1
        p50, p99 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
        return cls(round(len(times) / seconds), round(p50, 2), round(p99, 2), round(1e6 * cpu / len(times)), counts)


async def post_all(server: Process, port: int, path: str, bodies: Sequence[bytes], connections: int) -> Pace:
    """Send every body over a few connections that stay open; a client as light as can be."""
    waiting, times = list(reversed(bodies)), list[tuple[float, int]]()

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while waiting:
            body, begin = waiting.pop(), time.perf_counter()
            head = f"POST {path} HTTP/1.1\r\nHost: s1\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in answer.split(b"\r\n")[1:-2])
            await reader.readexactly(int(fields.get(b"content-length", b"0")))
            times.append((time.perf_counter() - begin, int(answer[9:12])))
        writer.close()

    begin, cpu = time.perf_counter(), cpu_seconds(server)
    await asyncio.gather(*(worker() for _ in range(connections)))
    return Pace.of(time.perf_counter() - begin, cpu_seconds(server) - cpu, times)


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


async def measure_empty(folder: Path, url: str, bodies: Sequence[bytes], connections: int) -> Pace:
    port = free_port()
    os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = Process.start((HERE.stem, "--empty", str(port), "--database-s1", url), folder / "empty.log")
    try:
        await _up(port)
        await post_all(process, port, "/", bodies[:100], connections)  # it opens its database at the first request
        return await post_all(process, port, "/", bodies, connections)
    finally:
        process.stop()


# --- a survey


def cpu_seconds(process: Process) -> float:
    """CPU time that a process has used, of itself and for it (Linux)."""
    fields = Path(f"/proc/{process.running.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(process: Process) -> float:
    """Memory that a process holds now (Linux)."""
    status = Path(f"/proc/{process.running.pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)


async def _up(port: int) -> None:
    for _ in range(1200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.05)
    sys.exit("the server does not start")


async def survey(
    folder: Path, urls: tuple[str, str], users: int, connections: int
) -> tuple[dict[str, Any], list[bytes]]:
    """A survey of so many users, start to end; figures, and the bodies that were sent."""
    ports = free_port(), free_port()
    for role in ("COORDINATOR", "AGGREGATOR"):
        os.environ.update({f"FAIRCOUNT_{role}_{name}": value for name, value in UNLIMITED.items()})
    common = [("--data", f"{folder}/s{at}", "--database", urls[at - 1], "--port", str(ports[at - 1])) for at in (1, 2)]
    s2 = Process.start(("faircount", "aggregator", *common[1]), folder / "s2.log")
    to = ("--aggregator", f"http://127.0.0.1:{ports[1]}")
    s1 = Process.start(("faircount", "coordinator", *common[0], *to), folder / "s1.log")
    try:
        for port in ports:
            await _up(port)
        return await _played(folder, ports, (s1, s2), users, connections)
    finally:
        s1.stop()
        s2.stop()


async def _played(
    folder: Path, ports: tuple[int, int], servers: tuple[Process, Process], users: int, connections: int
) -> tuple[dict[str, Any], list[bytes]]:
    entropy, clients = SystemEntropy(), []
    for at, port in enumerate(ports, 1):
        token = (folder / f"s{at}" / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        clients.append(httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120))
    to_s1, to_s2 = clients
    mechanism = Laplace(items=ITEMS, epsilon=1.0, users=users, dropouts=users // 20)
    made = await set_up(to_s1, to_s2, mechanism, SERVERS, entropy)
    done(await to_s1.post(f"{made.path}/open"))
    client = made.params.topology.client
    bodies = [encode(client.ask(begun(made, at, at % 30, entropy))) for at in range(users)]  # type: ignore[arg-type]  # it has begun
    before = [resident_megabytes(each) for each in servers]
    pace = await post_all(servers[0], ports[0], f"{made.path}/messages", bodies, connections)
    taken = [resident_megabytes(each) for each in servers]
    seconds, most = await _closed(to_s1, made, servers)
    figures = {
        "users": users, "submissions": vars(pace), "close_to_result_seconds": round(seconds, 1),
        "megabytes": {"before": before, "after_submissions": taken, "most_until_result": most},
        "bytes_per_submission": len(bodies[0]),
    }  # fmt: skip
    result = done(await to_s1.get(f"{made.path}/result")).json()
    assert (result["state"], result["included"]) == ("published", users)
    for each in clients:
        await each.aclose()
    return figures, bodies


async def _closed(
    to_s1: httpx.AsyncClient, made: TrialSurvey, servers: tuple[Process, Process]
) -> tuple[float, list[float]]:
    begin, most = time.perf_counter(), [0.0, 0.0]
    closing = asyncio.create_task(to_s1.post(f"{made.path}/close"))
    while True:
        most = [max(old, resident_megabytes(each)) for old, each in zip(most, servers, strict=True)]
        if closing.done() and (await to_s1.get(f"{made.path}/result")).status_code == 200:
            return time.perf_counter() - begin, most
        await asyncio.sleep(0.2)


def main() -> None:
    said = argparse.ArgumentParser(description=__doc__)
    said.add_argument("--users", type=int, default=5000)
    said.add_argument("--connections", type=int, default=64)
    said.add_argument("--database-s1", default="", help="PostgreSQL of S1; SQLite unless given")
    said.add_argument("--database-s2", default="", help="PostgreSQL of S2; SQLite unless given")
    said.add_argument("--database-empty", default="", help="PostgreSQL of the empty handler; SQLite unless given")
    said.add_argument("--empty", type=int, default=0, help=argparse.SUPPRESS)
    given = said.parse_args()
    if given.empty:
        serve_empty(given.database_s1, given.empty)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [f"sqlite:///{folder}/{each}.sqlite" for each in ("s1", "s2", "empty")]
        urls = given.database_s1 or files[0], given.database_s2 or files[1]
        figures, bodies = asyncio.run(survey(folder, urls, given.users, given.connections))
        empty = asyncio.run(measure_empty(folder, given.database_empty or files[2], bodies, given.connections))
        figures |= {"empty_handler": vars(empty)}
        figures["ratio_to_empty"] = round(empty.cpu_microseconds / figures["submissions"]["cpu_microseconds"], 3)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
