"""The gradient of the input of strided depthwise correlations, all residues in one product.

A strip of T rows of dx is one product. Its right side has the rows of dy that reach the strip, each
once for every tap across, its numbers a stride apart where that tap adds them, with zeros between; its
left side has the filter at every place it takes between those rows and the strip's, a band of them:

    dX[t, i] = Σ_{l, j} B[t, (l, j)] · D[(l, j), i]
    D[(l, j), i] = dy[first + l, q]  where q·stride + j·dilation − low = i, and 0 elsewhere
    B[t, (l, j)] = w[k, j]  where (first + l)·stride + k·dilation − low is row t, and 0 elsewhere

So products write whole rows of dx, where residues would each write every second number. A number that
is not finite spreads over its strip, but only as NaN. So results are looked over for NaN while they are in
the cache, and where there is one, the sample is done again residue by residue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.arena import PART_BYTES
from engine.geometry import slices
from engine.kernels.correlation import Correlation
from engine.kernels.nan import has_nan
from engine.kernels.patches import inside
from engine.threads import check_stop, for_each

Array = NDArray[Any]

BAND_BYTES = 1 << 20
"""Bytes of the bands of some groups at most, where one has no more."""

STRIP_ROWS = 14
"""Rows of dx of a strip, about: higher strips multiply more zeros, lower ones start more products."""


@dataclass(frozen=True)
class Stuffing:
    """How the gradient is cut: strips of `height` rows, for `groups` at a time.

    `first` is the row of dy that the first strip begins to read, before dy if negative; each strip
    reads `reach` rows, from `step` rows after the one before. `index` (T, L·J) says which of a group's
    weights stands where in the band; one past the last is none.
    """

    height: int
    strips: int
    first: int
    reach: int
    step: int
    groups: int
    index: NDArray[np.intp]


@lru_cache(maxsize=256)
def plan(c: Correlation) -> Stuffing | None:
    """How the gradient is cut, from its integers alone; None where not even one group fits the scratch."""
    down, across = c.axes
    stride = down.stride
    # Strips begin at the same residue, so that one band serves all.
    wanted = -(-down.size // -(-down.size // STRIP_ROWS))
    height = -(-wanted // stride) * stride
    strips = -(-down.size // height)
    first = -((down.extent - 1 - down.low) // stride)
    reach = (height - 1 + down.low) // stride - first + 1
    rows = (strips - 1) * (height // stride) + reach
    fitting = PART_BYTES // c.itemsize // (rows * across.kernel * across.size)
    if not fitting:
        return None
    banded = (height * reach * across.kernel + c.taps + 1) * c.itemsize
    groups = min(fitting, max(1, BAND_BYTES // banded), -(-c.groups // 4))
    offset = np.arange(height)[:, None] + down.low - (np.arange(reach) + first) * stride
    fits = (offset >= 0) & (offset < down.extent) & (offset % down.dilation == 0)
    taps = offset[..., None] // down.dilation * across.kernel + np.arange(across.kernel)
    index = np.where(fits[..., None], taps, c.taps).reshape(height, -1)
    return Stuffing(height, strips, first, reach, height // stride, groups, index)


def suits(c: Correlation) -> bool:
    """True for strided depthwise images of which one group fits the scratch."""
    alone = len(c.axes) == 2 and c.channels == c.outputs == 1 and not c.channels_last
    strides = [axis.stride for axis in c.axes] if alone else [1]
    return c.mode == "zeros" and max(strides) == 2 and plan(c) is not None


def backward_input(
    c: Correlation,
    dy: Array,
    w: Array,
    dx: Array,
    plain: Callable[[Correlation, Array, Array, Array], None],
) -> None:
    """Write dx (N, G, 1, *S), the adjoint of a correlation in x, from dy (N, G, 1, *P), w (G, 1, K).

    `plain` does the same for samples in which one number that is not finite spread.
    """
    found = plan(c)
    assert found is not None
    spoilt: set[int] = set()

    def block(g: slice) -> None:
        spoilt.update(_strips(c, found, dy[:, g, 0], w[g, 0], dx[:, g, 0]))

    for_each(block, [(g,) for g in slices(c.groups, found.groups)], c.flops * dx.shape[0])
    for n in spoilt:
        one = slice(n, n + 1)
        plain(c, dy[one], w, dx[one])


def _strips(c: Correlation, found: Stuffing, dy: Array, w: Array, dx: Array) -> list[int]:
    """Write dx (N, g, *S) from dy (N, g, *P) and w (g, K); returns the samples with a NaN."""
    (down, across), groups = c.axes, w.shape[0]
    rows = (found.strips - 1) * found.step + found.reach
    laid = arena.part(0, (groups, rows, across.kernel, across.size), dy.dtype)
    laid.fill(0)
    lo, hi = max(0, found.first), min(down.out, found.first + rows)
    moves = []
    for tap in range(across.kernel):
        start, stop, inputs = inside(across, tap, 0, across.out)
        if start < stop:
            target = laid[:, lo - found.first : hi - found.first, tap, inputs]
            moves.append((target, dy[:, :, lo:hi, start:stop]))
    padded = np.zeros((groups, c.taps + 1), w.dtype)
    padded[:, :-1] = w
    band = np.take(padded, found.index, axis=1)[:, None]
    group, line, tap, one = laid.strides
    shape = (groups, found.strips, found.reach * across.kernel, across.size)
    read = np.ndarray(shape, laid.dtype, laid, 0, (group, found.step * line, tap, one))
    whole = down.size // found.height
    rest = down.size - whole * found.height
    made = arena.part(1, (groups, 1, found.height, across.size), dy.dtype)
    spoilt = []
    for n in range(dx.shape[0]):
        check_stop()
        for target, source in moves:
            target[...] = source[n]
        top = dx[n, :, : whole * found.height]
        out = top.reshape(groups, whole, found.height, across.size, copy=False)
        np.matmul(band, read[:, :whole], out=out)
        if rest:
            np.matmul(band, read[:, whole:], out=made)
            dx[n, :, whole * found.height :] = made[:, 0, :rest]
        if has_nan(dx[n]):
            spoilt.append(n)
    return spoilt
