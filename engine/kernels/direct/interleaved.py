"""The gradient of the input of strided maps: all residues from one set of copies.

    dx[n, c, a + s·q] = Σ_{m, o} w[o, c, k(a, m)] · dy[n, o, q + d(a, m)]

The inputs of one residue a modulo the stride s meet taps k(a, m), which read dy the shift d(a, m) away.
Each row of taps of a residue is one product, of its taps across side by side as so many copies are
(`interleaving`). With channels last, copies and results have a row for each place instead of a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import part
from engine.geometry import Axis, ranges
from engine.kernels.correlation import Correlation
from engine.kernels.direct import interleaving
from engine.kernels.nan import settle
from engine.kernels.products import multiply
from engine.kernels.turning import taps_before_outputs
from engine.threads import check_stop, for_each, get_threads

Array = NDArray[Any]


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, 1, C, *S), the adjoint of a correlation in x, from dy (N, 1, O, *P).

    w is (1, O, C·K), or a view (1, O, C, *K). Zeros are multiplied beside dy, so that a weight that is not
    finite spoils all inputs of its residues.
    """
    phases, length = interleaving.phases(c), interleaving.shared(c)[0].length
    if len(phases) < c.phase_count:
        # In order once, which takes less time than every so many numbers for each of those.
        dx[...] = 0
    unfolded, taken = w[0].reshape(c.outputs, c.channels, *c.kernel), [p.taps for p in phases]
    weights = taps_before_outputs(unfolded, taken, channels_last=c.channels_last)

    def block(n: int, lo: int, hi: int, some: Sequence[int]) -> None:
        copies = _copies(c, dy[n, 0], lo, hi)
        for number in some:
            phase = phases[number]
            sums = _sums(c, phase, weights[number], copies, hi - lo)
            target = dx[n, 0][:, *phase.inputs][:, lo:hi]
            target[...] = sums[:, *map(slice, target.shape[1:])]

    bands = ranges(length, interleaving.band(c))
    samples, shares = dx.shape[0], interleaving.shares(c)
    if samples * len(bands) >= get_threads():
        shares = (tuple(range(len(phases))),)
    blocks = ((n, *band, some) for n in range(samples) for band in bands for some in shares)
    for_each(block, blocks, c.flops * samples)


def _copies(c: Correlation, dy: Array, lo: int, hi: int) -> Array:
    """What inputs [lo, hi) of residues along the first axis read of dy (O, *P), as (shifts · O, places)."""
    along, extents = interleaving.shared(c), interleaving.copied(c, hi - lo)
    starts = [axis.first for axis in along]
    starts[0] += lo
    shifts, windows = along[-1].shifts, [axis.window for axis in along]
    copies = _matrix(c, 0, shifts * c.outputs, prod(extents), dy.dtype)
    for copy in copies.reshape(shifts, c.outputs, *extents, copy=False):
        _fill(copy, dy, windows, starts)
        starts[-1] += 1
    return copies


def _fill(copy: Array, dy: Array, windows: Sequence[Axis], starts: Sequence[int]) -> None:
    """Copy what stands in dy (O, *P) from some places on, with zeros beside it."""
    read = []
    for axis, (window, start) in enumerate(zip(windows, starts, strict=True), 1):
        real, own = window.placed(start, start + copy.shape[axis])
        before = (slice(None),) * axis
        copy[*before, : own.start] = 0
        copy[*before, own.stop :] = 0
        # Along the other axes, only what is left has yet to be written.
        copy = copy[*before, own]
        read.append(real)
    copy[...] = dy[:, *read]


def _sums(
    c: Correlation, phase: interleaving.Phase, filters: Array, copies: Array, rows: int
) -> Array:
    """The gradient (C, *extents) of a phase's inputs in a band of some rows."""
    extents, columns = interleaving.extents(c, rows), interleaving.columns(c, rows)
    room = _matrix(c, 2, c.channels, prod(extents), copies.dtype)
    sums, made = room[:, :columns], _matrix(c, 1, c.channels, columns, copies.dtype)
    weights = filters.reshape(c.channels, len(phase.starts), -1)
    for number, start in enumerate(phase.starts):
        check_stop()
        read = copies[phase.copies, start : start + columns]
        out = made if number else sums
        multiply(weights[None, :, number], read[None, None], out[None, None])
        if number:
            np.add(sums, made, out=sums)
    settle(sums)
    return room.reshape(c.channels, *extents, copy=False)


def _matrix(c: Correlation, number: int, rows: int, columns: int, dtype: np.dtype[Any]) -> Array:
    """A part of the scratch as a matrix, the columns of which are consecutive with channels last."""
    if c.channels_last:
        return part(number, (columns, rows), dtype).T
    return part(number, (rows, columns), dtype)
