"""Two threads, or as many as there are, against one, for a single sample and for a batch."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np

import engine
from benchmarks.kernels import ours
from benchmarks.kernels.cases import CASES, Case, inputs
from benchmarks.kernels.timing import Budget, Peer, Samples, Spread, paired
from engine.threads import computing

SIDE, PRODUCTS = 512, 8
"""Of the square matrices whose products tell what the machine allows, for each thread."""

SETTLING_S = 0.02
"""For which threads work before they are timed."""


@dataclass(frozen=True)
class Speedup:
    """Time with one thread over time with `threads`."""

    case: str
    action: str
    batch: int
    threads: int
    times: Spread


def variants() -> list[Case]:
    """The compute-bound cases, each with one sample and as the table has it."""
    found = []
    for case in CASES.values():
        if case.compute_bound:
            sizes = sorted({1, case.batch})
            found += [dataclasses.replace(case, batch=batch) for batch in sizes]
    return found


def speedup(case: Case, action: str, threads: int, budget: Budget) -> Speedup:
    """Time one case with one thread and with many; the engine is left with many."""
    tensors = inputs(case.tensors(), action)
    call = ours.prepare(case, action, "auto", tensors).on(tensors)
    one = Peer("one", call, partial(_settled, 1, call))
    many = Peer("many", call, partial(_settled, threads, call))
    samples = paired([one, many], budget)
    engine.set_threads(threads)
    return Speedup(case.name, action, case.batch, threads, samples["one"].over(samples["many"]))


def _settled(threads: int, call: Callable[[], object]) -> None:
    """Have so many threads that have been at work for a while.

    New ones often begin on the CPU of the thread that made them, with scratch that is not in memory yet;
    the engine's stay.
    """
    engine.set_threads(threads)
    end = time.perf_counter() + SETTLING_S
    while time.perf_counter() < end:
        call()


def ceiling(threads: int, budget: Budget) -> Spread:
    """What the machine itself allows: products that share nothing, one after another or a thread each."""
    matrices = np.random.default_rng(0).standard_normal((threads, 3, SIDE, SIDE), np.float32)

    def multiply(thread: int) -> None:
        a, b, out = matrices[thread]
        for _ in range(PRODUCTS):
            np.matmul(a, b, out=out)

    found: dict[str, Samples] = {}

    def measure() -> None:
        one = Peer("one", lambda: list(map(multiply, range(threads))))
        many = Peer("many", lambda: list(executor.map(multiply, range(threads))))
        found.update(paired([one, many], budget))

    with ThreadPoolExecutor(threads) as executor:
        computing(None, measure)
    return found["one"].over(found["many"])
