"""Reductions of runs along one axis, which may share members and need not be of one length.

Each has calls of its own over all that lies beside it, member by member or all at once, where that is much;
else `ufunc.reduceat` passes over members laid out run after run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.threads import check_stop

Array = NDArray[Any]
Runs = tuple[Array, Array, Array, Array]
"""Results [first, end) of equal members [start, stop)."""

BESIDE = 1024
"""Numbers beside a run from which it has calls of its own: `reduceat` begins anew for each of them."""

RUN_STEP = 16
"""Numbers of memory from one member to the next from which what lies between them is passed over well."""

FEWER = 128
"""Numbers beside a run that has calls of its own, where members are `RUN_STEP` apart or more: `reduceat`
takes those of each with a stride."""

LAID_OUT = 2048
"""Members of runs of a sample, beside each other too, that take as long to lay out as a call does."""

CALL = 256
"""Results of a sample that take `reduceat` as long as a call does, about."""

SEVERAL = 8
"""Members of a run above which they are reduced in one call, not one by one."""

LONG_STEP = 64
"""Numbers of memory from one member to the next from which runs of few members have one call, too."""

PAIR = 2
"""Members of a run above which they have it then."""


def reduce_runs(
    ufunc: np.ufunc,
    identity: float,
    values: Array,
    axis: int,
    starts: Array,
    stops: Array,
    out: Array | None = None,
) -> Array:
    """Reduce the runs [start, stop) along an axis of values (n, ...); those without members: `identity`.

    Written to `out` if that is given.
    """
    lengths = np.maximum(stops - starts, 0)
    # Along a row of memory `reduceat` passes over several members at a time.
    in_row = _apart(values, axis) == 1 and lengths.max(initial=0) > SEVERAL
    if out is None:
        # In the memory order of values, so that those who go on with both pass over long runs.
        out = np.empty_like(values, shape=resized(values, axis, len(starts)))
    in_turn = bool(len(starts)) and bool(lengths.all()) and bool((starts[1:] == stops[:-1]).all())
    if not (in_row and in_turn):
        runs = _alike(starts, stops)
        one_by_one = not in_row and (many_beside(values, axis) or _few(runs, out))
        # Sums across rows of memory would be one addition after another: exact enough for short runs only.
        across = ufunc is np.maximum and _apart(values, axis) >= LONG_STEP
        if not one_by_one and not in_turn and (in_row or across):
            one_by_one = not _little(runs, lengths, out)
        if one_by_one:
            _one_by_one(ufunc, identity, values, axis, runs, out)
            return out
    if in_turn:
        part = values[at(axis, slice(int(starts[0]), int(stops[-1])))]
    else:
        part = values.take(laid_out(starts, lengths), axis)
    return reduce_in_turn(ufunc, identity, part, axis, lengths, out)


def many_beside(values: Array, axis: int) -> bool:
    """Whether so many numbers of a sample (n, ...) lie beside each along an axis that a call for all pays.

    Of a sample, as the order of a sum may not depend on how many come together.
    """
    least = FEWER if _apart(values, axis) >= RUN_STEP else BESIDE
    return values.size >= least * values.shape[axis] * values.shape[0]


def _few(runs: Runs, results: Array) -> bool:
    """Whether runs are so few and short beside the results (n, ...) of a sample that calls for each pay."""
    lengths = runs[3] - runs[2]
    if lengths.max(initial=0) > SEVERAL:
        return False
    calls = int(np.maximum(lengths - 1, 1).sum())
    return calls * CALL * max(1, len(results)) <= results.size


def _little(runs: Runs, lengths: Array, results: Array) -> bool:
    """Whether laying out runs takes less time than a call for each, for results (n, ...)."""
    members = int(lengths.sum()) * results.size
    return members < len(runs[0]) * LAID_OUT * max(1, len(results) * len(lengths))


def _apart(values: Array, axis: int) -> int:
    """Numbers of memory from one member to the next along an axis."""
    return values.strides[axis] // values.itemsize


def _one_by_one(
    ufunc: np.ufunc,
    identity: float,
    values: Array,
    axis: int,
    runs: Runs,
    result: Array,
) -> None:
    """Reduce runs of the same length or not, each in calls of its own over all that lies beside it.

    Equal runs one after another share their calls.
    """
    several = PAIR if _apart(values, axis) >= LONG_STEP else SEVERAL
    before = (slice(None),) * axis
    for first, end, start, stop in zip(*(each.tolist() for each in runs), strict=True):
        own = result[*before, first:end]
        if stop - start > several:
            check_stop()
            one = own if end - first == 1 else own[*before, :1]
            ufunc.reduce(values[*before, start:stop], axis=axis, keepdims=True, out=one)
            if one is not own:
                own[*before, 1:] = one
            continue
        taps = [values[*before, i : i + 1] for i in range(start, stop)]
        if len(taps) > 1:
            ufunc(taps[0], taps[1], out=own)
        else:
            own[...] = taps[0] if taps else identity
        for tap in taps[2:]:
            ufunc(own, tap, out=own)


def _alike(starts: Array, stops: Array) -> Runs:
    """Runs [first, end) of results with equal members [start, stop): four arrays."""
    new = np.ones(len(starts), np.bool_)
    new[1:] = (starts[1:] != starts[:-1]) | (stops[1:] != stops[:-1])
    first = np.flatnonzero(new)
    return first, np.append(first, len(starts))[1:], starts[first], stops[first]


def laid_out(starts: Array, lengths: Array) -> Array:
    """The positions of all runs, one run after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + lengths, lengths)


def reduce_in_turn(
    ufunc: np.ufunc,
    identity: float,
    runs: Array,
    axis: int,
    lengths: Array,
    out: Array | None = None,
) -> Array:
    """Reduce consecutive runs of the given lengths; `identity` for runs of length 0.

    Written to `out` if that is given.
    """
    if out is None:
        out = np.empty_like(runs, shape=resized(runs, axis, len(lengths)))
    full = np.flatnonzero(lengths)
    starts = (np.cumsum(lengths) - lengths)[full]
    if full.size == len(lengths):
        ufunc.reduceat(runs, starts, axis=axis, out=out)
        return out
    out[...] = identity
    if full.size:
        where = (slice(None),) * axis + (full,)
        out[where] = ufunc.reduceat(runs, starts, axis=axis)
    return out


def at(axis: int, part: slice) -> tuple[slice, ...]:
    """The index of a part of an axis."""
    return (*(slice(None),) * axis, part)


def resized(values: Array, axis: int, size: int) -> tuple[int, ...]:
    """The shape of values, but for the size of an axis."""
    return (*values.shape[:axis], size, *values.shape[axis + 1 :])
