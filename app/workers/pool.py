"""Keeps a number of workers alive: starts them, replaces those that die, ends them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from traceback import clear_frames
from typing import Generic, Protocol, TypeVar

from app.workers.task import CRASHED, KILLED, SUSPENDED, WorkerDied

log = logging.getLogger(__name__)

BACKOFF_S = (0.0, 0.1, 0.2, 0.4, 0.8, 1.5)
"""Waits before the first, second, ... restart in a row with nothing achieved in between. The longest
leaves a worker that is no longer harmed time to be up within two seconds."""

HOPELESS_FAILURES = 8
"""After so many failures in a row a worker is not expected back soon."""

PROVEN_S = 10.0
"""A worker that was up for so long has achieved something by that alone: deaths over months are no row."""

FAILURES = {"deadline": 0.0, "cancelled": 0.0, KILLED: 0.5, SUSPENDED: 0.5}
"""How much a death counts as a failure of the worker, by its reason: 1 where the reason is not named
here. The first two are our own doing; the others may be somebody's who soon ends it."""


class Mortal(Protocol):
    """A worker, as far as it matters here."""

    async def start(self) -> None:
        """Get ready. Raises WorkerDied."""

    async def close(self) -> None:
        """End the worker and give back all that it holds."""


W = TypeVar("W", bound=Mortal)


class Pool(Generic[W]):
    """A fixed number of places, each with a worker that is replaced when it dies.

    Args:
        size: how many.
        make: makes a worker, not yet started.
        serve: gives a worker work until it dies, and then raises WorkerDied. Its second argument
            is to be called whenever the worker has achieved something.
        on_death: told why a worker died.
        on_hopeless: called when no worker is up or expected back soon.
    """

    def __init__(
        self,
        size: int,
        make: Callable[[], W],
        serve: Callable[[W, Callable[[], None]], Awaitable[None]],
        on_death: Callable[[str], None],
        on_hopeless: Callable[[], None],
    ) -> None:
        self._make = make
        self._serve = serve
        self._on_death = on_death
        self._on_hopeless = on_hopeless
        self._failures = [0.0] * size
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._closed = False
        self.up = 0

    @property
    def hopeless(self) -> bool:
        """Whether no worker is up, and each has failed too often in a row to be waited for."""
        return not self.up and self._given_up == len(self._failures)

    @property
    def _given_up(self) -> int:
        return sum(failures >= HOPELESS_FAILURES for failures in self._failures)

    async def start(self) -> None:
        """Start all workers; returns once each is up or has failed too often to wait for, or at `close`."""
        places = range(len(self._failures))
        for place in places:
            if place:
                # Starting a process holds the loop up: between two of them it hears signals.
                await asyncio.sleep(0)
            if self._closed:
                return
            self._tasks.append(asyncio.create_task(self._keep(place)))
        while self.up + self._given_up < len(places) and not self._closed:
            self._changed.clear()
            await self._changed.wait()

    async def close(self) -> None:
        """End all workers, and start no more; to be waited for by anybody, however often."""
        if not self._closed:
            self._closed = True
            self._changed.set()
            # Once only: the next would keep a worker from its orderly end.
            for task in self._tasks:
                task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep(self, place: int) -> None:
        """Have a worker in a place, for ever."""
        while True:
            reason = await self._live(place)
            if self._closed:
                return  # a worker that could not be ended in order has swallowed the cancellation
            self._failures[place] += FAILURES.get(reason, 1.0)
            log.warning("a worker ended: %s", reason)
            self._on_death(reason)
            self._changed.set()
            if self.hopeless:
                self._on_hopeless()
            in_a_row = min(max(int(self._failures[place]), 1), len(BACKOFF_S))
            await asyncio.sleep(BACKOFF_S[in_a_row - 1])

    async def _live(self, place: int) -> str:
        """The life of one worker; returns the reason of its death."""

        def achieved() -> None:
            self._failures[place] = 0.0

        doing = "be started"
        try:
            worker = self._make()
            try:
                await worker.start()
                doing = "be given work"
                self._set_up(+1)
                since = time.monotonic()
                try:
                    await self._serve(worker, achieved)
                finally:
                    self._set_up(-1)
                    if time.monotonic() - since >= PROVEN_S:
                        achieved()
            finally:
                await worker.close()
        except WorkerDied as death:
            # The frames that it came through hold what was computed, and the worker holds the error.
            clear_frames(death.__traceback__)
            return death.reason
        except Exception as error:
            # Whatever it is: without a worker in its place, what was accepted would wait for ever.
            # Where a want of files, processes or memory came up tells nothing, and it comes again.
            want = doing == "be started" and isinstance(error, OSError | MemoryError)
            log.error("a worker could not %s: %r", doing, error, exc_info=not want)
        return CRASHED

    def _set_up(self, change: int) -> None:
        self.up += change
        self._changed.set()
