"""Paired timing: peers take turns, round after round, and what is compared is compared within a round.

Before each burst of calls the process rests until none of its threads uses a processor, because
threads that one peer leaves spinning would run on the cores of the next. One call warms caches and
wakes threads, unless a call is long; those after it are timed one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

Clock = Callable[[], float]

SLICE = 0.001
"""Seconds that `settle` sleeps at a time."""

QUIET = 0.2
"""The share of one processor below which the process counts as resting."""

SLOW_ROUNDS = 2
"""Rounds of a slow peer: its calls are long enough to average over what disturbs a moment."""

WARM_UP = 0.05
"""Seconds of a call from which on none goes before those that are timed: caches and threads are
warm after a small part of it."""


def _nothing() -> None:
    """No preparation."""


@dataclass(frozen=True)
class Peer:
    """Something to be timed.

    Attributes:
        ready: runs before each burst, and is not timed.
        single: seconds of one call, where they are known already.
    """

    name: str
    call: Callable[[], object]
    ready: Callable[[], None] = _nothing
    single: float | None = None


@dataclass(frozen=True)
class Spread:
    """Median, 10th and 90th percentile."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        low, middle, high = np.percentile(values, (10, 50, 90)).tolist()
        return cls(middle, low, high)

    def scaled(self, factor: float) -> Spread:
        """All three times a positive factor."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class Samples:
    """Seconds of every timed call of a peer, by burst; burst i is from round i."""

    bursts: tuple[tuple[float, ...], ...]

    @property
    def seconds(self) -> Spread:
        """Over all calls."""
        return Spread.of([second for burst in self.bursts for second in burst])

    def over(self, other: Samples) -> Spread:
        """How many times longer than the other's ours are: over the rounds that both took part in."""
        pairs = zip(self.bursts, other.bursts, strict=False)
        return Spread.of([median(mine) / median(theirs) for mine, theirs in pairs])


@dataclass(frozen=True)
class Budget:
    """How long to measure.

    Attributes:
        seconds: after which no further round begins.
        least, most: rounds.
        burst: seconds that the timed calls of a burst should take together.
        slow: seconds of one call above which a peer has no more than two rounds.
    """

    seconds: float
    least: int = 3
    most: int = 60
    burst: float = 0.02
    slow: float = 0.15


def settle(limit: float = 0.25) -> float:
    """Sleep until no thread of this process is busy, at most `limit` seconds; return the seconds."""
    start = time.perf_counter()
    waited = 0.0
    while waited < limit:
        used = time.process_time()
        time.sleep(SLICE)
        used = time.process_time() - used
        now = time.perf_counter() - start
        if used < QUIET * (now - waited):
            return now
        waited = now
    return waited


def paired(
    peers: Sequence[Peer],
    budget: Budget,
    clock: Clock = time.perf_counter,
    rest: Callable[[], object] = settle,
) -> dict[str, Samples]:
    """Time the peers in turns: in their order in even rounds, backwards in odd ones."""
    start = clock()
    single = {peer.name: _estimate(peer, clock) for peer in peers}
    bursts: dict[str, list[tuple[float, ...]]] = {peer.name: [] for peer in peers}
    for turn in range(budget.most):
        if turn >= budget.least and clock() - start >= budget.seconds:
            break
        for peer in peers if turn % 2 == 0 else reversed(peers):
            if turn < SLOW_ROUNDS or single[peer.name] <= budget.slow:
                rest()
                bursts[peer.name].append(_burst(peer, single[peer.name], budget, clock))
    return {name: Samples(tuple(found)) for name, found in bursts.items()}


def _estimate(peer: Peer, clock: Clock) -> float:
    """Seconds of one call: of the first if it needs no warm-up, else of the second."""
    if peer.single is not None:
        return peer.single
    peer.ready()
    first = _timed(peer.call, clock)
    return first if first > WARM_UP else _timed(peer.call, clock)


def _burst(peer: Peer, single: float, budget: Budget, clock: Clock) -> tuple[float, ...]:
    peer.ready()
    if single <= WARM_UP:
        peer.call()
    calls = max(1, round(budget.burst / max(single, 1e-9)))
    return tuple(_timed(peer.call, clock) for _ in range(min(calls, 2000)))


def _timed(call: Callable[[], object], clock: Clock) -> float:
    start = clock()
    call()
    return clock() - start
