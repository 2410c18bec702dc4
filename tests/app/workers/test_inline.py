"""The thread of `workers=0`."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine
from app.workers.inline import InlineWorker
from app.workers.task import EXHAUSTED, ComputeFailed, Result, Task, WorkerDied
from engine.errors import InvalidValue
from tests.starving import granting

ISSUE = engine.Issue(("x",), "as asked", "one", 2)


def test_a_worker_without_its_thread_is_not_up() -> None:
    async def run() -> None:
        worker = InlineWorker()
        with granting(0), pytest.raises(WorkerDied) as died:
            await worker.start()
        assert died.value.reason == EXHAUSTED
        await worker.close()

    asyncio.run(run())


def test_a_worker_that_is_up_has_its_thread() -> None:
    async def run() -> None:
        worker = InlineWorker()
        await worker.start()
        names = [thread.name for thread in threading.enumerate()]
        assert any(name.startswith("convoke-compute") for name in names)
        await worker.close()

    asyncio.run(run())


def test_a_stop_is_for_what_was_begun_before_it() -> None:
    async def run() -> None:
        specs = {"x": engine.TensorSpec((1, 1, 4), "float32")}
        call, rows = engine.prepare("max_pool", "forward", {"kernel": 2}, specs)
        task = Task(call, {"kernel": 2}, specs, None, [{"x": np.ones((1, 1, 4), "f4")}], [rows])
        worker = InlineWorker()
        worker.stop()
        await worker.begin([task])
        (outcome,) = await worker.finish()
        assert isinstance(outcome, Result)
        await worker.close()

    asyncio.run(run())


def test_an_answer_has_the_memory_that_is_its_own_alone() -> None:
    worker = InlineWorker()
    assert worker.lends(1 << 20, 1 << 20)
    assert not worker.lends(1 << 20, 2 << 20), "others have the rest of it"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (lambda: ZeroDivisionError("as asked"), ComputeFailed),
        (lambda: engine.Stopped("as asked"), engine.Stopped),
        (lambda: MemoryError("as asked"), MemoryError),
        (lambda: InvalidValue([ISSUE]), InvalidValue),
    ],
)
def test_what_did_not_end_well_holds_no_tensors(
    monkeypatch: pytest.MonkeyPatch, error: Callable[[], Exception], outcome: type[Exception]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error()

    async def run() -> None:
        specs = {"x": engine.TensorSpec((1, 1, 4), "float32")}
        call, rows = engine.prepare("max_pool", "forward", {"kernel": 2}, specs)
        x = np.ones((1, 1, 4), np.float32)
        alive = weakref.ref(x)
        worker = InlineWorker()
        await worker.start()
        await worker.begin([Task(call, {"kernel": 2}, specs, None, [{"x": x}], [rows])])
        outcomes = await worker.finish()
        assert isinstance(outcomes[0], outcome)
        assert "as asked" in str(outcomes[0])
        worker.rest()
        del x
        async with asyncio.timeout(10):  # the thread lets go of its task after it has told
            while alive() is not None:
                await asyncio.sleep(0.01)
        await worker.close()

    monkeypatch.setattr(engine, "run", fail)
    gc.disable()
    try:
        asyncio.run(run())
    finally:
        gc.enable()
