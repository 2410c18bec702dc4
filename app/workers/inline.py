"""Tasks computed on one thread of the server process."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import engine
from app.workers.cpus import threads_of_a_task
from app.workers.task import (
    EXHAUSTED,
    LONG_TRIP_S,
    ComputeFailed,
    Outcome,
    Result,
    Task,
    Tensors,
    WorkerDied,
)


class InlineWorker:
    """A thread, which can be asked to stop but not be killed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="convoke-compute")
        self._running: asyncio.Future[list[Outcome]] | None = None
        self._stop = False

    async def start(self) -> None:
        """Start the thread, and have the engine use as many CPUs as it does by itself; see `Worker`."""
        loop = asyncio.get_running_loop()
        engine.set_wakeful(False)  # the server does that, where it is wanted
        try:
            await loop.run_in_executor(self._thread, engine.set_threads, threads_of_a_task())
        except RuntimeError as error:
            raise WorkerDied(EXHAUSTED, "no thread can be had") from error

    async def begin(self, trip: Sequence[Task], helpers: int = 0) -> None:  # noqa: ARG002 - it has them anyway
        """Start to compute."""
        self._stop = False
        loop = asyncio.get_running_loop()
        self._running = loop.run_in_executor(self._thread, self._computed, trip)

    async def finish(self) -> list[Outcome]:
        """Wait for what became of each task; see `Worker`."""
        assert self._running is not None
        return await self._running

    def leave_one(self, wanted: bool) -> None:
        """The thread shares the server's processors."""

    def guard(self, future: asyncio.Future[None]) -> None:
        """The thread does not die by itself."""

    def lends(self, nbytes: int, held: int) -> bool:
        """Outputs have memory of their own, which is the answer's if nobody shares it."""
        return nbytes == held

    def rest(self) -> None:
        """Results are let go of, and with them their memory."""
        self._running = None

    def stop(self) -> None:
        """End the computation before its next block."""
        self._stop = True

    def suspended(self) -> bool:
        """A thread always goes on."""
        return False

    def kill(self, reason: str) -> None:  # noqa: ARG002 - a thread cannot be killed
        """Only ask it to stop."""
        self._stop = True

    async def close(self) -> None:
        """End the thread, once it is done with what it does."""
        self._stop = True
        self._thread.shutdown(wait=False)

    def _computed(self, trip: Sequence[Task]) -> list[Outcome]:
        home = time.perf_counter() + LONG_TRIP_S
        outcomes: list[Outcome] = []
        for task in trip:
            late = outcomes and time.perf_counter() > home
            outcomes.append(engine.Stopped() if late else self._outcome(task))
        return outcomes

    def _outcome(self, task: Task) -> Outcome:
        try:
            return self._compute(task)
        except (engine.EngineError, engine.Stopped, MemoryError) as error:
            # Its traceback would hold the tensors, in a circle with what is returned.
            return error.with_traceback(None)
        except Exception as error:  # noqa: BLE001 - it is the outcome
            # As text, for the same reason.
            return ComputeFailed("".join(traceback.format_exception(error)))

    def _compute(self, task: Task) -> Result:
        inputs = task.tensors[0] if len(task.rows) == 1 else _join(task)
        started = time.perf_counter()
        outputs = engine.run(task.call, inputs, task.rows, stop=lambda: self._stop)
        held = sum(array.nbytes for array in outputs.values())
        return Result(outputs, time.perf_counter() - started, held)


def _join(task: Task) -> Tensors:
    joined = {name: np.empty(shape, dtype) for name, dtype, shape in task.joined()}
    task.write(joined)
    return joined
