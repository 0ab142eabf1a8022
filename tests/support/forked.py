"""Programs that start at once, for tests that kill many of them.

They are forked from a process that has loaded their modules already. They are processes like any
other, and are killed like any other; only the second is saved that Python takes to load them.
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


def preload(modules: Sequence[str]) -> None:
    """Choose the modules to load once; to be called before the first program is started."""
    _CONTEXT.set_forkserver_preload(list(modules))


@dataclass(frozen=True)
class Forked:
    """A running `python -m ARGUMENTS`; all its output goes to a file."""

    arguments: tuple[str, ...]
    log: Path
    reports_per_part: int
    running: ForkServerProcess

    @classmethod
    def start(
        cls,
        arguments: Sequence[str],
        log: Path,
        reports_per_part: int = messages.REPORTS_PER_PART,
    ) -> "Forked":
        """Start it. It ends with us, also if we are killed.

        Few reports in one part give even a small survey a batch manifest of several parts.
        """
        log.touch(0o600)
        values = (tuple(arguments), str(log), reports_per_part)
        running = _CONTEXT.Process(target=_run, args=values)
        running.start()
        return cls(tuple(arguments), log, reports_per_part, running)

    def start_again(self) -> "Forked":
        """Start the same program once more."""
        return Forked.start(self.arguments, self.log, self.reports_per_part)

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.running.is_alive()

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.running.kill()
        self.running.join()


def _run(arguments: tuple[str, ...], log: str, reports_per_part: int) -> None:
    """The work of a forked process."""
    messages.REPORTS_PER_PART = reports_per_part
    threading.Thread(target=_end_with_parent, daemon=True).start()
    target = os.open(log, os.O_WRONLY | os.O_APPEND)
    # Standard output and standard error of the process, also for code that does not use sys.
    os.dup2(target, 1)
    os.dup2(target, 2)
    sys.argv = list(arguments)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
