"""Jobs that wait for workers, and workers for jobs."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from app.jobs import Job, Pending
from app.workers.task import WorkerDied
from app.workqueue import LONG_WORK, WorkQueue
from tests.app.dispatching import job, scenario
from tests.app.limits import batch_limits


class Mortal:
    """A worker that dies when it is told to."""

    def __init__(self) -> None:
        self.waiting: asyncio.Future[None] | None = None

    def guard(self, future: asyncio.Future[None]) -> None:
        self.waiting = future

    def die(self) -> None:
        assert self.waiting is not None
        self.waiting.set_exception(WorkerDied("killed"))


def pending(given: Job, work: float = 1.0) -> Pending:
    """The job as one that was accepted."""
    loop = asyncio.get_running_loop()
    return Pending(
        call=given.call,
        parameters=[given.tensors[name] for name in given.call.parameters],
        rows=given.samples,
        nbytes=1,
        work=work,
        caller=given.caller,
        job=given,
        future=loop.create_future(),
        accepted=0.0,
    )


async def waiting(queue: WorkQueue, worker: Mortal, *, express: bool = False) -> asyncio.Task[None]:
    """A worker that has begun to wait for work."""
    task = asyncio.create_task(queue.wait(worker, express))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return task


@scenario
async def test_a_job_wakes_one_worker() -> None:
    queue = WorkQueue(batch_limits())
    tasks = [await waiting(queue, Mortal()) for _ in range(2)]
    given = pending(job())
    queue.put(given)
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [False, True], "the last that waits"
    assert queue.take() == [[given]]
    tasks[0].cancel()


@scenario
async def test_a_job_wakes_nobody_who_has_just_died() -> None:
    queue = WorkQueue(batch_limits())
    workers = [Mortal(), Mortal()]
    alive, dead = [await waiting(queue, worker) for worker in workers]
    workers[1].die()
    queue.put(pending(job()))
    await asyncio.wait([alive, dead])
    assert alive.exception() is None
    assert isinstance(dead.exception(), WorkerDied)


@scenario
async def test_the_express_worker_is_woken_for_small_work_once_large_work_holds_all_others() -> (
    None
):
    queue = WorkQueue(batch_limits(small=1.0))
    large, small = pending(job(), 2.0), pending(job(seed=1), 1.0)
    with queue.served(), ExitStack() as other:
        other.enter_context(queue.served())
        express = await waiting(queue, Mortal(), express=True)
        queue.hold()
        for each in (large, small):
            queue.put(each)
        await asyncio.sleep(0)
        assert not express.done(), "the other may take it soon"
        assert queue.take(express=True) == []
        other.close()  # it has died
        await asyncio.sleep(0)
        assert express.done()
        assert queue.take(express=True) == [[small]]
        assert queue.take(express=True) == []


@scenario
@pytest.mark.parametrize("express", [False, True])
@pytest.mark.parametrize("ends", ["dies", "is let go"])
async def test_who_waits_no_more_is_forgotten(express: bool, ends: str) -> None:
    queue = WorkQueue(batch_limits())
    for _ in range(10):
        worker = Mortal()
        task = await waiting(queue, worker, express=express)
        if ends == "dies":
            worker.die()
        else:
            task.cancel()
        with pytest.raises((WorkerDied, asyncio.CancelledError)):
            await task
    assert queue._idle == queue._idle_express == []


@scenario
async def test_long_work_has_the_help_of_idle_workers_unless_others_wait() -> None:
    queue = WorkQueue(batch_limits())
    long, brief = pending(job(), LONG_WORK), pending(job(seed=1))
    tasks = [await waiting(queue, Mortal()) for _ in range(2)]
    assert queue.helpers([long]) == 2
    assert queue.helpers([brief]) == 0, "it is through before they are awake"
    assert queue.helpers([long, long]) == 0
    queue.put(brief)
    assert queue.helpers([long]) == 0, "one of them is about to begin that"
    for task in tasks:
        task.cancel()
