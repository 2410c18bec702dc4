"""Who is answered in the event loop: a few callers, for what takes less than the way to a worker.

1. Only what is quick: small enough that no data makes the loop wait for much longer than a
   millisecond, by measurement (docs/performance.md).
2. Only while few connections have a small request under way, of which theirs is one. A crowd gains
   more from shared calls; those who ask much in few bytes are no crowd.
3. What was slow all the same, twice in a row, is left to the workers from then on: numbers too small
   for their type take a processor up to fifty times as long as others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import engine

FEW = 4
"""Connections. Four have 1.3 times as many answers a second from the loop, eight a tenth more, twelve as
many from workers, and each may keep the others waiting for what it asks."""

SMALL_BODY = 128 << 10
"""Bytes of a small request's body; a quick one has no more."""

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

BRIEF = 4
"""A brief request has so many times as much at most: with ordinary numbers it takes less than it takes to
tell a worker and to hear from it."""


@lru_cache(maxsize=1024)
def quick(call: engine.Call, samples: int, times: int = 1) -> bool:
    """Whether a request keeps the loop for no longer than about a millisecond, or so many times as long."""
    cost = call.cost(samples)
    most = PRODUCTS if call.parameters else PASSES
    nbytes = cost.input_bytes + cost.output_bytes
    steps = max(cost.steps, call.groups * samples)
    within = cost.flops <= times * most.flops and nbytes <= times * most.nbytes
    return within and steps <= times * STEPS


class Few:
    """Watches who has small requests under way, and what was slow; see the rules above."""

    def __init__(self) -> None:
        self._there: set[int] = set()
        self._slow: dict[tuple[engine.Call, int], int] = {}

    def enter(self, connection: int, length: int) -> None:
        """A request is whole, with a body of so many bytes.

        Args:
            connection: a number of its own for each. However many requests are sent ahead over it, it
                is one.
        """
        if 0 < length <= SMALL_BODY:
            self._there.add(connection)

    def leave(self, connection: int) -> None:
        """All requests of a connection are answered, or it is closed."""
        self._there.discard(connection)

    def admits(self, connection: int, call: engine.Call, samples: int) -> bool:
        """Whether a request is to be answered in the loop; not where nobody tells who is there."""
        if not quick(call, samples):
            # It takes long, during which it would keep the quick ones of others from here.
            self.leave(connection)
            return False
        if connection not in self._there or len(self._there) > FEW:
            return False
        return self._slow.get((call, samples), 0) < SLOW_TIMES

    def took(self, call: engine.Call, samples: int, seconds: float) -> None:
        """A request that was admitted has been computed, in so much of the processor's time."""
        kind = call, samples
        if seconds <= SLOW_S:
            self._slow.pop(kind, None)
            return
        if len(self._slow) >= SLOW_KINDS:
            self._slow.clear()
        self._slow[kind] = self._slow.get(kind, 0) + 1
