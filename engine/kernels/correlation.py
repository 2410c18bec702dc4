"""Correlation with a bank of filters, and its two adjoints, block by block.

Axes: N samples, G groups, C channels of a group, O output channels of a group, S input positions,
K taps, P output positions, T a tile of them. With x (N, G, C, *S), w (G, O, C·K), y (N, G, O, *P):

    y  = Σ_{c,k} w[o, c, k] · x[c, p·stride + k·dilation − low]
    dx = the adjoint of that map in x (which is the transposed convolution)
    dw = the adjoint of that map in w, for each request on its own

Patches of one block are gathered into this thread's scratch and multiplied with one `matmul`, whose
size is fixed by the plan. So the bits of a sample do not depend on how many samples came with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, Blocking, Tile, blocking, ranges, tiles
from engine.kernels.patches import gather, scatter, within
from engine.kernels.requests import request_blocks, sum_samples
from engine.threads import PART_BYTES, for_each, scratch

Array = NDArray[Any]


@dataclass(frozen=True)
class Correlation:
    """A correlation's geometry: all integers, no samples. `mode` names the padding mode."""

    axes: tuple[Axis, ...]
    groups: int
    channels: int
    outputs: int
    mode: str
    itemsize: int

    @property
    def taps(self) -> int:
        """Positions in a window, K."""
        return prod(axis.kernel for axis in self.axes)

    @property
    def positions(self) -> tuple[int, ...]:
        """Output positions along each axis, P."""
        return tuple(axis.out for axis in self.axes)

    @property
    def flops(self) -> int:
        """Of one map for one sample, a multiply-add counted as 2."""
        return 2 * self.groups * self.outputs * self.channels * self.taps * prod(self.positions)

    @property
    def pointwise(self) -> bool:
        """True where a window is one input and every input has one window: nothing to gather."""
        return all(
            axis.kernel == axis.stride == 1 and axis.low == axis.high == 0 and axis.out == axis.size
            for axis in self.axes
        )

    def forward_blocks(self) -> Blocking:
        """Blocks for `correlate`."""
        return self._blocks(self.channels)

    def input_blocks(self) -> Blocking:
        """Blocks for `correlate_input`: cut into parts of channels, so that threads share a sample."""
        return self._blocks(self._shared(self.channels))

    def weight_blocks(self) -> Blocking:
        """Blocks for `correlate_weight`, whose partial sums over O × C·K must fit the scratch too."""
        capacity = PART_BYTES // self.itemsize
        fitting = max(1, capacity // (self.outputs * self.taps))
        blocks = self._blocks(min(self._shared(self.channels), fitting))
        partial = self.outputs * blocks.channels * self.taps
        alike = max(1, min(blocks.groups * blocks.samples, capacity // partial))
        groups = min(self.groups, alike)
        return Blocking(blocks.tile, blocks.channels, groups, max(1, alike // self.groups))

    @property
    def steps(self) -> int:
        """Copies of one tap of one block: what the interpreter has to do, for one sample."""
        blocks = self.forward_blocks()
        cuts = (-(-axis.out // t) for axis, t in zip(self.axes, blocks.tile, strict=True))
        parts = -(-self.channels // blocks.channels) * -(-self.groups // blocks.groups)
        return self.taps * prod(cuts) * parts

    def _blocks(self, channels: int) -> Blocking:
        capacity = PART_BYTES // self.itemsize
        return blocking(self.positions, self.taps, channels, self.outputs, self.groups, capacity)

    @staticmethod
    def _shared(channels: int) -> int:
        return -(-channels // (4 if channels >= 64 else 2 if channels >= 32 else 1))


def correlate(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    blocks = c.forward_blocks()

    def block(n: slice, g: slice, tile: Tile) -> None:
        target = y[(n, g, slice(None), *(slice(lo, hi) for lo, hi in tile))]
        width = prod(target.shape[3:])
        flat = _flat_view(target, width)
        out = flat if flat is not None else _part(2, (*target.shape[:3], width), y.dtype)
        for lo, hi in ranges(c.channels, blocks.channels):
            patches = _patches(c, x[n, g, lo:hi], tile, width)
            weights = w[g, :, lo * c.taps : hi * c.taps]
            if lo == 0:
                np.matmul(weights, patches, out=out)
            else:
                out += np.matmul(weights, patches, out=_part(1, out.shape, out.dtype))
        if bias is not None:
            out += bias[g, :, None]
        if flat is None:
            target[...] = out.reshape(target.shape)

    cuts = [
        (n, g, tile)
        for n in _slices(x.shape[0], blocks.samples)
        for g in _slices(c.groups, blocks.groups)
        for tile in tiles(c.positions, blocks.tile)
    ]
    for_each(block, cuts, c.flops * x.shape[0])


def correlate_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `correlate` in x, from dy (N, G, O, *P)."""
    blocks = c.input_blocks()

    def block(n: slice, g: slice, part: tuple[int, int]) -> None:
        target = dx[n, g, part[0] : part[1]]
        target[...] = 0
        weights = w[g, :, part[0] * c.taps : part[1] * c.taps].swapaxes(1, 2)
        for tile in tiles(c.positions, blocks.tile):
            upstream = _flat(dy, n, g, tile)
            shape = (*target.shape[:2], weights.shape[1], upstream.shape[3])
            columns = np.matmul(weights, upstream, out=_part(0, shape, dx.dtype))
            scatter(columns.reshape(_unfolded(c, target, tile)), c.axes, tile, c.mode, target)

    cuts = [
        (n, g, part)
        for n in _slices(dx.shape[0], blocks.samples)
        for g in _slices(c.groups, blocks.groups)
        for part in ranges(c.channels, blocks.channels)
    ]
    for_each(block, cuts, c.flops * dx.shape[0])


def correlate_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `correlate` in w, for each of R requests.

    `rows` says how many consecutive samples belong to each request.
    """
    blocks = c.weight_blocks()
    kernel = tuple(axis.kernel for axis in c.axes)
    dw[...] = 0

    def block(batch: Sequence[Any], g: slice, part: tuple[int, int]) -> None:
        for requests, n, each in batch:
            target = dw[requests, g, :, part[0] : part[1]]
            for tile in tiles(c.positions, blocks.tile):
                upstream = _flat(dy, n, g, tile)
                patches = _patches(c, x[n, g, part[0] : part[1]], tile, upstream.shape[3])
                shape = (*upstream.shape[:3], patches.shape[2])
                sums = np.matmul(upstream, patches.swapaxes(2, 3), out=_part(1, shape, dw.dtype))
                sums = sum_samples(sums, each)
                target += sums.reshape(*sums.shape[:3], part[1] - part[0], *kernel)

    cuts = [
        (batch, g, part)
        for batch in request_blocks(rows, blocks.samples)
        for g in _slices(c.groups, blocks.groups)
        for part in ranges(c.channels, blocks.channels)
    ]
    for_each(block, cuts, c.flops * x.shape[0])


def _slices(size: int, step: int) -> Iterator[slice]:
    return (slice(lo, hi) for lo, hi in ranges(size, step))


def _part(part: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    return scratch(prod(shape), dtype, part).reshape(shape)


def _flat_view(block: Array, width: int) -> Array | None:
    """(n, g, c, *T) as (n, g, c, T) if that is a view that BLAS can take as it is."""
    try:
        flat = block.reshape(*block.shape[:3], width, copy=False)
    except ValueError:
        return None
    return flat if flat.strides[3] == flat.itemsize or width == 1 else None


def _flat(a: Array, n: slice, g: slice, tile: Tile) -> Array:
    """A tile of (N, G, O, *P) as (n, g, O, T); copied to scratch where it does not lie so."""
    block = a[(n, g, slice(None), *(slice(lo, hi) for lo, hi in tile))]
    width = prod(block.shape[3:])
    flat = _flat_view(block, width)
    if flat is None:
        flat = _part(2, (*block.shape[:3], width), a.dtype)
        flat.reshape(block.shape)[...] = block
    return flat


def _unfolded(c: Correlation, x: Array, tile: Tile) -> tuple[int, ...]:
    return (*x.shape[:3], *(axis.kernel for axis in c.axes), *(hi - lo for lo, hi in tile))


def _patches(c: Correlation, x: Array, tile: Tile, width: int) -> Array:
    """The windows of x (n, g, c, *S) over a tile as (n, g, c·K, T)."""
    if c.pointwise:
        flat = _flat_view(x[within(slice(lo, hi) for lo, hi in tile)], width)
        if flat is not None:
            return flat
    shape = _unfolded(c, x, tile)
    columns = _part(0, shape, x.dtype)
    gather(x, c.axes, tile, c.mode, columns)
    return columns.reshape(*x.shape[:2], x.shape[2] * c.taps, width)
