"""Who is to blame for workers that end, or fail, over work that they do alone: it is given up in the end.

What counts is in a table of docs/reliability.md. The scribes are workers here, too.
"""

from __future__ import annotations

from typing import Protocol

from app.errors import WorkerCrashed
from app.workers.task import EXHAUSTED, KILLED, STUCK, SUSPENDED, ComputeFailed

BLAME = {SUSPENDED: 0.0, KILLED: 0.5, EXHAUSTED: 0.5}
"""How much a worker's death, by its reason, speaks against the work that it did alone: `FULL` where
the reason is not named here. No job can suspend a worker; one that was killed or had no memory left
may have been harmed by others."""

FULL = 1.0
"""How much any other does, and a failure that has no name: it may be the worker's, as where memory ends
anything may fail."""

FATAL_BLAME = 2.0
"""Work with so much blame is taken for the cause, and is not tried again."""


class Blamed(Protocol):
    """Work that is waited for.

    Attributes:
        blame: how much speaks against it.
    """

    blame: float

    def fail(self, error: Exception) -> None:
        """Answer it with an error, unless it is answered."""


def bereaved(work: Blamed, reason: str, limit_s: float) -> None:
    """A worker ended over the work; where that was once too often, it fails.

    Args:
        reason: of its death, see `WorkerDied`. limit_s: how long work may take.
    """
    work.blame += BLAME.get(reason, FULL)
    if work.blame >= FATAL_BLAME:
        crashed = WorkerCrashed(limit_s if reason == STUCK else None)
        work.fail(MemoryError() if reason == EXHAUSTED else crashed)


def failed(work: Blamed, error: Exception) -> None:
    """The work failed in a worker: that is its answer, but for the first failure without a name."""
    if isinstance(error, ComputeFailed):
        work.blame += FULL
        if work.blame < FATAL_BLAME:
            return
    work.fail(error)
