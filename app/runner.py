"""Calls on their way through workers: begun, watched, finished, taken apart, run again.

1. A worker that dies loses nothing. Jobs that shared its call or its trip are run again, each alone,
   since having been in company is no proof. One that was alone when worker after worker died is
   taken for the cause.
2. Where a shared call fails, its jobs are run again singly, so that only the guilty one fails.
3. A trip that nobody waits for any more is asked to stop; its worker is killed if it does not.
4. What a worker gives back of a trip that takes long has another, in its old place.
5. Answers are encoded while the worker is on the next trip.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import engine
from app import blame
from app.clearing import Clearing
from app.few import Few
from app.jobs import Answer, Done, Observer, Pending
from app.trip import Trip
from app.wire import Piece
from app.workers.offload import copying
from app.workers.task import (
    ComputeFailed,
    Outcome,
    Result,
    Task,
    Worker,
    WorkerDied,
)
from app.workqueue import WorkQueue

LEND_BYTES = 256 << 10
"""Answers of so many bytes are sent from where they were computed, where that can be spared."""

log = logging.getLogger(__name__)


class Runner:
    """Gives workers their work; see the rules above.

    Args:
        few: is told how long requests took.
        clearing: is told of workers and of long work.
        max_compute_s: a call that takes longer counts as stuck.
    """

    def __init__(
        self,
        queue: WorkQueue,
        observer: Observer,
        few: Few,
        clearing: Clearing,
        max_compute_s: float,
    ) -> None:
        self._queue = queue
        self._observer = observer
        self._few = few
        self._clearing = clearing
        self._max_compute_s = max_compute_s

    async def serve(self, worker: Worker, achieved: Callable[[], None]) -> None:
        """Give a worker one batch after the other, until it dies; raises WorkerDied."""
        with self._queue.served(), self._clearing.served(worker):
            await self._serve(worker, achieved, express=False)

    async def serve_express(self, worker: Worker, achieved: Callable[[], None]) -> None:
        """The same for the express worker, see `WorkQueue`."""
        await self._serve(worker, achieved, express=True)

    async def _serve(self, worker: Worker, achieved: Callable[[], None], *, express: bool) -> None:
        finished: tuple[Trip, list[Outcome]] | None = None
        try:
            while True:
                trip = await self._begin(worker, express)
                if finished is not None:
                    await self._deliver(*finished)
                    finished = None  # nothing large is held while there is nothing to do
                if trip is not None:
                    finished = await self._finish(trip)
                    achieved()
                    continue
                if not self._queue.depth:
                    worker.rest()
                await self._queue.wait(worker, express)
        finally:
            if finished is not None:
                await self._deliver(*finished)

    async def _begin(self, worker: Worker, express: bool) -> Trip | None:
        """Hand the next trip to a worker, if anything waits."""
        batches = self._queue.take(express)
        if not batches:
            return None
        now = time.monotonic()
        trip = Trip(batches, worker, now, now + self._max_compute_s, now)
        try:
            return trip if await self._started(trip, express) else None
        except WorkerDied:
            self._end(trip)
            self._again(trip.members, alone=False)
            raise
        except Exception as error:
            self._end(trip)
            self._fail_all(trip, error)
            raise

    async def _started(self, trip: Trip, express: bool) -> bool:
        """Hand a trip to its worker; whether it has it. If not, its jobs have their answer or wait again.

        Raises:
            WorkerDied: the worker has ended, and the trip was never begun.
        """
        members = trip.members
        helpers = 0 if express else self._queue.helpers(members)
        if not express and self._queue.is_large(members):
            self._queue.hold()
            trip.large = True
            self._clearing.long()
        for member in members:
            member.abandon = trip.abandon
        try:
            await trip.worker.begin(list(map(_task, trip.batches)), helpers)
        except WorkerDied:
            raise
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._end(trip)
            self._failed(members, error)
            return False
        trip.watch()
        return True

    async def _finish(self, trip: Trip) -> tuple[Trip, list[Outcome]]:
        """Wait for what became of a trip's batches; those without a result are dealt with."""
        try:
            outcomes = await trip.worker.finish()
        except WorkerDied as death:
            self._bereaved(trip.members, death.reason)
            raise
        except Exception as error:
            # Nobody knows what the worker is at: the pool replaces it.
            self._fail_all(trip, error)
            raise
        finally:
            self._end(trip)
        with self._answering(trip):
            self._deal_with(trip, outcomes)
        return trip, outcomes

    def _deal_with(self, trip: Trip, outcomes: list[Outcome]) -> None:
        """Tell of what was computed, and answer, blame or queue again what was not."""
        for batch, outcome in zip(trip.batches, outcomes, strict=True):
            if isinstance(outcome, Result):
                call, rows = batch[0].job.call, sum(member.rows for member in batch)
                given = call.operation, call.action, len(batch), rows
                self._observer.batch_done(*given, outcome.compute_s)
                if len(batch) == 1:
                    self._few.worker_took(call, rows, outcome.compute_s)
            elif isinstance(outcome, engine.Stopped):
                if trip.killed and len(trip.members) == 1:
                    self._bereaved(batch, trip.killed)
                else:
                    self._again(batch, alone=trip.killed is not None)
            else:
                self._failed(batch, outcome)

    @contextmanager
    def _answering(self, trip: Trip) -> Iterator[None]:
        """Whatever fails that should not, nobody waits for it for ever, and the worker goes on."""
        try:
            yield
        except Exception as error:
            self._fail_all(trip, error)
            log.exception("the answers of a trip failed")

    def _fail_all(self, trip: Trip, error: Exception) -> None:
        """Tell all of a trip that are still waiting what failed, which should not have."""
        for member in trip.members:
            self._queue.withdraw(member)
            member.fail(error if isinstance(error, MemoryError) else ComputeFailed(repr(error)))

    def _end(self, trip: Trip) -> None:
        """A trip is through, one way or the other."""
        trip.end()
        if trip.large:
            trip.large = False
            self._queue.let_go()

    async def _deliver(self, trip: Trip, outcomes: list[Outcome]) -> None:
        """Encode and give the answer of every member of a trip that is still waited for."""
        began = trip.started
        with self._answering(trip):
            for batch, outcome in zip(trip.batches, outcomes, strict=True):
                if isinstance(outcome, Result):
                    await self._encode(batch, outcome, trip.worker, began)
                    began += outcome.compute_s

    async def _encode(
        self, batch: list[Pending], result: Result, worker: Worker, began: float
    ) -> None:
        """The same for one batch.

        Args:
            began: when its turn in the trip did, on `time.monotonic`.
        """
        samples = [member.rows for member in batch]
        requests, rows = len(batch), sum(samples)
        parts = engine.split(result.outputs, samples)
        lends = partial(worker.lends, held=result.held)
        for member, tensors in zip(batch, parts, strict=True):
            if member.future.done():
                continue
            started = time.monotonic()
            answer = Answer(tensors, requests, rows)
            try:
                body = await _encoded(member, answer, lends)
            except Exception as error:
                if not isinstance(error, MemoryError):
                    log.exception("an answer could not be encoded")
                member.fail(error)
                continue
            if not member.future.done():
                times = began - member.accepted, result.compute_s, time.monotonic() - started
                member.future.set_result(Done(body, *times, requests, rows))

    def _bereaved(self, members: list[Pending], reason: str) -> None:
        """The worker died over these, or stopped where it was to be killed. Who was alone is to blame.

        Args:
            reason: of its death, see `WorkerDied`.
        """
        if len(members) == 1:
            blame.bereaved(members[0], reason, self._max_compute_s)
        self._again(members, alone=True)

    def _failed(self, members: list[Pending], error: Exception) -> None:
        """The computation failed: who was alone is answered or blamed; others are computed again, alone."""
        if not isinstance(error, engine.EngineError | MemoryError):
            call = members[0].job.call
            # As text: a record with the traceback itself would hold the tensors for its handlers.
            text = "".join(traceback.format_exception(error))
            log.error("%s of %s failed: %s", call.action, call.operation, text)
        if len(members) == 1:
            blame.failed(members[0], error)
        elif isinstance(error, MemoryError):
            log.warning("out of memory for a shared call: its requests are computed one by one")
        self._again(members, alone=True)

    def _again(self, members: list[Pending], *, alone: bool) -> None:
        """Queue those that are still waited for once more, in their old places.

        Args:
            alone: whether they share no call from now on; those that did not before do not in any case.
        """
        for member in members:
            if not member.future.done():
                member.alone = member.alone or alone
                self._queue.put(member)


def _task(batch: list[Pending]) -> Task:
    """What a worker is given of a batch."""
    first = batch[0].job
    tensors, rows = [member.job.tensors for member in batch], [member.rows for member in batch]
    return Task(first.call, first.config, first.specs, first.wants, tensors, rows)


async def _encoded(
    member: Pending, answer: Answer, lends: Callable[[int], bool]
) -> bytes | memoryview | list[Piece] | Answer:
    nbytes = sum(array.nbytes for array in answer.tensors.values())
    if member.job.pieces is not None and nbytes >= LEND_BYTES and lends(nbytes):
        return member.job.pieces(answer)
    encode = Answer.copied if member.job.write else member.job.encode
    return await copying(nbytes, lambda: encode(answer))
