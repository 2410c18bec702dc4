"""How fast the queue drains, for telling the refused when to come again.

Pure: times are seconds on any one clock, given by the caller.
"""

from __future__ import annotations

import math

RATE_MEMORY_S = 10.0
"""Time constant of the average over which the drain rate is measured."""


class DrainRate:
    """Requests and bytes that leave per second of work: an exponentially weighted average."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._busy_s = 0.0
        self._requests = 0.0
        self._nbytes = 0.0

    def advance(self, now: float, *, busy: bool) -> None:
        """Let time pass; time without work says nothing about the rate and is left out."""
        if self._last is not None and busy:
            # Each sum is the integral of its rate, weighted by exp(-age / RATE_MEMORY_S).
            decay = math.exp((self._last - now) / RATE_MEMORY_S)
            self._busy_s = self._busy_s * decay + RATE_MEMORY_S * (1 - decay)
            self._requests *= decay
            self._nbytes *= decay
        self._last = now

    def drained(self, nbytes: int) -> None:
        """Count one request that has left."""
        self._requests += 1
        self._nbytes += nbytes

    def time_for(self, requests: float, nbytes: float) -> float:
        """Seconds in which so much will have left; 0 where nothing was measured yet."""
        if not self._requests:
            return 0.0
        by_count = requests / self._requests
        by_bytes = nbytes / self._nbytes if self._nbytes else 0.0
        return self._busy_s * max(by_count, by_bytes)
