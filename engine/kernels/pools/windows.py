"""Reductions over windows along one axis.

A window over several axes is reduced one axis at a time, in the order of `pooling.reduced_along`: sums and
maxima do not mind, and the work grows with the sum of its sides instead of their product. Short fixed
windows go tap by tap over strided views, as do long ones that share inputs; others as `ufunc.reduceat`.

`values` holds the inputs [origin, ...) along `axis`; results hold the outputs [lo, hi).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import gcd
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Windows
from engine.kernels.patches import inside
from engine.kernels.pools.reducing import (
    SEVERAL,
    at,
    laid_out,
    many_beside,
    reduce_in_turn,
    reduce_runs,
    resized,
)
from engine.threads import check_stop

Array = NDArray[Any]

MANY = 256
"""Taps up to which they are listed, and after which it is looked whether to stop: they may be millions."""

PASS = 1 << 20
"""Numbers above which maxima are looked for part by part: so many are one window, as large as it is."""

SUMMED_MEMBERS = 8
"""Members from which windows that share no input are summed as rows of a reshaped array."""

ROW_MEMBERS = 20
"""The same where a window is a run of memory: no numbers lie beside it that one call adds as well."""

LONG_TAPS = 24
"""Taps from which one pass over runs is quicker than a pass for every tap, unless windows share much."""

BUSY = 6
"""Taps for each output up to which windows that share inputs go tap by tap: a pass has to gain its call."""

NEAR = 1 << 13
"""Taps times stride up to which they are: numbers far apart come one by one from memory, for every tap."""


def window_max(
    values: Array,
    axis: int,
    windows: Windows,
    span: tuple[int, int],
    origin: int,
    out: Array | None = None,
) -> Array:
    """The maximum of each window; NaN wins, and a window without inputs gives -inf.

    Written to `out` if that is given.
    """
    return _reduce(np.maximum, -np.inf, values, axis, windows, span, origin, out)


def window_sum(
    values: Array, axis: int, windows: Windows, span: tuple[int, int], origin: int, last: bool
) -> Array:
    """The sum of each window; one without inputs gives 0. `last` tells that channels lie last."""
    size = even_size(windows)
    least = SUMMED_MEMBERS if last or axis < values.ndim - 1 else ROW_MEMBERS
    if size >= least and values.shape[axis] == size * (span[1] - span[0]):
        runs = (*values.shape[:axis], span[1] - span[0], size, *values.shape[axis + 1 :])
        return np.add.reduce(values.reshape(runs), axis=axis + 1)
    return _reduce(np.add, 0, values, axis, windows, span, origin)


def covered(axis: Axis, lo: int, hi: int) -> Array:
    """Which of the inputs [lo, hi) are members of any window.

    Input i is of output o where i + low − o·stride is one of 0, dilation, ..., (kernel − 1)·dilation. Those
    that meet the dilation are every `step`-th output, if any; the others bound a range of outputs.
    """
    common = gcd(axis.stride, axis.dilation)
    step = axis.dilation // common
    i = np.arange(lo, hi) + axis.low
    last = np.minimum(i // axis.stride, axis.out - 1)
    first = np.maximum(-((axis.extent - 1 - i) // axis.stride), 0)
    meeting = i // common % step * pow(axis.stride // common, -1, step) % step
    first += (meeting - first) % step
    return (first <= last) & (i % common == 0)


def window_argmax(
    values: Array,
    positions: Array,
    axis: int,
    windows: Windows,
    span: tuple[int, int],
    origin: int,
) -> tuple[Array, Array]:
    """The maximum of each window and the smallest of `positions` where it stands.

    `positions` is broadcast to `values`. The position of a window without inputs is meaningless.
    """
    positions = np.broadcast_to(positions, values.shape)
    best = window_max(values, axis, windows, span, origin)
    nan = bool(np.isnan(best).any())
    if short(windows):
        moves = taps(windows, span, origin, backwards=True)
        return best, _tap_places(values, positions, best, axis, moves, nan)
    starts, stops = (edges - origin for edges in bounds(windows, *span))
    lengths = np.maximum(stops - starts, 0)
    if lengths.max(initial=0) <= SEVERAL and many_beside(values, axis):
        moves = (
            (slice(o, o + 1), slice(i, i + 1))
            for o, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
            for i in reversed(range(start, stop))
        )
        return best, _tap_places(values, positions, best, axis, moves, nan)
    if values.size > PASS:
        return best, _first_places(values, positions, best, axis, starts, stops)
    run = laid_out(starts, lengths)
    hit = _same(values.take(run, axis), best.repeat(lengths, axis), nan)
    candidates = np.where(hit, positions.take(run, axis), np.iinfo(np.int64).max)
    return best, reduce_in_turn(np.minimum, -1, candidates, axis, lengths)


def _tap_places(
    values: Array,
    positions: Array,
    best: Array,
    axis: int,
    taps: Iterable[tuple[slice, slice]],
    nan: bool,
) -> Array:
    """The smallest of `positions` where each window's maximum stands, looked for from the last tap on."""
    found = np.full(best.shape, -1, np.int64)
    for target, source in taps:
        to, of = at(axis, target), at(axis, source)
        hit = _same(values[of], best[to], nan)
        np.copyto(found[to], positions[of], where=hit)
    return found


def _first_places(
    values: Array, positions: Array, best: Array, axis: int, starts: Array, stops: Array
) -> Array:
    """The smallest of `positions` where each window's maximum stands, looked for part by part."""
    found = np.full(best.shape, np.iinfo(np.int64).max)
    step = max(1, PASS * values.shape[axis] // values.size)
    for o, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
        own = at(axis, slice(o, o + 1))
        for lo in range(start, stop, step):
            check_stop()
            part = at(axis, slice(lo, min(lo + step, stop)))
            hit = _same(values[part], best[own], True)
            places = np.where(hit, positions[part], np.iinfo(np.int64).max)
            np.minimum(found[own], places.min(axis=axis, keepdims=True), out=found[own])
    return found


def bounds(windows: Windows, lo: int, hi: int) -> tuple[Array, Array]:
    """The real inputs [start, stop) of the outputs [lo, hi) of undilated windows."""
    o = np.arange(lo, hi)
    if size := even_size(windows):
        return o * size, (o + 1) * size
    if isinstance(windows, Axis):
        start = o * windows.stride - windows.low
        return np.clip(start, 0, windows.size), np.clip(start + windows.kernel, 0, windows.size)
    return o * windows.size // windows.out, -(-(o + 1) * windows.size // windows.out)


def taps_between(axis: Axis, lo: int, hi: int, first: int, end: int) -> NDArray[np.int64]:
    """How many taps of each output in [lo, hi) fall on positions [first, end)."""
    start = np.arange(lo, hi) * axis.stride - axis.low
    below = np.clip(-(-(first - start) // axis.dilation), 0, axis.kernel)
    inside_end = np.clip(-(-(end - start) // axis.dilation), 0, axis.kernel)
    return np.maximum(inside_end - below, 0)


def passes(windows: Windows) -> int:
    """How many passes over its values a reduction takes."""
    return windows.kernel if short(windows) else 1


def even_size(windows: Windows) -> int:
    """The size of windows that divide all of the inputs evenly between them, else 0."""
    if isinstance(windows, Axis):
        apart = windows.stride == windows.kernel and windows.dilation == 1
        covering = windows.low == 0 and windows.out * windows.kernel == windows.size
        return windows.kernel if apart and covering else 0
    return 0 if windows.size % windows.out else windows.size // windows.out


def short(windows: Windows) -> TypeGuard[Axis]:
    """True for windows that are reduced tap by tap."""
    if not isinstance(windows, Axis):
        return False
    kernel, stride = windows.kernel, windows.stride
    shared = stride < kernel <= min(MANY, BUSY * windows.out, NEAR // stride)
    return kernel < LONG_TAPS or windows.dilation > 1 or shared


def taps(
    windows: Axis, span: tuple[int, int], origin: int, *, backwards: bool = False
) -> Iterator[tuple[slice, slice]]:
    """For every tap that meets an input: the outputs from `lo`, and the inputs from `origin`."""
    lo, hi = span
    order = range(windows.kernel)
    for tap in reversed(order) if backwards else order:
        if tap % MANY == 0:
            check_stop()
        start, stop, i = inside(windows, tap, lo, hi)
        if stop > start:
            yield slice(start - lo, stop - lo), slice(i.start - origin, i.stop - origin, i.step)


@lru_cache(maxsize=1024)
def _ordered(windows: Axis, span: tuple[int, int], origin: int) -> tuple[tuple[slice, slice], ...]:
    """Those of `taps`, but taps that all windows have come first.

    Two of them make the result; others are added to parts of it.
    """
    full = slice(0, span[1] - span[0])
    return tuple(sorted(taps(windows, span, origin), key=lambda tap: tap[0] != full))


def _reduce(
    ufunc: np.ufunc,
    identity: float,
    values: Array,
    axis: int,
    windows: Windows,
    span: tuple[int, int],
    origin: int,
    out: Array | None = None,
) -> Array:
    if short(windows):
        full = slice(0, span[1] - span[0])
        moves: Iterable[tuple[slice, slice]] = taps(windows, span, origin)
        first = _ordered(windows, span, origin) if windows.kernel <= MANY else ()
        if len(first) > 1 and first[1][0] == full:
            result = ufunc(values[at(axis, first[0][1])], values[at(axis, first[1][1])], out=out)
            moves = first[2:]
        else:
            shape = resized(values, axis, full.stop)
            result = np.empty_like(values, shape=shape) if out is None else out
            result[...] = identity
        for target, source in moves:
            view = result[at(axis, target)]
            ufunc(view, values[at(axis, source)], out=view)
        return result
    starts, stops = bounds(windows, *span)
    return reduce_runs(ufunc, identity, values, axis, starts - origin, stops - origin, out)


def _same(a: Array, b: Array, nan: bool) -> NDArray[np.bool_]:
    hit = np.equal(a, b)
    if nan:
        hit |= np.isnan(a) & np.isnan(b)
    return hit
