"""The aggregator's long work in other processes, so that requests do not wait for a large batch.

Work is a function from bytes to bytes, which gives the same result in any process; if a process
dies, it is done again. There are two kinds:

    a whole step              from a state with the rows that it needs, a ledger and the
                              coordinator's message, to a state, a ledger and replies (`StepInput`)
    a part of a large batch   verified before its step is made, several parts at a time
                              (`AggregatorRules.work_ahead`)
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
from typing import Protocol, TypeVar

from faircount.core.errors import StorageError
from faircount.protocol import (
    Aggregator,
    Ledger,
    MemoryRows,
    RowReader,
    Step,
    aggregator_step_with,
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

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StepInput:
    """All that a step needs, as bytes."""

    state: bytes = field(repr=False)
    rows: bytes = field(repr=False)
    ledger: bytes
    message: bytes

    @classmethod
    def of(
        cls, s: Aggregator, reader: RowReader, ledger: Ledger, message: bytes
    ) -> "StepInput | None":
        """The input of a step; None if it may read more rows than another process should get."""
        signed = decode_signed(message)
        needed: MemoryRows | None = MemoryRows()
        if isinstance(signed, Signed):
            rules = s.params.topology.aggregator
            needed = rules.rows_for(s, StepRows(reader), decode(signed.payload))
        # Sending all rows of a large survey would cost more than making the step here.
        if needed is None:
            return None
        rows = encode_rows(needed.rows())
        return cls(encode_state(s), rows, stored_ledger.encode(ledger), message)

    def run(self) -> "StepResult":
        """Make the step, in any process."""
        ledger = stored_ledger.decode(self.ledger)
        state = decode_state(Aggregator, self.state, None, ledger)
        rows = MemoryRows(decode_rows(self.rows))
        after_ledger, step = aggregator_step_with(ledger, state, decode_signed(self.message), rows)
        return StepResult(
            encode_state(step.state),
            encode_rows(step.rows),
            step.scrubbed,
            stored_ledger.encode(after_ledger),
            tuple(encode(message) for message in step.messages),
        )


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step returned, as bytes."""

    state: bytes = field(repr=False)
    rows: bytes = field(repr=False)
    scrubbed: tuple[str, ...]
    ledger: bytes
    messages: tuple[bytes, ...]

    def step(self) -> Step[Aggregator]:
        """The step, to be written."""
        after = decode_state(Aggregator, self.state, None, stored_ledger.decode(self.ledger))
        messages = tuple(decode_signed(message) for message in self.messages)
        return Step(after, messages, tuple(decode_rows(self.rows)), self.scrubbed)


def _end_with_parent() -> None:
    """End this process when the server ends, even if the server is killed."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            # Nobody waits for the result, and cleaning up could block.
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Work(Protocol[R_co]):
    """Work for another process."""

    def run(self) -> R_co:
        """Do the work."""


class Workers(ABC):
    """Do work outside of the server's process."""

    @abstractmethod
    async def run(self, work: Work[R]) -> R:
        """Do the work and return its result.

        Raises:
            StorageError: it could not be done now; the coordinator repeats its request
        """

    @abstractmethod
    def close(self) -> None:
        """Release the processes."""


class WorkerProcesses(Workers):
    """Processes of this machine, started when they are first needed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._pool: ProcessPoolExecutor | None = None

    async def run(self, work: Work[R]) -> R:
        """Do the work in a process that is free. A process that died is replaced."""
        pool = self._pool
        if pool is None:
            # Spawned, not forked: threads of the server may hold locks.
            pool = ProcessPoolExecutor(self._number, get_context("spawn"), _end_with_parent)
            self._pool = pool
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, work.run)
        except BrokenProcessPool as problem:
            # A new pool is started for the next work. Of several works that fail together, another
            # may have been the first to find that, and the next work may have begun.
            if self._pool is pool:
                self._pool = None
            raise StorageError(
                "a process that decrypts batches has died: the request will be repeated"
            ) from problem

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
