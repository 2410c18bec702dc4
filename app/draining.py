"""How fast the queue drains, for telling the refused when to come again.

Pure: times are seconds on any one clock, given by the caller.
"""

from __future__ import annotations

import math

RATE_MEMORY_S = 10.0
"""Time constant of the average over which the drain rate is measured."""

REQUEST_BYTES = 128 << 10
"""A request takes as long as so many bytes and its own: what all requests take alike is 0.3 ms, and
convolutions of 64 channels by 3×3 take 2.2 ns a byte (AMD EPYC, Zen 3). It tells where sizes change."""


class DrainRate:
    """What leaves per second of work, by bytes and requests together: an exponentially weighted average.

    Args:
        each: bytes that a request counts for beside its own.
    """

    def __init__(self, each: int = REQUEST_BYTES) -> None:
        self._each = each
        self._last: float | None = None
        self._busy_s = 0.0
        self._left = 0.0

    def advance(self, now: float, *, busy: bool) -> None:
        """Let time pass; time without work says nothing about the rate and is left out."""
        if self._last is not None and busy:
            # Each sum is the integral of its rate, weighted by exp(-age / RATE_MEMORY_S).
            decay = math.exp((self._last - now) / RATE_MEMORY_S)
            self._busy_s = self._busy_s * decay + RATE_MEMORY_S * (1 - decay)
            self._left *= decay
        self._last = now

    def drained(self, nbytes: int) -> None:
        """Count one request that has left."""
        self._left += nbytes + self._each

    def time_for(self, requests: float, nbytes: float) -> float:
        """Seconds in which so much will have left; 0 where nothing was measured yet."""
        if not self._left:
            return 0.0
        return self._busy_s * (nbytes + self._each * requests) / self._left
