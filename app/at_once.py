"""Requests answered in the event loop, as a worker would: same checks before, same bits, same errors."""

from __future__ import annotations

import asyncio
import logging
import time
import traceback

import engine
from app.few import SLOW_S, Few
from app.jobs import Answer, Done, Job, Observer

log = logging.getLogger(__name__)


class AtOnce:
    """Computes what `Few` admits."""

    def __init__(self, observer: Observer, few: Few) -> None:
        self._observer = observer
        self._few = few
        self._used = 0.0  # of the processor's time since all others had their turn

    def start(self) -> None:
        """Have the engine use this thread alone: others would cost such work more than they save."""
        engine.set_threads(1)

    def answer(self, job: Job, accepted: float, waiting: int, under_way: int) -> Done | None:
        """The answer to a job; None where a worker is to give it.

        A failure that a worker would have to explain is left to a worker, which is not ended by it, and
        told: where no worker fails in the same way, nobody else would say so.

        Args:
            accepted: when, on `time.monotonic`.
            waiting: small jobs that wait for a worker.
            under_way: jobs that are accepted and not answered, of which this is one.

        Raises:
            engine.EngineError: the caller's mistake.
        """
        few = self._few.admits(job.visitor.connection, job.call, job.samples, under_way)
        # What waits comes first, but not that of a crowd.
        behind = waiting and not self._few.crowded
        if not few or behind or job.write is not None or self._used > SLOW_S:
            return None
        try:
            return self._computed(job, accepted)
        except engine.EngineError:
            raise
        except Exception as error:  # noqa: BLE001 - it is the worker's
            what = f"{job.call.action} of {job.call.operation}"
            # As text, or a handler of logs would hold the tensors.
            text = "".join(traceback.format_exception(error))
            log.warning("%s failed in the event loop, and is done by a worker: %s", what, text)
            return None

    def _computed(self, job: Job, accepted: float) -> Done:
        call, samples = job.call, job.samples
        started, used = time.monotonic(), time.thread_time()
        outputs = engine.run(call, job.tensors, (samples,))
        used = time.thread_time() - used
        self._few.took(call, samples, used)
        if not self._used:
            asyncio.get_running_loop().call_soon(self._turn)
        self._used += used
        computed = time.monotonic()
        tensors = engine.split(outputs, (samples,))[0]
        body = job.encode(Answer(tensors, 1, samples))
        encoded = time.monotonic()
        self._observer.batch_done(call.operation, call.action, 1, samples, computed - started)
        times = started - accepted, computed - started, encoded - computed
        return Done(body, *times, 1, samples)

    def _turn(self) -> None:
        """Everybody had a turn: several may ask at once for what takes a millisecond each."""
        self._used = 0.0
