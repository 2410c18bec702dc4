"""The gradient of an input under long strides: columns added block by block.

    dx[c, i] = Σ_{o, k} w[o, c, k] · dy[o, p]   over p·stride + k − low = i

Inputs are taken as blocks as long as the stride, and i as place r of block q. Tap k of output p meets
block q = p + a, where a·stride + r = k − low. So of every window all taps with one a are one run of a
block, and those of all windows of a tile are added by one call: (kernel / stride) calls along an axis,
where folding has one for each residue. Columns have their taps last, so that these runs are consecutive
numbers, and weights are read as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import part
from engine.geometry import Axis, Tile, tiles
from engine.kernels.correlation import Correlation
from engine.kernels.direct.gathered import flat_tile, input_cuts
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.threads import for_each

Array = NDArray[Any]

LEAST_RUN = 8
"""Consecutive numbers, on average, from which adding them so may take less time."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Along one axis, outputs of a tile, some of their taps, and the blocks and places that these meet.

    Attributes:
        rest: whether it is the last block, which is shorter.
    """

    outputs: slice
    taps: slice
    rest: bool
    blocks: slice
    places: slice


def suits(c: Correlation) -> bool:
    """True where padding is zeros, taps lie together, and rows of inputs are consecutive."""
    together = c.mode == "zeros" and all(axis.dilation == 1 for axis in c.axes)
    return together and not (c.channels_last and c.groups * c.channels > 1)


def pay(c: Correlation) -> bool:
    """True where runs are long enough: with those of few numbers it takes up to four times as long."""
    return run(c) >= LEAST_RUN


def calls(c: Correlation) -> int:
    """How often columns of a tile are added."""
    return prod(_crossed(axis) for axis in c.axes)


def run(c: Correlation) -> float:
    """Consecutive numbers that are added, on average."""
    return c.axes[-1].kernel / _crossed(c.axes[-1])


def _crossed(axis: Axis) -> int:
    """Blocks that a window reaches into."""
    return (axis.kernel - 1 - axis.low) // axis.stride - -axis.low // axis.stride + 1


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of a correlation in x, from dy (N, G, O, *P).

    w is (G, O, C·K).
    """

    def block(n: slice, g: slice, channels: tuple[int, int]) -> None:
        target = dx[n, g, channels[0] : channels[1]]
        target[...] = 0
        weights = w[g, :, channels[0] * c.taps : channels[1] * c.taps]
        for tile in tiles(c.positions, c.input_blocks.tile):
            columns = _columns(c, flat_tile(dy[n, g], tile), weights)
            sizes = (hi - lo for lo, hi in tile)
            shape = (*target.shape[:2], *sizes, target.shape[2], *c.kernel)
            _add(c.axes, tile, columns.reshape(shape), target)
        settle(target)

    for_each(block, input_cuts(c, dx.shape[0]), c.flops * dx.shape[0])


def _columns(c: Correlation, upstream: Array, weights: Array) -> Array:
    """What upstream (n, g, O, T) gives under weights (g, O, c·K), as (n, g, T, c·K)."""
    rows = upstream.swapaxes(2, 3)
    out = part(0, (*rows.shape[:3], weights.shape[2]), upstream.dtype)
    return (np.multiply if c.outputs == 1 else np.matmul)(rows, weights, out=out)


def _add(axes: tuple[Axis, ...], tile: Tile, columns: Array, x: Array) -> None:
    """Add columns (n, g, *T, c, *K) of a tile to the inputs x (n, g, c, *S) that they are of."""
    source = by_axis(columns)
    for runs in product(*(_runs(axis, *span) for axis, span in zip(axes, tile, strict=True))):
        target = x[within(_inputs(axis, run.rest) for axis, run in zip(axes, runs, strict=True))]
        sizes = (
            size for axis, run in zip(axes, runs, strict=True) for size in _split(axis, run.rest)
        )
        grid = target.reshape(*x.shape[:3], *sizes, copy=False)
        where = within(s for run in runs for s in (run.blocks, run.places))
        grid[where] += source[within(s for run in runs for s in (run.outputs, run.taps))]


def by_axis(blocks: Array) -> Array:
    """Blocks (n, g, *Q, c, *R) as (n, g, c, Q, R, Q', R'…): for each axis blocks, then places in one."""
    dims = (blocks.ndim - 3) // 2
    along = (at for d in range(dims) for at in (2 + d, 3 + dims + d))
    return blocks.transpose(0, 1, 2 + dims, *along)


def _inputs(axis: Axis, rest: bool) -> slice:
    whole = axis.size - axis.size % axis.stride
    return slice(whole, None) if rest else slice(0, whole)


def _split(axis: Axis, rest: bool) -> tuple[int, int]:
    return (1, axis.size % axis.stride) if rest else (axis.size // axis.stride, axis.stride)


def _runs(axis: Axis, lo: int, hi: int) -> Iterator[_Run]:
    """The runs of the outputs [lo, hi) along an axis."""
    stride, whole = axis.stride, axis.size // axis.stride
    first_block = -axis.low // stride
    for a in range(first_block, first_block + _crossed(axis)):
        start = a * stride + axis.low  # the tap at the first place of a block
        first, last = max(0, start), min(axis.kernel, start + stride)
        p, q = max(lo, -a), min(hi, whole - a)
        if p < q:
            places = slice(first - start, last - start)
            yield _Run(
                slice(p - lo, q - lo), slice(first, last), False, slice(p + a, q + a), places
            )
        p, left = whole - a, min(last - start, axis.size % stride)
        if lo <= p < hi and first - start < left:
            places = slice(first - start, left)
            yield _Run(
                slice(p - lo, p - lo + 1), slice(first, start + left), True, slice(0, 1), places
            )
