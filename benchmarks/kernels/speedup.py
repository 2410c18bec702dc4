"""Two threads, or as many as there are, against one, for a single sample and for a batch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial

import engine
from benchmarks.kernels import ours
from benchmarks.kernels.cases import CASES, Case, inputs
from benchmarks.kernels.timing import Budget, Peer, Spread, paired


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
    one = Peer("one", call, partial(engine.set_threads, 1))
    many = Peer("many", call, partial(engine.set_threads, threads))
    samples = paired([one, many], budget)
    engine.set_threads(threads)
    return Speedup(case.name, action, case.batch, threads, samples["one"].over(samples["many"]))
