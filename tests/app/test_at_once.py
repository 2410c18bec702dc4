"""What few callers ask is answered in the event loop, and in nothing else differs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

import engine
from app import at_once, few
from app.at_once import AtOnce
from app.errors import DeadlineExceeded, LimitExceeded, QueueFull, ShuttingDown
from app.jobs import Answer
from app.visitor import NOBODY, Visitor
from engine.errors import InvalidIndices
from engine.threads import get_threads
from tests.app.dispatching import (
    PATIENCE_S,
    Recorder,
    Rig,
    dispatching,
    encode,
    expected,
    job,
    scenario,
)
from tests.app.gates import Gate
from tests.app.limits import cost_limits, queue_limits
from tests.app.workers import faulty

LARGE = 1 << 18
"""Width of a job that is not brief."""

ALONE = (1, 1)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = get_threads()
    yield
    engine.set_threads(before)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is slow, however slow the machine is."""
    monkeypatch.setattr(few, "SLOW_S", 600.0)
    monkeypatch.setattr(at_once, "SLOW_S", 600.0)


@asynccontextmanager
async def computing(callers: int = 1, **limits: Any) -> AsyncIterator[Rig]:
    """A dispatcher of which so many connections ask something, that of our jobs among them."""
    async with dispatching(at_once=True, **limits) as rig:
        for connection in range(NOBODY.connection, NOBODY.connection + callers):
            rig.dispatcher.few.enter(connection, 1, "here")
        yield rig


def alone() -> AtOnce:
    """One connection asks something."""
    few_callers = few.Few()
    few_callers.enter(NOBODY.connection, 1, "here")
    return AtOnce(Recorder(), few_callers)


async def hold(rig: Rig, gate: Gate) -> asyncio.Task[Any]:
    """Keep the only worker busy until the gate opens, with what somebody else asks."""
    given = job(faulty.AT_GATE, width=LARGE)
    task = rig.submit(replace(given, visitor=Visitor(connection=few.FEW + 2)))
    await gate.reached()
    return task


@pytest.mark.parametrize("action", ["forward", "backward"])
@scenario
async def test_few_callers_need_no_worker(gate: Gate, action: str) -> None:
    async with computing() as rig:
        assert get_threads() == 1
        held = await hold(rig, gate)
        for samples in (0, 1, 3):
            given = job(samples=samples, seed=2, action=action)
            done = await rig.dispatcher.submit(given)
            assert done.body == expected(given)
            assert (done.requests, done.rows) == (1, samples)
            assert min(done.queue_s, done.compute_s, done.encode_s) >= 0
        assert rig.dispatcher._admission.requests == 1, "the one that is held"
        assert rig.observer.batches == [(1, 0), (1, 1), (1, 3)]
        gate.open()
        await held


@scenario
async def test_many_callers_have_a_worker(gate: Gate) -> None:
    async with computing(few.FEW + 1) as rig:
        held = await hold(rig, gate)
        given = [job(seed=seed) for seed in (8, 7)]
        tasks = list(map(rig.submit, given))
        await asyncio.sleep(0.01)
        assert rig.dispatcher.queue_depth == 2
        gate.open()
        assert [(await task).body for task in tasks] == list(map(expected, given))
        await held
    assert rig.observer.batches == [ALONE, (2, 2)]


@scenario
async def test_whoever_has_left_is_not_counted() -> None:
    async with computing(few.FEW + 1) as rig:
        rig.dispatcher.left(Visitor(connection=1))
        assert rig.dispatcher.few.admits(NOBODY.connection, job().call, 1, 1)


@scenario
async def test_only_what_is_quick_and_only_where_it_is_asked_for(gate: Gate) -> None:
    for wanted, width in ((True, LARGE), (False, 8)):
        async with dispatching(at_once=wanted) as rig:
            rig.dispatcher.few.enter(NOBODY.connection, 1, "here")
            given = job(seed=1, width=width)
            pids = [worker.pid for worker in rig.workers]
            assert len(pids) == 1
            held = await hold(rig, gate)
            task = rig.submit(given)
            await asyncio.sleep(0.01)
            assert rig.dispatcher.queue_depth == 1
            gate.open()
            assert (await task).body == expected(given)
            await held


@scenario
async def test_what_waits_and_what_is_written_elsewhere_comes_by_a_worker() -> None:
    async def write(answer: Answer) -> memoryview:
        return memoryview(encode(answer))

    here = alone()
    given = job()
    assert here.answer(given, 0.0, 1, 1) is None
    assert here.answer(replace(given, write=write), 0.0, 0, 1) is None
    for connection in range(100, 100 + few.FEW + 1):
        here._few.enter(connection, 1, "a crowd")
    done = here.answer(given, 0.0, 1, 1)
    assert done is not None, "it does not wait behind a crowd"
    for connection in range(100, 100 + few.FEW + 1):
        here._few.leave(connection)
    done = here.answer(given, 0.0, 0, 1)
    assert done is not None
    assert done.body == expected(given)


@scenario
async def test_what_was_slow_comes_by_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SLOW_S", -1.0)
    here = alone()
    given = job()
    answers = [here.answer(given, 0.0, 0, 1) is not None for _ in range(few.SLOW_TIMES + 1)]
    assert answers == [True] * few.SLOW_TIMES + [False]


@scenario
async def test_between_two_turns_of_others_little_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(at_once, "SLOW_S", 1e-9)
    here = alone()
    answers = []
    for turn in range(3):
        asked = [here.answer(job(seed=turn), 0.0, 0, 1) for _ in range(3)]
        answers.append([each is not None for each in asked])
        await asyncio.sleep(0)
    assert answers == [[True, False, False]] * 3


@scenario
async def test_an_answer_says_that_it_was_computed_alone() -> None:
    told: list[tuple[int, int]] = []

    def noted(answer: Answer) -> bytes:
        told.append((answer.requests, answer.rows))
        return encode(answer)

    assert alone().answer(job(samples=3, encode=noted), 0.0, 0, 1) is not None
    assert told == [(1, 3)]


@scenario
async def test_what_counts_is_the_time_that_was_computed() -> None:
    here, before = alone(), time.thread_time()
    for _ in range(2):
        assert here.answer(job(), 0.0, 0, 1) is not None
    assert 0 < here._used <= time.thread_time() - before


@scenario
async def test_what_others_are_refused_for_few_are(gate: Gate) -> None:
    cost, queue = cost_limits(output_bytes=1 << 20), queue_limits(requests=1)
    async with computing(cost=cost, queue=queue) as rig:
        with pytest.raises(DeadlineExceeded):
            await rig.dispatcher.submit(job(within=-1.0))
        assert not rig.observer.drops
        held = await hold(rig, gate)
        with pytest.raises(QueueFull):
            await rig.dispatcher.submit(job())
        gate.open()
        await held
        assert await rig.dispatcher.drain(PATIENCE_S)
        with pytest.raises(ShuttingDown):
            await rig.dispatcher.submit(job())
    async with computing(cost=cost_limits(output_bytes=23)) as rig:
        with pytest.raises(LimitExceeded):
            await rig.dispatcher.submit(job())
    assert rig.observer.batches == []


@scenario
async def test_a_mistake_of_the_caller_is_told_at_once(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidIndices(engine.Issue(("indices",), "as asked", "less", 7))

    async with computing() as rig:
        held = await hold(rig, gate)
        with monkeypatch.context() as patch:
            patch.setattr(engine, "run", refuse)
            with pytest.raises(InvalidIndices):
                await rig.dispatcher.submit(job())
        assert rig.dispatcher._admission.requests == 1
        gate.open()
        await held


@pytest.mark.parametrize("error", [MemoryError, ZeroDivisionError])
@scenario
async def test_what_fails_in_the_loop_is_told_and_done_by_a_worker(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise error("as asked")

    given = job(seed=3)
    want = expected(given)
    async with computing() as rig:
        monkeypatch.setattr(engine, "run", fail)
        assert (await rig.dispatcher.submit(given)).body == want
        assert rig.dispatcher._admission.requests == 0
    assert rig.observer.batches == [ALONE]
    (record,) = caplog.records
    assert record.getMessage().startswith("forward of conv failed in the event loop")
    assert f"{error.__name__}: as asked" in record.getMessage()
    assert record.exc_info is None, "it would hold the tensors"


@scenario
async def test_what_cannot_be_encoded_fails_with_a_worker_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Answer) -> bytes:
        raise RuntimeError("as asked")

    async with computing() as rig:
        with pytest.raises(RuntimeError):
            await rig.dispatcher.submit(job(encode=fail))
    logged = [record.message.partition(",")[0] for record in caplog.records]
    assert logged == ["forward of conv failed in the event loop", "an answer could not be encoded"]
    assert rig.observer.batches == [ALONE]
