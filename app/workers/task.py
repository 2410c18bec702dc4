"""What a worker is given, what it gives back, and what a worker is.

Worker
├── InlineWorker        a thread of this process
└── ProcessWorker       a process of its own, over shared memory
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

import engine

if TYPE_CHECKING:
    # Workers and scribes import this module too; a sixth of what starting one costs was this.
    import asyncio

Tensors = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Task:
    """Requests that share a call.

    Attributes:
        call: what to compute.
        config, specs, wants: from which `engine.prepare` makes the same call again elsewhere.
        tensors: of each request; the call's parameters are taken from the first.
        rows: samples of each request.
    """

    call: engine.Call
    config: Mapping[str, Any] | None
    specs: Mapping[str, engine.TensorSpec]
    wants: Sequence[str] | None
    tensors: Sequence[Tensors]
    rows: Sequence[int]

    def joined(self) -> list[tuple[str, str, tuple[int, ...]]]:
        """Name, NumPy's dtype string and shape of each tensor that the call reads."""
        first = self.tensors[0]
        samples = (sum(self.rows),)
        return [
            *((n, first[n].dtype.str, samples + first[n].shape[1:]) for n in self.call.per_sample),
            *((n, first[n].dtype.str, first[n].shape) for n in self.call.parameters),
        ]

    def write(self, inputs: Tensors) -> None:
        """Copy the requests' tensors into those of the joined ones that are given."""
        for name in filter(inputs.__contains__, self.call.parameters):
            np.copyto(inputs[name], self.tensors[0][name])
        for name in filter(inputs.__contains__, self.call.per_sample):
            start = 0
            for tensors, rows in zip(self.tensors, self.rows, strict=True):
                np.copyto(inputs[name][start : start + rows], tensors[name])
                start += rows


@dataclass(frozen=True, slots=True)
class Result:
    """What a task gave.

    Attributes:
        outputs: joined; valid while there is a view of them, but kept only where the worker lends them.
        compute_s: seconds that they took.
        held: bytes of memory that are held as long as there is a view.
    """

    outputs: dict[str, NDArray[Any]]
    compute_s: float
    held: int


LONG_TRIP_S = 10e-3
"""After so long a worker gives back what it has not begun of a trip, as stopped: those whose answers are
there do not wait for what takes longer than was thought."""

Outcome = Result | Exception
"""What became of a task. An exception is ComputeFailed, engine.Stopped, an engine.EngineError, or a
MemoryError of this process."""

CRASHED = "crashed"
"""Reason of death of a worker that ended by itself."""

KILLED = "killed"
"""Reason of death of a worker that somebody else, or the kernel for want of memory, killed."""

EXHAUSTED = "memory"
"""Reason of death of a worker that could get no more memory."""

STUCK = "stuck"
"""Reason of death of a worker that computed, or did nothing at all, for too long."""

SUSPENDED = "suspended"
"""Reason of death of a worker that somebody else had stopped."""

STOP_GRACE_S = 0.3
"""How long abandoned work may take to stop by itself: about what a new worker costs to start."""

WATCH_S = 0.25
"""How often it is checked whether a worker that is waited for can still go on."""


NOT_RUNNING_S = 1.0
"""A look that comes so much later than it should says that this process did not run: it was suspended."""


def lost(since: float) -> float:
    """Of the seconds since somebody last looked after a worker, those in which this process was suspended.

    They are no fault of the worker's, which was suspended as well if the whole service was.
    """
    late = since - WATCH_S
    return late if late > NOT_RUNNING_S else 0.0


class WorkerDied(Exception):
    """The worker ended.

    Attributes:
        reason: ``crashed``, or why it was made to end: ``killed`` (by somebody else, or by the
            kernel), ``memory`` (it could get no more), ``stuck`` (it computed for too long),
            ``suspended`` (somebody had stopped it), ``deadline`` or ``cancelled`` (nobody waited
            any more for what it computed).
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        super().__init__(f"{reason}: {detail}" if detail else reason)


class ComputeFailed(Exception):
    """The engine failed in a way that it should not; the text is for our log, not for callers."""


class Worker(Protocol):
    """One place where tasks are computed, one after the other.

    `begin` and `finish` alternate, from one coroutine. The outputs of a trip are left alone while
    the next one is under way, so they can be encoded meanwhile; longer only where the worker lends them.
    """

    async def start(self) -> None:
        """Get ready. Raises WorkerDied."""

    async def begin(self, trip: Sequence[Task], helpers: int = 0) -> None:
        """Hand tasks over, to be computed one after the other.

        Args:
            helpers: workers that have nothing to do, whose CPUs may be used besides.

        Raises:
            WorkerDied: it did not get there.
            MemoryError: there is no room for the tensors.
        """

    async def finish(self) -> list[Outcome]:
        """Wait for what became of each task. Raises WorkerDied."""

    def guard(self, future: asyncio.Future[None]) -> None:
        """Fail `future` with WorkerDied if the worker dies before it is done."""

    def lends(self, nbytes: int, held: int) -> bool:
        """Whether an answer of so many bytes may be kept, with all that is held for it."""

    def rest(self) -> None:
        """There is nothing to do and no result is needed any more: give memory back."""

    def leave_one(self, wanted: bool) -> None:
        """Compute on all processors but one, or on all again; where that can be said."""

    def stop(self) -> None:
        """Ask the computation to end early; `finish` then gives engine.Stopped for it."""

    def suspended(self) -> bool:
        """Whether somebody has stopped the worker (SIGSTOP), so that it does not go on by itself."""

    def kill(self, reason: str) -> None:
        """End the worker at once, if it is one that can be ended."""

    async def close(self) -> None:
        """End the worker and give back all that it holds."""
