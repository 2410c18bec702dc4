"""How much memory a call takes beside its results, as NumPy's allocations tell tracemalloc."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from numpy.typing import NDArray

Outputs = Mapping[str, NDArray[Any]]


def workspace(call: Callable[[], Outputs]) -> tuple[Outputs, int]:
    """The outputs of a call, and the peak of bytes that it held less those of the outputs.

    The call runs in a new thread, so that what a thread keeps for its next call is counted as well.
    """
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(_traced, call).result()


def _traced(call: Callable[[], Outputs]) -> tuple[Outputs, int]:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        outputs = call()
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return outputs, max(0, peak - sum(array.nbytes for array in outputs.values()))
