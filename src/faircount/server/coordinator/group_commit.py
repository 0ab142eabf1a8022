"""Group commit: messages that arrive while a transaction is written share the next one.

Syncing a commit to disk takes far longer than processing a message, so a server under load writes
many messages per commit, and waits for them a few milliseconds. A single message is written at
once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from faircount.protocol import Message
from faircount.protocol.roles.coordinator import Out

MAX_GROUP = 256
"""The largest number of messages in one transaction."""
MAX_ROUNDS = 16
"""How often a group that still grows is given time to grow further."""
GATHER_SECONDS = 0.003
"""How long a group waits for messages under load.

Signing, encrypting and the commit cost as much for one message as for many: with twice as many in a
group, a message takes a tenth less of the server's time.
"""
LARGE_GROUP = 32
"""A group of this size waits no longer: more messages would save less time than the wait takes."""

Write = Callable[[Sequence[Message]], Awaitable[list[Out]]]
Waiting = list[tuple[Message, "asyncio.Future[Out]"]]


class GroupCommit:
    """The messages of one survey that wait to be written."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: Waiting = []
        self._last_size = 0
        self._running: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no message waits or is being written."""
        return self._running is None

    async def add(self, message: Message) -> Out:
        """Return the answers to a message, once its changes are on disk."""
        answer: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, answer))
        # One task per survey: two transactions would wait for the same row lock anyway.
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                # The group before had several messages, so more are on their way. After a pause
                # this costs the first message a few milliseconds, once.
                if self._last_size > 1 and len(self._waiting) < LARGE_GROUP:
                    await asyncio.sleep(GATHER_SECONDS)
                await self._gather()
                group = self._waiting[:MAX_GROUP]
                self._waiting = self._waiting[MAX_GROUP:]
                self._last_size = len(group)
                await self._write_group(group)
        finally:
            self._running = None

    async def _gather(self) -> None:
        """Let messages that are at the sockets already join the group.

        Nothing is waited for: a message on its own is written after two rounds of the event loop.
        """
        for _ in range(MAX_ROUNDS):
            known = len(self._waiting)
            # A request is read in one round, and its handler runs in the next.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            if len(self._waiting) == known or known >= MAX_GROUP:
                return

    async def _write_group(self, group: Waiting) -> None:
        # A caller may have disconnected meanwhile: then its future is cancelled, that is, done.
        try:
            outs = await self._write([message for message, _ in group])
        except Exception as problem:
            # Nothing of the group was written: every caller is told to send again.
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(problem)
            return
        for (_, answer), out in zip(group, outs, strict=True):
            if not answer.done():
                answer.set_result(out)
