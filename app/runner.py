"""Calls on their way through workers: begun, watched, finished, taken apart, run again.

1. A worker that dies loses nothing. Jobs that shared its call are run again, each alone, since
   having been in company is no proof. One that was alone when worker after worker died is taken
   for the cause.
2. Where a shared call fails, its jobs are run again singly, so that only the guilty one fails.
3. A call that nobody waits for any more is asked to stop; its worker is killed if it does not.
4. Answers are encoded while the worker computes the next call.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import engine
from app.errors import WorkerCrashed
from app.jobs import Answer, Done, Observer, Pending
from app.wire import Piece
from app.workers.offload import copying
from app.workers.task import (
    BLAME,
    FATAL_BLAME,
    STOP_GRACE_S,
    SUSPENDED,
    WATCH_S,
    ComputeFailed,
    Result,
    Task,
    Worker,
    WorkerDied,
    lost,
)
from app.workqueue import WorkQueue

LEND_BYTES = 256 << 10
"""Answers of so many bytes are sent from where they were computed, where that can be spared."""

log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Run:
    """A call under way.

    Attributes:
        members: the jobs that share it.
        started: when, on `time.monotonic`. give_up: when its worker is killed, and for what reason.
        looked: when its worker was last looked after.
        large: whether it holds its worker for long.
        helpers: workers that had nothing to do when it began.
    """

    members: list[Pending]
    worker: Worker
    started: float
    give_up: float
    looked: float
    large: bool = False
    helpers: int = 0
    reason: str = "stuck"
    timer: asyncio.TimerHandle | None = None

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits for it."""
        return any(not member.future.done() for member in self.members)

    @property
    def rows(self) -> list[int]:
        """Samples of each member."""
        return [member.rows for member in self.members]

    def task(self) -> Task:
        """What the worker is given."""
        first = self.members[0].job
        tensors = [member.job.tensors for member in self.members]
        given = first.call, first.config, first.specs, first.wants, tensors, self.rows
        return Task(*given, self.helpers)

    def watch(self) -> None:
        """Kill a worker that cannot or should not go on; look again later."""
        self.unwatch()
        now = time.monotonic()
        self.give_up += lost(now - self.looked)
        self.looked = now
        if now >= self.give_up:
            self.worker.kill(self.reason)
            return
        if self.worker.suspended():
            self.worker.kill(SUSPENDED)
            return
        wait = min(WATCH_S, self.give_up - now)
        self.timer = asyncio.get_running_loop().call_later(wait, self.watch)

    def end(self) -> None:
        """It is through, one way or the other; the worker is no business of its members any more."""
        self.unwatch()
        for member in self.members:
            member.abandon = None

    def unwatch(self) -> None:
        """Stop watching."""
        if self.timer is not None:
            self.timer.cancel()

    def abandon(self, reason: str) -> None:
        """One member is not waited for any more; end the work if none is."""
        if not self.wanted:
            self.worker.stop()
            self.reason = reason
            # What has passed since the last look is no part of the grace that begins now.
            self.looked = time.monotonic()
            self.give_up = min(self.give_up, self.looked + STOP_GRACE_S)
            self.watch()


class Runner:
    """Gives workers their work; see the rules above.

    Args:
        max_compute_s: a call that takes longer counts as stuck.
    """

    def __init__(self, queue: WorkQueue, observer: Observer, max_compute_s: float) -> None:
        self._queue = queue
        self._observer = observer
        self._max_compute_s = max_compute_s

    async def serve(self, worker: Worker, achieved: Callable[[], None]) -> None:
        """Give a worker one batch after the other, until it dies; raises WorkerDied."""
        with self._queue.served():
            await self._serve(worker, achieved, express=False)

    async def serve_express(self, worker: Worker, achieved: Callable[[], None]) -> None:
        """The same for the express worker, see `WorkQueue`."""
        await self._serve(worker, achieved, express=True)

    async def _serve(self, worker: Worker, achieved: Callable[[], None], *, express: bool) -> None:
        finished: tuple[Run, Result] | None = None
        try:
            while True:
                run = await self._begin(worker, express)
                if finished is not None:
                    await self._deliver(*finished)
                    finished = None  # nothing large is held while there is nothing to do
                if run is not None:
                    finished = await self._finish(run)
                    achieved()
                    continue
                if not self._queue.depth:
                    worker.rest()
                await self._queue.wait(worker, express)
        finally:
            if finished is not None:
                await self._deliver(*finished)

    async def _begin(self, worker: Worker, express: bool) -> Run | None:
        """Hand the next batch to a worker, if anything waits."""
        members = self._queue.take(express)
        if not members:
            return None
        now = time.monotonic()
        large = not express and self._queue.is_large(members)
        helpers = 0 if express else self._queue.helpers(members)
        run = Run(members, worker, now, now + self._max_compute_s, now, large, helpers)
        if large:
            self._queue.hold()
        for member in members:
            member.abandon = run.abandon
        try:
            await worker.begin(run.task())
        except WorkerDied:
            self._end(run)
            self._again(run, alone=False)
            raise
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._end(run)
            self._failed(run, error)
            return None
        run.watch()
        return run

    async def _finish(self, run: Run) -> tuple[Run, Result] | None:
        """Wait for a run's result; None where the members were dealt with otherwise."""
        try:
            result = await run.worker.finish()
        except WorkerDied as death:
            self._bereaved(run, death.reason)
            raise
        except engine.Stopped:
            self._again(run, alone=False)
            return None
        except (engine.EngineError, ComputeFailed, MemoryError) as error:
            self._failed(run, error)
            return None
        finally:
            self._end(run)
        call = run.members[0].job.call
        self._observer.batch_done(
            call.operation, call.action, len(run.members), sum(run.rows), result.compute_s
        )
        return run, result

    def _end(self, run: Run) -> None:
        """A run is through, one way or the other."""
        run.end()
        if run.large:
            self._queue.let_go()

    async def _deliver(self, run: Run, result: Result) -> None:
        """Encode the answer of every member that is still waited for."""
        requests, rows = len(run.members), sum(run.rows)
        parts = engine.split(result.outputs, run.rows)
        lends = partial(run.worker.lends, held=result.held)
        for member, tensors in zip(run.members, parts, strict=True):
            if member.future.done():
                continue
            started = time.monotonic()
            answer = Answer(tensors, requests, rows)
            try:
                body = await _encoded(member, answer, lends)
            except Exception as error:
                log.exception("an answer could not be encoded")
                member.fail(error)
                continue
            if not member.future.done():
                times = run.started - member.accepted, result.compute_s, time.monotonic() - started
                member.future.set_result(Done(body, *times, requests, rows))

    def _bereaved(self, run: Run, reason: str) -> None:
        """The worker died."""
        if len(run.members) == 1:
            run.members[0].blame += BLAME.get(reason, 1.0)
            if run.members[0].blame >= FATAL_BLAME:
                run.members[0].fail(WorkerCrashed())
        self._again(run, alone=True)

    def _failed(self, run: Run, error: Exception) -> None:
        """The computation failed."""
        if not isinstance(error, engine.EngineError):
            call = run.members[0].job.call
            # As text: a record with the traceback itself would hold the tensors for its handlers.
            text = "".join(traceback.format_exception(error))
            log.error("%s of %s failed: %s", call.action, call.operation, text)
        if len(run.members) == 1:
            run.members[0].fail(error)
        self._again(run, alone=True)

    def _again(self, run: Run, *, alone: bool) -> None:
        """Queue the members that are still waited for once more, in their old places."""
        for member in run.members:
            if not member.future.done():
                member.alone = member.alone or alone
                self._queue.put(member)


async def _encoded(
    member: Pending, answer: Answer, lends: Callable[[int], bool]
) -> bytes | memoryview | list[Piece] | Answer:
    nbytes = sum(array.nbytes for array in answer.tensors.values())
    if member.job.pieces is not None and nbytes >= LEND_BYTES and lends(nbytes):
        return member.job.pieces(answer)
    encode = Answer.copied if member.job.write else member.job.encode
    return await copying(nbytes, lambda: encode(answer))
