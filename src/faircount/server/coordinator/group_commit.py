"""Group commit: messages that arrive while a transaction is written share the next one.

Syncing a commit to disk takes far longer than processing a message, so a server under load writes
many messages per commit, while a single message is written at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from faircount.protocol import Message
from faircount.protocol.roles.coordinator import Out

MAX_GROUP = 256
"""The largest number of messages in one transaction."""

Write = Callable[[Sequence[Message]], Awaitable[list[Out]]]
Waiting = list[tuple[Message, "asyncio.Future[Out]"]]


class GroupCommit:
    """The messages of one survey that wait to be written."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: Waiting = []
        self._running: asyncio.Task[None] | None = None

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
                group = self._waiting[:MAX_GROUP]
                self._waiting = self._waiting[MAX_GROUP:]
                await self._write_group(group)
        finally:
            self._running = None

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
