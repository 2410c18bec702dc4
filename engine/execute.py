"""From a call to results: `run` computes, `split` hands the results of a batch back to its requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import aligned
from engine.calls import Call
from engine.kernels.halves import narrow, widened
from engine.kernels.nan import settle_nan
from engine.kernels.requests import samples_of
from engine.plans import PER_SAMPLE
from engine.threads import computing

Array = NDArray[Any]
Allocate = Callable[[str, tuple[int, ...], str], Array]


def run(
    call: Call,
    tensors: Mapping[str, Array],
    rows: Sequence[int] | None = None,
    allocate: Allocate | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[str, Array]:
    """Compute a call for one request or for a batch of them.

    Args:
        call: from `prepare`.
        tensors: per-sample tensors joined along N, parameters once.
        rows: samples of each request; one request by default.
        allocate: makes an output from its name, shape and dtype; NumPy's `empty` by default.
        stop: polled between blocks.

    Returns:
        The joined outputs, as `call.outputs(rows)` describes them.

    Raises:
        InvalidIndices: where the data of `indices` is at fault.
        Stopped: where `stop` said so.
    """
    if rows is None:
        rows = (next(tensors[name].shape[0] for name in call.per_sample),)
    call.layer.check(call.plan, tensors)
    results = call.make_outputs(rows, allocate or _empty)
    computing(stop, _compute, call, tensors, rows, results)
    return results


def _compute(
    call: Call,
    tensors: Mapping[str, Array],
    rows: Sequence[int],
    results: Mapping[str, Array],
) -> None:
    """Write the results of a call."""
    if not sum(rows):
        # Blocks are cut from a sample's outputs, which nothing bounds where there is no sample.
        for array in results.values():
            array[...] = 0
        return
    given = {name: _laid_out(tensors[name], dtype) for name, dtype in call.taken}
    out = results
    if call.rounded:
        out = {
            name: array if name == "indices" else aligned(array.shape, call.compute)
            for name, array in results.items()
        }
    if call.action == "forward":
        call.layer.forward(call.plan, given, out)
    else:
        call.layer.backward(call.plan, given, rows, out)
    for name in call.unsettled:
        settle_nan(out[name])
    if call.rounded:
        for name, array in out.items():
            if results[name].dtype == np.float16:
                narrow(array, results[name])
            elif array is not results[name]:
                results[name][...] = array


def split(outputs: Mapping[str, Array], rows: Sequence[int]) -> list[dict[str, Array]]:
    """Views of a batch's joined outputs, one map for each request."""
    if len(rows) == 1:
        return [{name: a if name in PER_SAMPLE else a[0] for name, a in outputs.items()}]
    return [
        {
            name: array[own] if name in PER_SAMPLE else array[request]
            for name, array in outputs.items()
        }
        for request, own in enumerate(samples_of(rows))
    ]


def _laid_out(tensor: Array, dtype: np.dtype[Any]) -> Array:
    """A tensor as kernels take it; copies only what has another dtype, order or place in memory.

    Of numbers that begin between their addresses, as they may in a message, NumPy adds up some sums
    in another order.
    """
    if tensor.dtype == np.float16:
        return widened(tensor)
    laid_out = np.ascontiguousarray(tensor, dtype)
    return laid_out if laid_out.flags.aligned else laid_out.copy()


def _empty(_: str, shape: tuple[int, ...], dtype: str) -> Array:
    return aligned(shape, np.dtype(dtype))
