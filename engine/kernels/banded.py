"""Depthwise correlation with large windows, as products with banded matrices.

A product of one filter with gathered patches leaves most of the machine idle. Here a tile of outputs
at a time is one row: the inputs under a tile, L per axis, times a matrix that holds the filters at
every place they take within it (a Toeplitz band of them):

    Y[tile, (o, t)] = Σ_{c, l} X[tile, (c, l)] · B[(c, l), (o, t)],  B[(c, l), (o, t)] = w[o, c, k]
    where l = t·stride + k·dilation, and 0 elsewhere

The zeros cost multiplications, but those run at full rate, and gathering copies an input L/(t·stride)
times instead of once per tap. Adding 0·x changes no sum of finite numbers. Where a result is not
finite, the block is done again without the inputs that are not, and what these touch as a plain sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from engine.geometry import Axis, ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.patches import within
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]

TILE = (4, 8)
"""Outputs of a tile: larger ones multiply more zeros, smaller ones gather more."""

LEAST_TAPS = 16
MOST_TAPS = 1024
"""Windows for which it pays, and whose bands stay small."""


@dataclass(frozen=True)
class Banding:
    """How a correlation is cut into tiles of `tile` outputs, and these into blocks.

    `lengths` are the inputs under a tile; `groups` and `rows` (of tiles, along the first axis) make
    one block. `index` (C·L, O·t) says which of a group's weights stands where in the band; one past
    the last is none. `places` (O·C·K, t) are the places of each weight.
    """

    tile: tuple[int, ...]
    counts: tuple[int, ...]
    lengths: tuple[int, ...]
    groups: int
    rows: int
    index: NDArray[np.intp]
    places: NDArray[np.intp]


def suits(c: Correlation) -> bool:
    """True for depthwise correlations of an image with windows large enough to gain by it."""
    plain = all(axis.stride == axis.dilation == 1 for axis in c.axes)
    alone = c.channels == c.outputs == 1 and c.mode == "zeros"
    return plain and alone and len(c.axes) == len(TILE) and LEAST_TAPS <= c.taps <= MOST_TAPS


@lru_cache(maxsize=64)
def banding(c: Correlation) -> Banding:
    """How a correlation is cut, from its integers alone."""
    tile = tuple(min(t, a.out) for t, a in zip(TILE, c.axes, strict=True))
    lengths = tuple((t - 1) * a.stride + a.extent for t, a in zip(tile, c.axes, strict=True))
    counts = tuple(-(-a.out // t) for t, a in zip(tile, c.axes, strict=True))
    index = _index(c, tile, lengths)
    capacity = PART_BYTES // c.itemsize
    groups = max(1, min(c.groups, capacity // (2 * index.size)))
    groups = min(groups, max(1, -(-c.groups // 4)))
    line = prod(counts[1:]) * max(index.shape)
    groups = max(1, min(groups, capacity // line))
    rows = max(1, min(counts[0], capacity // (groups * line)))
    order = np.argsort(index, axis=None, kind="stable")
    places = order[: c.outputs * c.channels * c.taps * prod(tile)]
    return Banding(tile, counts, lengths, groups, rows, index, places.reshape(-1, prod(tile)))


def _index(c: Correlation, tile: tuple[int, ...], lengths: tuple[int, ...]) -> NDArray[np.intp]:
    dims = len(tile)
    tap = np.zeros((1,) * 2 * dims, np.intp)
    fits = np.ones((1,) * 2 * dims, np.bool_)
    for d, axis in enumerate(c.axes):
        offset = np.arange(lengths[d])[:, None] - np.arange(tile[d]) * axis.stride
        one = (offset >= 0) & (offset % axis.dilation == 0) & (offset < axis.extent)
        shape = [1] * 2 * dims
        shape[d], shape[dims + d] = lengths[d], tile[d]
        tap = tap * axis.kernel + (offset // axis.dilation).reshape(shape)
        fits = fits & one.reshape(shape)
    none = c.outputs * c.channels * c.taps
    filters = np.arange(c.outputs) * c.channels + np.arange(c.channels)[:, None]
    filters = filters.reshape(c.channels, *(1,) * dims, c.outputs, *(1,) * dims)
    tap, fits = np.expand_dims(tap, dims), np.expand_dims(fits, dims)
    index = np.where(fits, filters * c.taps + tap, none)
    return index.reshape(c.channels * prod(lengths), c.outputs * prod(tile))


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, G, O, *P) from x (N, G, C, *S), w (G, O, C·K) and bias (G, O) or None."""
    b = banding(c)

    def block(g: slice) -> None:
        band = _band(b, w[g])
        bad = [n for n in range(x.shape[0]) if not _sample(c, b, x[n, g], band, y[n, g])]
        for n in bad:
            plain = np.empty((1, *y[n, g].shape), y.dtype)
            for tile in c.forward_tiles:
                direct.forward_block(c, x[n : n + 1, g], w[g], None, plain, tile)
            np.copyto(y[n, g], plain[0], where=~np.isfinite(plain[0]))
        if bias is not None:
            y[:, g] += bias[g].reshape(-1, c.outputs, *(1,) * len(c.axes))

    cuts = [(g,) for g in direct.slices(c.groups, b.groups)]
    for_each(block, cuts, c.flops * x.shape[0])


def _sample(c: Correlation, b: Banding, x: Array, band: Array, y: Array) -> bool:
    """Write y (g, O, *P) of one sample; False where not every number of it is finite."""
    finite = True
    for lo, hi in ranges(b.counts[0], b.rows):
        counts = (hi - lo, *b.counts[1:])
        tiles = _input_tiles(c, b, x, lo, counts)
        out = direct.part(1, (x.shape[0], prod(counts), band.shape[2]), y.dtype)
        np.matmul(tiles, band, out=out)
        if not np.isfinite(np.add.reduce(out, axis=None)):
            finite = False
            tiles[~np.isfinite(tiles)] = 0
            np.matmul(tiles, band, out=out)
        for theirs, ours in _pieces(c, b, lo, counts, out, y):
            theirs[...] = ours
    return finite


def backward_weight(c: Correlation, x: Array, dy: Array, rows: Sequence[int], dw: Array) -> None:
    """Write dw (R, G, O, C, *K), the adjoint of `forward` in w, for each of R requests."""
    b = banding(c)

    def block(request: int, samples: range, g: slice) -> None:
        shape = (len(range(*g.indices(c.groups))), *b.index.shape)
        total, partial = direct.part(2, (2, *shape), dw.dtype)
        total.fill(0)
        for n in samples:
            for lo, hi in ranges(b.counts[0], b.rows):
                counts = (hi - lo, *b.counts[1:])
                tiles = _input_tiles(c, b, x[n, g], lo, counts)
                upstream = direct.part(1, (shape[0], prod(counts), shape[2]), dw.dtype)
                if any(n * t > a.out for n, t, a in zip(b.counts, b.tile, c.axes, strict=True)):
                    upstream.fill(0)
                for theirs, ours in _pieces(c, b, lo, counts, upstream, dy[n, g]):
                    ours[...] = theirs
                np.matmul(tiles.swapaxes(1, 2), upstream, out=partial)
                np.add(total, partial, out=total)
        sums = total.reshape(shape[0], -1).take(b.places, axis=1)
        dw[request, g] = np.add.reduce(sums, axis=2).reshape(dw[request, g].shape)

    cuts, start = [], 0
    for request, count in enumerate(rows):
        samples = range(start, start + count)
        cuts += [(request, samples, g) for g in direct.slices(c.groups, b.groups)]
        start += count
    for_each(block, cuts, c.flops * x.shape[0])


def _band(b: Banding, w: Array) -> Array:
    """The bands (g, C·L, O·t) of weights (g, O, C·K)."""
    padded = np.zeros((w.shape[0], w.shape[1] * w.shape[2] + 1), w.dtype)
    padded[:, :-1] = w.reshape(w.shape[0], -1)
    band = direct.part(2, (w.shape[0], *b.index.shape), w.dtype)
    return np.take(padded, b.index, axis=1, out=band, mode="clip")


def _input_tiles(c: Correlation, b: Banding, x: Array, row: int, counts: tuple[int, ...]) -> Array:
    """The inputs under the tiles [row, …) of x (g, C, *S) as (g, tiles, C·L), with zero padding."""
    g, channels = x.shape[:2]
    starts = [row * b.tile[0] * c.axes[0].stride - c.axes[0].low, *(-a.low for a in c.axes[1:])]
    steps = [t * a.stride for t, a in zip(b.tile, c.axes, strict=True)]
    shape = [(n - 1) * s + m for n, s, m in zip(counts, steps, b.lengths, strict=True)]
    source, target = [], []
    for start, size, axis in zip(starts, shape, c.axes, strict=True):
        lo, hi = max(0, start), max(0, start, min(axis.size, start + size))
        source.append(slice(lo, hi))
        target.append(slice(lo - start, hi - start))
    slab = direct.part(1, (g, channels, *shape), x.dtype)
    if any(s.start or s.stop < n for s, n in zip(target, shape, strict=True)):
        slab.fill(0)
    slab[within(target)] = x[within(source)]
    tiles = direct.part(0, (g, *counts, channels, *b.lengths), x.dtype)
    own, moves = slab.strides[2:], [n * s for n, s in zip(slab.strides[2:], steps, strict=True)]
    view = as_strided(slab, tiles.shape, (slab.strides[0], *moves, slab.strides[1], *own))
    np.copyto(tiles, view)
    return tiles.reshape(g, prod(counts), -1)


def _pieces(
    c: Correlation, b: Banding, row: int, counts: tuple[int, ...], tiles: Array, y: Array
) -> Iterator[tuple[Array, Array]]:
    """Views of y (g, O, *P) and of its tiles (g, tiles, O·t) that hold the same numbers.

    Whole tiles are one piece; where the last along an axis reaches past the outputs, it is cut.
    """
    dims = len(b.tile)
    grid = tiles.reshape(tiles.shape[0], *counts, c.outputs, *b.tile)
    order = [0, 1 + dims, *(n for d in range(dims) for n in (1 + d, 2 + dims + d))]
    grid = grid.transpose(order)
    along = [
        list(_spans(axis, t, row if d == 0 else 0, n))
        for d, (axis, t, n) in enumerate(zip(c.axes, b.tile, counts, strict=True))
    ]
    for spans in product(*along):
        box = y[within(slice(lo, hi) for lo, hi, _, _ in spans)]
        parts = [n for _, _, tiles_, t in spans for n in (tiles_.stop - tiles_.start, t)]
        cut = [i for _, _, tiles_, t in spans for i in (tiles_, slice(0, t))]
        yield box.reshape(*box.shape[:2], *parts, copy=False), grid[(..., *cut)]


def _spans(axis: Axis, tile: int, first: int, count: int) -> Iterator[tuple[int, int, slice, int]]:
    """Outputs [lo, hi), the tiles that hold them, and how much of each: whole ones, then the rest."""
    start = first * tile
    whole = min(count, (axis.out - start) // tile)
    if whole:
        yield start, start + whole * tile, slice(0, whole), tile
    rest = min(axis.out, start + count * tile) - start - whole * tile
    if rest > 0:
        yield start + whole * tile, start + whole * tile + rest, slice(whole, whole + 1), rest
