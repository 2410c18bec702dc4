"""Correlation with 3×3 filters by Winograd's minimal filtering: fewer multiplications, less exact.

Inputs and filters are transformed as `tiling` says, sums over channels are taken between the transforms, so
that each of the products over tiles is one `matmul`, and their results are transformed back. All transforms
are products with band matrices: one call for each step of a block, since threads wait for each other at
every call. A third axis before rows is summed in the products: inputs lie depth by depth, channels last, so
that the taps along depth are one longer row.

A number that is not finite would spread over its block. Results that are not finite are therefore thrown
away, and their block is done as a plain sum. So is, unless speed was asked for, a block with a number far
larger than the others, or with sums that cancel, a sample of uneven numbers, and one whose products have
few digits: there a plain sum makes hardly an error, and these transforms do (see `promise`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import aligned
from engine.geometry import Tile, slices, tiles
from engine.kernels.correlation import Correlation
from engine.kernels.direct import gathered
from engine.kernels.gathering import as_items
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.kernels.spacing import WRITTEN, spaced
from engine.kernels.winograd.evenness import exceeds
from engine.kernels.winograd.promise import MOST_GROWTH, Choice, sample_choices
from engine.kernels.winograd.strips import Cut, Views, cuts, views
from engine.kernels.winograd.tiling import TAPS, WIDTH, Tiling, filter_matrix, tilings
from engine.threads import for_each

Array = NDArray[Any]

BLOCK_FLOPS = 10_000_000
"""Of a block whose nine calls are long enough for threads to share the interpreter's lock."""

TRANSFORMING = 56
"""Work that takes as long as making one number of the transformed filters."""

TRANSFORMED = 8192
"""Filters that are transformed at one go."""

PlainSum = Callable[[Correlation, Array, Array, Array | None, Array], None]


def forward(
    c: Correlation, x: Array, w: Array, bias: Array | None, y: Array, plain: PlainSum
) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·K) and bias (1, O) or None.

    `plain` does the same as a plain sum, for samples that `promise` says it adds far more exactly.
    """
    choices = [Choice(tilings(c)[0])] * len(x)
    if c.wanted == "auto" and len(x):
        choices = sample_choices(c, x, w.reshape(c.outputs, c.channels, -1, TAPS * TAPS))
        summed = [n for n, choice in enumerate(choices) if choice.plan is None]
        if summed:
            rows = np.ascontiguousarray(w).reshape(1, c.outputs, -1)
        for n in summed:
            plain(c, x[n : n + 1], rows, bias, y[n : n + 1])
    for plan in tilings(c):
        chosen = {n: choice for n, choice in enumerate(choices) if choice.plan == plan}
        if chosen:
            _forward(plan, x, w, bias, y, chosen)


def _forward(
    plan: Tiling, x: Array, w: Array, bias: Array | None, y: Array, chosen: Mapping[int, Choice]
) -> None:
    """`forward` for the samples for which a plan is chosen."""
    c = plan.c
    filters = _transformed(plan, w.reshape(c.outputs, c.channels, -1, TAPS * TAPS))
    flat = len(c.axes) == 2
    volumes = (x[:, 0, :, None], y[:, 0, :, None]) if flat else (x[:, 0], y[:, 0])

    alone = len(chosen) * len(cuts(plan)) == 1

    def block(n: int, cut: Cut) -> None:
        target = volumes[1][n][cut.target]
        v = views(cut.shape)
        v.lines.load(volumes[0][n][cut.source])
        made, plainly = target, exceeds(v.lines.padded, chosen[n].limit)
        if not plainly:
            last = target.strides[0] == target.itemsize
            made = v.multiply(filters, target if last else None, alone)
            plainly = not _kept(v, made, chosen[n].least)
        if plainly:
            plain = np.ascontiguousarray(w).reshape(1, c.outputs, -1)
            # Its patches may be more than the scratch holds.
            for tile in _tiles(c, cut.target[-len(c.axes) :]):
                some = y[n : n + 1][within(slice(lo, hi) for lo, hi in tile)]
                gathered.forward_block(c, x[n : n + 1], plain, None, some, tile)
            made = target
        if bias is not None:
            made += bias[0, :, None, None, None]
            if plainly or not np.isfinite(bias).all():
                settle(made)
        if made is not target:
            target[...] = made

    for_each(block, product(chosen, cuts(plan)), c.flops * len(chosen), BLOCK_FLOPS)


def _kept(v: Views, made: Array, least: float) -> bool:
    """Whether the results of a block are finite, and as exact as they are to be."""
    if v.shape.plan.c.wanted != "auto":
        return bool(np.isfinite(np.add.reduce(made, axis=None)))
    return v.growth(made, least) <= MOST_GROWTH[v.shape.plan.height]


def _tiles(c: Correlation, box: Sequence[slice]) -> Iterator[Tile]:
    """A box of outputs cut into tiles of a plain sum."""
    sizes = [span.stop - span.start for span in box]
    for tile in tiles(sizes, c.forward_blocks.tile):
        yield tuple((s.start + lo, s.start + hi) for s, (lo, hi) in zip(box, tile, strict=True))


def _transformed(plan: Tiling, w: Array) -> Array:
    """The transformed filters (n, 6, 1, parts, K·C, O/parts) of w (O, C, K, 9) with taps side by side."""
    both = filter_matrix(plan.height, w.dtype.str)
    if w.strides[-1] < 0:
        # Filters that are turned are read as they lie, and the matrix is turned.
        both, w = np.ascontiguousarray(both[:, ::-1]), w[..., ::-1]
    (outputs, channels, deep), each = w.shape[:3], plan.together
    found = spaced((len(both), outputs // each, deep, channels, each), w.dtype, WRITTEN, aligned)

    def part(number: int, k: int, some: slice, made: slice) -> None:
        own = w[number * each : (number + 1) * each][made, some, k].swapaxes(0, 1)
        taps = arena.part(0, own.shape, w.dtype)
        as_items(taps)[...] = as_items(own)
        # Some channels of all filters, or filters of one channel: either way they are one row.
        rows = found[:, number, k, some, made].reshape(len(both), -1, copy=False)
        np.matmul(both, taps.reshape(-1, TAPS * TAPS).T, out=rows)

    cuts = slices(channels, max(1, TRANSFORMED // each)), slices(each, TRANSFORMED)
    for_each(part, product(range(outputs // each), range(deep), *cuts), TRANSFORMING * found.size)
    # A product for every point, down and across, as products go through them.
    points = (-1, WIDTH + TAPS - 1, 1, outputs // each, deep * channels, each)
    return found.reshape(points, copy=False)
