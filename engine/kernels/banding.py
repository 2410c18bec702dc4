"""How a correlation of few channels with few filters is cut into products with banded matrices.

See `banded`, which computes them. Everything here is integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engine.geometry import ranges
from engine.kernels.correlation import Correlation
from engine.kernels.slabs import Row, in_row, row
from engine.threads import PART_BYTES

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


def suits(c: Correlation) -> bool:
    """True for images where a group is too small for patches, and one strip fits the scratch."""
    if len(c.axes) != 2 or c.mode != "zeros":
        return False
    steps = max(axis.stride for axis in c.axes)
    few = c.channels <= MOST_CHANNELS and c.outputs <= MOST_CHANNELS
    few = few and c.groups > 1 and steps == 1 and c.axes[1].out >= LEAST_WIDTH
    alone = c.channels == c.outputs == 1 and in_row(c.axes[1])
    return (alone or few) and _line(c) * _reach(c) <= PART_BYTES


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
    laid, across = row(c.axes[1]), c.axes[1]
    inputs = c.channels * (across.kernel * across.out + laid.residues * laid.width)
    return (inputs + c.outputs * across.out) * c.itemsize


def _index(c: Correlation, height: int, reach: int) -> NDArray[np.intp]:
    down, across = c.axes
    offset = np.arange(reach) - np.arange(height)[:, None] * down.stride
    fits = (offset >= 0) & (offset < down.extent) & (offset % down.dilation == 0)
    filters = np.arange(c.outputs * c.channels).reshape(c.outputs, 1, 1, c.channels, 1)
    tap = (offset // down.dilation)[None, :, :, None, None]
    index = (filters * down.kernel + tap) * across.kernel + np.arange(across.kernel)
    index = np.where(fits[None, :, :, None, None], index, c.outputs * c.channels * c.taps)
    return index.reshape(c.outputs * height, reach * c.channels * across.kernel)
