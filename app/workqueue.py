"""The batcher's asyncio side: jobs wait for workers, and workers for jobs.

A worker that has begun a large call is not to be had until it is through, which may take seconds. So
that nothing small waits for that, there can be an express worker beside the others: it takes small
work only, and only while every other worker is held by large work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.batcher import Batcher, BatchLimits
from app.jobs import Pending
from app.workers.task import Worker

LONG_WORK = 1e8
"""Work, in floating-point operations, that takes a worker about a millisecond, for which a second thread is
worth its waking."""


class WorkQueue:
    """Jobs that wait, and workers that are idle; never both for longer than a turn of the loop."""

    def __init__(self, limits: BatchLimits) -> None:
        self._batcher: Batcher[Pending] = Batcher(limits)
        self._small = limits.small
        self._idle: list[asyncio.Future[None]] = []  # one for each worker that waits
        self._idle_express: list[asyncio.Future[None]] = []
        self._woken = 0  # workers that were woken and have not looked for work yet
        self._serving = 0  # workers, the express worker aside
        self._held = 0  # of these, those that large batches hold

    @property
    def depth(self) -> int:
        """Jobs that wait."""
        return self._batcher.depth

    @property
    def small_depth(self) -> int:
        """Small jobs among them."""
        return self._batcher.small_depth

    @property
    def nbytes(self) -> int:
        """Inputs and outputs of the jobs that wait."""
        return self._batcher.nbytes

    def put(self, pending: Pending) -> None:
        """Queue a job, and wake a worker if one is idle."""
        self._batcher.add(pending)
        # The one that worked last: its caches are warm.
        if _wake(self._idle):
            self._woken += 1
        else:
            self._wake_express()

    def withdraw(self, pending: Pending) -> None:
        """Forget a job, if it waits."""
        self._batcher.cancel(pending)

    def take(self, express: bool = False) -> list[list[Pending]]:
        """The batches of the next trip, if anything waits. Leaves their part to workers just woken."""
        if not express:
            return self._batcher.take(time.monotonic(), share=1 + self._woken)
        return self._batcher.take(time.monotonic(), small=True) if self._express_wanted else []

    async def wait(self, worker: Worker, express: bool = False) -> None:
        """Wait until there is work to take; raises WorkerDied if the worker does not live so long."""
        if self._express_wanted if express else self._batcher.depth:
            return
        future = asyncio.get_running_loop().create_future()
        worker.guard(future)
        idle = self._idle_express if express else self._idle
        idle.append(future)
        try:
            await future
        finally:
            woken = future.done() and not future.cancelled() and future.exception() is None
            if woken and not express:
                self._woken -= 1
            if future in idle:  # nobody woke it: the worker died, or is let go
                idle.remove(future)

    @contextmanager
    def served(self) -> Iterator[None]:
        """A worker, not the express worker, takes work for as long as this lasts."""
        self._serving += 1
        try:
            yield
        finally:
            self._serving -= 1
            self._wake_express()

    def is_large(self, members: Sequence[Pending]) -> bool:
        """Whether requests hold a worker for long."""
        return sum(pending.work for pending in members) > self._small

    def helpers(self, members: Sequence[Pending]) -> int:
        """Workers that have nothing to do while a request, just taken alone, is computed for long."""
        if self.depth or len(members) > 1 or members[0].work < LONG_WORK:
            return 0
        return sum(not future.done() for future in self._idle)

    def hold(self) -> None:
        """A worker, not the express worker, has begun a large batch."""
        self._held += 1
        self._wake_express()

    def let_go(self) -> None:
        """A worker is through with a large batch."""
        self._held -= 1

    @property
    def full(self) -> bool:
        """Whether large batches hold every worker but the express worker."""
        return self._held >= self._serving

    @property
    def _express_wanted(self) -> bool:
        """Whether small work waits that no other worker will take soon."""
        return self._batcher.small_depth > 0 and self.full

    def _wake_express(self) -> None:
        if self._express_wanted:
            _wake(self._idle_express)


def _wake(idle: list[asyncio.Future[None]]) -> bool:
    """Wake the last that waits; False where none does."""
    while idle:
        future = idle.pop()
        if not future.done():
            future.set_result(None)
            return True
    return False
