"""Whether a peer slows down the one that runs after it, and whether resting in between prevents it.

BLAS and OpenMP threads keep a processor busy for a while after their last task, waiting for the next.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.kernels.timing import Peer, Spread, settle


@dataclass(frozen=True)
class Disturbance:
    """One peer after another.

    Attributes:
        busy: seconds until the process rests after `first`, one sleep of `settle` included.
        slowdown: time of `second` right after `first`, over its time after resting.
    """

    first: str
    second: str
    busy: float
    slowdown: Spread


def disturbances(peers: Sequence[Peer], rounds: int) -> list[Disturbance]:
    """Every ordered pair of different peers."""
    return [
        _pair(first, second, rounds) for first in peers for second in peers if first is not second
    ]


def _pair(first: Peer, second: Peer, rounds: int) -> Disturbance:
    busy, slowdown = [], []
    for _ in range(rounds):
        busy.append(_after(first, second, rest=True)[0])
        slowdown.append(_after(first, second, rest=False)[1] / _after(first, second, rest=True)[1])
    return Disturbance(first.name, second.name, median(busy), Spread.of(slowdown))


def _after(first: Peer, second: Peer, rest: bool) -> tuple[float, float]:
    """Seconds rested, and seconds of one call of `second` after one of `first`."""
    second.call()
    first.ready()
    first.call()
    rested = settle() if rest else 0.0
    second.ready()
    start = time.perf_counter()
    second.call()
    return rested, time.perf_counter() - start
