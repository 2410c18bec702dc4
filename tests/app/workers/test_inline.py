"""The thread of `workers=0`."""

from __future__ import annotations

import asyncio
import threading

import pytest

from app.workers.inline import InlineWorker
from app.workers.task import EXHAUSTED, WorkerDied
from tests.starving import granting


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
