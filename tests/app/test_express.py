"""Small work does not wait behind large work."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from app.batcher import Batcher
from app.dispatcher import Dispatcher
from app.workers import child
from tests.app.dispatching import Recorder, dispatching, expected, job, scenario
from tests.app.gates import Gate
from tests.app.limits import batch_limits, dispatch_limits
from tests.app.test_batcher import Named, entry, names, take
from tests.app.workers import faulty

LARGE = 1 << 18
"""Width of a job that is large where `SMALL` is the limit."""

SMALL = batch_limits(small=1e5)


@scenario
async def test_small_jobs_pass_large_ones_by_whoever_sent_them(gate: Gate) -> None:
    async with dispatching(batch=SMALL) as rig:
        held = rig.submit(job(faulty.AT_GATE, width=LARGE))
        await gate.reached()
        waiting = rig.submit(job(width=LARGE, seed=1))
        for caller in ("a", "b"):
            given = job(seed=2, caller=caller)
            assert (await rig.dispatcher.submit(given)).body == expected(given)
        assert not waiting.done()
        gate.open()
        await asyncio.gather(held, waiting)
    assert len(rig.workers) == 2


@scenario
async def test_small_jobs_that_waited_before_the_large_one_began_are_done_beside_it(
    gate: Gate,
) -> None:
    async with dispatching(batch=SMALL) as rig:
        held = rig.submit(job(faulty.AT_GATE, width=LARGE))
        small = rig.submit(job(seed=2))
        await gate.reached()
        assert (await small).body == expected(job(seed=2))
        gate.open()
        await held


@scenario
async def test_the_express_worker_rests_while_another_does_small_work(gate: Gate) -> None:
    async with dispatching(batch=SMALL) as rig:
        held = rig.submit(job(faulty.AT_GATE))
        await gate.reached()
        tasks = [rig.submit(job(seed=seed)) for seed in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert rig.dispatcher.queue_depth == 3
        gate.open()
        await asyncio.gather(held, *tasks)
    assert rig.observer.batches == [(1, 1), (3, 3)]


@scenario
async def test_a_dispatcher_with_workers_of_its_own_has_an_express_worker_that_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first: list[int] = []
    last: list[int] = []
    monkeypatch.setattr(child, "come_first", first.append)
    monkeypatch.setattr(child, "come_last", last.append)
    dispatcher = Dispatcher(dispatch_limits(1, batch=SMALL), Recorder())
    await dispatcher.start()
    assert (len(first), len(last)) == (1, 1)
    weight = np.ones((1, 1, 1000), np.float32)
    large = asyncio.create_task(dispatcher.submit(job(weight=weight, width=1 << 20)))
    while not dispatcher._queue._held:
        assert not large.done()
        await asyncio.sleep(0.01)
    given = job(seed=2)
    assert (await dispatcher.submit(given)).body == expected(given)
    assert not large.done()
    large.cancel()
    assert await dispatcher.drain(30.0)


@scenario
async def test_the_express_worker_is_replaced_when_it_dies(gate: Gate) -> None:
    async with dispatching(batch=SMALL) as rig:
        held = rig.submit(job(faulty.AT_GATE, width=LARGE))
        await gate.reached()
        express = rig.workers[1]
        express.kill("crashed")
        await rig.observer.restarted.wait()
        given = job(seed=2)
        task = rig.submit(given)
        assert (await task).body == expected(given)
        gate.open()
        await held
    assert rig.observer.restarts == ["killed"]


def test_small_entries_are_handed_out_in_their_order_and_leave_the_clock_alone() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(requests=1, small=1.0))
    for name, work in enumerate((9.0, 1.0, 9.0, 0.5)):
        batcher.add(entry(name, work=work, caller="a"))
    assert batcher.small_depth == 2
    trips = [batcher.take(0.0, small=True) for _ in range(3)]
    assert [list(map(names, trip)) for trip in trips] == [[[1]], [[3]], []]
    # A caller that comes now begins where the clock is, and so before the flood's third entry.
    batcher.add(entry(4, work=9.0, caller="b"))
    taken = [names(take(batcher)) for _ in range(3)]
    assert taken == [[0], [4], [2]]
    assert batcher.depth == batcher.small_depth == 0


def test_small_entries_that_are_overdue_or_cancelled_are_not_handed_out() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(small=1.0))
    late, gone = entry(0, deadline=1.0), entry(1, call="pool")
    batcher.add(late)
    batcher.add(gone)
    assert batcher.cancel(gone)
    assert batcher.take(2.0, small=True) == []
    assert batcher.depth == batcher.small_depth == 0


def test_small_entries_are_handed_out_without_large_mates() -> None:
    batcher: Batcher[Named] = Batcher(batch_limits(small=1.0))
    for name, work in enumerate((9.0, 1.0, 9.0, 0.5)):
        batcher.add(entry(name, work=work))
    assert [names(batch) for batch in batcher.take(0.0, small=True)] == [[1, 3]]
    assert batcher.take(0.0, small=True) == []
    assert names(take(batcher)) == [0, 2]
