"""Who is answered in the event loop: a caller who asks alone, for what takes less than the way to a worker.

1. Only what is quick: small enough that no data makes the loop wait for much longer than a
   millisecond, by measurement (docs/performance.md).
2. Only who is alone: the last quick request came over the same connection, or long ago. Whoever has
   company gains more from shared calls.
3. What was slow all the same, twice in a row, is left to the workers from then on: numbers too small
   for their type take a processor up to fifty times as long as others.

Pure: times are seconds on any one clock, given by the caller.
"""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

import engine

LONE_S = 5e-2
"""After so long without quick requests, whoever comes is alone. A crowd comes in waves, as its answers
go out: with 128 connections there is one in some 20 ms, and its first request is not alone."""

SLOW_S = 1e-3
"""A computation that keeps the processor for longer is slow."""

SLOW_TIMES = 2
"""So often in a row, as the first of a kind also works out how it is computed."""

SLOW_KINDS = 1024
"""Kinds that are remembered as slow; beyond it, all are tried again."""

STEPS = 32
"""Steps that a quick request has at most, and groups of channels of all its samples: each of them
takes tens of microseconds, however small it is."""


class Most(NamedTuple):
    """What a quick request has at most: operations, and bytes of inputs and outputs."""

    flops: int
    nbytes: int


PRODUCTS = Most(2_000_000, 96 << 10)
"""Of layers with weights, which are matrix products."""

PASSES = Most(100_000, 32 << 10)
"""Of all others. An operation may be a power or a comparison, which takes as long as fifty of a product."""


@lru_cache(maxsize=1024)
def quick(call: engine.Call, samples: int) -> bool:
    """Whether a request keeps the loop for no longer than about a millisecond."""
    cost = call.cost(samples)
    most = PRODUCTS if call.parameters else PASSES
    nbytes = cost.input_bytes + cost.output_bytes
    steps = max(cost.steps, call.groups * samples)
    return cost.flops <= most.flops and nbytes <= most.nbytes and steps <= STEPS


class Lone:
    """Watches who sends quick requests, and what of them was slow; see the rules above."""

    def __init__(self) -> None:
        self._connection = 0
        self._last = -inf
        self._slow: dict[tuple[engine.Call, int], int] = {}

    def admits(self, call: engine.Call, samples: int, connection: int, now: float) -> bool:
        """Whether a request that has come is to be answered in the loop.

        Args:
            connection: a number of its own for each; 0 where it is not known.
        """
        if not quick(call, samples):
            return False
        alone = connection == self._connection != 0 or now - self._last >= LONE_S
        self._connection, self._last = connection, now
        return alone and self._slow.get((call, samples), 0) < SLOW_TIMES

    def took(self, call: engine.Call, samples: int, seconds: float) -> None:
        """A request that was admitted has been computed, in so much of the processor's time."""
        kind = call, samples
        if seconds <= SLOW_S:
            self._slow.pop(kind, None)
            return
        if len(self._slow) >= SLOW_KINDS:
            self._slow.clear()
        self._slow[kind] = self._slow.get(kind, 0) + 1
