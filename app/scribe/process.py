"""The server's side of the scribe's process, which is there only while there is work for it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from app.scribe.letters import Letter
from app.wire import PlanRequest, Request
from app.workers.arena import Arena
from app.workers.channel import Message
from app.workers.child import Child
from app.workers.offload import copying
from app.workers.protocol import check

COMMAND = (sys.executable, "-P", "-m", "app.scribe")

KEEP_BYTES = 4 << 20
"""Shared memory that is kept from one letter to the next."""

Written = Request | PlanRequest | memoryview


@dataclass(frozen=True, slots=True)
class ScribeOptions:
    """How the scribe's process is run.

    Attributes:
        arena_bytes: most shared memory for one letter and what becomes of it.
        command: the program and its first arguments.
        urgent: whether it comes before others, as what it does is soon done; else it yields to them.
    """

    arena_bytes: int
    command: Sequence[str] = COMMAND
    urgent: bool = False


class Scribe:
    """Reads and writes one letter after the other; started with the first one, and after `leave` anew."""

    def __init__(self, options: ScribeOptions) -> None:
        self._options = options
        self._arena = Arena(options.arena_bytes, KEEP_BYTES, "convoke-scribe")
        self._child: Child | None = None

    async def start(self) -> None:
        """Nothing is there until there is work."""

    @property
    def there(self) -> bool:
        """Whether there is a process."""
        return self._child is not None

    @property
    def up(self) -> bool:
        """Whether there is a process that takes letters at once."""
        return self._child is not None and self._child.up

    async def come(self) -> None:
        """Have a process, with or without a letter for it. Raises WorkerDied."""
        if self._child is not None and self._child.dead:
            await self.leave()
        if self._child is None:
            self._child = Child(
                self._options.command, [self._arena.fd], urgent=self._options.urgent
            )
            await self._child.start()

    async def begin(self, letter: Letter) -> asyncio.Future[Message]:
        """Hand a letter over; the future gets the reply. Raises WorkerDied, as that does."""
        await self.come()
        assert self._child is not None
        self._arena.fit(letter.room)
        message = await copying(letter.nbytes, lambda: letter.put(self._arena))
        return await self._child.ask({**message, "size": self._arena.size})

    async def finish(self, letter: Letter, reply: Message) -> Written:
        """What became of a letter.

        Raises:
            ServiceError, engine.EngineError: what reading it raised.
            WorkerDied, ComputeFailed: the scribe had no memory left, or failed.
        """
        check(reply)
        written: Written = await copying(letter.nbytes, lambda: letter.take(self._arena, reply))
        self._arena.shrink()
        return written

    def suspended(self) -> bool:
        """Whether somebody has stopped the process."""
        return self._child is not None and self._child.suspended()

    def kill(self, reason: str) -> None:
        """End the process at once."""
        if self._child is not None:
            self._child.kill(reason)

    async def leave(self) -> None:
        """End the process; there is nothing to do."""
        if self._child is not None:
            child, self._child = self._child, None
            await child.close()

    async def close(self) -> None:
        """End the process, and give back the shared memory too."""
        await self.leave()
        self._arena.close()
