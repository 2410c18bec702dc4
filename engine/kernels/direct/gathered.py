"""Correlation as a plain sum, and its adjoints, by products of weights with gathered patches.

Patches of one block are gathered into this thread's scratch and multiplied with one `matmul`, whose
size is fixed by the plan. So the bits of a sample do not depend on how many samples came with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, part
from engine.geometry import Tile, lengths, ranges, slices, tiles
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.gathering import Gathering, gathering, in_windows, recipe
from engine.kernels.kept import kept
from engine.kernels.nan import may_be_nan, settle, squares
from engine.kernels.patches import gather, lay, scatter, within
from engine.kernels.products import LINE, in_place_last, multiply
from engine.kernels.viewing import flat_view
from engine.threads import for_each, get_threads, samples_each

Array = NDArray[Any]

LEAST_MADE = 1 << 16
"""Results that take as long to be looked at as the calls that look at what they are made from."""


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    blocks = c.forward_blocks
    if _lies_last(y):
        # Results lie channels last, so weights are read filter by filter; into panels, in any order.
        depth = min(lengths(c.channels, blocks.channels)) * c.taps
        if in_place_last(c.share, depth):
            w = np.ascontiguousarray(w.swapaxes(1, 2)).swapaxes(1, 2)

    def block(n: slice, g: slice, tile: Tile, o: slice) -> None:
        add = None if bias is None else bias[g, o]
        target = y[n, g, o][within(slice(lo, hi) for lo, hi in tile)]
        forward_block(c, x[n, g], w[g, o], add, target, tile, known)

    known = _known(c, w, bias)
    cuts = [
        (n, g, tile)
        for n in slices(x.shape[0], _together(c, x.shape[0]))
        for g in slices(c.groups, blocks.groups)
        for tile in c.forward_tiles
    ]
    for_each(block, with_outputs(c, cuts), c.flops * x.shape[0])


def with_outputs(c: Correlation, cuts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Blocks, each of all outputs, or of one share of them where they are fewer than threads.

    Threads that would have nothing to do gather the same patches for other outputs. A block makes a product
    of each of its shares, so that no bit hangs on this.
    """
    each = c.share if len(cuts) < get_threads() else c.outputs
    return ((*cut, o) for cut in cuts for o in slices(c.outputs, each))


def _lies_last(y: Array) -> bool:
    """Whether channels are last in memory."""
    return y.strides[2] == y.itemsize != y.strides[-1]


def _together(c: Correlation, samples: int) -> int:
    """Samples of a block: as many in each, and as many blocks for each thread, if that is worth it."""
    most = c.forward_blocks.samples
    return most if c.flops * samples < SHARED_FLOPS else samples_each(samples, most)


def _known(c: Correlation, w: Array, bias: Array | None) -> float:
    """The squares of weights and bias, where looking at these and at patches is quicker than at outputs."""
    made, rows = c.outputs * c.places, c.channels * c.taps
    quicker = made >= LEAST_MADE and rows * (c.outputs + c.places) <= made
    if not quicker or c.channels_last or in_windows(c.axes):
        return inf
    return squares(w) + (0.0 if bias is None else squares(bias))


def forward_block(
    c: Correlation,
    x: Array,
    w: Array,
    bias: Array | None,
    y: Array,
    tile: Tile,
    known: float = inf,
) -> None:
    """Write a tile of outputs, y (n, g, O, *T), from x (n, g, C, *S), w (g, O, C·K) and bias (g, O).

    O are all outputs or one share of them: each share is a product of its own either way. NaN have
    their one pattern of bits. `known` are the squares of weights and bias, if they are known.
    """
    flat = flat_view(y, prod(y.shape[3:]))
    v = _block(c, tile, y.shape[:3], flat is None, _lies_last(y))
    out = v.out if flat is None else flat
    read = 0.0
    for channels, rows in v.chunks:
        columns = patches(c, x[:, :, channels], tile, v.width)
        if known < inf:
            read += squares(columns)
        weights = w if len(v.chunks) == 1 else w[..., rows]
        made = v.made if channels.start else out
        for o in v.shares:
            multiply(weights[:, o], columns, made[:, :, o], c.packed)
        if made is not out:
            out += made
    if bias is not None:
        out += bias[..., None]
    if known == inf or may_be_nan(known, read, out.dtype):
        settle(out)
    if flat is None:
        np.copyto(y, v.unfolded)


@dataclass(frozen=True, slots=True)
class _Block:
    """Views for a tile of outputs.

    Attributes:
        width: positions of the tile.
        chunks: channels, and the rows of their patches.
        shares: outputs of one product each.
        out: the results (n, g, O, T), where they do not go to y; `unfolded` the same as (n, g, O, *T).
        made: the results of one chunk, where there are several.
    """

    width: int
    chunks: tuple[tuple[slice, slice], ...]
    shares: tuple[slice, ...]
    out: Array
    unfolded: Array
    made: Array


@kept
def _block(c: Correlation, tile: Tile, lead: tuple[int, ...], apart: bool, last: bool) -> _Block:
    """This thread's views for a tile of `lead`, which is (n, g, O).

    Args:
        apart: whether y is no place for it.
        last: whether y has its channels last; so have results that are apart, which are copied in runs.
    """
    sizes = tuple(hi - lo for lo, hi in tile)
    width, dtype = prod(sizes), np.dtype(f"f{c.itemsize}")
    chunks = tuple(
        (slice(lo, hi), slice(lo * c.taps, hi * c.taps))
        for lo, hi in ranges(c.channels, c.forward_blocks.channels)
    )
    order = (0, 1, 3, 2) if last else (0, 1, 2, 3)
    whole = (*lead, width if apart else 0)
    out = part(2, tuple(whole[axis] for axis in order), dtype).transpose(order)
    made = part(1, (*lead, width if len(chunks) > 1 else 0), dtype)
    unfolded = out.reshape(*lead, *sizes) if apart else out
    return _Block(width, chunks, tuple(slices(lead[2], c.share)), out, unfolded, made)


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of `forward` in x, from dy (N, G, O, *P) and w (G, O, C·K)."""
    blocks = c.input_blocks
    put = lay if c.disjoint else partial(scatter, mode=c.mode)
    covered = c.disjoint and all(axis.out * axis.stride == axis.size for axis in c.axes)

    def block(n: slice, g: slice, channels: tuple[int, int]) -> None:
        target = dx[n, g, channels[0] : channels[1]]
        if not covered:
            target[...] = 0
        weights = w[g, :, channels[0] * c.taps : channels[1] * c.taps].swapaxes(1, 2)
        for tile in tiles(c.positions, blocks.tile):
            upstream = flat_tile(dy[n, g], tile)
            shape = (*target.shape[:2], weights.shape[1], upstream.shape[3])
            columns = part(0, shape, dx.dtype)
            multiply(weights, upstream, columns)
            sizes = (hi - lo for lo, hi in tile)
            unfolded = columns.reshape(*target.shape[:3], *c.kernel, *sizes)
            put(unfolded, c.axes, tile, x=target)
        settle(target)

    for_each(block, input_cuts(c, dx.shape[0]), c.flops * dx.shape[0])


def input_cuts(c: Correlation, samples: int) -> list[tuple[slice, slice, tuple[int, int]]]:
    """Samples, groups and channels of dx that are written at one go."""
    blocks = c.input_blocks
    return [
        (n, g, channels)
        for n in slices(samples, blocks.samples)
        for g in slices(c.groups, blocks.groups)
        for channels in ranges(c.channels, blocks.channels)
    ]


def flat_tile(a: Array, tile: Tile) -> Array:
    """A tile of (n, g, O, *P) as (n, g, O, T); copied to scratch where it does not lie so."""
    block = a[within(slice(lo, hi) for lo, hi in tile)]
    width = prod(block.shape[3:])
    flat = flat_view(block, width)
    if flat is None:
        flat = part(2, (*block.shape[:3], width), a.dtype)
        flat.reshape(block.shape)[...] = block
    return flat


def patches(c: Correlation, x: Array, tile: Tile, width: int) -> Array:
    """The windows of x (n, g, c, *S) over a tile as (n, g, c·K, T)."""
    if c.pointwise:
        flat = flat_view(x[within(slice(lo, hi) for lo, hi in tile)], width)
        if flat is not None:
            return flat
    v = _windows(c, tile, x.shape[:3], x.strides[-1] == x.itemsize)
    if v.gathering is None:
        gather(x, c.axes, tile, c.mode, v.windows)
    else:
        v.gathering.load(x)
    return v.columns


@dataclass(frozen=True, slots=True)
class _Windows:
    """Views for the windows under a tile.

    Attributes:
        columns: the windows (n, g, c·K, T); `windows` the same as (n, g, c, *K, *T).
        gathering: what fills them, where they go by way of a slab.
    """

    columns: Array
    windows: Array
    gathering: Gathering | None


@kept
def _windows(c: Correlation, tile: Tile, lead: tuple[int, ...], in_rows: bool) -> _Windows:
    """This thread's views for the windows of `lead`, which is (n, g, c).

    `in_rows` says that rows of x are consecutive.
    """
    sizes = tuple(hi - lo for lo, hi in tile)
    width = prod(sizes)
    found = recipe(c.axes, tile, c.itemsize, c.mode)
    slab = not (found.direct and in_rows) and found.slab is not None
    columns = _columns(c, lead, width, np.dtype(f"f{c.itemsize}"))
    windows = columns.reshape(*lead, *c.kernel, *sizes, copy=False)
    return _Windows(columns, windows, gathering(found, windows) if slab else None)


def _columns(c: Correlation, lead: tuple[int, ...], width: int, dtype: np.dtype[Any]) -> Array:
    """A place for the windows of (n, g, c) channels at `width` positions, as (n, g, c·K, T)."""
    # Rows begin on cache lines, so that tiles of them do, if they fit the scratch so.
    pitch, rows = -(-width // LINE) * LINE, lead[2] * c.taps
    if in_windows(c.axes):
        return part(0, (*lead[:2], width, rows), dtype).swapaxes(2, 3)
    if width <= LINE or prod(lead[:2]) * rows * pitch * dtype.itemsize > PART_BYTES:
        pitch = width
    return part(0, (*lead[:2], rows, pitch), dtype)[..., :width]
