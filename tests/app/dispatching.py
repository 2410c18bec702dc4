"""What the tests of the dispatcher share: small jobs, and faulty workers."""

from __future__ import annotations

import asyncio
import functools
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import engine
from app.awake import Awake
from app.dispatcher import Dispatcher
from app.jobs import Answer, Job
from app.staffing import DispatchLimits
from app.workers.process import ProcessOptions, ProcessWorker
from tests.app.gates import Gate
from tests.app.limits import dispatch_limits
from tests.app.workers import faulty

FAULTY = (sys.executable, "-P", str(Path(faulty.__file__)))
PATIENCE_S = 180.0

WEIGHT = np.array([[[1.0, -2.0, 0.5]]], np.float32)


def scenario(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test, and fail it rather than hang."""

    @functools.wraps(function)
    def test(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(function(*args, **kwargs), PATIENCE_S))

    return test


class Recorder:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int]] = []
        self.restarts: list[str] = []
        self.drops: Counter[str] = Counter()
        self.restarted = asyncio.Event()

    def batch_done(self, operation: str, action: str, requests: int, rows: int, s: float) -> None:
        assert (operation, action) in (("conv", "forward"), ("conv", "backward"))
        assert s >= 0
        self.batches.append((requests, rows))

    def worker_restarted(self, reason: str) -> None:
        self.restarts.append(reason)
        self.restarted.set()

    def dropped(self, reason: str) -> None:
        self.drops[reason] += 1


class Rig:
    """A dispatcher over faulty worker processes, or over one thread."""

    def __init__(self, limits: DispatchLimits, awake: Awake | None = None) -> None:
        self.workers: list[ProcessWorker] = []
        self.observer = Recorder()
        make = self._make if limits.workers else None
        self.dispatcher = Dispatcher(limits, self.observer, make, awake)

    def _make(self) -> ProcessWorker:
        worker = ProcessWorker(ProcessOptions(arena_bytes=64 << 20, command=FAULTY))
        self.workers.append(worker)
        return worker

    def submit(self, job: Job) -> asyncio.Task[Any]:
        """Submit a job from a task of its own."""
        return asyncio.create_task(self.dispatcher.submit(job))

    async def hold(self, gate: Gate) -> asyncio.Task[Any]:
        """Keep a worker busy until the gate opens."""
        task = self.submit(job(faulty.AT_GATE))
        await gate.reached()
        return task


@asynccontextmanager
async def dispatching(
    workers: int = 1, awake: Awake | None = None, **limits: Any
) -> AsyncIterator[Rig]:
    """A rig that is started, and at the end has nothing left."""
    rig = Rig(dispatch_limits(workers, **limits), awake)
    await rig.dispatcher.start()
    assert rig.dispatcher.ready
    try:
        yield rig
    finally:
        assert await rig.dispatcher.drain(PATIENCE_S)
    assert not rig.dispatcher.ready
    assert rig.dispatcher.queue_depth == rig.dispatcher.queue_bytes == 0


def encode(answer: Answer) -> bytes:
    """The shortest encoding that shows everything."""
    return b"".join(name.encode() + array.tobytes() for name, array in answer.tensors.items())


def job(
    first: float = 0.0,
    *,
    samples: int = 1,
    weight: NDArray[Any] = WEIGHT,
    seed: int = 0,
    action: str = "forward",
    within: float | None = None,
    caller: str = "a",
    width: int = 8,
    encode: Callable[[Answer], bytes] = encode,
) -> Job:
    """A small convolution whose first number is `first`."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((samples, 1, width), dtype=np.float32)
    if samples:
        x[0, 0, 0] = first
    tensors = {"x": x, "weight": weight}
    if action == "backward":
        tensors["dy"] = random.standard_normal((samples, 1, width - 2), dtype=np.float32)
    specs = {name: engine.TensorSpec(a.shape, a.dtype.name) for name, a in tensors.items()}
    call, count = engine.prepare("conv", action, None, specs)
    deadline = None if within is None else time.monotonic() + within
    return Job(call, count, None, specs, None, tensors, deadline, caller, encode)


def expected(given: Job) -> bytes:
    """The answer as the engine gives it alone, in this process."""
    outputs = engine.run(given.call, given.tensors, (given.samples,))
    part = engine.split(outputs, (given.samples,))[0]
    return encode(Answer(part, 1, given.samples))
