"""How a correlation of few channels with few filters is cut into products with banded matrices.

See `banded`, which computes them. Everything here is integers.

Where a strip of whole rows is more than the scratch holds, the outputs are cut across, and each part is
a correlation of its own: of the columns that it reads, with the padding that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES
from engine.blas import multiplies_in_place
from engine.geometry import Axis, even, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.slabs import Row, in_row, row

STRIP_ROWS = 8
"""Rows of a product, about: higher strips multiply more zeros, lower ones fill fewer vectors."""

LEAST_STRIP, MOST_STRIP = 2, 4
"""Rows of outputs of a strip."""

MOST_CHANNELS = 8
"""Channels, and outputs, of a group; with more, patches are as good."""

LEAST_WIDTH = 32
"""Outputs across below which groups of several channels are better gathered as patches."""

MOST_MOVES = 3
"""Taps across above which inputs go through a slab."""

BLOCK_BYTES = 3 << 19
"""What is gathered for a block, which is to stay in the second-level cache."""

WHOLE_COLUMNS, LEAST_COLUMNS = 16, 8
"""Outputs across that parts are multiples of, but for the last; the second where the first do not fit."""

DEPTH = 4
"""Times the rows of a strip that a part is to hold, if that leaves columns: strips share what they read."""

LEAST_WORK = 3_000_000
"""Products of a sample, times the root of the taps, from which bands save more than making them takes,
where BLAS copies operands."""

LEAST_IN_PLACE = 350_000
"""Numbers of a sample's patches from which they do where it multiplies in place."""

MOST_SPARE = 8
"""Rows under a strip for each tap down, up to which cutting across pays: most of them meet zeros."""


@dataclass(frozen=True)
class Banding:
    """How a correlation is cut: strips of `height` rows of outputs, which read `reach` of inputs.

    `groups` and `rows` (of outputs) make one block. `index` (O·T, L·C·J) says which of a group's
    weights stands where in the band; one past the last is none. Inputs are moved to each tap from
    where they lie (`by_taps`), or first to a slab with rows `across`, from which one copy takes all.
    """

    height: int
    reach: int
    groups: int
    rows: int
    index: NDArray[np.intp]
    across: Row
    by_taps: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Some columns of outputs, the columns of inputs that they read, and the correlation of these."""

    inputs: slice
    outputs: slice
    correlation: Correlation


def suits(c: Correlation) -> bool:
    """True for images where a group is too small for patches, and a part's strip fits the scratch."""
    if len(c.axes) != 2 or c.mode != "zeros":
        return False
    steps = max(axis.stride for axis in c.axes)
    few = c.channels <= MOST_CHANNELS and c.outputs <= MOST_CHANNELS
    few = few and c.groups > 1 and steps == 1 and c.axes[1].out >= LEAST_WIDTH
    alone = c.channels == c.outputs == 1 and in_row(c.axes[1])
    return (alone or few) and _columns(c) > 0


def pay(c: Correlation) -> bool:
    """True where bands take less time than patches or flat planes, with which small maps need fewer calls.

    The bounds are where choices took least over 2954 and 584 random layers of one sample and of four.
    """
    if multiplies_in_place():
        return c.gathered >= LEAST_IN_PLACE
    return c.flops // 2 * c.taps**0.5 >= LEAST_WORK


def parts(c: Correlation) -> Iterator[Part]:
    """The parts of the outputs, across; one, which is `c` itself, where a strip of it fits."""
    across, columns = c.axes[1], _columns(c)
    if not 0 < columns < across.out:
        yield Part(slice(None), slice(None), c)
        return
    for lo, hi in ranges(across.out, columns):
        # At least one input, if no tap reads it: padding then reaches over it.
        start, stop = across.input_of(0, lo), across.input_of(across.kernel - 1, hi - 1) + 1
        first = min(max(0, start), across.size - 1)
        last = max(first + 1, min(across.size, stop))
        own = replace(across, size=last - first, low=first - start, high=stop - last, out=hi - lo)
        yield Part(slice(first, last), slice(lo, hi), _part(c, own))


@lru_cache(maxsize=256)
def _part(c: Correlation, across: Axis) -> Correlation:
    # Most parts of a map are alike.
    return replace(c, axes=(c.axes[0], across))


@lru_cache(maxsize=256)
def _columns(c: Correlation) -> int:
    """Outputs across of a part; 0 where that would be too few."""
    down, across = c.axes
    if _line(c) * _reach(c) <= PART_BYTES:
        return across.out
    most = min(_fitting(c, 1), max(WHOLE_COLUMNS, _fitting(c, DEPTH)))
    unit = WHOLE_COLUMNS if most >= WHOLE_COLUMNS else LEAST_COLUMNS
    most -= most % unit
    # As many columns as the band has rows, so that it is no larger than what it multiplies.
    if most < max(1, c.outputs * _height(c)) or _reach(c) > MOST_SPARE * down.kernel:
        return 0
    return -(-even(across.out, most) // unit) * unit


def _fitting(c: Correlation, depth: int) -> int:
    """Outputs across for which the scratch holds `depth` times the rows of a strip."""
    each, beside = _numbers(c)
    return max(0, PART_BYTES // (c.itemsize * _reach(c) * depth) - beside) // each


@lru_cache(maxsize=256)
def banding(c: Correlation) -> Banding:
    """How a correlation is cut, from its integers alone."""
    down, height, reach, line = c.axes[0], _height(c), _reach(c), _line(c)
    index = _index(c, height, reach)
    whole = line * ((down.out - 1) * down.stride + down.extent)
    fitting = min(BLOCK_BYTES // whole, PART_BYTES // (index.size * c.itemsize))
    parts = -(-c.groups // max(1, fitting))
    # Blocks alike, and as many as two or four threads share evenly.
    groups = -(-c.groups // (-(-parts // 4) * 4))
    strips = max(1, (PART_BYTES // (line * groups) - reach) // (height * down.stride) + 1)
    rows = min(down.out, strips * height)
    by_taps = c.axes[1].kernel <= MOST_MOVES
    return Banding(height, reach, groups, rows, index, row(c.axes[1]), by_taps)


def row_blocks(c: Correlation) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Ranges of rows of outputs; each entry is for one thread, which takes its ranges in order.

    A last range of fewer rows than a strip begins early, and writes rows of the one before it again.
    """
    b = banding(c)
    *whole, (lo, hi) = ranges(c.positions[0], b.rows)
    if hi - lo >= b.height:
        return (*((span,) for span in whole), ((lo, hi),))
    return (*((span,) for span in whole[:-1]), (whole[-1], (hi - b.height, hi)))


def _height(c: Correlation) -> int:
    wanted = min(MOST_STRIP, max(LEAST_STRIP, STRIP_ROWS // c.outputs))
    return -(-c.axes[0].out // -(-c.axes[0].out // wanted))


def _reach(c: Correlation) -> int:
    return (_height(c) - 1) * c.axes[0].stride + c.axes[0].extent


def _line(c: Correlation) -> int:
    """Bytes of a group that come of one row of inputs: in the slab, gathered, and of outputs."""
    each, beside = _numbers(c)
    return (each * c.axes[1].out + beside) * c.itemsize


def _numbers(c: Correlation) -> tuple[int, int]:
    """Numbers of such a line, for each output across and beside them."""
    across = c.axes[1]
    beside = (-(-across.extent // across.stride) - 1) * across.stride
    return c.channels * (across.kernel + across.stride) + c.outputs, c.channels * beside


def _index(c: Correlation, height: int, reach: int) -> NDArray[np.intp]:
    down, across = c.axes
    offset = np.arange(reach) - np.arange(height)[:, None] * down.stride
    fits = (offset >= 0) & (offset < down.extent) & (offset % down.dilation == 0)
    filters = np.arange(c.outputs * c.channels).reshape(c.outputs, 1, 1, c.channels, 1)
    tap = (offset // down.dilation)[None, :, :, None, None]
    index = (filters * down.kernel + tap) * across.kernel + np.arange(across.kernel)
    index = np.where(fits[None, :, :, None, None], index, c.outputs * c.channels * c.taps)
    return index.reshape(c.outputs * height, reach * c.channels * across.kernel)
