"""Whether the server takes new work, and how many requests it is answering."""

from __future__ import annotations

import asyncio
import math
from time import monotonic


class Lifecycle:
    """Shared by the middleware, which counts, and the server, which waits for the end.

    Attributes:
        hurried: what is under way is not waited for.
    """

    def __init__(self) -> None:
        self._drains_from = math.inf
        self.hurried = False
        self.in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def draining(self) -> bool:
        """Whether nothing new is taken."""
        return self._drains_from < math.inf

    def drain(self) -> None:
        """Take nothing new from now on."""
        self._drains_from = min(self._drains_from, monotonic())

    def takes(self, arrived: float) -> bool:
        """Whether a request is taken whose first byte came at this time of the monotonic clock."""
        return arrived < self._drains_from

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
