"""How Winograd's filtering cuts a correlation: transforms of a tile, strips of tiles, blocks of strips.

One axis: m outputs of an r-tap filter g over a tile d of n = m + r − 1 inputs are

    y = Aᵀ [(G g) ⊙ (Bᵀ d)]                       n multiplications in place of m·r

with matrices from n − 1 points aᵢ and infinity (Winograd 1980, "Arithmetic complexity of
computations"; Lavin and Gray 2016, "Fast algorithms for convolutional neural networks"). Tiles are 4
outputs across, with points 0, ±3/4, ±√2, which lose fewer digits than 0, ±1, ±2. Down they are 4 as well,
or 2 with points 0, ±1 where sums are so long that 4 would not be as exact as promised.

A strip of tiles is transformed by one product with a band matrix. All of it is integers and small matrices,
worked out once for each correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import LINE, PART_BYTES
from engine.geometry import Axis, ranges
from engine.kernels.correlation import SHARED_FLOPS, Correlation
from engine.kernels.products import shares
from engine.kernels.spacing import WRITTEN, pitch

Array = NDArray[Any]
Range = tuple[int, int]
Block = tuple[Range, Range, Range]
"""Outputs along depth, and strips of tiles along columns and along rows."""

TAPS = 3
WIDTH = 4
"""Outputs of a tile along a row."""

POINTS = {2: (0.0, 1.0, -1.0), 4: (0.0, 0.75, -0.75, sqrt(2), -sqrt(2))}

FAST = 128
"""Channels up to which tiles of 4 by 4 serve; with more, errors grow further."""

MANY = 28
"""Tiles that one product should have; it has those of a strip of rows."""

DEPTHS = 8
"""Outputs along depth of a block: fewer transform more inputs twice, more leave the cache."""


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
class Tiling:
    """What a correlation's shape settles: the tiles, and the blocks they are cut into."""

    c: Correlation
    height: int
    """Outputs of a tile along a column."""

    @cached_property
    def depth(self) -> Axis:
        """The axis before rows and columns; one input and one tap where there is none."""
        return self.c.axes[0] if len(self.c.axes) == 3 else Axis(1, 1, 1, 1, 0, 0, 1)

    @cached_property
    def filters(self) -> int:
        """Transformed filters, and so multiplications, for each tile."""
        return (self.height + TAPS - 1) * (WIDTH + TAPS - 1)

    @cached_property
    def across(self) -> int:
        """Tiles of a strip along a row: short strips multiply few zeros, if none is left over."""
        tiles = -(-self.c.positions[-1] // WIDTH)
        sizes = (2, 3, 4, 5, 6, 7) if self.c.outputs >= 64 else (7, 6, 5, 4)
        return min(sizes, key=lambda n: -(-tiles // n) * n) if tiles > 1 else 1

    @cached_property
    def strips(self) -> int:
        """Strips along a row."""
        return -(-self.c.positions[-1] // (WIDTH * self.across))

    @cached_property
    def down(self) -> int:
        """Tiles of a strip along a column: more where rows are short, for products of many tiles.

        Where the scratch has not room for so many, as many as come nearest.
        """
        tiles = -(-self.c.positions[-2] // self.height)
        room = max(1, self._capacity // (self.filters * self.across * self._wide(1)))

        def together(down: int) -> int:
            return down * self.across * min(self.strips, room // down)

        least = min(8 // self.height, room)
        lengths = sorted(
            {
                -(-tiles // max(-(-tiles // down), self.least))
                for down in range(least, min(room, MANY) + 1)
            }
        )
        # The shortest that make enough, else the shortest of those that come nearest.
        return next((n for n in lengths if together(n) >= MANY), max(lengths, key=together))

    @property
    def least(self) -> int:
        """Blocks that a sample has at least: two for two threads, if both have tiles enough."""
        tiles = self.strips * self.across * -(-self.c.positions[-2] // self.height)
        return 2 if self.c.flops >= SHARED_FLOPS and tiles >= 3 * MANY // 2 else 1

    @cached_property
    def _fitting(self) -> tuple[int, int]:
        """Outputs along depth of a block, and how many strips of them fit the scratch."""
        strip = self.filters * self.across * self.down
        capacity = self._capacity // strip
        depths = min(self.depth.out, DEPTHS if self.depth.kernel > 1 else 1)
        while depths > 1 and self._wide(depths) > capacity:
            depths //= 2
        return depths, capacity // self._wide(depths)

    @property
    def _capacity(self) -> int:
        """Numbers that a part of the scratch has for transformed inputs or outputs."""
        return PART_BYTES * 2 // 3 // self.c.itemsize

    @property
    def fits(self) -> bool:
        """True if a strip fits the scratch, which is known without cutting blocks: they are as many as
        a map that is only planned may ask for."""
        return self._fitting[1] > 0

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Blocks whose transforms fit the scratch, of a tiling that `fits`."""
        (depths, fitting), columns = self._fitting, self._columns
        strips = -(-self.c.positions[-2] // (self.height * self.down))
        cuts = -(-strips // max(1, fitting // columns))
        rows = -(-strips // max(cuts, self.least))
        return tuple(
            product(
                ranges(self.depth.out, depths), ranges(strips, rows), ranges(self.strips, columns)
            )
        )

    @property
    def _columns(self) -> int:
        """Strips of a block along a row."""
        return -(-self.strips // -(-self.strips // self._fitting[1]))

    @property
    def products(self) -> int:
        """Products of a sample with all filters, of a tiling that `fits`: each has some tiles, side by side
        or below each other, and reads all filters."""
        down = -(-self.c.positions[-2] // (self.height * self.down))
        return self.depth.out * down * -(-self.strips // self._columns)

    def _wide(self, depths: int) -> int:
        """Numbers of one transformed input or output over all channels and depths of a block."""
        return max(self.c.channels * (depths + self.depth.kernel - 1), self.c.outputs * depths)

    @cached_property
    def together(self) -> int:
        """Filters of one product: as many as stay in the first-level cache, all if none do."""
        return shares(self.c.outputs, self.depth.kernel * self.c.channels) or self.c.outputs


@lru_cache(maxsize=256)
def tilings(c: Correlation) -> tuple[Tiling, ...]:
    """The tiles and blocks that a correlation may have, the fastest first.

    Which of them a sample has under `auto` depends on its numbers (`promise`).
    """
    lower, higher = Tiling(c, 2), Tiling(c, 4)
    if c.channels * lower.depth.kernel > FAST:
        return (lower,)
    return (higher, lower) if c.wanted == "auto" else (higher,)


def filter_bytes(c: Correlation) -> int:
    """The transformed filters, for all tiles that samples of one call may have."""
    size = tilings(c)[0].depth.kernel * c.channels * c.outputs
    each = pitch(size, c.itemsize, WRITTEN) * c.itemsize
    return sum(plan.filters * each + LINE for plan in tilings(c))


def suits(c: Correlation) -> bool:
    """True for filters 3×3, or 3×3 in depth, at stride 1, if one strip of tiles fits the scratch."""
    plain = c.groups == 1 and c.mode == "zeros" and len(c.axes) in (2, 3)
    plain = plain and all(a.stride == a.dilation == 1 for a in c.axes)
    return plain and c.kernel[-2:] == (TAPS, TAPS) and all(plan.fits for plan in tilings(c))
