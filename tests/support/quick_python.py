"""A program that runs Python as `python` does, without the half second that it takes to load modules.

    QUICK -m MODULE ARGUMENTS    QUICK -c PROGRAM ARGUMENTS    QUICK FILE ARGUMENTS

It asks a server, which has loaded the modules of faircount, to fork. What runs is a process of its
own with the caller's files, folder, environment and umask; signals reach it, and it is killed when
the program is. Programs that faircount starts in such a process are started in this way, too.
"""

import atexit
import gc
import importlib
import io
import marshal
import os
import pkgutil
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

# Everything that commands of the guides load. What is missing here is loaded as always.
PACKAGES = (
    "cli",
    "client",
    "dashboard",
    "demo",
    "owner",
    "planning",
    "protocol",
    "server",
    "analysis",
)
# Libraries that the first start of a server loads, and the tables of results.
LIBRARIES = ("alembic.command", "asyncpg", "scipy.stats", "sqlalchemy.ext.asyncio")

# Started for every command: it loads no more than it needs.
CLIENT = """\
#!{python} -IS
import marshal, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({address!r})
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, lambda number, _: server.send(bytes([number])))
umask = os.umask(0)
asked = marshal.dumps((sys.argv, os.getcwd(), umask, dict(os.environ)))
socket.send_fds(server, [asked], [0, 1, 2])
ended = server.recv(8)
code = int.from_bytes(ended, "big", signed=True) if ended else 1
if code < 0:
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def quick_python() -> str:
    """The path of the program; its server lives as long as this process."""
    folder = tempfile.TemporaryDirectory(prefix="faircount-quick-")
    address = str(Path(folder.name, "socket"))
    program = Path(folder.name, "python")
    program.write_text(CLIENT.format(python=sys.executable, address=address))
    program.chmod(0o755)
    # It ends when its standard input is closed, so it ends with us, however that happens.
    server = subprocess.Popen(
        [sys.executable, __file__, address, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def stop() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(stop)
    return str(program)


@contextmanager
def quick_processes() -> Iterator[None]:
    """Programs that faircount starts by its own `Process` are started in this way."""
    with patch.object(sys, "executable", quick_python()):
        yield


def command_for_shell(python: str) -> str:
    """A shell script that is the command `faircount`, run by this Python."""
    return f'#!/bin/sh\nexec {shlex.quote(python)} -m faircount "$@"\n'


class _Server:
    """Forks a process for every caller, and tells it how the process ended."""

    def __init__(self, address: str, program: str) -> None:
        self.program = program
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(address)
        self.listener.listen(64)
        self.callers: dict[int, socket.socket] = {}
        self.selector = selectors.DefaultSelector()
        self.woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for source in (0, self.woken, self.listener):
            self.selector.register(source, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until standard input is closed."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj == 0:
                    self.end()
                    return
                if key.fileobj == self.woken:
                    os.read(self.woken, 4096)
                    self.tell_ended()
                elif key.fileobj is self.listener:
                    self.start()
                elif isinstance(key.fileobj, socket.socket):
                    self.hear(key.fileobj)

    def start(self) -> None:
        caller, _ = self.listener.accept()
        asked, files, _, _ = socket.recv_fds(caller, 1 << 20, 3)
        if not asked:
            caller.close()
            return
        number = os.fork()
        if number == 0:
            for place, file in enumerate(files):
                os.dup2(file, place)
            signal.set_wakeup_fd(-1)
            for other in (*self.callers.values(), caller, self.listener):
                other.close()
            _run(*marshal.loads(asked), self.program)  # noqa: S302 - our own client wrote it
        for file in files:
            os.close(file)
        self.callers[number] = caller
        self.selector.register(caller, selectors.EVENT_READ)

    def hear(self, caller: socket.socket) -> None:
        """A caller that is gone was killed; else it passes a signal on."""
        heard = caller.recv(1)
        for number, known in list(self.callers.items()):
            if known is caller:
                os.kill(number, heard[0] if heard else signal.SIGKILL)
                if not heard:
                    self.selector.unregister(caller)

    def tell_ended(self) -> None:
        while self.callers:
            number, status = os.waitpid(-1, os.WNOHANG)
            if number == 0:
                return
            caller = self.callers.pop(number)
            code = os.waitstatus_to_exitcode(status)
            if caller.fileno() in self.selector.get_map():
                self.selector.unregister(caller)
                with suppress(OSError):  # it was killed just now
                    caller.send(code.to_bytes(8, "big", signed=True))
            caller.close()

    def end(self) -> None:
        for number in self.callers:
            os.kill(number, signal.SIGKILL)
        for number in self.callers:
            os.waitpid(number, 0)


def _run(
    arguments: list[str], folder: str, umask: int, environment: dict[str, str], program: str
) -> None:
    """The work of a forked process; it does not return."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.chdir(folder)
        os.umask(umask)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = _text(1)
        sys.stderr = _text(2, errors="backslashreplace", line_buffering=True)
        sys.executable = program
        code = _code_of(*arguments[1:])
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _text(file: int, **how: Any) -> io.TextIOWrapper:
    raw = open(file, "wb", closefd=False)  # noqa: SIM115 - it ends with the process
    how.setdefault("line_buffering", os.isatty(file))
    return io.TextIOWrapper(raw, encoding="utf-8", **how)


def _code_of(*arguments: str) -> int:
    """Run a module, a program or a file, and return its exit code."""
    kind, what, *rest = arguments
    try:
        if kind == "-m":
            sys.argv = [what, *rest]
            sys.path[0] = str(Path.cwd())
            # It runs as a program: as if nobody had loaded it.
            if "." in what:
                sys.modules.pop(what, None)
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        elif kind == "-c":
            sys.argv = ["-c", *rest]
            sys.path[0] = ""
            main = ModuleType("__main__")
            sys.modules["__main__"] = main
            exec(compile(what, "<string>", "exec"), main.__dict__)  # noqa: S102 - as python -c
        else:
            sys.argv = list(arguments)
            sys.path[0] = str(Path(kind).parent)
            runpy.run_path(kind, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _load() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in PACKAGES:
        package = importlib.import_module(f"faircount.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    for library in LIBRARIES:
        importlib.import_module(library)
    # What is loaded stays: no process needs to look for cycles in it, or to copy it.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _load()
    server = _Server(*sys.argv[1:])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve()
