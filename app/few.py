"""Who is answered in the event loop: a few callers, for what takes less than the way to a worker.

1. Only what is quick: small enough that no data makes the loop wait for much longer than a
   millisecond, by measurement (docs/performance.md). Where few requests are under way in all, also
   what is brief, and takes a few times as long.
2. Only while few connections have a small request under way, of which theirs is one. A crowd gains
   more from shared calls; those who ask much in few bytes are no crowd. Nor do all of one caller, if
   they are a crowd, keep those of others from here, who would wait behind all of it.
3. What was slow all the same, twice in a row, is left to the workers from then on, and has their way
   to itself: numbers too small for their type take a processor up to fifty times as long as others.
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

WORKER_SLOW_S = 5e-3
"""A worker, which yields to others, tells that a computation was slow where it took longer than this."""

SLOW_TIMES = 2
"""So often in a row, as the first of a kind also works out how it is computed."""

SLOW_KINDS = 1024
"""Kinds that are remembered as slow; beyond it, all are tried again."""


class Most(NamedTuple):
    """What a request has at most: operations, bytes of inputs and outputs, and steps.

    Steps are those of its plan, and groups of channels of all its samples: each takes tens of
    microseconds, however small it is.
    """

    flops: int
    nbytes: int
    steps: int


class Size(NamedTuple):
    """What layers with weights, which are matrix products, have at most, and what all others.

    An operation of those may be a power or a comparison, which takes as long as fifty of a product.
    """

    products: Most
    passes: Most


QUICK = Size(Most(2_000_000, 96 << 10, 32), Most(100_000, 32 << 10, 32))
"""With ordinary numbers it takes less than a millisecond, and mostly a tenth of one."""

BRIEF = Size(Most(8_000_000, 768 << 10, 128), Most(100_000, 384 << 10, 128))
"""It seldom takes longer than to tell a worker and to hear from it."""


@lru_cache(maxsize=2048)
def within(size: Size, call: engine.Call, samples: int) -> bool:
    """Whether a request is of a size, or smaller."""
    cost = call.cost(samples)
    most = size.products if call.parameters else size.passes
    nbytes = cost.input_bytes + cost.output_bytes
    steps = max(cost.steps, call.groups * samples)
    return cost.flops <= most.flops and nbytes <= most.nbytes and steps <= most.steps


class Few:
    """Watches who has small requests under way, and what was slow; see the rules above."""

    def __init__(self) -> None:
        self._there: dict[int, set[str]] = {}  # callers of each connection
        self._of: dict[str, int] = {}  # connections of each caller
        self._crowds = 0  # callers who are one
        self._scattered = 0  # connections of those who are none
        self._slow: dict[tuple[engine.Call, int], int] = {}

    @property
    def crowded(self) -> bool:
        """Whether there is a crowd."""
        return self._crowds > 0

    def crowd(self, caller: str) -> bool:
        """Whether the connections of a caller are a crowd."""
        return self._of.get(caller, 0) > FEW

    def enter(self, connection: int, length: int, caller: str) -> None:
        """A request is whole, with a body of so many bytes.

        Args:
            connection: a number of its own for each. However many requests are sent ahead over it, it
                is one, of each caller whose they are: what is asked with a key is not hidden behind a
                request without.
            caller: whose it is; see `app.counted.CALLER`.
        """
        if not 0 < length <= SMALL_BODY:
            return
        callers = self._there.setdefault(connection, set())
        if caller in callers:
            return
        callers.add(caller)
        count = self._of[caller] = self._of.get(caller, 0) + 1
        if count <= FEW:
            self._scattered += 1
        elif count == FEW + 1:
            self._crowds += 1
            self._scattered -= FEW

    def leave(self, connection: int) -> None:
        """All requests of a connection are answered, or it is closed."""
        for caller in self._there.pop(connection, ()):
            count = self._of.pop(caller) - 1
            if count:
                self._of[caller] = count
            if count < FEW:
                self._scattered -= 1
            elif count == FEW:
                self._crowds -= 1
                self._scattered += FEW

    def admits(self, connection: int, call: engine.Call, samples: int, under_way: int) -> bool:
        """Whether a request is to be answered in the loop; not where nobody tells who is there.

        Args:
            under_way: requests that are accepted and not answered. Where they are few, whatever they ask,
                all that is brief is answered here.
        """
        if not within(BRIEF if under_way <= FEW else QUICK, call, samples):
            # It takes long, during which it would keep the quick ones of others from here.
            self.leave(connection)
            return False
        callers = self._there.get(connection)
        if not callers or self._scattered > FEW or any(map(self.crowd, callers)):
            return False
        return not self.slow(call, samples)

    def slow(self, call: engine.Call, samples: int) -> bool:
        """Whether a request of this kind was slow of late."""
        return self._slow.get((call, samples), 0) >= SLOW_TIMES

    def worker_took(self, call: engine.Call, samples: int, seconds: float) -> None:
        """A worker has computed a request by itself, in so many seconds of the clock.

        Others may have had the processor meanwhile, so that what is a little slow tells nothing.
        """
        if not SLOW_S < seconds < WORKER_SLOW_S:
            self.took(call, samples, seconds)

    def took(self, call: engine.Call, samples: int, seconds: float) -> None:
        """A request has been computed, in so many seconds of the processor's time."""
        kind = call, samples
        if seconds <= SLOW_S:
            self._slow.pop(kind, None)
            return
        if len(self._slow) >= SLOW_KINDS:
            self._slow.clear()
        self._slow[kind] = self._slow.get(kind, 0) + 1
