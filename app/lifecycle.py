"""Whether the server takes new work, and how many requests it is answering."""

from __future__ import annotations

import asyncio


class Lifecycle:
    """Shared by the middleware, which counts, and the server, which waits for the end.

    Attributes:
        draining: nothing new is taken.
        hurried: what is under way is not waited for.
    """

    def __init__(self) -> None:
        self.draining = False
        self.hurried = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> None:
        """A request arrived."""
        self.in_flight += 1
        self._idle.clear()

    def end(self) -> None:
        """A request was answered, or its client has gone."""
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()

    async def idle(self) -> None:
        """Wait until no request is being answered."""
        await self._idle.wait()
