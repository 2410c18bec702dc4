"""The gradient of an input of few channels: columns added up on planes, residue by residue.

    dx[c, i] = Σ_{o, k} w[o, c, k] · dy[o, p]   over p·stride + k·dilation − low = i

Padded inputs lie in planes, one for each residue modulo the strides, with rows of one pitch. dy lies in
rows of the same pitch, zeros after each. One product of the turned weights with some rows of it gives a
column for every channel and tap, which tap k of an output adds to its plane at a constant offset. So all
taps of a residue are one view of the columns, in which each tap lies where it is added, and their sum
is one call. Planes are taken apart into dx at the end. Where the columns of all taps are too many, taps of
the first axis go some at a time, whose columns are added further down.

Where a zero between rows meets a weight that is not finite, so are the columns there: the sample is then
done again with zeros in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import arena
from engine.geometry import ranges, row_major
from engine.kernels.correlation import Correlation
from engine.kernels.direct.folds import Folding, Part, parts, plan
from engine.kernels.kept import kept
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.kernels.products import LINE, products, run
from engine.kernels.slabs import in_row
from engine.threads import check_stop, for_each

Array = NDArray[Any]
Index = tuple[Any, ...]


def suits(c: Correlation) -> bool:
    """True where each residue has taps, padding is zeros, and the planes of a channel fit the scratch."""
    some = all(axis.kernel >= axis.stride and in_row(axis) for axis in c.axes)
    return some and c.mode == "zeros" and plan(c) is not None


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array) -> None:
    """Write dx (N, G, C, *S), the adjoint of a correlation in x, from dy (N, G, O, *P).

    w is (G, O, C·K).
    """
    found = plan(c)
    assert found is not None
    whole = found.few == c.axes[0].kernel
    turned = np.ascontiguousarray(w.swapaxes(1, 2)) if whole else None
    cut = {} if whole else _turned(c, found, w)

    def block(n: int, g: int, lo: int, hi: int) -> None:
        v, target = _views(c, hi - lo), dx[n, g, lo:hi]
        weights = cut[g, lo] if turned is None else (turned[g, lo * c.taps : hi * c.taps],)
        v.add(weights, dy[n, g], False)
        if not isfinite(np.add.reduce(v.planes, axis=None)):
            v.add(weights, dy[n, g], True)
            settle(v.planes)
        if not found.covered:
            target[...] = 0
        for inputs, plane in v.moves:
            np.copyto(target[inputs], plane)

    cuts = [
        (n, g, lo, hi)
        for n in range(dx.shape[0])
        for g in range(c.groups)
        for lo, hi in ranges(c.channels, found.channels)
    ]
    for_each(block, cuts, c.flops * dx.shape[0])


def _turned(c: Correlation, found: Folding, w: Array) -> dict[tuple[int, int], tuple[Array, ...]]:
    """By group and first channel of a block, the weights (c·K, O) of each part of the taps."""
    unfolded = w.reshape(c.groups, c.outputs, c.channels, c.axes[0].kernel, -1)
    return {
        (g, lo): tuple(
            np.ascontiguousarray(unfolded[g, :, lo:hi, p.first : p.last].reshape(c.outputs, -1).T)
            for p in parts(c.axes[0], found.few)
        )
        for g in range(c.groups)
        for lo, hi in ranges(c.channels, found.channels)
    }


Views = tuple[tuple[tuple[int, ...], Array], ...]
"""Residues, and the columns that are added to the planes of each."""

Sums = tuple[tuple[Array, Array], ...]
"""Places of planes, and the columns (c, *taps, places) that are added there."""


@dataclass(frozen=True)
class _Rows:
    """Views for the rows of dy of one block.

    Attributes:
        span: the rows.
        outputs: where they go, (O, rows, *P').
        count: the columns that they make.
        after: what lies behind these.
        unused: columns that belong to no output.
        sums: what is added, for each part of the taps.
    """

    span: slice
    outputs: Array
    count: int
    after: Array
    unused: tuple[Array, ...]
    sums: tuple[Sums, ...]


@dataclass(frozen=True)
class _Views:
    """Views of the scratch for the planes of some channels c.

    Attributes:
        planes: the planes (*residues, c, *widths).
        before: what lies before the first column.
        upstream: rows of dy with zeros after each.
        rows: the blocks of them.
        factors: for the columns of a block, as many numbers of the rows (1, 1, O, count), and
            the columns (1, 1, c·K, count) that they make.
        moves: inputs (c, *S), and the places of planes that go there.
    """

    planes: Array
    before: Array
    upstream: Array
    rows: tuple[_Rows, ...]
    factors: dict[int, tuple[Array, Array]]
    moves: tuple[tuple[Index, Array], ...]

    def add(self, weights: Sequence[Array], dy: Array, clean: bool) -> None:
        """Write to the planes what dy (O, *P) gives under each part of the weights (c·K, O).

        With `clean`, columns that belong to no output are set to 0.
        """
        for area in (self.planes, self.before, self.upstream):
            area.fill(0)
        made = {
            count: [tuple(products(w[None], right, out[:, :, : len(w)])) for w in weights]
            for count, (right, out) in self.factors.items()
        }
        for rows in self.rows:
            check_stop()
            np.copyto(rows.outputs, dy[:, rows.span])
            rows.after.fill(0)
            for found, sums in zip(made[rows.count], rows.sums, strict=True):
                run(found)
                for area in rows.unused if clean else ():
                    area.fill(0)
                for target, own in sums:
                    target += np.add.reduce(own, axis=tuple(range(1, own.ndim - 1)))


@kept
def _views(c: Correlation, channels: int) -> _Views:
    """This thread's views for a number of channels."""
    found, dtype = plan(c), np.dtype(f"f{c.itemsize}")
    assert found is not None
    widths, line = tuple(r.width for r in found.rows), found.steps[0]
    columns = channels * found.few * c.taps // c.axes[0].kernel
    planes = arena.part(1, (*(r.residues for r in found.rows), channels, prod(widths)), dtype)
    memory = arena.part(0, (found.reach + columns * found.pitch,), dtype)
    upstream = arena.part(2, (c.outputs, -(-found.height * line // LINE) * LINE), dtype)
    made = memory[found.reach :].reshape(columns, found.pitch)
    sums = [
        (each.down * line, tuple(_sums(c, found, each, memory, channels)))
        for each in parts(c.axes[0], found.few)
    ]
    rows, factors = [], {}
    for lo, hi in ranges(c.positions[0], found.height):
        count = (hi - lo) * line
        factors[count] = upstream[None, None, :, :count], made[None, None, :, :count]
        places = (hi - lo, *widths[1:])
        outputs = upstream[:, :count].reshape(c.outputs, *places, copy=False)
        unused = made[:, :count].reshape(columns, *places, copy=False)
        rows.append(
            _Rows(
                slice(lo, hi),
                outputs[within(slice(size) for size in (hi - lo, *c.positions[1:]))],
                count,
                made[:, count:],
                tuple(_behind(unused, c.positions[1:])),
                tuple(
                    _within(planes, lo * line + down, count + found.reach, own)
                    for down, own in sums
                ),
            )
        )
    shaped = planes.reshape(*planes.shape[:-1], *widths)
    moves = tuple(_moves(found, shaped))
    return _Views(shaped, memory[: found.reach], upstream, tuple(rows), factors, moves)


def _within(planes: Array, start: int, size: int, sums: Views) -> Sums:
    """The places of planes [start, start + size) and the columns that are added there."""
    # Rows end in zeros, which the last of them would add behind the plane.
    own = slice(start, min(planes.shape[-1], start + size))
    return tuple((planes[r][:, own], view[..., : own.stop - own.start]) for r, view in sums)


def _behind(columns: Array, positions: tuple[int, ...]) -> Iterator[Array]:
    """What lies behind `positions` along the last axes of columns (c·K, rows, *widths)."""
    for d, size in enumerate(positions, 2):
        yield columns[(slice(None),) * d + (slice(size, None),)]


def _moves(found: Folding, planes: Array) -> Iterator[tuple[Index, Array]]:
    """Inputs (c, *S), and the places of planes (*residues, c, *widths) that go there."""
    for moves in product(*(r.moves for r in found.rows)):
        residues, places, inputs = zip(*moves, strict=True)
        yield within(inputs), planes[residues][within(places)]


def _sums(
    c: Correlation, found: Folding, part: Part, memory: Array, channels: int
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """For each residue that taps meet, its columns (c, *taps, pitch), each where it is added."""
    kernel = (part.last - part.first, *c.kernel[1:])
    rows = [step * found.pitch for step in row_major(kernel)]
    for taps in product(part.taps, *(r.taps for r in found.rows[1:])):
        start, shape, strides = found.reach, [channels], [prod(kernel) * found.pitch]
        for one, count, step, each in zip(taps, kernel, found.steps, rows, strict=True):
            first, _, stride = one.taps.indices(count)
            start += first * each - one.first * step
            shape.append(len(range(first, count, stride)))
            strides.append(stride * each - one.step * step)
        sizes = tuple(stride * memory.itemsize for stride in (*strides, 1))
        view = np.ndarray(
            (*shape, found.pitch), memory.dtype, memory, start * memory.itemsize, sizes
        )
        yield tuple(one.residue for one in taps), view
