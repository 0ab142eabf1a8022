"""Both servers on one machine, as two processes with two databases: for trials only.

Whoever runs both servers can combine the shares, so a trial is not for anybody's real answers. It
shows how everything works. A survey that people can trust has two organizations, each of which runs
one of these processes (docs/operations.md).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.core.errors import FaircountError, UnreachableError
from faircount.core.files import make_private_folder, read_file, write_durably
from faircount.demo.processes import Process, free_port, stop_in_order

# A server may take long to start: a busy machine reads many files.
START_SECONDS = 60.0

OPERATOR = "TRIAL: whoever controls this machine"


@dataclass
class Trial:
    """Two running servers. `faircount survey create --servers` reads their `servers_file`."""

    folder: Path
    ports: tuple[int, int]
    s1: Process
    s2: Process

    @property
    def address(self) -> str:
        """The coordinator, which participants and the owner call."""
        return _address(self.ports[0])

    @property
    def servers_file(self) -> Path:
        """Addresses of both servers and the owner's tokens for them; secret."""
        return self.folder / "servers.json"

    def wait(self) -> None:
        """Wait until both servers answer, then write the servers file."""
        s1_port, s2_port = self.ports
        is_s2_ready = partial(_is_listening, _address(s2_port))
        self.s2.wait_until(is_s2_ready, START_SECONDS, "the aggregator")
        is_s1_ready = partial(_is_listening, _address(s1_port))
        self.s1.wait_until(is_s1_ready, START_SECONDS, "the coordinator")
        # Only now: a server makes the owner's token when it first starts.
        servers = {"s1": self._access("s1", s1_port), "s2": self._access("s2", s2_port)}
        write_durably(self.servers_file, json.dumps(servers, indent=2).encode() + b"\n")

    def _access(self, name: str, port: int) -> dict[str, str]:
        token_file = self.folder / name / "owner-token"
        token = read_file(token_file, f"the first start of {name} should have made it")
        return {"address": _address(port), "token": token.decode().strip()}

    def crash_coordinator(self) -> None:
        """Kill the coordinator in the middle of whatever it does, and start it again."""
        self.s1.kill()
        self.s1 = self.s1.start_again()
        is_ready = partial(_is_listening, self.address)
        self.s1.wait_until(is_ready, START_SECONDS, "the coordinator")

    def stop(self) -> None:
        """Stop both servers."""
        # The coordinator first: it calls the aggregator, and would log that it is gone.
        self.s1.stop()
        self.s2.stop()


@contextmanager
def trial(folder: Path, ports: tuple[int, int] | None = None) -> Iterator[Trial]:
    """Run both servers while the block runs. Their data stay in the folder for the next time."""
    make_private_folder(folder)
    with stop_in_order():
        running = _start(folder, ports or (free_port(), free_port()))
        try:
            running.wait()
            yield running
        finally:
            running.stop()


def _start(folder: Path, ports: tuple[int, int]) -> Trial:
    s1_port, s2_port = ports
    s2_arguments = _arguments("aggregator", folder / "s2", s2_port)
    s2 = Process.start(s2_arguments, folder / "s2.log")
    s1_arguments = _arguments("coordinator", folder / "s1", s1_port)
    s1_arguments += ("--aggregator", _address(s2_port))
    s1 = Process.start(s1_arguments, folder / "s1.log")
    return Trial(folder, ports, s1, s2)


def _arguments(role: str, data: Path, port: int) -> tuple[str, ...]:
    # Without its private port: two trials on one machine would need different ones.
    public = ("--data", str(data), "--port", str(port))
    return ("faircount", role, *public, "--private-port", "-1", "--operator", OPERATOR)


def _address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _is_listening(address: str) -> bool:
    """Whether a server answers there, with whatever it may be."""
    server = RemoteServer(address, retry=RetryPolicy(attempts=1))
    try:
        server.call("GET", "/")
    except UnreachableError:
        return False
    except FaircountError:
        return True
    finally:
        server.close()
    return True
