"""The settings of a dispatcher, and the workers that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.admission import QueueLimits
from app.batcher import BatchLimits
from app.cost import CostLimits
from app.workers.berths import Berths
from app.workers.cpus import available_cpus, threads_per_worker
from app.workers.inline import InlineWorker
from app.workers.process import ProcessOptions, ProcessWorker
from app.workers.task import Worker

ARENA_SLACK_BYTES = 64 << 10
"""What an arena has beyond its tensors: alignment, and the stop flag."""


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """The settings of a dispatcher.

    Attributes:
        workers: processes; 0 computes on a thread of this process. Where `batch` calls some work
            small, there is an express worker besides, see `WorkQueue`.
        cost: what one request may cost.
        queue: what may be accepted and not yet answered.
        batch: budgets of a shared call; `requests` 1 switches batching off.
        max_compute_s: seconds after which a call counts as stuck and its worker is replaced.
        at_once: whether quick requests of few callers are computed in the event loop, see `Few`;
            only with worker processes, since a thread would have the engine's threads.
        body_bytes: of the largest body; 0 where bodies are not received in shared memory.
    """

    workers: int
    cost: CostLimits
    queue: QueueLimits
    batch: BatchLimits
    max_compute_s: float
    at_once: bool = False
    body_bytes: int = 0


def arena_bytes(limits: DispatchLimits) -> int:
    """Most that a worker's arena may have."""
    return max(limits.cost.tensor_bytes, limits.batch.nbytes) + ARENA_SLACK_BYTES


def worker_maker(
    limits: DispatchLimits, berths: Berths | None = None, *, urgent: bool = False
) -> Callable[[], Worker]:
    """What makes the workers that the limits ask for; see `ProcessOptions` for the rest."""
    if limits.workers == 0:
        return InlineWorker
    options = ProcessOptions(
        threads=threads_per_worker(limits.workers, available_cpus()),
        arena_bytes=arena_bytes(limits),
        berths=berths,
        urgent=urgent,
    )
    return lambda: ProcessWorker(options)
