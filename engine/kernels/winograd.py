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
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.kernels.products import multiply
from engine.kernels.strips import Cut, cuts, views
from engine.kernels.tiling import TAPS, WIDTH, Tiling, filter_matrix, tiling
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

    def block(n: int, cut: Cut) -> None:
        target = volumes[1][n][cut.target]
        v = views(cut.shape)
        v.load(volumes[0][n][cut.source])
        made = v.multiply(filters, target if target.strides[0] == target.itemsize else None)
        plainly = not np.isfinite(np.add.reduce(made, axis=None))
        if plainly:
            spans = tuple((span.start, span.stop) for span in cut.target[-len(c.axes) :])
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

    for_each(block, product(samples, cuts(plan)), c.flops * x.shape[0])


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
