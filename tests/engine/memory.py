"""What a computation allocates, beside what its plan says."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from threading import Thread
from typing import Any

import numpy as np

import engine
from engine.threads import get_threads


def peak_beside_outputs(compute: Callable[[], dict[str, np.ndarray]]) -> int:
    """Bytes allocated at the worst moment of `compute`, less what it returns; they are to be traced."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    outputs = compute()
    peak = tracemalloc.get_traced_memory()[1] - before
    return peak - sum(a.nbytes for a in outputs.values())


def peak_on_a_new_thread(
    call: engine.Call, tensors: dict[str, np.ndarray], rows: tuple[int, ...] | None = None
) -> int:
    """`peak_beside_outputs` of a call for requests of `rows` samples, on a thread without scratch."""
    peaks: list[int] = []
    before = get_threads()
    engine.set_threads(1)
    thread = Thread(
        target=lambda: peaks.append(peak_beside_outputs(lambda: engine.run(call, tensors, rows)))
    )
    thread.start()
    thread.join()
    engine.set_threads(before)
    return peaks[0]


def assert_workspace_holds(
    operation: str,
    action: str,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    wants: list[str] | None = None,
) -> None:
    """Compute once, on one thread that has no scratch yet."""
    specs = {name: engine.TensorSpec(a.shape, str(a.dtype)) for name, a in tensors.items()}
    call, samples = engine.prepare(operation, action, config, specs, wants)
    assert 0 < peak_on_a_new_thread(call, tensors) <= call.cost(samples).workspace_bytes
