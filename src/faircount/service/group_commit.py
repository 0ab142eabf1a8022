"""Group commit: messages that arrive while others are being written are written together, in the next transaction."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from faircount.protocol import Message
from faircount.protocol.roles.coordinator import Out

MOST_TOGETHER = 256
"""Messages in one transaction."""

Write = Callable[[Sequence[Message]], Awaitable[list[Out]]]


class GroupCommit:
    """The messages that wait to be written for one survey."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._waiting: list[tuple[Message, asyncio.Future[Out]]] = []
        self._running: asyncio.Task[None] | None = None

    async def add(self, message: Message) -> Out:
        """The answers to a message; when this returns, what it changed is on the disk."""
        answer: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((message, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def _run(self) -> None:
        try:
            while self._waiting:
                together, self._waiting = self._waiting[:MOST_TOGETHER], self._waiting[MOST_TOGETHER:]
                await self._write_together(together)
        finally:
            self._running = None

    async def _write_together(self, together: list[tuple[Message, "asyncio.Future[Out]"]]) -> None:
        try:
            outs = await self._write([message for message, _ in together])
        except Exception as problem:
            for _, answer in together:
                if not answer.done():
                    answer.set_exception(problem)
            return
        for (_, answer), out in zip(together, outs, strict=True):
            if not answer.done():
                answer.set_result(out)
