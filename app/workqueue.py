"""The batcher's asyncio side: jobs wait for workers, and workers for jobs."""

from __future__ import annotations

import asyncio
import time

from app.batcher import Batcher, BatchLimits
from app.jobs import Observer, Pending
from app.workers.task import Worker


class WorkQueue:
    """Jobs that wait, and workers that are idle; never both for longer than a turn of the loop."""

    def __init__(self, limits: BatchLimits, observer: Observer) -> None:
        self._batcher: Batcher[Pending] = Batcher(limits)
        self._observer = observer
        self._idle: list[asyncio.Future[None]] = []
        self._woken = 0

    @property
    def depth(self) -> int:
        """Jobs that wait."""
        return self._batcher.depth

    @property
    def nbytes(self) -> int:
        """Inputs and outputs of the jobs that wait."""
        return self._batcher.nbytes

    def put(self, pending: Pending) -> None:
        """Queue a job, and wake a worker if one is idle."""
        self._batcher.add(pending)
        self._changed()
        while self._idle:
            future = self._idle.pop()  # the one that worked last: its caches are warm
            if not future.done():
                future.set_result(None)
                self._woken += 1
                return

    def withdraw(self, pending: Pending) -> None:
        """Forget a job, if it waits."""
        if self._batcher.cancel(pending):
            self._changed()

    def take(self) -> list[Pending]:
        """The next batch; empty where nothing waits. Leaves their part to workers just woken."""
        before = self._batcher.depth
        batch = self._batcher.take(time.monotonic(), share=1 + self._woken)
        if self._batcher.depth != before:
            self._changed()
        return batch

    async def wait(self, worker: Worker) -> None:
        """Wait until there is work to take; raises WorkerDied if the worker does not live so long."""
        if self._batcher.depth:
            return
        future = asyncio.get_running_loop().create_future()
        worker.guard(future)
        self._idle.append(future)
        try:
            await future
        finally:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._woken -= 1
            future.cancel()

    def _changed(self) -> None:
        self._observer.queue_changed(self._batcher.depth, self._batcher.nbytes)
