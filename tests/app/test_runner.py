"""Calls through workers that die, hang and fail: who is answered, what is run again, who is to blame."""

from __future__ import annotations

import asyncio
import errno
import gc
import mmap
import os
import signal
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from app import trip
from app.blame import BLAME, FATAL_BLAME
from app.dispatcher import RETRY_WORKERS_S
from app.errors import (
    WorkerCrashed,
    WorkersUnavailable,
)
from app.jobs import Answer
from app.trip import Trip
from app.workers import pool
from app.workers.process import ProcessOptions, ProcessWorker
from app.workers.task import ComputeFailed, WorkerDied
from app.workqueue import WorkQueue
from tests.app.dispatching import PATIENCE_S, dispatching, expected, job, scenario
from tests.app.gates import Gate
from tests.app.workers import faulty

ALONE = (1, 1)


@scenario
async def test_an_encoder_that_fails_harms_nobody_else(gate: Gate) -> None:
    def refuse(answer: Answer) -> bytes:
        raise ValueError(answer.requests)

    async with dispatching() as rig:
        held = await rig.hold(gate)
        bad, good = rig.submit(job(encode=refuse)), rig.submit(job(seed=1))
        gate.open()
        with pytest.raises(ValueError, match="2"):
            await bad
        assert (await good).body == expected(job(seed=1))
        await held


@scenario
@pytest.mark.parametrize("name", ["split", "batch_done"])
async def test_answers_that_fail_as_they_should_not_are_told_and_the_worker_goes_on(
    name: str, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        mates = [rig.submit(job(seed=seed)) for seed in range(2)]
        with monkeypatch.context() as wrong:
            wrong.setattr(engine if name == "split" else rig.observer, name, failing(name))
            gate.open()
            for task in (held, *mates):
                with pytest.raises(ComputeFailed, match=name):
                    await task
        given = job(seed=7)
        assert (await rig.dispatcher.submit(given)).body == expected(given)
    assert rig.observer.restarts == []


@scenario
@pytest.mark.parametrize("name", ["is_large", "helpers", "begin", "watch", "finish"])
@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
async def test_a_trip_that_fails_as_it_should_not_is_told_and_the_next_is_made(
    name: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    owners = dict.fromkeys(("is_large", "helpers"), WorkQueue) | {"watch": Trip}
    async with dispatching() as rig:
        with monkeypatch.context() as wrong:
            wrong.setattr(owners.get(name, rig.workers[0]), name, failing(name, error))
            with pytest.raises((error, ComputeFailed), match=name):
                await rig.dispatcher.submit(job())
        given = job(seed=7)
        assert (await rig.dispatcher.submit(given)).body == expected(given)
    # What the call itself fails of is its answer.
    assert rig.observer.restarts == ([] if name == "begin" else ["crashed"])


def failing(text: str, error: type[Exception] = RuntimeError) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error(text)

    return fail


# ---- failures of the engine


@scenario
async def test_only_the_guilty_member_of_a_batch_is_refused(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        good = [job(seed=seed) for seed in range(3)]
        tasks = [rig.submit(given) for given in good]
        refused, failed = rig.submit(job(faulty.REFUSE)), rig.submit(job(faulty.FAIL))
        gate.open()
        with pytest.raises(engine.errors.InvalidIndices) as refusal:
            await refused
        assert refusal.value.issues == (engine.Issue(("indices",), "as asked", "less", 7),)
        with pytest.raises(ComputeFailed, match="as asked"):
            await failed
        assert [(await task).body for task in tasks] == list(map(expected, good))
        await held
    assert rig.observer.restarts == []


@scenario
async def test_what_fails_without_a_name_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run, failures = engine.run, [RuntimeError("as asked")]

    def failing(*given: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return run(*given, **options)

    monkeypatch.setattr(engine, "run", failing)
    async with dispatching(workers=0) as rig:
        assert (await rig.submit(job())).body == expected(job())
    assert not failures
    assert "as asked" in caplog.text


@scenario
async def test_bad_indices_are_refused_inside_the_server_process_too() -> None:
    x = np.ones((1, 1, 2), np.float32)
    tensors = {"x": x, "indices": np.full((1, 1, 2), 99)}
    specs = {name: engine.TensorSpec(a.shape, a.dtype.name) for name, a in tensors.items()}
    call, samples = engine.prepare("max_unpool", "forward", {"output_size": [4]}, specs)
    given = job()
    bad = type(given)(
        call, samples, {"output_size": [4]}, specs, None, tensors, None, "a", given.encode
    )
    async with dispatching(0) as rig:
        with pytest.raises(engine.errors.InvalidIndices):
            await rig.dispatcher.submit(bad)


@scenario
@pytest.mark.parametrize("workers", [0, 1])
async def test_where_the_server_has_no_memory_it_is_told_and_the_next_call_made(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "no memory") if workers else MemoryError

    async with dispatching(workers) as rig:
        with monkeypatch.context() as without_memory:
            without_memory.setattr(*((mmap, "mmap") if workers else (engine, "run")), starved)
            with pytest.raises(MemoryError):
                await rig.dispatcher.submit(job(width=1 << 21))
        given = job(width=1 << 21)
        assert (await rig.dispatcher.submit(given)).body == expected(given)
    assert rig.observer.restarts == []


# ---- workers that die


@scenario
async def test_a_worker_killed_under_a_batch_loses_no_request(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        jobs = [job(faulty.AT_GATE), *(job(seed=seed) for seed in range(5))]
        tasks = [rig.submit(given) for given in jobs]
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
    assert rig.observer.batches == [ALONE] * 7
    assert rig.observer.restarts == ["killed"]


@scenario
async def test_requests_that_never_reached_a_worker_that_died_still_share_a_call(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of them was begun, so that nobody's company is suspect."""
    async with dispatching() as rig:
        held = await rig.hold(gate)
        mates = [job(seed=seed) for seed in range(3)]
        tasks = [rig.submit(given) for given in mates]
        monkeypatch.setattr(rig.workers[0], "begin", failing("killed", WorkerDied))
        gate.open()
        assert [(await task).body for task in tasks] == list(map(expected, mates))
        await held
    assert rig.observer.batches == [ALONE, (3, 3)]
    assert rig.observer.restarts == ["killed"]


@scenario
async def test_a_request_that_kills_two_workers_is_named_and_its_mates_are_answered(
    gate: Gate,
) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        good = [job(seed=seed) for seed in range(4)]
        tasks = [rig.submit(given) for given in good]
        killer = rig.submit(job(faulty.DIE))
        gate.open()
        with pytest.raises(WorkerCrashed, match="Worker after worker ended"):
            await killer
        assert [(await task).body for task in tasks] == list(map(expected, good))
        await held
        await rig.dispatcher.submit(job())
        assert rig.observer.restarts == ["crashed"] * 3


@scenario
@pytest.mark.parametrize("end", [faulty.STARVE, faulty.GIVE_UP])
async def test_a_request_that_takes_all_memory_is_named_and_its_mates_are_answered(
    end: int, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.0,))
    async with dispatching() as rig:
        held = await rig.hold(gate)
        mates = [job(seed=seed) for seed in range(2)]
        tasks = [rig.submit(given) for given in mates]
        greedy = rig.submit(job(end, seed=9))
        gate.open()
        await held
        assert [(await task).body for task in tasks] == list(map(expected, mates))
        with pytest.raises(MemoryError):
            await greedy
    assert set(rig.observer.restarts) == {"memory"}
    # Once in company, then alone; the last death may not have been told when its answer was.
    assert len(rig.observer.restarts) >= FATAL_BLAME / BLAME["memory"]


@scenario
async def test_an_idle_worker_that_dies_is_replaced_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (*pool.BACKOFF_S[:1], PATIENCE_S))
    async with dispatching() as rig:
        os.kill(rig.workers[0].pid, signal.SIGKILL)
        await rig.observer.restarted.wait()
        assert not rig.dispatcher.ready
        assert (await rig.dispatcher.submit(job())).body == expected(job())
        assert rig.dispatcher.ready


@scenario
async def test_a_stopped_worker_is_replaced_and_its_request_is_not_to_blame(
    monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    monkeypatch.setattr(trip, "WATCH_S", 0.05)
    async with dispatching() as rig:
        given = job(faulty.AT_GATE)
        task = rig.submit(given)
        for _ in range(3):
            await gate.reached()
            rig.observer.restarted.clear()
            os.kill(rig.workers[-1].pid, signal.SIGSTOP)
            await rig.observer.restarted.wait()
            gate.open()
        await gate.reached()
        gate.open()
        assert (await task).body == expected(given)
    assert rig.observer.restarts == ["suspended"] * 3


@scenario
async def test_a_call_beyond_the_compute_limit_is_ended() -> None:
    async with dispatching(max_compute_s=4.0) as rig:
        with pytest.raises(WorkerCrashed, match="longer than max_compute_s, 4 s"):
            await rig.dispatcher.submit(job(faulty.FOR_EVER))
        await rig.dispatcher.submit(job())
    assert rig.observer.restarts == ["stuck", "stuck"]


@scenario
async def test_a_call_of_the_thread_beyond_the_compute_limit_is_ended_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    def until_stopped(*_: object, stop: Callable[[], bool]) -> None:
        begun.append(stop)
        while not stop():
            time.sleep(0.01)
        raise engine.Stopped

    async with dispatching(workers=0, max_compute_s=2.0) as rig:
        with monkeypatch.context() as patch:
            patch.setattr(engine, "run", until_stopped)
            with pytest.raises(WorkerCrashed, match="longer than max_compute_s, 2 s"):
                await rig.dispatcher.submit(job())
        assert len(begun) == 2
        assert rig.dispatcher.ready
        assert (await rig.dispatcher.submit(given := job())).body == expected(given)
    assert rig.observer.restarts == []  # the thread is as good as ever


@scenario
async def test_time_in_which_the_server_was_suspended_makes_nobody_stuck(gate: Gate) -> None:
    async with dispatching(max_compute_s=2.0) as rig:
        given = job(faulty.AT_GATE)
        task = rig.submit(given)
        await gate.reached()
        time.sleep(4.0)  # as under SIGSTOP, nothing of this process goes on
        await asyncio.sleep(0.5)
        gate.open()
        assert (await task).body == expected(given)
    assert rig.observer.restarts == []


@scenario
async def test_many_deaths_leave_no_descriptor_mapping_or_zombie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pool, "BACKOFF_S", (0.0,))

    def held() -> tuple[int, int]:
        gc.collect()
        maps = Path("/proc/self/maps").read_text().count("memfd:convoke")
        return len(list(Path("/proc/self/fd").iterdir())), maps

    async with dispatching() as rig:
        await rig.dispatcher.submit(job())
        before = held()
        for death in range(6):
            rig.observer.restarted.clear()
            os.kill(rig.workers[-1].pid, signal.SIGKILL)
            await rig.observer.restarted.wait()
            await rig.dispatcher.submit(job(seed=death))
        assert held() == before
        pids = [worker.pid for worker in rig.workers]
    assert len(pids) == 7
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert held()[1] == 0


@scenario
async def test_when_no_worker_comes_up_nobody_waits_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Once it is hopeless, no more attempts end anybody's waiting.
    waits = (*[0.0] * (pool.HOPELESS_FAILURES - 1), 3600.0)
    monkeypatch.setattr(pool, "BACKOFF_S", waits)
    async with dispatching() as rig:
        rig._make = None  # type: ignore[method-assign, assignment]
        broken = ProcessOptions(command=(sys.executable, "-c", "raise SystemExit(1)"))
        rig.dispatcher._pool._make = lambda: ProcessWorker(broken)
        os.kill(rig.workers[0].pid, signal.SIGKILL)
        await rig.observer.restarted.wait()
        for _ in ("while it waits", "before it is let in"):
            with pytest.raises(WorkersUnavailable) as refused:
                await rig.dispatcher.submit(job())
            assert refused.value.retry_after == RETRY_WORKERS_S
    rig.dispatcher._closing = False
    with pytest.raises(WorkersUnavailable):
        await rig.dispatcher.start()


@scenario
async def test_what_is_being_computed_is_not_given_up_with_what_waits(gate: Gate) -> None:
    """The express worker may be at it when no other is left."""
    async with dispatching() as rig:
        held = await rig.hold(gate)
        waiting = rig.submit(job(seed=1))
        await asyncio.sleep(0)
        rig.dispatcher._give_up()
        with pytest.raises(WorkersUnavailable) as given_up:
            await waiting
        assert given_up.value.retry_after == RETRY_WORKERS_S
        gate.open()
        assert (await held).body == expected(job(faulty.AT_GATE))


@scenario
async def test_a_death_keeps_nothing_of_what_was_computed(gate: Gate) -> None:
    async with dispatching() as rig:
        held = await rig.hold(gate)
        (pending,) = rig.dispatcher._accepted
        x = weakref.ref(pending.job.tensors["x"])
        del pending
        gc.collect()
        gc.disable()  # nor does it wait for the collector
        try:
            os.kill(rig.workers[-1].pid, signal.SIGKILL)
            await rig.observer.restarted.wait()
            gate.open()
            await gate.reached()
            gate.open()
            await held
            del held
            async with asyncio.timeout(10):
                while x() is not None:
                    await asyncio.sleep(0.05)
        finally:
            gc.enable()
