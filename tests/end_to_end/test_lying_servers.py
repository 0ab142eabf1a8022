"""Real programs against a server that lies: answers that decompress to gigabytes, or never end.

The coordinator, `faircount answer` and the owner's commands are processes of their own, so that
their memory, and how long they stop, can be measured as an operator would see it.
"""

import asyncio
import json
import resource
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import pytest
from raw_server import RawServer, Script, raw_server
from trial_survey import (
    TrialSurvey,
    begin_client,
    open_trial,
    require_success,
    send_message,
    visit_once,
)

from faircount.client.invitation_codes import Code
from faircount.core.entropy import SystemEntropy
from faircount.demo.processes import Process, free_port
from faircount.protocol import Invitation
from faircount.protocol.wire.messages import Reason, Rejection

BOMB_BYTES = 2_900_000
"""What the answer of a lying server has on the wire."""
MEBIBYTE = 1 << 20
MAX_GROWTH = 64 * MEBIBYTE
"""Memory that a server may need more than before while it refuses an answer."""
MAX_MEMORY = 200 * MEBIBYTE
"""Memory of a command, all its libraries included."""
HARD_LIMIT = 3 << 30
"""Address space of our processes: a test that fails must not take the machine with it."""
LONGEST_STOP = 5.0
"""Seconds for which a server may stop answering; it takes milliseconds on a quiet machine."""
DRIP_SECONDS = 5.0
OPEN_SECONDS = 4
PATIENCE = 60.0
ENTROPY = SystemEntropy()


def compressed_zeros(size: int) -> bytes:
    """A gzip stream of about this many bytes: a thousand times as many zeros, made in no time."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush the same bytes can follow as often as one likes.
    block = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (size // len(block)) + packer.flush(zlib.Z_FINISH)


def send_bomb(connection: socket.socket, *, encoding: str, body: bytes) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def bombs() -> dict[str, Script]:
    """Once compressed, 3 GB; twice compressed, 23 GB in a few kilobytes."""
    once = compressed_zeros(BOMB_BYTES)
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    twice = packer.compress(compressed_zeros(8 * BOMB_BYTES)) + packer.flush()
    return {
        "gzip": partial(send_bomb, encoding="gzip", body=once),
        "gzip, gzip": partial(send_bomb, encoding="gzip, gzip", body=twice),
    }


def peak_memory(process: int) -> int:
    """The most memory that a process has had so far, in bytes."""
    status = Path(f"/proc/{process}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@dataclass
class Lies:
    """What the aggregator's address answers at the moment, and how often it was asked."""

    script: Script
    asked: int = 0

    def __call__(self, connection: socket.socket) -> None:
        self.asked += 1
        self.script(connection)


@dataclass(frozen=True)
class Coordinator:
    """A real coordinator, whose aggregator lies to it, and the honest one that the owner knows."""

    process: Process
    s1: str
    s2: str
    folder: Path

    def client(self, name: str) -> httpx.AsyncClient:
        token = (self.folder / name / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=getattr(self, name), headers=headers, timeout=PATIENCE)


def is_listening(address: str) -> bool:
    try:
        return httpx.get(f"{address}/v1/operator").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def running_coordinator(folder: Path, liar: RawServer) -> Iterator[Coordinator]:
    addresses = {name: f"http://127.0.0.1:{free_port()}" for name in ("s1", "s2")}
    commands = {
        "s1": ("coordinator", "--aggregator", liar.address),
        "s2": ("aggregator",),
    }
    processes = list[Process]()
    try:
        for name, command in commands.items():
            place = ("--data", str(folder / name), "--port", addresses[name].rpartition(":")[2])
            arguments = ("faircount", *command, *place, "--private-port", "-1")
            processes.append(Process.start(arguments, folder / f"{name}.log"))
        limits = (HARD_LIMIT, HARD_LIMIT)
        resource.prlimit(processes[0].running.pid, resource.RLIMIT_AS, limits)
        for process, address in zip(processes, addresses.values(), strict=True):
            process.wait_until(partial(is_listening, address), 120, "a server")
        yield Coordinator(processes[0], addresses["s1"], addresses["s2"], folder)
    finally:
        for process in processes:
            process.stop()


async def answer_all(to_s1: httpx.AsyncClient, survey: TrialSurvey) -> None:
    """Everybody answers but the last one."""
    for place in range(len(survey.invitations) - 1):
        await visit_once(to_s1, survey, begin_client(survey, place, 0, ENTROPY), ENTROPY)


class Watch:
    """Asks a server for its page again and again, and notes the longest time without an answer."""

    def __init__(self, address: str) -> None:
        self.longest = 0.0
        self._address = address
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)

    def _ask(self) -> None:
        with httpx.Client(timeout=PATIENCE) as client:
            while not self._stopped.wait(0.02):
                began = time.monotonic()
                client.get(f"{self._address}/page.json")
                self.longest = max(self.longest, time.monotonic() - began)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(PATIENCE)


@pytest.mark.slow
def test_a_lying_aggregator_neither_fills_nor_stops_the_coordinator(tmp_path: Path) -> None:
    """First bombs; then a byte every five seconds while another survey's deadline passes."""
    lies = Lies(bombs()["gzip"])
    with raw_server(lies) as liar, running_coordinator(tmp_path, liar) as coordinator:
        asyncio.run(attack_with_bombs(coordinator, lies))
        stopped = threading.Event()
        dripping = threading.Event()
        lies.script = partial(drip, dripping, stopped)
        try:
            asyncio.run(attack_with_drips(coordinator, dripping))
        finally:
            stopped.set()
    log = (tmp_path / "s1.log").read_text()
    assert "compressed" in log
    assert len(log) < 100_000


async def attack_with_bombs(coordinator: Coordinator, lies: Lies) -> None:
    process = coordinator.process.running.pid
    async with coordinator.client("s1") as to_s1, coordinator.client("s2") as to_s2:
        for script in bombs().values():
            lies.script = script
            survey = await open_trial(to_s1, to_s2)
            await answer_all(to_s1, survey)
            before = peak_memory(process)
            asked = lies.asked
            with Watch(coordinator.s1) as watch:
                require_success(await to_s1.post(f"{survey.path}/close"))
                problem = await wait_for_problem(to_s1, survey)
            assert problem == "the aggregator's answer exceeds the limits"
            assert lies.asked > asked
            growth = peak_memory(process) - before
            print(f"memory grows by {growth / MEBIBYTE:.1f} MiB, stops for {watch.longest:.3f} s")
            assert growth < MAX_GROWTH
            assert watch.longest < LONGEST_STOP


async def wait_for_problem(to_s1: httpx.AsyncClient, survey: TrialSurvey) -> str:
    async with asyncio.timeout(PATIENCE):
        while True:
            status = require_success(await to_s1.get(f"{survey.path}/status")).json()
            if status["problem"]:
                return str(status["problem"])
            await asyncio.sleep(0.05)


def drip(dripping: threading.Event, stopped: threading.Event, connection: socket.socket) -> None:
    """An answer that begins at once and never ends."""
    dripping.set()
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    while not stopped.wait(DRIP_SECONDS):
        connection.sendall(b"x")


async def attack_with_drips(coordinator: Coordinator, dripping: threading.Event) -> None:
    async with coordinator.client("s1") as to_s1, coordinator.client("s2") as to_s2:
        slow = await open_trial(to_s1, to_s2)
        other = await open_trial(to_s1, to_s2, phase_seconds=(OPEN_SECONDS,), grace=0)
        opened = time.monotonic()
        await answer_all(to_s1, slow)
        await answer_all(to_s1, other)
        leaver = begin_client(other, 5, 0, ENTROPY)
        leaver = await visit_once(to_s1, other, leaver, ENTROPY)
        require_success(await to_s1.post(f"{slow.path}/close"))
        # This survey, or one of those before, which are tried again: both occupy the coordinator.
        assert await asyncio.to_thread(dripping.wait, PATIENCE)
        await asyncio.sleep(max(0.0, opened + OPEN_SECONDS - time.monotonic()))
        withdrawal = other.params.topology.client.withdraw(leaver).waiting[0]
        async with asyncio.timeout(PATIENCE):
            while (await to_s1.get(f"{other.path}/status")).json()["phase"] == "submitting":
                await asyncio.sleep(0.02)
        late = time.monotonic() - opened - OPEN_SECONDS
        print(f"closed {late:.2f} s after its closing time")
        assert late < DRIP_SECONDS
        refused = await send_message(to_s1, other, withdrawal)
        assert isinstance(refused, Rejection)
        assert refused.why is Reason.LATE


def run_command(*arguments: str, folder: Path) -> tuple[int, str, int]:
    """Exit code, output and peak memory of a faircount command."""
    with (folder / "output").open("w+") as target:
        process = subprocess.Popen(
            [sys.executable, "-m", "faircount", *arguments],
            stdout=target,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
        )
        resource.prlimit(process.pid, resource.RLIMIT_AS, (HARD_LIMIT, HARD_LIMIT))
        memory = 0
        # Looked at while it runs: what the system tells afterwards includes this test's process,
        # from which the command was forked.
        while process.poll() is None:
            with suppress(OSError, ValueError):
                memory = peak_memory(process.pid)
            time.sleep(0.02)
        target.seek(0)
        return process.returncode, target.read(), memory


@pytest.mark.slow
def test_a_lying_coordinator_does_not_fill_participants_or_owners(tmp_path: Path) -> None:
    lies = Lies(bombs()["gzip, gzip"])
    with raw_server(lies) as liar:
        invitation = Invitation.issue(ENTROPY.bytes(32), ENTROPY)
        link = Code(ENTROPY.bytes(16), invitation).link(liar.address)
        check_refusal("answer", link, "--item", "a", "--yes", folder=tmp_path)
        # The owner's tools refuse one address for both servers.
        addresses = {"s1": liar.address, "s2": liar.address.replace("127.0.0.1", "localhost")}
        access = {name: {"address": at, "token": "token"} for name, at in addresses.items()}
        (tmp_path / "servers.json").write_text(json.dumps(access))
        lies.script = bombs()["gzip"]
        asked = ("--question", "Which?", "--items", "Aldmoor,Brackwater", "--users", "120")
        create = ("survey", "create", "cities", "--servers", "servers.json")
        check_refusal(*create, *asked, folder=tmp_path)


def check_refusal(*command: str, folder: Path) -> None:
    code, output, memory = run_command(*command, folder=folder)
    print(f"{command[0]}: {memory / MEBIBYTE:.0f} MiB, {output.strip()[-200:]}")
    assert code != 0
    assert "compressed" in output
    assert memory < MAX_MEMORY
