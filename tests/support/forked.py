"""Programs of ours that start at once, for drills that kill many: forked from a process that has loaded what they need.

They are processes like any other, and are killed like any other; only the second that Python takes to load is saved.
"""

import os
import runpy
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from faircount.protocol.topologies.two_servers import messages

_CONTEXT = get_context("forkserver")


def load_first(modules: Sequence[str]) -> None:
    """What the process loads from which all others are forked; to be said before the first one is started."""
    _CONTEXT.set_forkserver_preload(list(modules))


@dataclass(frozen=True)
class Forked:
    """A running `python -m ARGUMENTS`; all that it says goes to a file."""

    arguments: tuple[str, ...]
    log: Path
    lines: int
    running: ForkServerProcess

    @classmethod
    def start(cls, arguments: Sequence[str], log: Path, lines: int = messages.LINES) -> "Forked":
        """Start it; it ends with us, also if we are killed. A server has claims in parts of so many lines."""
        log.touch(0o600)
        running = _CONTEXT.Process(target=_run, args=(tuple(arguments), str(log), lines))
        running.start()
        return cls(tuple(arguments), log, lines, running)

    def again(self) -> "Forked":
        """The same program, started anew."""
        return Forked.start(self.arguments, self.log, self.lines)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self.running.is_alive()

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.running.kill()
        self.running.join()


def _run(arguments: tuple[str, ...], log: str, lines: int) -> None:
    """What a forked process does."""
    messages.LINES = lines
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target = os.open(log, os.O_WRONLY | os.O_APPEND)
    for said in (1, 2):
        os.dup2(target, said)
    sys.argv = list(arguments)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
