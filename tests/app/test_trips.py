"""Requests of several kinds that a worker is told of at once: each as if it had come alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import engine
from app import dispatcher, few, trip
from app.errors import WorkerCrashed
from app.jobs import Job
from app.workers import pool
from app.workers.inline import InlineWorker
from app.workers.process import ProcessWorker
from app.workers.task import LONG_TRIP_S, ComputeFailed, Outcome, Task
from tests.app.dispatching import PATIENCE_S, dispatching, expected, job, scenario
from tests.app.gates import Gate
from tests.app.limits import batch_limits
from tests.app.workers import faulty

ALONE = (1, 1)


def kind(number: int, first: float = 0.0, **given: Any) -> Job:
    """A job that shares no call with those of other numbers."""
    weight = np.full((1, 1, 3), number, np.float32)
    return job(first, weight=weight, seed=number, **given)


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tasks of each trip, as they are begun."""
    begin, found = ProcessWorker.begin, []

    async def noted(worker: ProcessWorker, trip: list[Task], helpers: int = 0) -> None:
        found.append(len(trip))
        await begin(worker, trip, helpers)

    monkeypatch.setattr(ProcessWorker, "begin", noted)
    return found


@scenario
async def test_each_has_its_own_answer_batch_and_time(
    gate: Gate, trips: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted = time.monotonic()
    monkeypatch.setattr(dispatcher, "time", SimpleNamespace(monotonic=lambda: accepted))
    jobs = [
        kind(number, action=action) for number in (1, 2, 3) for action in ("forward", "backward")
    ]
    jobs += [kind(2, samples=3), kind(4, samples=0)]
    async with dispatching() as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        answers = await asyncio.gather(*tasks)
        await held
    assert [answer.body for answer in answers] == list(map(expected, jobs))
    assert trips[:2] == [1, 7], "unless this machine is slow there are no more"
    shared = (2, 4)
    companies = [ALONE, ALONE, shared, ALONE, ALONE, ALONE, shared, (1, 0)]
    assert [(answer.requests, answer.rows) for answer in answers] == companies
    assert rig.observer.batches == [ALONE, ALONE, ALONE, shared, ALONE, ALONE, ALONE, (1, 0)]
    # Those before it in the trip are what a job waits for, not what it takes.
    for before, answer in pairwise([*answers[:6], answers[7]]):
        assert before.compute_s > 0
        waited = answer.queue_s - before.queue_s
        assert waited == pytest.approx(before.compute_s, abs=1e-9)


@scenario
async def test_the_thread_of_the_server_computes_them_too() -> None:
    jobs = [kind(number) for number in range(9)]
    async with dispatching(0) as rig:
        answers = await asyncio.gather(*map(rig.dispatcher.submit, jobs))
    assert [answer.body for answer in answers] == list(map(expected, jobs))
    assert rig.observer.batches == [ALONE] * 9


@scenario
async def test_without_batching_there_are_no_trips(gate: Gate, trips: list[int]) -> None:
    async with dispatching(batch=batch_limits(requests=1)) as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(kind(number)) for number in range(3)]
        gate.open()
        await asyncio.gather(held, *tasks)
    assert trips == [1] * 4


@scenario
async def test_large_work_is_told_by_itself(gate: Gate, trips: list[int]) -> None:
    jobs = [kind(1), kind(2), kind(3, width=1 << 18), kind(4), kind(5)]
    async with dispatching() as rig:
        held = await rig.hold(gate)
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        answers = await asyncio.gather(*tasks)
        await held
    assert [answer.body for answer in answers] == list(map(expected, jobs))
    assert trips[:2] == [1, 2]
    assert max(trips) == 2


@scenario
async def test_only_the_guilty_task_is_refused(gate: Gate, trips: list[int]) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        good = [kind(number) for number in (1, 2, 3)]
        first, refused, second, failed, third = map(
            rig.submit,
            (good[0], kind(8, faulty.REFUSE), good[1], kind(9, faulty.FAIL), good[2]),
        )
        await asyncio.sleep(0)
        gate.open()
        with pytest.raises(engine.errors.InvalidIndices):
            await refused
        with pytest.raises(ComputeFailed, match="as asked"):
            await failed
        answers = await asyncio.gather(first, second, third)
        await held
    assert [answer.body for answer in answers] == list(map(expected, good))
    assert trips[:2] == [1, 5]
    assert rig.observer.restarts == []


@scenario
async def test_failures_of_many_words_fit_their_messages(gate: Gate, trips: list[int]) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        good = [kind(number) for number in (1, 2)]
        tasks = [rig.submit(given) for given in good]
        failing = [rig.submit(kind(number, faulty.FAIL)) for number in range(3, 9)]
        await asyncio.sleep(0)
        gate.open()
        for each in failing:
            with pytest.raises(ComputeFailed, match="as asked"):
                await each
        answers = await asyncio.gather(*tasks)
        await held
    assert [answer.body for answer in answers] == list(map(expected, good))
    assert trips[:2] == [1, 8]
    assert rig.observer.restarts == []


@scenario
@pytest.mark.parametrize(
    ("harm", "told"), [(faulty.DIE, WorkerCrashed), (faulty.STARVE, MemoryError)]
)
async def test_a_death_is_blamed_on_who_dies_alone(
    harm: int, told: type[Exception], gate: Gate, trips: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.0,))
    async with dispatching() as rig:
        held = await rig.hold(gate)
        good = [kind(number) for number in (1, 2, 3)]
        tasks = [rig.submit(given) for given in good[:2]]
        killer = rig.submit(kind(8, harm))
        tasks.append(rig.submit(good[2]))
        await asyncio.sleep(0)
        gate.open()
        with pytest.raises(told):
            await killer
        assert [(await task).body for task in tasks] == list(map(expected, good))
        await held
    assert trips[:2] == [1, 4]
    assert set(trips[2:]) == {1}, "each alone"


@scenario
async def test_a_worker_killed_under_a_trip_loses_no_request(gate: Gate, trips: list[int]) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        jobs = [kind(1), kind(2, faulty.AT_GATE), kind(3)]
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        await held
        await gate.reached()
        os.kill(rig.workers[0].pid, signal.SIGKILL)
        await rig.observer.restarted.wait()
        gate.open()
        await gate.reached()
        gate.open()
        answers = await asyncio.gather(*tasks)
    assert [answer.body for answer in answers] == list(map(expected, jobs))
    assert trips == [1, 3, 1, 1, 1]
    assert rig.observer.restarts == ["killed"]


@scenario
async def test_a_trip_goes_on_while_anybody_waits_and_stops_when_nobody_does(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trip, "STOP_GRACE_S", PATIENCE_S)
    async with dispatching() as rig:
        held = await rig.hold(gate)
        slow, other = rig.submit(kind(1, faulty.UNTIL_STOPPED)), rig.submit(kind(2))
        await asyncio.sleep(0)
        gate.open()
        await held
        other.cancel()
        await asyncio.sleep(0.2)
        assert not slow.done()
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        given = kind(3)
        assert (await rig.dispatcher.submit(given)).body == expected(given)
    assert rig.observer.drops == {"cancelled": 2}
    assert rig.observer.restarts == [], "it stopped by itself"


@scenario
async def test_what_is_done_does_not_wait_for_what_takes_longer_than_was_thought(
    gate: Gate, trips: list[int]
) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        jobs = [kind(1), kind(2, faulty.AT_GATE), kind(3, faulty.AT_GATE), kind(4)]
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        await held
        await gate.reached()
        gate.open()
        assert [(await task).body for task in tasks[:2]] == list(map(expected, jobs[:2]))
        await gate.reached()
        assert not tasks[2].done(), "it has a trip of its own"
        gate.open()
        assert [(await task).body for task in tasks[2:]] == list(map(expected, jobs[2:]))
    assert trips[:3] == [1, 4, 2]
    assert rig.observer.restarts == []


@scenario
async def test_what_was_slow_twice_travels_alone(
    gate: Gate, trips: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few, "SLOW_S", -1.0)
    monkeypatch.setattr(few, "WORKER_SLOW_S", -1.0)
    async with dispatching() as rig:
        for _ in range(few.SLOW_TIMES):
            await rig.dispatcher.submit(kind(1))
        held = await rig.hold(gate)
        jobs = [kind(1), kind(2, samples=2), kind(3, samples=2)]
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        answers = await asyncio.gather(*tasks)
        await held
    assert [answer.body for answer in answers] == list(map(expected, jobs))
    assert trips[few.SLOW_TIMES :][:3] == [1, 1, 2]


@scenario
async def test_the_thread_of_the_server_gives_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    run, begin = engine.run, InlineWorker.begin
    begun: list[object] = []
    lengths: list[int] = []

    async def noted(worker: InlineWorker, trip: list[Task], helpers: int = 0) -> None:
        lengths.append(len(trip))
        await begin(worker, trip, helpers)

    def slow(call: engine.Call, *given: Any, **named: Any) -> Any:
        begun.append(call)
        time.sleep(2 * LONG_TRIP_S)
        return run(call, *given, **named)

    jobs = [kind(number) for number in range(4)]
    wanted = list(map(expected, jobs))
    async with dispatching(0) as rig:
        monkeypatch.setattr(engine, "run", slow)
        monkeypatch.setattr(InlineWorker, "begin", noted)
        answers = await asyncio.gather(*map(rig.dispatcher.submit, jobs))
    assert [answer.body for answer in answers] == wanted
    assert len(begun) == len(jobs), "each once"
    assert sum(lengths) > len(jobs), "some were in a trip before"


@scenario
async def test_a_stop_that_came_too_late_for_one_has_it_done_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = ProcessWorker.finish
    stopped: list[int] = []

    async def stops_the_second(worker: ProcessWorker) -> list[Outcome]:
        outcomes = await finish(worker)
        if len(outcomes) == 3 and not stopped:
            stopped.append(1)
            outcomes[1] = engine.Stopped()
        return outcomes

    monkeypatch.setattr(ProcessWorker, "finish", stops_the_second)
    async with dispatching() as rig:
        held = await rig.hold(gate)
        jobs = [kind(number) for number in (1, 2, 3)]
        tasks = [rig.submit(given) for given in jobs]
        await asyncio.sleep(0)
        gate.open()
        answers = await asyncio.gather(*tasks)
        await held
    assert stopped
    assert [answer.body for answer in answers] == list(map(expected, jobs))
