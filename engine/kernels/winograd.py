"""Correlation with 3×3 filters by Winograd's minimal filtering: fewer multiplications, less exact.

One axis: m outputs of an r-tap filter g over a tile d of n = m + r − 1 inputs are

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]                       n multiplications in place of m·r

with matrices from n − 1 points aᵢ and infinity (Winograd 1980, "Arithmetic complexity of
computations"; Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"). Two axes are
nested, and sums over channels are taken between the transforms, so that each of the products over
tiles is one `matmul`. Rows take tiles of 2 outputs (points 0, ±1): their transforms are sums of whole
rows. Columns take 4 with points 0, ±3/4, ±√2, which lose fewer digits than 0, ±1, ±2; their transforms
are products with a band matrix, which bring channels last and back on the way.

A third axis before them is summed in the products: a tile's inputs lie depth by depth, channels last, so
that the taps along depth are one longer row of the product.

A number that is not finite would spread over its tile. Results that are not finite are therefore
thrown away, and their block is done as a plain sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.products import FIRST_LEVEL, LINE
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]
Range = tuple[int, int]
Block = tuple[Range, Range]
"""Outputs along depth, and rows of tiles."""

TAPS = 3
ROWS = 2
"""Outputs of a tile along a column."""

COLUMNS = 4
"""Outputs of a tile along a row."""

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, sqrt(2), -sqrt(2))}
STRIP = 7
"""Tiles of one band matrix: more multiply zeros, fewer are too small to be worth a product."""

DEPTHS = 8
"""Outputs along depth of a block: fewer transform more inputs twice, more leave the cache."""

LEAST_CHANNELS = 32
LEAST_TILES = 28
FILTERS_PER_TILE = 2700

SHARED_FLOPS = 16_000_000
"""Work of a sample from which it is cut into two blocks at least, for two threads."""


def transforms(m: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Aᵀ (m, n), G (n, 3) and Bᵀ (n, n) of F(m, 3)."""
    points = np.array(POINTS[m])
    n = m + TAPS - 1
    output, filters, inputs = np.zeros((m, n)), np.zeros((n, TAPS)), np.zeros((n, n))
    for i, a in enumerate(points):
        others = np.delete(points, i)
        output[:, i] = a ** np.arange(m)
        filters[i] = a ** np.arange(TAPS) / np.prod(a - others)
        inputs[i, : n - 1] = np.poly(others)[::-1]
    output[m - 1, n - 1] = filters[n - 1, TAPS - 1] = 1
    inputs[n - 1] = np.poly(points)[::-1]
    return output, filters, inputs


@dataclass(frozen=True)
class Winograd:
    """What a correlation's shape settles: band matrices of each strip of tiles, and blocks of rows."""

    c: Correlation

    @cached_property
    def depth(self) -> Axis:
        """The axis before rows and columns; one input and one tap where there is none."""
        return self.c.axes[0] if len(self.c.axes) == 3 else Axis(1, 1, 1, 1, 0, 0, 1)

    @cached_property
    def tiles(self) -> tuple[int, int]:
        """Tiles along columns and along rows."""
        rows, columns = self.c.positions[-2:]
        return -(-rows // ROWS), -(-columns // COLUMNS)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Ranges of depths and of tile rows whose transforms fit the scratch; none if no row does."""
        capacity = PART_BYTES // self.c.itemsize // (self.tiles[1] * (ROWS + 2) * (COLUMNS + 2))
        depths = min(self.depth.out, DEPTHS if self.depth.kernel > 1 else 1)
        while depths > 1 and self._wide(depths) > capacity:
            depths //= 2
        fitting = capacity // self._wide(depths)
        if not fitting:
            return ()
        # Half a part stays in the cache until the next step reads it.
        fitting = max(1, fitting // 2)
        count = max(-(-self.tiles[0] // fitting), 2 if self.c.flops >= SHARED_FLOPS else 1)
        along = ranges(self.tiles[0], -(-self.tiles[0] // count))
        return tuple((deep, rows) for deep in ranges(self.depth.out, depths) for rows in along)

    def _wide(self, depths: int) -> int:
        """Numbers of one transformed input or output over all channels and depths of a block."""
        return max(self.c.channels * (depths + self.depth.kernel - 1), self.c.outputs * depths)

    @cached_property
    def strips(self) -> tuple[Strip, ...]:
        """The strips of tiles along a row."""
        axis, dtype = self.c.axes[-1], np.dtype(f"f{self.c.itemsize}")
        count = -(-self.tiles[1] // STRIP)
        return tuple(
            _strip(axis, lo, hi, dtype)
            for lo, hi in ranges(self.tiles[1], -(-self.tiles[1] // count))
        )

    @cached_property
    def together(self) -> int:
        """Filters of one product: as many as stay in the first-level cache, all if none do."""
        deep = self.depth.kernel * self.c.channels
        fitting = [
            n
            for n in range(LINE, self.c.outputs + 1, LINE)
            if self.c.outputs % n == 0 and n * deep <= FIRST_LEVEL
        ]
        return max(fitting, default=self.c.outputs)

    def filters(self, w: Array) -> Array:
        """The transformed filters (4, 6, parts, K·C, O/parts) of w (1, O, C·K·9)."""
        both = np.kron(transforms(ROWS)[1], transforms(COLUMNS)[1]).astype(w.dtype)
        channels, deep = self.c.channels, self.depth.kernel
        taps = w.reshape(-1, self.together, channels, deep, TAPS * TAPS).transpose(4, 0, 3, 2, 1)
        found = both @ np.ascontiguousarray(taps).reshape(TAPS * TAPS, -1)
        return found.reshape(ROWS + 2, COLUMNS + 2, -1, deep * channels, self.together)


@dataclass(frozen=True)
class Strip:
    """Tiles [lo, hi) of a row: the inputs and outputs they touch, and the matrices between."""

    tiles: slice
    inputs: slice
    outputs: slice
    into: Array
    back: Array


def _strip(axis: Axis, lo: int, hi: int, dtype: np.dtype[Any]) -> Strip:
    output, _, inputs = transforms(COLUMNS)
    n = COLUMNS + TAPS - 1
    first, last = lo * COLUMNS - axis.low, hi * COLUMNS - axis.low + TAPS - 1
    real = slice(max(0, first), max(0, min(axis.size, last)))
    made = slice(lo * COLUMNS, min(axis.out, hi * COLUMNS))
    into = np.zeros(((hi - lo) * n, last - first))
    back = np.zeros(((hi - lo) * n, (hi - lo) * COLUMNS))
    for t in range(hi - lo):
        into[t * n : (t + 1) * n, t * COLUMNS : t * COLUMNS + n] = inputs
        back[t * n : (t + 1) * n, t * COLUMNS : (t + 1) * COLUMNS] = output.T
    into = into[:, real.start - first : real.stop - first]
    back = back[:, : made.stop - made.start]
    return Strip(
        slice(lo * n, hi * n),
        real,
        made,
        np.ascontiguousarray(into, dtype),
        np.ascontiguousarray(back, dtype),
    )


@lru_cache(maxsize=256)
def winograd(c: Correlation) -> Winograd:
    """The matrices and blocks of a correlation's shape."""
    return Winograd(c)


def filter_bytes(c: Correlation) -> int:
    """The transformed filters, and the filters in the order that the transform reads."""
    each = (ROWS + TAPS - 1) * (COLUMNS + TAPS - 1) + TAPS * TAPS
    return each * c.taps // TAPS**2 * c.channels * c.outputs * c.itemsize


def suits(c: Correlation) -> bool:
    """True for filters 3×3, or 3×3 in depth, at stride 1, if one row of tiles fits the scratch."""
    plain = c.groups == 1 and c.mode == "zeros" and len(c.axes) in (2, 3)
    plain = plain and all(a.stride == a.dilation == 1 for a in c.axes)
    return plain and c.kernel[-2:] == (TAPS, TAPS) and bool(winograd(c).blocks)


def pays(c: Correlation) -> bool:
    """True where a few samples gain more by it than transforming the filters takes.

    The bounds are about where both ways took the same time over maps of 7 to 224 rows and 16 to 512
    channels; `python -m benchmarks.kernels` compares `auto` with `direct` case by case.
    """
    plan = winograd(c)
    tiles, deep = plan.depth.out * plan.tiles[0] * plan.tiles[1], plan.depth.kernel
    least = LEAST_CHANNELS if deep == 1 else LEAST_CHANNELS // 2
    enough = min(c.channels, c.outputs) >= least and tiles >= LEAST_TILES
    return enough and c.channels * c.outputs * deep <= FILTERS_PER_TILE * tiles


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·K) and bias (1, O) or None."""
    plan = winograd(c)
    filters = plan.filters(w)
    volumes = (x[:, 0], y[:, 0]) if len(c.axes) == 3 else (x[:, 0, :, None], y[:, 0, :, None])

    def block(n: int, deep: Range, tiles: Range) -> None:
        rows = (tiles[0] * ROWS, min(tiles[1] * ROWS, c.positions[-2]))
        target = volumes[1][n, :, slice(*deep), slice(*rows)]
        _block(plan, volumes[0][n], filters, target, deep, tiles)
        if not np.isfinite(np.add.reduce(target, axis=None)):
            spans = (deep, rows, (0, c.positions[-1]))[-len(c.axes) :]
            direct.forward_block(c, x[n : n + 1], w, None, y[n : n + 1], spans)
        if bias is not None:
            target += bias[0, :, None, None, None]

    cuts = [(n, deep, tiles) for n in range(x.shape[0]) for deep, tiles in plan.blocks]
    for_each(block, cuts, c.flops * x.shape[0])


def _block(plan: Winograd, x: Array, filters: Array, y: Array, deep: Range, tiles: Range) -> None:
    """Write y (O, depths, rows, P) of the depths and tile rows given, from x (C, D, H, W)."""
    count, across = tiles[1] - tiles[0], plan.tiles[1]
    heights, widths, parts, _, together = filters.shape
    inputs = _rows(plan, x, deep, tiles)
    moved = direct.part(0, (heights, count, *inputs.shape[1:]), x.dtype)
    even, odd = inputs[0::2], inputs[1::2]
    np.subtract(even[1:], even[:-1], out=moved[0])
    np.add(odd[:-1], even[1:], out=moved[1])
    np.subtract(even[1:], odd[:-1], out=moved[2])
    np.subtract(odd[1:], odd[:-1], out=moved[3])
    depths = deep[1] - deep[0]
    spread = (heights, count * across, widths)
    products = direct.part(1, (*spread, depths, parts, together), x.dtype)
    np.matmul(
        _deep_rows(plan, moved.reshape(*spread, -1, x.shape[0]), depths),
        filters[:, :, None],
        out=products.transpose(0, 2, 3, 4, 1, 5),
    )
    m = products.reshape(heights, count, -1)
    sums = direct.part(0, (count, ROWS, m.shape[2]), x.dtype)
    np.add(m[1], m[2], out=sums[:, 0])
    np.add(sums[:, 0], m[0], out=sums[:, 0])
    np.subtract(m[1], m[2], out=sums[:, 1])
    np.add(sums[:, 1], m[3], out=sums[:, 1])
    _columns(plan, sums.reshape(count * ROWS, across * widths, depths, -1), y)


def _deep_rows(plan: Winograd, moved: Array, depths: int) -> Array:
    """The inputs (4, T, 6, D, C) under each output along depth, as (4, 6, depths, 1, T, K·C)."""
    i, t, j, d, one = moved.strides
    heights, count, widths, _, channels = moved.shape
    shape = (heights, widths, depths, 1, count, plan.depth.kernel * channels)
    return np.ndarray(shape, moved.dtype, moved, 0, (i, j, d, 0, t, one))


def _rows(plan: Winograd, x: Array, deep: Range, tiles: Range) -> Array:
    """The input rows under the tile rows [lo, hi), transformed along rows: (rows, tiles·6, D·C)."""
    axis = plan.c.axes[-2]
    start = tiles[0] * ROWS - axis.low
    rows = (tiles[1] - tiles[0]) * ROWS + TAPS - 1
    lo, hi = max(0, start), max(0, start, min(axis.size, start + rows))
    lines = _lines(plan, x[:, :, lo:hi], deep)
    shape = (rows, plan.tiles[1] * (COLUMNS + TAPS - 1), lines.shape[2])
    found = direct.part(1, shape, x.dtype)
    found[: lo - start] = 0
    found[hi - start :] = 0
    for strip in plan.strips:
        np.matmul(
            strip.into, lines[:, strip.inputs], out=found[lo - start : hi - start, strip.tiles]
        )
    return found


def _lines(plan: Winograd, x: Array, deep: Range) -> Array:
    """The rows x (C, D, rows, W) under some depths, channels last: (rows, W, D·C)."""
    axis = plan.depth
    start, stop = deep[0] - axis.low, deep[1] - axis.low + axis.kernel - 1
    lo, hi = max(0, start), max(0, start, min(axis.size, stop))
    lines = x[:, lo:hi].transpose(2, 3, 1, 0)
    if stop - start == lines.shape[2] == 1 and lines.strides[3] == lines.itemsize:
        return lines[:, :, 0]
    # BLAS would read a plane for each channel, all at a time.
    copied = direct.part(2, (*lines.shape[:2], stop - start, lines.shape[3]), x.dtype)
    copied[:, :, : lo - start] = 0
    copied[:, :, hi - start :] = 0
    copied[:, :, lo - start : hi - start] = lines
    return copied.reshape(*lines.shape[:2], -1)


def _columns(plan: Winograd, sums: Array, y: Array) -> None:
    """Write y (O, D, rows, P) from the sums (rows, tiles·6, D, O), transformed back along rows."""
    lines = y.transpose(2, 1, 0, 3)
    for strip in plan.strips:
        tiles, target = sums[: lines.shape[0], strip.tiles], lines[..., strip.outputs]
        if target.strides[3] == target.itemsize:
            np.matmul(tiles.transpose(0, 2, 3, 1), strip.back, out=target)
        else:
            np.matmul(strip.back.T, tiles.swapaxes(1, 2), out=target.swapaxes(2, 3))
