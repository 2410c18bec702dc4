"""Correlation with 3×3 filters by Winograd's minimal filtering: fewer multiplications, less exact.

One axis: m outputs of an r-tap filter g over a tile d of n = m + r − 1 inputs are

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]                       n multiplications in place of m·r

with matrices from n − 1 points aᵢ and infinity (Winograd 1980, "Arithmetic complexity of
computations"; Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"). Two axes are
nested, and sums over channels are taken between the transforms, so that each of the products over
tiles is one `matmul`. Rows take tiles of 2 outputs (points 0, ±1): their transforms are sums of whole
rows. Columns take 4 with points 0, ±3/4, ±√2, which lose fewer digits than 0, ±1, ±2; their transforms
are products with a band matrix, which bring channels last and back on the way.

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
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]

TAPS = 3
ROWS = 2
"""Outputs of a tile along a column."""

COLUMNS = 4
"""Outputs of a tile along a row."""

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, sqrt(2), -sqrt(2))}
STRIP = 7
"""Tiles of one band matrix: more multiply zeros, fewer are too small to be worth a product."""

LEAST_CHANNELS = 32
LEAST_TILES = 28
FILTERS_PER_TILE = 2700


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
    def tiles(self) -> tuple[int, int]:
        """Tiles along columns and along rows."""
        rows, columns = self.c.positions
        return -(-rows // ROWS), -(-columns // COLUMNS)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Ranges of tile rows whose transforms fit a part of the scratch; none if not one does."""
        wide = max(self.c.channels, self.c.outputs) * self.tiles[1]
        fitting = PART_BYTES // self.c.itemsize // (wide * (ROWS + 2) * (COLUMNS + 2))
        if not fitting:
            return ()
        count = -(-self.tiles[0] // fitting)
        return ranges(self.tiles[0], -(-self.tiles[0] // count))

    @cached_property
    def strips(self) -> tuple[Strip, ...]:
        """The strips of tiles along a row."""
        axis, dtype = self.c.axes[1], np.dtype(f"f{self.c.itemsize}")
        count = -(-self.tiles[1] // STRIP)
        return tuple(
            _strip(axis, lo, hi, dtype)
            for lo, hi in ranges(self.tiles[1], -(-self.tiles[1] // count))
        )

    def filters(self, w: Array) -> Array:
        """The transformed filters (4, 6, C, O) of w (1, O, C·9)."""
        both = np.kron(transforms(ROWS)[1], transforms(COLUMNS)[1]).astype(w.dtype)
        taps = w.reshape(self.c.outputs, self.c.channels, TAPS * TAPS).transpose(2, 1, 0)
        found = both @ np.ascontiguousarray(taps).reshape(TAPS * TAPS, -1)
        return found.reshape(ROWS + 2, COLUMNS + 2, self.c.channels, self.c.outputs)


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
    return each * c.channels * c.outputs * c.itemsize


def suits(c: Correlation) -> bool:
    """True where the filters are 3×3 at stride 1, and one row of tiles fits the scratch."""
    plain = all(a.kernel == TAPS and a.stride == a.dilation == 1 for a in c.axes)
    fits = len(c.axes) == 2 and c.groups == 1 and c.mode == "zeros"
    return plain and fits and bool(winograd(c).blocks)


def pays(c: Correlation) -> bool:
    """True where a few samples gain more by it than transforming the filters takes.

    The bounds are about where both ways took the same time over maps of 7 to 224 rows and 16 to 512
    channels; `python -m benchmarks.kernels` compares `auto` with `direct` case by case.
    """
    rows, columns = winograd(c).tiles
    enough = min(c.channels, c.outputs) >= LEAST_CHANNELS and rows * columns >= LEAST_TILES
    return enough and c.channels * c.outputs <= FILTERS_PER_TILE * rows * columns


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·9) and bias (1, O) or None."""
    plan = winograd(c)
    filters = plan.filters(w)

    def block(n: int, tiles: tuple[int, int]) -> None:
        rows = slice(tiles[0] * ROWS, min(tiles[1] * ROWS, c.axes[0].out))
        target = y[n, 0, :, rows]
        _block(plan, x[n, 0], filters, target, tiles)
        if not np.isfinite(np.add.reduce(target, axis=None)):
            spans = ((rows.start, rows.stop), (0, c.axes[1].out))
            direct.forward_block(c, x[n : n + 1], w, None, y[n : n + 1], spans)
        if bias is not None:
            target += bias[0, :, None, None]

    cuts = [(n, tiles) for n in range(x.shape[0]) for tiles in plan.blocks]
    for_each(block, cuts, c.flops * x.shape[0])


def _block(plan: Winograd, x: Array, filters: Array, y: Array, tiles: tuple[int, int]) -> None:
    """Write the rows of y (O, rows, P) that the tile rows [lo, hi) make, from x (C, *S)."""
    count, across = tiles[1] - tiles[0], plan.tiles[1]
    heights, widths, channels, outputs = filters.shape
    inputs = _rows(plan, x, tiles)
    moved = direct.part(0, (heights, count, *inputs.shape[1:]), x.dtype)
    even, odd = inputs[0::2], inputs[1::2]
    np.subtract(even[1:], even[:-1], out=moved[0])
    np.add(odd[:-1], even[1:], out=moved[1])
    np.subtract(even[1:], odd[:-1], out=moved[2])
    np.subtract(odd[1:], odd[:-1], out=moved[3])
    spread = (heights, count * across, widths)
    products = direct.part(1, (*spread, outputs), x.dtype)
    np.matmul(
        moved.reshape(*spread, channels).swapaxes(1, 2),
        filters,
        out=products.swapaxes(1, 2),
    )
    m = products.reshape(heights, count, -1)
    sums = direct.part(0, (count, ROWS, m.shape[2]), x.dtype)
    np.add(m[1], m[2], out=sums[:, 0])
    np.add(sums[:, 0], m[0], out=sums[:, 0])
    np.subtract(m[1], m[2], out=sums[:, 1])
    np.add(sums[:, 1], m[3], out=sums[:, 1])
    _columns(plan, sums.reshape(count * ROWS, across * widths, outputs), y)


def _rows(plan: Winograd, x: Array, tiles: tuple[int, int]) -> Array:
    """The input rows under the tile rows [lo, hi), transformed along rows: (rows, tiles·6, C)."""
    axis = plan.c.axes[0]
    start = tiles[0] * ROWS - axis.low
    rows = (tiles[1] - tiles[0]) * ROWS + TAPS - 1
    lo, hi = max(0, start), max(0, start, min(axis.size, start + rows))
    shape = (rows, plan.tiles[1] * (COLUMNS + TAPS - 1), x.shape[0])
    found = direct.part(1, shape, x.dtype)
    found[: lo - start] = 0
    found[hi - start :] = 0
    lines = x[:, lo:hi].transpose(1, 2, 0)
    for strip in plan.strips:
        np.matmul(
            strip.into, lines[:, strip.inputs], out=found[lo - start : hi - start, strip.tiles]
        )
    return found


def _columns(plan: Winograd, sums: Array, y: Array) -> None:
    """Write y (O, rows, P) from the sums (rows, tiles·6, O), transformed back along rows."""
    lines = y.transpose(1, 0, 2)
    for strip in plan.strips:
        tiles, target = sums[: lines.shape[0], strip.tiles], lines[:, :, strip.outputs]
        if target.strides[2] == target.itemsize:
            np.matmul(tiles.swapaxes(1, 2), strip.back, out=target)
        else:
            np.matmul(strip.back.T, tiles, out=target.swapaxes(1, 2))
