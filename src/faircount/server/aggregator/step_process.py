"""The aggregator's long steps in processes of their own: opening a large batch takes many seconds,
and others must not wait.

A step is a function of bytes: of a state with the rows that it needs, a ledger and the
coordinator's message, to a state, a ledger and answers. So it is the same in any process, and
nothing is lost if that process dies.
"""

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait

from faircount.core.errors import StorageError
from faircount.protocol import (
    Aggregator,
    Ledger,
    MemoryRows,
    RowReader,
    Step,
    aggregate_with,
    decode,
    decode_state,
    encode,
    encode_state,
)
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.roles.stored import decode_rows, encode_rows
from faircount.protocol.survey import stored_ledger
from faircount.protocol.wire.messages import Signed


@dataclass(frozen=True, slots=True)
class StepBytes:
    """What a step begins with."""

    state: bytes = field(repr=False)
    rows: bytes = field(repr=False)
    ledger: bytes
    message: bytes

    @classmethod
    def of(
        cls, s: Aggregator, reader: RowReader, ledger: Ledger, message: bytes
    ) -> "StepBytes | None":
        """A step as bytes; None for one that reads more rows than another process should be
        given.
        """
        signed = decode_signed(message)
        needed: MemoryRows | None = MemoryRows()
        if isinstance(signed, Signed):
            rules = s.params.topology.aggregator
            needed = rules.rows_for(s, StepRows(reader), decode(signed.payload))
        if needed is None:
            return None
        rows = encode_rows(needed.rows())
        return cls(encode_state(s), rows, stored_ledger.encode(ledger), message)


@dataclass(frozen=True, slots=True)
class SteppedBytes:
    """What a step has led to."""

    state: bytes = field(repr=False)
    rows: bytes = field(repr=False)
    scrubbed: tuple[str, ...]
    ledger: bytes
    answers: tuple[bytes, ...]

    def step(self) -> Step[Aggregator]:
        """The step, to be written."""
        after = decode_state(Aggregator, self.state, None, stored_ledger.decode(self.ledger))
        answers = tuple(decode_signed(answer) for answer in self.answers)
        return Step(after, answers, tuple(decode_rows(self.rows)), self.scrubbed)


def stepped(given: StepBytes) -> SteppedBytes:
    """One step of the aggregator, in whatever process."""
    ledger = stored_ledger.decode(given.ledger)
    s = decode_state(Aggregator, given.state, None, ledger)
    rows = MemoryRows(decode_rows(given.rows))
    after_ledger, step = aggregate_with(ledger, s, decode_signed(given.message), rows)
    return SteppedBytes(
        encode_state(step.state),
        encode_rows(step.rows),
        step.scrubbed,
        stored_ledger.encode(after_ledger),
        tuple(encode(answer) for answer in step.messages),
    )


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
        """The step, made by a process that is free; one that died is replaced, and the step is
        to be made again.
        """
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._number, get_context("spawn"), _end_with_parent)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, stepped, given)
        except BrokenProcessPool as problem:
            self._pool = None
            raise StorageError(
                "a process that opens batches has died: the same is tried again"
            ) from problem

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
