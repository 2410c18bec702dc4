"""Correlation with 3×3 filters by Winograd's minimal filtering: fewer multiplications, less exact.

One axis: m outputs of an r-tap filter g over a tile d of n = m + r − 1 inputs are

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]                       n multiplications in place of m·r

with matrices from n − 1 points aᵢ and infinity (Winograd 1980, "Arithmetic complexity of
computations"; Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"). Two axes are
nested, and sums over channels are taken between the transforms, so that each of the products over
tiles is one `matmul`. Tiles are 4 outputs across, with points 0, ±3/4, ±√2, which lose fewer digits than 0,
±1, ±2. Down they are 4 as well, or 2 with points 0, ±1 where the sums are so long that 4 would not be as
exact as promised.

All transforms are products with band matrices, each of which serves a strip of tiles: one call for each
step of a block, since threads wait for each other at every call. A third axis before rows is summed in the
products: inputs lie depth by depth, channels last, so that the taps along depth are one longer row.

A number that is not finite would spread over its block. Results that are not finite are therefore thrown
away, and their block is done as a plain sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis, ranges
from engine.kernels import direct
from engine.kernels.correlation import Correlation
from engine.kernels.products import FIRST_LEVEL, LINE, multiply
from engine.threads import PART_BYTES, for_each

Array = NDArray[Any]
Range = tuple[int, int]
Block = tuple[Range, Range, Range]
"""Outputs along depth, and strips of tiles along columns and along rows."""

TAPS = 3
WIDTH = 4
"""Outputs of a tile along a row."""

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, sqrt(2), -sqrt(2))}

EXACT = 128
"""Channels up to which tiles of 4 by 4 keep the promise with room to spare."""

MANY = 28
"""Tiles that one product should have; it has those of a strip of rows."""

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


@cache
def bands(m: int, tiles: int, dtype: str) -> tuple[Array, Array]:
    """Bᵀ and A of a strip of tiles of m outputs: (tiles, n, inputs) and (tiles, n, outputs)."""
    output, _, inputs = transforms(m)
    n = m + TAPS - 1
    into, back = np.zeros((tiles, n, tiles * m + TAPS - 1)), np.zeros((tiles, n, tiles * m))
    for t in range(tiles):
        into[t, :, t * m : t * m + n] = inputs
        back[t, :, t * m : (t + 1) * m] = output.T
    return into.astype(dtype), back.astype(dtype)


@cache
def bands_by_point(m: int, tiles: int, dtype: str) -> tuple[Array, Array]:
    """Bᵀ (n·tiles, inputs) and Aᵀ (outputs, n·tiles), where the tiles of one point stand together."""
    into, back = (
        np.ascontiguousarray(a.swapaxes(0, 1)).reshape(-1, a.shape[2])
        for a in bands(m, tiles, dtype)
    )
    return into, np.ascontiguousarray(back.T)


@cache
def filter_matrix(height: int, dtype: str) -> Array:
    """G ⊗ G: filters 3×3 in a column of 9 to transformed ones."""
    return np.kron(transforms(height)[1], transforms(WIDTH)[1]).astype(dtype)


@dataclass(frozen=True)
class Winograd:
    """What a correlation's shape settles: the tiles, and the blocks they are cut into."""

    c: Correlation

    @cached_property
    def depth(self) -> Axis:
        """The axis before rows and columns; one input and one tap where there is none."""
        return self.c.axes[0] if len(self.c.axes) == 3 else Axis(1, 1, 1, 1, 0, 0, 1)

    @cached_property
    def height(self) -> int:
        """Outputs of a tile along a column."""
        return 4 if self.c.channels * self.depth.kernel <= EXACT else 2

    @cached_property
    def filters(self) -> int:
        """Transformed filters, and so multiplications, for each tile."""
        return (self.height + TAPS - 1) * (WIDTH + TAPS - 1)

    @cached_property
    def across(self) -> int:
        """Tiles of a strip along a row: short strips multiply few zeros, if none is left over."""
        tiles = -(-self.c.positions[-1] // WIDTH)
        sizes = (2, 3, 4) if self.c.outputs >= 64 else (7, 6, 5, 4)
        return min(sizes, key=lambda n: -(-tiles // n) * n) if tiles > 1 else 1

    @cached_property
    def strips(self) -> int:
        """Strips along a row."""
        return -(-self.c.positions[-1] // (WIDTH * self.across))

    @cached_property
    def down(self) -> int:
        """Tiles of a strip along a column: more where rows are short, for products of many tiles."""
        tiles = -(-self.c.positions[-2] // self.height)
        wanted = max(8 // self.height, -(-MANY // (self.strips * self.across)))
        return -(-tiles // max(-(-tiles // wanted), self.shares))

    @property
    def shares(self) -> int:
        """Blocks that a sample has at least."""
        return 2 if self.c.flops >= SHARED_FLOPS else 1

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks whose transforms fit the scratch; none if no strip does."""
        strip = self.filters * self.across * self.down
        capacity = PART_BYTES * 2 // 3 // self.c.itemsize // strip
        depths = min(self.depth.out, DEPTHS if self.depth.kernel > 1 else 1)
        while depths > 1 and self._wide(depths) > capacity:
            depths //= 2
        fitting = capacity // self._wide(depths)
        if not fitting:
            return ()
        columns = -(-self.strips // -(-self.strips // fitting))
        strips = -(-self.c.positions[-2] // (self.height * self.down))
        cuts = -(-strips // max(1, fitting // columns))
        rows = -(-strips // max(cuts, self.shares))
        return tuple(
            product(
                ranges(self.depth.out, depths), ranges(strips, rows), ranges(self.strips, columns)
            )
        )

    def _wide(self, depths: int) -> int:
        """Numbers of one transformed input or output over all channels and depths of a block."""
        return max(self.c.channels * (depths + self.depth.kernel - 1), self.c.outputs * depths)

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

    def transformed(self, w: Array) -> Array:
        """The transformed filters (n·6, parts, K·C, O/parts) of w (O, C, K, 9)."""
        both = filter_matrix(self.height, w.dtype.str)
        channels, deep = w.shape[1:3]
        shape = (len(both), w.shape[0] // self.together, deep * channels, self.together)
        found = np.empty(shape, w.dtype)

        def part(number: int) -> None:
            own = w[number * self.together : (number + 1) * self.together].transpose(3, 2, 1, 0)
            taps = direct.part(0, own.shape, w.dtype)
            taps[...] = own
            # Written through a copy: rows that lie a power of two apart would share cache lines.
            out = direct.part(1, (1, 1, len(both), shape[2] * shape[3]), w.dtype)
            multiply(both[None], taps.reshape(1, 1, TAPS * TAPS, -1), out)
            found[:, number] = out.reshape(len(both), *shape[2:])

        for_each(part, ((i,) for i in range(shape[1])), 2 * TAPS**2 * found.size)
        # A product for every point, down and across, as products go through them.
        return found.reshape(-1, WIDTH + TAPS - 1, 1, *found.shape[1:])


@lru_cache(maxsize=256)
def winograd(c: Correlation) -> Winograd:
    """The tiles and blocks of a correlation's shape."""
    return Winograd(c)


def filter_bytes(c: Correlation) -> int:
    """The transformed filters."""
    plan = winograd(c)
    return plan.filters * plan.depth.kernel * c.channels * c.outputs * c.itemsize


def suits(c: Correlation) -> bool:
    """True for filters 3×3, or 3×3 in depth, at stride 1, if one strip of tiles fits the scratch."""
    plain = c.groups == 1 and c.mode == "zeros" and len(c.axes) in (2, 3)
    plain = plain and all(a.stride == a.dilation == 1 for a in c.axes)
    return plain and c.kernel[-2:] == (TAPS, TAPS) and bool(winograd(c).blocks)


def pays(c: Correlation) -> bool:
    """True where a few samples gain more by it than transforming the filters takes.

    The bounds are about where both ways took the same time over maps of 7 to 224 rows and 16 to 512
    channels; `python -m benchmarks.kernels` compares `auto` with `direct` case by case.
    """
    depth = winograd(c).depth
    rows, columns = c.positions[-2:]
    tiles = depth.out * -(-rows // 2) * -(-columns // WIDTH)
    least = LEAST_CHANNELS if depth.kernel == 1 else LEAST_CHANNELS // 2
    enough = min(c.channels, c.outputs) >= least and tiles >= LEAST_TILES
    return enough and c.channels * c.outputs * depth.kernel <= FILTERS_PER_TILE * tiles


def forward(c: Correlation, x: Array, w: Array, bias: Array | None, y: Array) -> None:
    """Write y (N, 1, O, *P) from x (N, 1, C, *S), w (1, O, C·K) and bias (1, O) or None."""
    plan = winograd(c)
    filters = plan.transformed(w.reshape(c.outputs, c.channels, -1, TAPS * TAPS))
    flat = len(c.axes) == 2
    volumes = (x[:, 0, :, None], y[:, 0, :, None]) if flat else (x[:, 0], y[:, 0])

    def block(n: int, deep: Range, down: Range, across: Range) -> None:
        rows = _outputs(down, plan.down * plan.height, c.positions[-2])
        columns = _outputs(across, plan.across * WIDTH, c.positions[-1])
        target = volumes[1][n, :, slice(*deep), slice(*rows), slice(*columns)]
        last = target.strides[0] == target.itemsize
        # Planes may lie apart by a power of two, and then share the lines of the cache.
        made = target if last else direct.part(2, target.shape, y.dtype)
        _block(plan, volumes[0][n], filters, made, (deep, down, across))
        if not np.isfinite(np.add.reduce(made, axis=None)):
            spans = (deep, rows, columns)[-len(c.axes) :]
            plain = np.ascontiguousarray(w).reshape(1, c.outputs, -1)
            direct.forward_block(c, x[n : n + 1], plain, None, y[n : n + 1], spans)
            made = target
        if bias is not None:
            made += bias[0, :, None, None, None]
        if made is not target:
            target[...] = made

    cuts = [(n, *found) for n in range(x.shape[0]) for found in plan.blocks]
    for_each(block, cuts, c.flops * x.shape[0])


def _outputs(pieces: Range, each: int, most: int) -> Range:
    return pieces[0] * each, min(pieces[1] * each, most)


def _block(plan: Winograd, x: Array, filters: Array, y: Array, block: Block) -> None:
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


def _deep_rows(plan: Winograd, moved: Array, depths: int) -> Array:
    """The inputs (s, n, T, 6, D·C) under each output along depth: (s, n, 6, depths, 1, T, K·C)."""
    s, i, t, j, one = moved.strides
    channels = plan.c.channels
    strips, heights, tiles, widths, _ = moved.shape
    shape = (strips, heights, widths, depths, 1, tiles, plan.depth.kernel * channels)
    return np.ndarray(shape, moved.dtype, moved, 0, (s, i, j, channels * one, 0, t, one))


def _lines(plan: Winograd, x: Array, block: Block) -> Array:
    """The inputs x (C, D, H, W) under a block with their padding, channels last: (rows, W, D·C)."""
    steps = (1, plan.down * plan.height, plan.across * WIDTH)
    sources, targets, lengths = [], [], []
    for axis, (lo, hi), step in zip((plan.depth, *plan.c.axes[-2:]), block, steps, strict=True):
        start, stop = lo * step - axis.low, hi * step - axis.low + axis.kernel - 1
        first, last = max(0, start), max(0, start, min(axis.size, stop))
        sources.append(slice(first, last))
        targets.append(slice(first - start, last - start))
        lengths.append(stop - start)
    lines = direct.part(2, (*lengths[1:], lengths[0], x.shape[0]), x.dtype)
    if any(t.stop - t.start < n for t, n in zip(targets, lengths, strict=True)):
        lines.fill(0)
    inputs = x[(slice(None), *sources)]
    if inputs.strides[0] != inputs.itemsize:
        # Planes may lie apart by a power of two, and then share the lines of the cache.
        together = direct.part(0, inputs.shape, x.dtype)
        together[...] = inputs
        inputs = together
    lines[targets[1], targets[2], targets[0]] = inputs.transpose(2, 3, 1, 0)
    return lines.reshape(*lengths[1:], -1)


def _columns(plan: Winograd, sums: Array, y: Array) -> None:
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
