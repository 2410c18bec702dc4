"""One processor that long work is kept off, while many small requests come beside it.

A worker with long work yields to the event loop, but has a part of every processor due to it, however
small; and once it has that, it keeps the processor up to the next tick of the system's clock, for
milliseconds. The small requests of one caller, one after the other, are the work of one processor.
Leaving that one to them costs those with long work little, and nobody waits for a tick.

It is done only where both hold: every worker is held by long work, and small requests come so fast that
they use what is left to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.workers.task import Worker

LOOK_S = 0.05
"""How often it is looked whether both hold, while long work is under way."""

MANY_PER_S, FEWER_PER_S = 500.0, 250.0
"""Small requests a second from which on a processor is left to them, and below which it is not any more:
300 a second take a quarter from a flood of large ones and gain a tenth, 1600 take less and gain a third."""


class Clearing:
    """Tells workers when to leave a processor to others; used from one event loop.

    Args:
        full: whether every worker is held by long work.

    Attributes:
        clear: whether workers have been told to leave one.
    """

    def __init__(self, full: Callable[[], bool]) -> None:
        self._full = full
        self._workers: set[Worker] = set()
        self._small = 0  # requests that came since the last look
        self._was_full = False  # since then, at any time
        self._looked = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.clear = False

    @contextmanager
    def served(self, worker: Worker) -> Iterator[None]:
        """A worker, not the express worker, takes work for as long as this lasts."""
        self._workers.add(worker)
        if self.clear:
            worker.leave_one(True)
        try:
            yield
        finally:
            self._workers.discard(worker)

    def small(self) -> None:
        """A small request has come."""
        self._small += 1

    def long(self) -> None:
        """A worker has begun long work."""
        self._was_full = self._was_full or self._full()
        if self._was_full and self._timer is None:
            self._begin()

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        self._small, self._looked = 0, loop.time()
        self._timer = loop.call_later(LOOK_S, self._look)

    def _look(self) -> None:
        """Tell workers what has changed since the last look, and look again while they are held."""
        per_s = self._small / (asyncio.get_running_loop().time() - self._looked)
        full = bool(self._workers) and (self._was_full or self._full())
        clear = full and per_s >= (FEWER_PER_S if self.clear else MANY_PER_S)
        if clear != self.clear:
            self.clear = clear
            for worker in self._workers:
                worker.leave_one(clear)
        self._was_full, self._timer = False, None
        if full:
            self._begin()
