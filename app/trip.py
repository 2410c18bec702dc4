"""A trip under way: whose it is, and when its worker is ended."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import chain

from app.jobs import Pending
from app.workers.task import STOP_GRACE_S, STUCK, SUSPENDED, WATCH_S, Worker, lost


@dataclass(eq=False, slots=True)
class Trip:
    """What a worker was given at once: one batch, or several brief ones one after the other.

    Attributes:
        batches: its jobs; those of a batch share a call.
        started: when, on `time.monotonic`. give_up: when its worker is killed, and for what reason.
        looked: when its worker was last looked after.
        large: whether it holds its worker for long.
        killed: why its worker was to be killed, of which a thread only stops.
    """

    batches: list[list[Pending]]
    worker: Worker
    started: float
    give_up: float
    looked: float
    large: bool = False
    reason: str = STUCK
    killed: str | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def members(self) -> list[Pending]:
        """All of its jobs."""
        return list(chain.from_iterable(self.batches))

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits for it."""
        return any(not member.future.done() for member in self.members)

    def watch(self) -> None:
        """Kill a worker that cannot or should not go on; look again later."""
        self.unwatch()
        now = time.monotonic()
        self.give_up += lost(now - self.looked)
        self.looked = now
        if (late := now >= self.give_up) or self.worker.suspended():
            self.killed = self.reason if late else SUSPENDED
            self.worker.kill(self.killed)
            return
        wait = min(WATCH_S, self.give_up - now)
        self.timer = asyncio.get_running_loop().call_later(wait, self.watch)

    def end(self) -> None:
        """It is through, one way or the other; the worker is no business of its members any more."""
        self.unwatch()
        for member in self.members:
            member.abandon = None

    def unwatch(self) -> None:
        """Stop watching."""
        if self.timer is not None:
            self.timer.cancel()

    def abandon(self, reason: str) -> None:
        """One member is not waited for any more; end the work if none is."""
        if not self.wanted:
            self.worker.stop()
            self.reason = reason
            # What has passed since the last look is no part of the grace that begins now.
            self.looked = time.monotonic()
            self.give_up = min(self.give_up, self.looked + STOP_GRACE_S)
            self.watch()
