"""Correlation with 3×3 filters by Winograd's minimal filtering: fewer multiplications, less exact.

Inputs and filters are transformed as `tiling` says, sums over channels are taken between the transforms, so
that each of the products over tiles is one `matmul`, and their results are transformed back. All transforms
are products with band matrices: one call for each step of a block, since threads wait for each other at
every call. A third axis before rows is summed in the products: inputs lie depth by depth, channels last, so
that the taps along depth are one longer row.

A number that is not finite would spread over its block. Results that are not finite are therefore thrown
away, and their block is done as a plain sum. So is, unless speed was asked for, a sample of whole numbers
under filters of whole numbers, and one that is mostly zeros: a plain sum of small whole numbers makes no
error, nor does adding a zero, and these transforms do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.kernels.products import multiply
from engine.kernels.spacing import READ, WRITTEN, spaced
from engine.kernels.tiling import (
    TAPS,
    WIDTH,
    Block,
    Range,
    Tiling,
    bands,
    bands_by_point,
    filter_matrix,
    tiling,
)
from engine.threads import for_each

Array = NDArray[Any]

LEAST_SHARE = 1 / 10
"""Share of a sample's numbers that are not 0 from which tiles are as exact as promised."""

LOOKED_AT = 4
"""One row of so many tells how many numbers are 0."""

TOGETHER = 1 << 18
"""Numbers looked at together."""

LOOKING = 16
"""Work that takes as long as looking at one number of x."""


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·K) and bias (1, O) or None."""
    samples: Sequence[int] = range(x.shape[0])
    if c.wanted == "auto":
        whole = is_whole(w[0])
        summed = [False] * len(x)

        def look(n: int) -> None:
            a = x[n, 0]
            summed[n] = dense(a) < LEAST_SHARE or (whole and is_whole(a))

        for_each(look, ((n,) for n in samples), LOOKING * x.size)
        samples = [n for n in samples if not summed[n]]
        if any(summed):
            plain = np.ascontiguousarray(w).reshape(1, c.outputs, -1)
        for n in np.flatnonzero(summed):
            direct.forward(c, x[n : n + 1], plain, bias, y[n : n + 1])
    if samples:
        _forward(c, x, w, bias, y, samples)


def is_whole(a: Array) -> bool:
    """True if every number is whole; most often the first few tell that one is not."""
    parts = chain((a[:1, ..., :8],), _parts(a))
    return all(bool((np.rint(part) == part).all()) for part in parts)


def dense(a: Array) -> float:
    """The share of the numbers of a (K, ..., H, W) that are not 0, about."""
    rows = a[..., ::LOOKED_AT, :]
    return sum(int(np.count_nonzero(part != 0)) for part in _parts(rows)) / rows.size


def _parts(a: Array) -> Iterator[Array]:
    """Some of the first axis at a time, so that looking at them takes little memory."""
    each = max(1, TOGETHER // a[0].size)
    return (a[lo:hi] for lo, hi in ranges(len(a), each))


def _forward(
    c: Correlation, x: Array, w: Array, bias: Array | None, y: Array, samples: Sequence[int]
) -> None:
    plan = tiling(c)
    filters = _transformed(plan, w.reshape(c.outputs, c.channels, -1, TAPS * TAPS))
    flat = len(c.axes) == 2
    volumes = (x[:, 0, :, None], y[:, 0, :, None]) if flat else (x[:, 0], y[:, 0])

    def block(n: int, deep: Range, down: Range, across: Range) -> None:
        rows = _outputs(down, plan.down * plan.height, c.positions[-2])
        columns = _outputs(across, plan.across * WIDTH, c.positions[-1])
        target = volumes[1][n, :, slice(*deep), slice(*rows), slice(*columns)]
        last = target.strides[0] == target.itemsize
        # Planes may lie apart by a power of two, and then share the lines of the cache.
        made = target
        if not last:
            made = spaced(target.shape, y.dtype, WRITTEN, partial(direct.part, 2))
        _block(plan, volumes[0][n], filters, made, (deep, down, across))
        plainly = not np.isfinite(np.add.reduce(made, axis=None))
        if plainly:
            spans = (deep, rows, columns)[-len(c.axes) :]
            plain = np.ascontiguousarray(w).reshape(1, c.outputs, -1)
            whole = y[n : n + 1][within(slice(*span) for span in spans)]
            direct.forward_block(c, x[n : n + 1], plain, None, whole, spans)
            made = target
        if bias is not None:
            made += bias[0, :, None, None, None]
            if plainly or not np.isfinite(bias).all():
                settle(made)
        if made is not target:
            target[...] = made

    cuts = [(n, *found) for n in samples for found in plan.blocks]
    for_each(block, cuts, c.flops * x.shape[0])


def _transformed(plan: Tiling, w: Array) -> Array:
    """The transformed filters (n, 6, 1, parts, K·C, O/parts) of w (O, C, K, 9)."""
    both = filter_matrix(plan.height, w.dtype.str)
    channels, deep = w.shape[1:3]
    shape = (len(both), w.shape[0] // plan.together, deep * channels, plan.together)
    found = np.empty(shape, w.dtype)

    def part(number: int) -> None:
        own = w[number * plan.together : (number + 1) * plan.together].transpose(3, 2, 1, 0)
        taps = direct.part(0, own.shape, w.dtype)
        taps[...] = own
        # Written through a copy: rows that lie a power of two apart would share cache lines.
        out = direct.part(1, (1, 1, len(both), shape[2] * shape[3]), w.dtype)
        multiply(both[None], taps.reshape(1, 1, TAPS * TAPS, -1), out)
        found[:, number] = out.reshape(len(both), *shape[2:])

    for_each(part, ((i,) for i in range(shape[1])), 2 * TAPS**2 * found.size)
    # A product for every point, down and across, as products go through them.
    return found.reshape(-1, WIDTH + TAPS - 1, 1, *found.shape[1:])


def _outputs(pieces: Range, each: int, most: int) -> Range:
    return pieces[0] * each, min(pieces[1] * each, most)


def _block(plan: Tiling, x: Array, filters: Array, y: Array, block: Block) -> None:
    """Write y (O, D, rows, P) of one block from x (C, D, H, W)."""
    depths, strips, columns = (hi - lo for lo, hi in block)
    lines = _lines(plan, x, block)
    dtype = x.dtype.str
    into = bands(WIDTH, plan.across, dtype)[0].reshape(-1, plan.across * WIDTH + TAPS - 1)
    found = direct.part(1, (len(lines), columns, len(into), lines.shape[2]), x.dtype)
    np.matmul(into, _windows(lines, plan.across * WIDTH, columns, 1), out=found)
    into, back = bands_by_point(plan.height, plan.down, dtype)
    width = found[0].size
    moved = direct.part(0, (strips, 1, len(into), width), x.dtype)
    found = found.reshape(1, len(lines), width)
    rows = _windows(found, plan.down * plan.height, strips, 1).swapaxes(0, 1)
    multiply(into[None], rows, moved)
    shape = (strips, plan.height + TAPS - 1, -1, WIDTH + TAPS - 1, depths)
    tiles = plan.down * columns * plan.across
    products = direct.part(1, (*shape[:2], tiles, *shape[3:], y.shape[0]), x.dtype)
    np.matmul(
        _deep_rows(plan, moved.reshape(*shape[:2], tiles, shape[3], -1), depths),
        filters,
        out=products.reshape(*products.shape[:-1], *filters.shape[-3::2]).transpose(
            0, 1, 3, 4, 5, 2, 6
        ),
    )
    sums = direct.part(
        0, (strips, 1, len(back), products[0, 0, 0].size * tiles // plan.down), x.dtype
    )
    multiply(back[None], products.reshape(strips, 1, len(into), -1), sums)
    _columns(plan, sums.reshape(strips * len(back), columns, -1, depths, y.shape[0]), y)


def _windows(a: Array, step: int, count: int, axis: int) -> Array:
    """Windows of `step` + 2 that begin `step` apart along an axis of a, as one axis more before it."""
    shape = (*a.shape[:axis], count, step + TAPS - 1, *a.shape[axis + 1 :])
    strides = (*a.strides[:axis], step * a.strides[axis], *a.strides[axis:])
    return np.ndarray(shape, a.dtype, a, 0, strides)


def _deep_rows(plan: Tiling, moved: Array, depths: int) -> Array:
    """The inputs (s, n, T, 6, D·C) under each output along depth: (s, n, 6, depths, 1, T, K·C)."""
    s, i, t, j, one = moved.strides
    channels = plan.c.channels
    strips, heights, tiles, widths, _ = moved.shape
    shape = (strips, heights, widths, depths, 1, tiles, plan.depth.kernel * channels)
    return np.ndarray(shape, moved.dtype, moved, 0, (s, i, j, channels * one, 0, t, one))


def _lines(plan: Tiling, x: Array, block: Block) -> Array:
    """The inputs x (C, D, H, W) under a block with their padding, channels last: (rows, W, D·C)."""
    steps = (1, plan.down * plan.height, plan.across * WIDTH)
    sources, targets, lengths = [], [], []
    for axis, (lo, hi), step in zip((plan.depth, *plan.c.axes[-2:]), block, steps, strict=True):
        start, stop = lo * step - axis.low, hi * step - axis.low + axis.kernel - 1
        source, target = axis.placed(start, stop)
        sources.append(source)
        targets.append(target)
        lengths.append(stop - start)
    lines = direct.part(2, (*lengths[1:], lengths[0], x.shape[0]), x.dtype)
    if any(t.stop - t.start < n for t, n in zip(targets, lengths, strict=True)):
        lines.fill(0)
    inputs = x[(slice(None), *sources)]
    if inputs.strides[0] != inputs.itemsize:
        # Planes may lie apart by a power of two, and then share the lines of the cache.
        together = spaced(inputs.shape, x.dtype, READ, partial(direct.part, 0))
        together[...] = inputs
        inputs = together
    lines[targets[1], targets[2], targets[0]] = inputs.transpose(2, 3, 1, 0)
    return lines.reshape(*lengths[1:], -1)


def _columns(plan: Tiling, sums: Array, y: Array) -> None:
    """Write y (O, D, rows, P) from the sums (rows, strips, tiles·6, D, O), back along rows."""
    step = plan.across * WIDTH
    back = bands(WIDTH, plan.across, sums.dtype.str)[1].reshape(-1, step)
    sums = sums[: y.shape[2]]
    whole = y.shape[3] // step
    full = y[..., : whole * step].reshape(*y.shape[:3], whole, step, copy=False)
    _strips(back, sums[:, :whole], full)
    if whole < sums.shape[1]:
        rest = np.ascontiguousarray(back[:, : y.shape[3] - whole * step])
        _strips(rest, sums[:, whole:], y[:, :, :, None, whole * step :])


def _strips(back: Array, sums: Array, y: Array) -> None:
    """Write y (O, D, rows, strips, P) from the sums (rows, strips, tiles·6, D, O)."""
    target = y.transpose(2, 3, 1, 0, 4)
    if target.strides[4] == target.itemsize:
        np.matmul(sums.transpose(0, 1, 3, 4, 2), back, out=target)
    else:
        np.matmul(back.T, sums.swapaxes(2, 3), out=target.swapaxes(3, 4))
