"""Processes that we start, watch and stop: each by its own id, and none of them outlives us, even if we are killed."""

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

STOP_SECONDS = 10.0
"""How long a process may take to end when it is asked to."""


@dataclass
class Process:
    """A running program of ours; its messages go to a file."""

    arguments: tuple[str, ...]
    log: Path
    running: "subprocess.Popen[bytes]"
    pipe: bool = False

    @classmethod
    def start(cls, arguments: Sequence[str], log: Path, *, pipe: bool = False) -> "Process":
        """Start `python -m ARGUMENTS`; with `pipe` its standard output is ours to read and close, else in the file."""
        with log.open("ab") as target:
            running = subprocess.Popen(  # noqa: S603 - our own program with our own arguments
                [sys.executable, "-m", "faircount.service.child", *arguments],
                stdin=subprocess.PIPE,  # ours until we are gone: then it ends (`child`)
                stdout=subprocess.PIPE if pipe else target,
                stderr=target,
            )
        return cls(tuple(arguments), log, running, pipe)

    def again(self) -> "Process":
        """The same program, started anew."""
        return Process.start(self.arguments, self.log, pipe=self.pipe)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.running.poll() is None

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.running.kill()
        self._wait(None)

    def stop(self) -> None:
        """Ask it to end, and end it if it does not."""
        self.running.send_signal(signal.SIGTERM)  # nothing, if it has ended
        with suppress(subprocess.TimeoutExpired):
            self._wait(STOP_SECONDS)
        if self.alive:
            self.kill()

    def _wait(self, seconds: float | None) -> None:
        """Until it has ended; then nothing of it is left."""
        self.running.wait(seconds)
        if self.running.stdin is not None:
            self.running.stdin.close()

    def wait_until(self, ready: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until it is ready; a process that ends instead is told with its last words."""
        end = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise FaircountError(f"{what} has ended instead of starting: {self.last_words()}")
            if time.monotonic() > end:
                raise FaircountError(f"{what} is not ready after {seconds:.0f} seconds: {self.last_words()}")
            time.sleep(0.05)

    def last_words(self) -> str:
        """The last line of its messages."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


@contextmanager
def ended_in_order() -> Iterator[None]:
    """While the block runs, being asked to end is like Ctrl-C: what stops our own processes is done first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only there can signals be taken
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def free_port() -> int:
    """A port on this machine that nobody uses now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port
