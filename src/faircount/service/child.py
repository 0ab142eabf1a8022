"""Runs a program that ends with the process which started it, also when that one is killed and can tell nobody.

    python -m faircount.service.child MODULE ARGUMENTS

Whoever starts it holds the other end of its standard input, and writes nothing. The system closes that end when its
holder is gone, however it went; on every system, without asking again and again whether a process is still there.
"""

import os
import runpy
import signal
import sys
import threading
import time

SECONDS_TO_END = 10.0
"""How long the program may take to end in order."""


def end_with_starter() -> None:
    """From now on: when standard input is closed, end in order, or else at once."""
    threading.Thread(target=_watch, name="starter", daemon=True).start()


def _watch() -> None:
    while os.read(0, 1):  # not through sys.stdin: its lock would be in the way when the program ends
        continue
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(SECONDS_TO_END)
    os._exit(1)


if __name__ == "__main__":
    end_with_starter()
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
