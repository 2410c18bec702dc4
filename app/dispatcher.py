"""From a request that is understood to its encoded answer.

1. Every accepted job gets exactly one answer: its future is settled once, by whoever comes first.
2. A free worker takes work at once; jobs gather only while all workers are busy. What is quick, and
   asked by few, is computed here, sooner than a worker could be told.
3. A deadline is answered when it passes, and work that nobody waits for any more is dropped.

Admission says who gets in, the work queue who is next, the runner takes it to a worker of the pool.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from app.admission import Admission
from app.at_once import AtOnce
from app.awake import Awake
from app.clearing import Clearing
from app.cost import check_cost, tensor_bytes, work
from app.errors import DeadlineExceeded, QueueFull, ShuttingDown, WorkersUnavailable
from app.few import BRIEF, Few, within
from app.jobs import Answer, Done, Job, Observer, Pending, Write
from app.record import Record
from app.reservation import Reservation
from app.runner import Runner
from app.staffing import DispatchLimits, worker_maker
from app.visitor import Visitor
from app.workers.berths import Berths
from app.workers.pool import Pool
from app.workers.task import Worker
from app.workqueue import WorkQueue

RETRY_WORKERS_S = 5.0
"""When to try again after no worker could be started."""


class Dispatcher:
    """Takes jobs and answers them; one for each server, used from one event loop.

    Args:
        make_worker: makes one worker; by default what the limits say.
        awake: told when jobs are under way, and when none is left.

    Attributes:
        berths: where large bodies are to be received; None where that helps nobody.
        few: is told of the connections that have small requests under way.
    """

    def __init__(
        self,
        limits: DispatchLimits,
        observer: Observer,
        make_worker: Callable[[], Worker] | None = None,
        awake: Awake | None = None,
    ) -> None:
        self._limits = limits
        self._awake = awake
        self._observer = observer
        self._admission = Admission(limits.queue)
        self._queue = WorkQueue(limits.batch)
        self.few = Few()
        self._at_once = AtOnce(observer, self.few) if limits.at_once else None
        self._accepted: set[Pending] = set()
        self._closing = False
        self._all_answered = asyncio.Event()
        self._clearing = Clearing(lambda: self._queue.full)
        runner = Runner(self._queue, observer, self.few, self._clearing, limits.max_compute_s)
        self.berths = Berths(limits.body_bytes) if limits.workers and limits.body_bytes else None
        make = make_worker or worker_maker(limits, self.berths)
        died = observer.worker_restarted
        self._pool = Pool(max(1, limits.workers), make, runner.serve, died, self._give_up)
        self._pools = [self._pool]
        if limits.batch.small:
            # Small work can do without it, so that there is nothing to do where it cannot be had.
            make = make_worker or worker_maker(limits, self.berths, urgent=True)
            self._pools.append(Pool(1, make, runner.serve_express, died, lambda: None))

    @property
    def ready(self) -> bool:
        """Whether jobs are taken and somebody is there to do them."""
        return not self._closing and self._pool.up > 0

    @property
    def queue_depth(self) -> int:
        """Jobs that wait for a worker."""
        return self._queue.depth

    @property
    def queue_bytes(self) -> int:
        """Inputs and outputs of the jobs that wait for a worker."""
        return self._queue.nbytes

    async def start(self) -> None:
        """Start the workers, unless they are to end meanwhile.

        Raises:
            WorkersUnavailable: none could be started.
        """
        if self._at_once is not None:
            self._at_once.start()
        await asyncio.gather(*(pool.start() for pool in self._pools))
        if self._pool.hopeless and not self._closing:
            await self._close()
            raise WorkersUnavailable("No worker could be started.")

    async def drain(self, timeout: float) -> bool:
        """Take nothing new, answer everything accepted, and end the workers.

        Args:
            timeout: seconds after which what is left is answered with `ShuttingDown.unfinished`.

        Returns:
            Whether everything was answered in time.
        """
        self._closing = True
        in_time = True
        if self._accepted:
            try:
                async with asyncio.timeout(timeout):
                    await self._all_answered.wait()
            except TimeoutError:
                in_time = False
        await self._close()
        for pending in self._accepted:
            pending.fail(ShuttingDown.unfinished())
        return in_time

    async def submit(self, job: Job) -> Done:
        """Have a job computed; cancelling this withdraws the job and harms nobody else.

        Raises:
            LimitExceeded, QueueFull, ShuttingDown, WorkersUnavailable: it was not accepted.
            DeadlineExceeded, WorkerCrashed, ComputeFailed, MemoryError, engine.EngineError: what
                became of it.
        """
        pending = self._accept(job)
        try:
            self._enter(pending)
            done = self._answered(pending)
            if done is None:
                self._queue.put(pending)
                done = await pending.future
            return done if job.write is None else await self._written(done, job.write)
        finally:
            self._release(pending)
            del pending  # its error holds this frame, and would hold the job in a circle

    def _answered(self, pending: Pending) -> Done | None:
        """The answer of what is computed here and now; None where a worker is to do it."""
        if self._at_once is None:
            return None
        waiting, under_way = self._queue.small_depth, len(self._accepted)
        return self._at_once.answer(pending.job, pending.accepted, waiting, under_way)

    async def _close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools))
        if self.berths is not None:
            self.berths.close()
        if self._awake is not None:
            self._awake.close()

    def crowded(self, more: int) -> bool:
        """Whether there might be no room for somebody, with so many more requests; else nobody need ask."""
        return self._admission.crowded(more)

    def check_room(self, visitor: Visitor, nbytes: int = 1) -> None:
        """Refuse a request at its beginning if there would be no room for it.

        Args:
            nbytes: see `Admission.refusal`.

        Raises:
            QueueFull, ShuttingDown, WorkersUnavailable.
        """
        if (refusal := self.refusal(visitor, nbytes)) is not None:
            raise refusal

    def reserve(self, visitor: Visitor, nbytes: int, record: Record) -> Reservation:
        """A place for a request whose body is still to come.

        Raises:
            QueueFull, ShuttingDown, WorkersUnavailable.
        """
        self._check_open()
        return Reservation(self._admission, nbytes, visitor, record)

    def refusal(
        self, visitor: Visitor, nbytes: int, ahead: int = 0, expected: int = 0
    ) -> QueueFull | None:
        """What `check_room` would raise for want of room; raising it would take longer.

        Args:
            ahead, expected: see `Admission.refusal`.

        Raises:
            ShuttingDown, WorkersUnavailable.
        """
        self._check_open()
        return self._admission.refusal(nbytes, time.monotonic(), visitor, ahead, expected=expected)

    def left(self, visitor: Visitor) -> None:
        """A connection has been closed, over which nobody will come back."""
        self._admission.left(visitor)
        self.few.leave(visitor.connection)

    def _check_open(self) -> None:
        """Refuse what nobody will do; raises ShuttingDown or WorkersUnavailable."""
        if self._closing:
            raise ShuttingDown
        if self._pool.hopeless:
            raise WorkersUnavailable(retry_after=RETRY_WORKERS_S)

    def _accept(self, job: Job) -> Pending:
        """Let a job in, or refuse it; `submit` says how."""
        now = time.monotonic()
        self._check_open()
        if job.deadline is not None and job.deadline <= now:
            raise DeadlineExceeded
        cost = job.call.cost(job.samples)
        check_cost(cost, self._limits.cost)
        nbytes = tensor_bytes(cost)
        pending = Pending(
            call=job.call,
            parameters=[job.tensors[name] for name in job.call.parameters],
            rows=job.samples,
            nbytes=nbytes,
            work=work(cost),
            caller=job.caller,
            deadline=job.deadline,
            brief=within(BRIEF, job.call, job.samples) and not self.few.slow(job.call, job.samples),
            job=job,
            future=asyncio.get_running_loop().create_future(),
            accepted=now,
        )
        # At last, as `_release` gives it back: what fails before it would leave the place taken.
        if job.reserved is None:
            self._admission.acquire(nbytes, now, job.visitor)
        else:
            job.reserved.take(nbytes, now)
        return pending

    def _enter(self, pending: Pending) -> None:
        """A job is under way from now on."""
        if pending.deadline is not None:
            left = pending.deadline - pending.accepted
            pending.timer = asyncio.get_running_loop().call_later(left, self._overdue, pending)
        if pending.work <= self._limits.batch.small:
            self._clearing.small()
        if self._awake is not None and not self._accepted:
            self._awake.busy()
        self._accepted.add(pending)

    def _release(self, pending: Pending) -> None:
        """The caller has its answer, or has gone."""
        if pending.timer is not None:
            pending.timer.cancel()
        self._admission.release(pending.nbytes, time.monotonic())
        self._accepted.discard(pending)
        if not self._accepted:
            if self._awake is not None:
                self._awake.idle()
            if self._closing:
                self._all_answered.set()
        if pending.future.cancelled():
            self._drop(pending, "cancelled")

    async def _written(self, done: Done, write: Write) -> Done:
        """An answer, written by somebody else than its worker."""
        started = time.monotonic()
        assert isinstance(done.body, Answer)
        try:
            body = await write(done.body)
        except (DeadlineExceeded, asyncio.CancelledError) as error:
            given_up = isinstance(error, asyncio.CancelledError)
            self._observer.dropped("cancelled" if given_up else "deadline")
            raise
        return replace(done, body=body, encode_s=done.encode_s + time.monotonic() - started)

    def _overdue(self, pending: Pending) -> None:
        """The deadline passed."""
        if not pending.future.done():
            pending.fail(DeadlineExceeded())
            self._drop(pending, "deadline")

    def _drop(self, pending: Pending, reason: str) -> None:
        """Nobody waits for a job any more: do not compute it, unless for others."""
        self._observer.dropped(reason)
        self._queue.withdraw(pending)
        if pending.abandon is not None:
            pending.abandon(reason)

    def _give_up(self) -> None:
        """No worker is up or will be soon: do not let anybody wait for one."""
        for pending in self._accepted:
            if pending.abandon is None:
                self._queue.withdraw(pending)
                pending.fail(WorkersUnavailable(retry_after=RETRY_WORKERS_S))
