"""Jobs from acceptance to answer, through real workers and through the thread of `workers=0`."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from app import dispatcher, trip, workqueue
from app.admission import QueueLimits
from app.awake import Awake
from app.dispatcher import Dispatcher
from app.errors import (
    DeadlineExceeded,
    LimitExceeded,
    QueueFull,
    ShuttingDown,
)
from app.jobs import Answer
from app.workers import process
from app.workers.berths import BODY_BYTES
from app.workers.process import ProcessWorker
from app.workers.task import Task
from engine.wakefulness import Wakefulness
from tests.app.dispatching import PATIENCE_S, Recorder, dispatching, expected, job, scenario
from tests.app.gates import Gate
from tests.app.limits import batch_limits, cost_limits, dispatch_limits, queue_limits
from tests.app.workers import faulty

ALONE = (1, 1)


@pytest.fixture(params=[0, 1, 2])
def workers(request: pytest.FixtureRequest) -> int:
    return int(request.param)


# ---- answers


@scenario
async def test_answers_are_the_engines_whoever_computes_them(workers: int) -> None:
    jobs = [
        job(samples=samples, seed=seed, action=action)
        for seed in range(12)
        for samples in (0, 1, 3)
        for action in ("forward", "backward")
    ]
    async with dispatching(workers) as rig:
        answers = await asyncio.gather(*map(rig.dispatcher.submit, jobs))
        assert [answer.body for answer in answers] == list(map(expected, jobs))
        assert all(
            answer.rows >= given.samples for answer, given in zip(answers, jobs, strict=True)
        )
        assert sum(requests for requests, _ in rig.observer.batches) == len(jobs)
        assert max(requests for requests, _ in rig.observer.batches) > 1


@scenario
async def test_a_batch_gathers_while_the_worker_is_busy(gate: Gate) -> None:
    jobs = [job(seed=seed, samples=seed % 3) for seed in range(1, 7)]
    other = job(seed=9, weight=np.ones((1, 1, 3), np.float32))
    async with dispatching() as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(given) for given in (*jobs, other)]
        await asyncio.sleep(0)
        assert rig.dispatcher.queue_depth == 7
        gate.open()
        answers = await asyncio.gather(held, *tasks)
    assert [answer.body for answer in answers[1:]] == [*map(expected, jobs), expected(other)]
    assert rig.observer.batches == [ALONE, (6, 6), ALONE]
    assert [(answer.requests, answer.rows) for answer in answers] == [ALONE, *[(6, 6)] * 6, ALONE]
    assert all(answer.queue_s > 0 for answer in answers)


@scenario
async def test_with_batching_off_every_request_is_alone(gate: Gate) -> None:
    async with dispatching(batch=batch_limits(requests=1)) as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(job(seed=seed)) for seed in range(4)]
        gate.open()
        await asyncio.gather(held, *tasks)
    assert rig.observer.batches == [ALONE] * 5


@scenario
async def test_large_tensors_come_through_an_arena_that_grows_and_shrinks_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "KEEP_S", 0.5)
    jobs = [job(width=1 << 20, seed=1), job(seed=2), job(width=3 << 20, seed=3)]
    async with dispatching() as rig:
        for given in jobs:
            assert (await rig.dispatcher.submit(given)).body == expected(given)
        arenas = rig.workers[0]._arenas
        assert any(arena.large for arena in arenas), "the next may be as large"
        async with asyncio.timeout(30):
            while any(os.fstat(arena.fd).st_size > arena.keep for arena in arenas):
                await asyncio.sleep(0.05)
        assert (await rig.dispatcher.submit(jobs[0])).body == expected(jobs[0])


@scenario
async def test_long_work_alone_has_the_cpus_of_workers_without_any(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = ProcessWorker.begin
    helpers: list[int] = []

    async def noted(worker: ProcessWorker, trip: Sequence[Task], free: int) -> None:
        helpers.append(free)
        await begin(worker, trip, free)

    monkeypatch.setattr(workqueue, "LONG_WORK", 1e5)
    monkeypatch.setattr(ProcessWorker, "begin", noted)
    long = job(width=1 << 16)
    async with dispatching(2) as rig:
        async with asyncio.timeout(30):
            while len(rig.dispatcher._queue._idle) < 2:
                await asyncio.sleep(0.01)
        assert (await rig.dispatcher.submit(long)).body == expected(long)
        await rig.dispatcher.submit(job())
        held = await rig.hold(gate)
        assert (await rig.dispatcher.submit(long)).body == expected(long)
        gate.open()
        await held
        both = [rig.submit(job(width=1 << 16, seed=seed)) for seed in range(2)]
        await asyncio.gather(*both)
    assert helpers[:4] == [1, 0, 0, 0], "long, small, small at the gate, long beside it"
    assert not any(helpers[4:]), "they have company"


# ---- admission


@scenario
async def test_what_costs_too_much_is_refused_with_every_limit_it_breaks() -> None:
    async with dispatching(0, cost=cost_limits(output_bytes=23, flops=35)) as rig:
        with pytest.raises(LimitExceeded) as refusal:
            await rig.dispatcher.submit(job())
        found = [(issue.loc, issue.got) for issue in refusal.value.issues]
        assert found == [(("cost", "output_bytes"), 24), (("cost", "flops"), 36)]


@scenario
async def test_a_full_queue_refuses_and_says_when_to_come_back(gate: Gate) -> None:
    async with dispatching(queue=queue_limits(requests=3)) as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(job(seed=seed)) for seed in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull) as refusal:
            await rig.dispatcher.submit(job())
        assert refusal.value.retry_after is not None
        assert 1 <= refusal.value.retry_after <= 60
        gate.open()
        await asyncio.gather(held, *tasks)
        await rig.dispatcher.submit(job())


# ---- deadlines and cancellation


@scenario
async def test_a_want_of_memory_while_a_job_is_let_in_takes_no_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def starved(*_: object) -> None:
        raise MemoryError

    async with dispatching(queue=QueueLimits(1, 1 << 20)) as rig:
        loop = asyncio.get_running_loop()
        for where, name, given in (
            (dispatcher, "within", job()),
            (loop, "call_later", job(within=PATIENCE_S)),
        ):
            with monkeypatch.context() as without_memory:
                without_memory.setattr(where, name, starved)
                with pytest.raises(MemoryError):
                    await rig.dispatcher.submit(given)
            assert rig.dispatcher.queue_depth == 0
            given = job()
            assert (await rig.dispatcher.submit(given)).body == expected(given)


@scenario
async def test_what_is_given_up_while_it_is_written_is_counted_and_what_was_not_let_in_is_not() -> (
    None
):
    async def overdue(_: Answer) -> memoryview:
        raise DeadlineExceeded

    async def slow(_: Answer) -> memoryview:
        writing.set()
        await asyncio.Event().wait()
        raise AssertionError

    writing = asyncio.Event()
    async with dispatching() as rig:
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(within=-1.0))
        assert not rig.observer.drops
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(replace(job(), write=overdue))
        assert rig.observer.drops == {"deadline": 1}
        task = rig.submit(replace(job(), write=slow))
        await writing.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert rig.observer.drops == {"deadline": 1, "cancelled": 1}


@scenario
async def test_the_time_that_writing_takes_counts_as_encoding_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def slow(answer: Answer) -> memoryview:
        clock[0] += 1.0
        return memoryview(answer.tensors["y"].tobytes())

    clock = [time.monotonic()]
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    async with dispatching(0) as rig:
        done = await rig.dispatcher.submit(replace(job(), write=slow))
    assert done.encode_s > 1.0, "it was copied before it was written"


@scenario
async def test_a_deadline_in_the_queue_is_answered_at_once_and_never_computed(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        started = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(within=0.02))
        assert 0.01 < time.monotonic() - started < 30
        assert rig.dispatcher.queue_depth == 0
        gate.open()
        await held
    assert rig.observer.batches == [ALONE]
    assert rig.observer.drops == {"deadline": 1}


@scenario
async def test_work_that_runs_past_its_deadline_is_stopped_and_the_worker_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trip, "STOP_GRACE_S", PATIENCE_S)
    async with dispatching() as rig:
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(faulty.UNTIL_STOPPED, within=0.3))
        await rig.dispatcher.submit(job())
    assert rig.observer.batches == [ALONE]
    assert rig.observer.restarts == []


@scenario
async def test_a_worker_that_does_not_stop_at_the_deadline_is_replaced() -> None:
    async with dispatching() as rig:
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(faulty.FOR_EVER, within=0.3))
        assert rig.observer.restarts == []  # the answer did not wait for that
        await rig.dispatcher.submit(job())
    assert rig.observer.restarts == ["deadline"]


@scenario
async def test_a_stopped_worker_does_not_delay_a_deadline() -> None:
    async with dispatching() as rig:
        os.kill(rig.workers[0].pid, signal.SIGSTOP)
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(within=0.05))
        await rig.dispatcher.submit(job())


@scenario
async def test_a_deadline_does_not_harm_batch_mates(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        hasty = rig.submit(job(faulty.AT_GATE, within=PATIENCE_S))
        patient = rig.submit(job(seed=1))
        gate.open()
        await held
        await gate.reached()
        (pending,) = (each for each in rig.dispatcher._accepted if each.deadline is not None)
        rig.dispatcher._overdue(pending)
        with pytest.raises(DeadlineExceeded):
            await hasty
        gate.open()
        assert (await patient).body == expected(job(seed=1))
    assert rig.observer.batches == [ALONE, (2, 2)]
    assert rig.observer.restarts == []


@scenario
async def test_a_queued_request_that_is_cancelled_is_not_computed(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        gone, mate = rig.submit(job(seed=1)), rig.submit(job(seed=2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        assert rig.dispatcher.queue_depth == 1
        gate.open()
        assert (await mate).body == expected(job(seed=2))
        await held
    assert rig.observer.batches == [ALONE, ALONE]
    assert rig.observer.drops == {"cancelled": 1}


@scenario
async def test_a_running_request_that_is_cancelled_is_stopped(
    monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setattr(trip, "STOP_GRACE_S", PATIENCE_S)
    async with dispatching() as rig:
        held = await rig.hold(gate)
        long = rig.submit(job(faulty.UNTIL_STOPPED))
        gate.open()
        await held
        while rig.dispatcher.queue_depth:
            await asyncio.sleep(0)
        long.cancel()
        await rig.dispatcher.submit(job())
    assert rig.observer.batches == [ALONE, ALONE]
    assert rig.observer.restarts == []


@scenario
async def test_a_cancelled_member_does_not_harm_its_mates(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        gone, mate = rig.submit(job(faulty.AT_GATE)), rig.submit(job(seed=2))
        gate.open()
        await held
        await gate.reached()
        gone.cancel()
        await asyncio.wait([gone])
        gate.open()
        assert (await mate).body == expected(job(seed=2))
    assert rig.observer.batches == [ALONE, (2, 2)]


@scenario
async def test_tensors_are_let_go_of_with_the_answer_whatever_it_is(workers: int) -> None:
    endings = [0.0] if workers == 0 else [0.0, faulty.REFUSE, faulty.FAIL, faulty.UNTIL_STOPPED]
    async with dispatching(workers) as rig:
        gc.collect()
        gc.disable()
        try:
            for ending in endings:
                within = 0.02 if ending == faulty.UNTIL_STOPPED else None
                given = job(ending, within=within)
                held = weakref.ref(given.tensors["x"])
                task = rig.submit(given)
                del given
                await asyncio.wait([task])
                assert (task.exception() is None) == (ending == 0.0)
                del task
                # Of two workers the one that had it may be through with it after the other's next job.
                while held() is not None:
                    await rig.dispatcher.submit(job(seed=1))
        finally:
            gc.enable()


# ---- the end


class Heard(Awake):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__(Wakefulness(Path(os.devnull)))
        self.told: list[str] = []

    def busy(self) -> None:
        self.told.append("busy")

    def idle(self) -> None:
        self.told.append("idle")

    def close(self) -> None:
        self.told.append("close")


@scenario
async def test_processors_are_kept_awake_from_the_first_job_to_the_last(gate: Gate) -> None:
    heard = Heard()
    async with dispatching(1, heard) as rig:
        assert heard.told == []
        held = await rig.hold(gate)
        queued = [rig.submit(job(seed=seed)) for seed in range(3)]
        await asyncio.sleep(0)
        queued[0].cancel()
        assert heard.told == ["busy"]
        gate.open()
        await asyncio.gather(held, *queued[1:])
        assert heard.told == ["busy", "idle"]
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(within=-1.0))
        assert heard.told == ["busy", "idle"]
        await rig.dispatcher.submit(job())
    assert heard.told == ["busy", "idle", "busy", "idle", "close"]


@scenario
async def test_draining_answers_everything_that_was_accepted(workers: int) -> None:
    async with dispatching(workers) as rig:
        jobs = [job(seed=seed) for seed in range(20)]
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        assert await rig.dispatcher.drain(PATIENCE_S)
        assert [(await task).body for task in tasks] == list(map(expected, jobs))
        with pytest.raises(ShuttingDown):
            await rig.dispatcher.submit(job())


@scenario
async def test_one_that_has_ended_has_no_places_for_bodies() -> None:
    made = Dispatcher(dispatch_limits(1, body_bytes=BODY_BYTES), Recorder())
    assert made.berths is not None
    assert made.berths.take(BODY_BYTES) is not None
    fds = made.berths.fds
    assert await made.drain(PATIENCE_S)
    assert made.berths.take(BODY_BYTES) is None
    assert not [fd for fd in fds if Path(f"/proc/self/fd/{fd}").exists()]


@scenario
async def test_what_a_drain_does_not_finish_in_time_is_still_answered() -> None:
    async with dispatching() as rig:
        running, queued = rig.submit(job(faulty.FOR_EVER)), rig.submit(job(faulty.FOR_EVER))
        await asyncio.sleep(0)
        assert not await rig.dispatcher.drain(0.05)
        for task in (running, queued):
            with pytest.raises(ShuttingDown):
                await task


SERVER = """
import asyncio, sys
from tests.app.dispatching import dispatching, job
from tests.app.workers import faulty

async def main():
    async with dispatching(2) as rig:
        tasks = [rig.submit(job(faulty.FOR_EVER))]
        await asyncio.sleep(0)
        print(*(worker.pid for worker in rig.workers), flush=True)
        await asyncio.gather(*tasks)

asyncio.run(main())
"""


@pytest.mark.parametrize("stopped", [False, True])
def test_workers_end_with_a_server_that_is_killed(stopped: bool) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with server:
        assert server.stdout is not None
        pids = list(map(int, server.stdout.readline().split()))
        assert len(pids) == 2
        watched = [os.pidfd_open(pid) for pid in pids]
        for pid in pids if stopped else []:
            os.kill(pid, signal.SIGSTOP)
        server.kill()
    for fd in watched:
        assert select.select([fd], [], [], PATIENCE_S)[0], "a worker is left behind"
        os.close(fd)


@scenario
async def test_workers_leave_signals_for_the_server_to_it(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(rig.workers[0].pid, number)
        gate.open()
        await held
    assert rig.observer.restarts == []
