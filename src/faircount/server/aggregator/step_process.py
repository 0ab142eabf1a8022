"""The aggregator's long steps in other processes, so that requests do not wait for a large batch.

A step is a function from bytes to bytes: from a state with the rows that it needs, a ledger and the
coordinator's message, to a state, a ledger and replies. It gives the same result in any process,
and if the process dies it is made again.
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


def make_step(step_input: StepInput) -> StepResult:
    """Make one step of the aggregator, in any process."""
    ledger = stored_ledger.decode(step_input.ledger)
    state = decode_state(Aggregator, step_input.state, None, ledger)
    rows = MemoryRows(decode_rows(step_input.rows))
    message = decode_signed(step_input.message)
    after_ledger, step = aggregate_with(ledger, state, message, rows)
    return StepResult(
        encode_state(step.state),
        encode_rows(step.rows),
        step.scrubbed,
        stored_ledger.encode(after_ledger),
        tuple(encode(message) for message in step.messages),
    )


def _end_with_parent() -> None:
    """End this process when the server ends, even if the server is killed."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
            # Nobody waits for the result, and cleaning up could block.
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class StepMaker(ABC):
    """Makes steps outside of the server's process."""

    @abstractmethod
    async def step(self, step_input: StepInput) -> StepResult:
        """Make a step.

        Raises:
            StorageError: it could not be made now; the coordinator repeats its request
        """

    @abstractmethod
    def close(self) -> None:
        """Release the processes."""


class StepProcesses(StepMaker):
    """Processes of this machine, started when they are first needed."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._pool: ProcessPoolExecutor | None = None

    async def step(self, step_input: StepInput) -> StepResult:
        """Make a step in a process that is free. A process that died is replaced."""
        if self._pool is None:
            # Spawned, not forked: threads of the server may hold locks.
            self._pool = ProcessPoolExecutor(self._number, get_context("spawn"), _end_with_parent)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._pool, make_step, step_input
            )
        except BrokenProcessPool as problem:
            # A new pool is started for the next step.
            self._pool = None
            raise StorageError(
                "a process that decrypts batches has died: the request will be repeated"
            ) from problem

    def close(self) -> None:
        """End the processes."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
