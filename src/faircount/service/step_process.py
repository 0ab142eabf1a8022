"""S2's long steps in processes of their own: opening a large batch takes many seconds, and others must not wait.

A step is a function of bytes: of a state with the rows that it needs, a ledger and S1's message, to a state, a ledger
and answers. So it is the same in any process, and nothing is lost if that process dies.
"""

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait

from faircount.core.errors import StorageError
from faircount.protocol import Aggregator, Ledger, aggregate_with, decode, decode_state, encode, encode_state
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.survey import stored_ledger
from faircount.protocol.wire.messages import Signed


@dataclass(frozen=True, slots=True)
class StepBytes:
    """What a step begins with."""

    state: bytes = field(repr=False)
    ledger: bytes
    message: bytes

    @classmethod
    def of(cls, s: Aggregator, ledger: Ledger, message: bytes) -> "StepBytes | None":
        """A step as bytes; None for one that needs more of its state than another process should be given."""
        signed = decode_signed(message)
        needed = s.params.topology.apart(s, decode(signed.payload)) if isinstance(signed, Signed) else s
        return None if needed is None else cls(encode_state(needed), stored_ledger.encode(ledger), message)


@dataclass(frozen=True, slots=True)
class SteppedBytes:
    """What a step has led to; of the stores only what is new."""

    state: bytes = field(repr=False)
    ledger: bytes
    answers: tuple[bytes, ...]

    def step(self) -> aggregator.Step:
        """The state and the answers."""
        after = decode_state(Aggregator, self.state, None, stored_ledger.decode(self.ledger))
        return after, tuple(decode_signed(each) for each in self.answers)


def stepped(given: StepBytes) -> SteppedBytes:
    """One step of S2, in whatever process."""
    ledger = stored_ledger.decode(given.ledger)
    s = decode_state(Aggregator, given.state, None, ledger)
    after_ledger, (after, out) = aggregate_with(ledger, s, decode_signed(given.message))
    after = replace(after, mac_keys={}, kept=after.kept.without(s.kept), notes=after.notes.without(s.notes))
    return SteppedBytes(encode_state(after), stored_ledger.encode(after_ledger), tuple(encode(each) for each in out))


def _end_with_parent() -> None:
    """A killed server leaves no process behind."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class StepMaker(ABC):
    """Makes steps outside of the server's own process."""

    @abstractmethod
    async def step(self, given: StepBytes) -> SteppedBytes:
        """The step; a `StorageError` if it could not be made now, and is to be made again."""

    @abstractmethod
    def close(self) -> None:
        """Let go of whoever makes them."""


class StepProcesses(StepMaker):
    """The processes of one server, started when they are first needed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._pool: ProcessPoolExecutor | None = None

    async def step(self, given: StepBytes) -> SteppedBytes:
        """The step, made by a process that is free; one that died is replaced, and the step is to be made again."""
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._number, get_context("spawn"), _end_with_parent)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, stepped, given)
        except BrokenProcessPool as problem:
            self._pool = None
            raise StorageError("a process that opens batches has died: the same is tried again") from problem

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
