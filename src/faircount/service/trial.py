"""Both servers on one machine, as two processes with two databases: for a trial, and not for anybody's real answers.

Whoever runs both servers can put the shares together. A trial shows how everything works; a survey that people can
trust has two organizations, each with one of these processes (docs/operations.md).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from faircount.core.errors import FaircountError, RemoteError, UnreachableError
from faircount.core.files import private_folder, read_file, write_durably
from faircount.service.calls import Patience, RemoteServer
from faircount.service.processes import Process, ended_in_order, free_port

START_SECONDS = 60.0
"""How long a server may take to start: a busy machine reads many files."""

OPERATOR = "a trial on one machine"


@dataclass
class Trial:
    """Two running servers. `servers_file` is what `faircount survey create --servers` reads."""

    folder: Path
    ports: tuple[int, int]
    s1: Process
    s2: Process

    @property
    def address(self) -> str:
        """Of S1, which people and the owner call."""
        return _address(self.ports[0])

    @property
    def servers_file(self) -> Path:
        """Address and the owner's token of both servers; secret."""
        return self.folder / "servers.json"

    def wait(self) -> None:
        """Until both answer; then write down how their owner reaches them."""
        for process, port, name in ((self.s2, self.ports[1], "S2"), (self.s1, self.ports[0], "S1")):
            process.wait_until(lambda port=port: _answers(_address(port)), START_SECONDS, name)  # type: ignore[misc]  # bound now
        known = {name: self._access(name, port) for name, port in zip(("s1", "s2"), self.ports, strict=True)}
        write_durably(self.servers_file, json.dumps(known, indent=2).encode() + b"\n")

    def _access(self, name: str, port: int) -> dict[str, str]:
        token = read_file(self.folder / name / "owner-token", f"the first start of {name} should have made it")
        return {"address": _address(port), "token": token.decode().strip()}

    def kill_s1(self) -> None:
        """End S1 in the middle of whatever it does, and start it again."""
        self.s1.kill()
        self.s1 = self.s1.again()
        self.s1.wait_until(lambda: _answers(self.address), START_SECONDS, "S1")

    def stop(self) -> None:
        """End both servers, S1 first: it is the one that calls."""
        self.s1.stop()
        self.s2.stop()


@contextmanager
def trial(folder: Path, ports: tuple[int, int] | None = None) -> Iterator[Trial]:
    """Both servers while the block runs; what they keep stays in the folder, and is used again the next time."""
    private_folder(folder)
    with ended_in_order():
        started = _start(folder, ports or (free_port(), free_port()))
        try:
            started.wait()
            yield started
        finally:
            started.stop()


def _start(folder: Path, ports: tuple[int, int]) -> Trial:
    s1_port, s2_port = ports
    s2 = Process.start(_arguments("aggregator", folder / "s2", s2_port), folder / "s2.log")
    link = ("--aggregator", _address(s2_port))
    s1 = Process.start((*_arguments("coordinator", folder / "s1", s1_port), *link), folder / "s1.log")
    return Trial(folder, ports, s1, s2)


def _arguments(role: str, data: Path, port: int) -> tuple[str, ...]:
    return (
        "faircount", role, "--data", str(data), "--port", str(port), "--private-port", "-1", "--operator", OPERATOR,
    )  # fmt: skip


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _answers(address: str) -> bool:
    """Whether a server listens there: any answer will do."""
    server = RemoteServer(address, patience=Patience(tries=1))
    try:
        server.call("GET", "/")
    except UnreachableError:
        return False
    except (RemoteError, FaircountError):
        return True
    finally:
        server.close()
    return True
