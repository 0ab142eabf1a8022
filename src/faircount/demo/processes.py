"""Processes that we start, watch and stop, each by its own id.

None of them outlives us, even if we are killed. Every program is started through this module:

    python -m faircount.demo.processes MODULE ARGUMENTS

We hold the other end of its standard input and never write to it. The operating system closes that
end when we are gone, however that happened, and the program then ends itself. This works on every
system, and nobody has to poll whether a process still exists.
"""

import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from faircount.core.errors import FaircountError
from faircount.core.files import describe_os_error

# How long a process may take to end when it is asked to.
STOP_SECONDS = 10.0


@dataclass
class Process:
    """A running program of ours; its messages go to a file."""

    arguments: tuple[str, ...]
    log: Path
    running: "subprocess.Popen[bytes]"
    pipe: bool = False

    @classmethod
    def start(cls, arguments: Sequence[str], log: Path, *, pipe: bool = False) -> "Process":
        """Start `python -m ARGUMENTS`.

        With `pipe` the caller reads and closes its standard output; else that goes to the log.
        """
        # Appended: a process that is started again writes after its predecessor.
        with log.open("ab") as target:
            running = subprocess.Popen(  # noqa: S603 - our own program with our own arguments
                [sys.executable, "-m", "faircount.demo.processes", *arguments],
                stdin=subprocess.PIPE,  # closed when we are gone, which ends the program
                stdout=subprocess.PIPE if pipe else target,
                stderr=target,
            )
        return cls(tuple(arguments), log, running, pipe)

    def start_again(self) -> "Process":
        """Start the same program once more."""
        return Process.start(self.arguments, self.log, pipe=self.pipe)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.running.poll() is None

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.running.kill()
        self._wait(None)

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        self.running.send_signal(signal.SIGTERM)  # does nothing if it has ended
        # A server first finishes the requests that it is answering.
        with suppress(subprocess.TimeoutExpired):
            self._wait(STOP_SECONDS)
        if self.is_alive:
            self.kill()

    def _wait(self, seconds: float | None) -> None:
        """Wait until it has ended, and release its standard input."""
        self.running.wait(seconds)
        if self.running.stdin is not None:
            self.running.stdin.close()

    def wait_until(self, is_ready: Callable[[], bool], seconds: float, name: str) -> None:
        """Wait until it is ready; if it ends instead, the error quotes the end of its log."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if not self.is_alive:
                raise FaircountError(f"{name} has ended instead of starting: {self.last_message()}")
            if time.monotonic() > deadline:
                raise FaircountError(
                    f"{name} is not ready after {seconds:.0f} seconds: {self.last_message()}"
                )
            time.sleep(0.05)

    def last_message(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its log is empty"


@contextmanager
def stop_in_order() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C while the block runs, so that `finally` stops our processes."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # Python allows signal handlers in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def free_port() -> int:
    """A port on this machine that no program uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def check_port(port: int, name: str) -> None:
    """Refuse a port on which another program listens."""
    with socket.socket() as probe:
        # As servers do: connections of a server that has just ended do not block its port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError as problem:
            raise FaircountError(
                f"{name} cannot listen on port {port}: {describe_os_error(problem)}. Stop the "
                "program that uses the port, or give another one with --s1-port or --s2-port"
            ) from None


def _end_with_starter() -> None:
    """Wait until standard input is closed, then end in order, or else at once."""
    # Not through sys.stdin: its lock would block the interpreter when the program ends.
    while os.read(0, 1):
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_starter, name="starter", daemon=True).start()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
