"""Reductions of runs along one axis, which may share members and need not be of one length.

Each has calls of its own over all that lies beside it, member by member or all at once, where that is much;
else `ufunc.reduceat` passes over members laid out run after run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.threads import check_stop

Array = NDArray[Any]

BESIDE = 1024
"""Numbers beside a run from which it has calls of its own: `reduceat` begins anew for each of them."""

SEVERAL = 8
"""Members of a run above which they are reduced in one call, not one by one."""


def reduce_runs(
    ufunc: np.ufunc, identity: float, values: Array, axis: int, starts: Array, stops: Array
) -> Array:
    """Reduce the runs [start, stop) along an axis of values (n, ...); those without members: `identity`."""
    lengths = np.maximum(stops - starts, 0)
    # Along a row of memory `reduceat` passes over several members at a time.
    in_row = values.strides[axis] == values.itemsize and lengths.max(initial=0) > SEVERAL
    if not in_row and many_beside(values, axis):
        return _one_by_one(ufunc, identity, values, axis, starts.tolist(), stops.tolist())
    if len(starts) and lengths.all() and (starts[1:] == stops[:-1]).all():
        part = values[at(axis, slice(int(starts[0]), int(stops[-1])))]
    else:
        part = values.take(laid_out(starts, lengths), axis)
    return reduce_in_turn(ufunc, identity, part, axis, lengths)


def many_beside(values: Array, axis: int) -> bool:
    """Whether so many numbers of a sample (n, ...) lie beside each along an axis that a call for all pays.

    Of a sample, as the order of a sum may not depend on how many come together.
    """
    return values.size >= BESIDE * values.shape[axis] * values.shape[0]


def _one_by_one(
    ufunc: np.ufunc,
    identity: float,
    values: Array,
    axis: int,
    starts: Sequence[int],
    stops: Sequence[int],
) -> Array:
    """Reduce runs of the same length or not, each in calls of its own over all that lies beside it."""
    result = np.empty_like(values, shape=resized(values, axis, len(starts)))
    for o, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        own = result[at(axis, slice(o, o + 1))]
        if stop - start > SEVERAL:
            check_stop()
            part = values[at(axis, slice(start, stop))]
            ufunc.reduce(part, axis=axis, keepdims=True, out=own)
            continue
        taps = [values[at(axis, slice(i, i + 1))] for i in range(start, stop)]
        if len(taps) > 1:
            ufunc(taps[0], taps[1], out=own)
        else:
            own[...] = taps[0] if taps else identity
        for tap in taps[2:]:
            ufunc(own, tap, out=own)
    return result


def laid_out(starts: Array, lengths: Array) -> Array:
    """The positions of all runs, one run after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def reduce_in_turn(
    ufunc: np.ufunc, identity: float, runs: Array, axis: int, lengths: Array
) -> Array:
    """Reduce consecutive runs of the given lengths; `identity` for runs of length 0."""
    result = np.full(resized(runs, axis, len(lengths)), identity, runs.dtype)
    full = np.flatnonzero(lengths)
    if full.size:
        starts = (np.cumsum(lengths) - lengths)[full]
        where = (slice(None),) * axis + (full,)
        result[where] = ufunc.reduceat(runs, starts, axis=axis)
    return result


def at(axis: int, part: slice) -> tuple[slice, ...]:
    """The index of a part of an axis."""
    return (*(slice(None),) * axis, part)


def resized(values: Array, axis: int, size: int) -> tuple[int, ...]:
    """The shape of values, but for the size of an axis."""
    return (*values.shape[:axis], size, *values.shape[axis + 1 :])
