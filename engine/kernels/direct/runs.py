"""Small maps at stride 1 laid out so that taps are a few long runs: the plan, and views of the scratch.

Two ways. `Columns` hold the windows of every output and nothing else. Where rows are short, inputs are
copied once for each tap of the last axis, in rows as long as those of the outputs; all other taps of such a
plane are then one run of it each, at a constant offset. Long rows are copied one by one, at one go.

`Spread` is for the adjoint. A channel's padded plane is one row of numbers, in which output p stands at
l = Σ_d p_d · step_d, with `step_d` the numbers from one position along axis d to the next. A tap of all
outputs is then one run of the plane at the offset Σ_d k_d · dilation_d · step_d. So all taps of the
columns, each moved by its offset, are one view, and its sum is the plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import LINE, PART_BYTES, part
from engine.geometry import row_major
from engine.kernels.correlation import Correlation
from engine.kernels.gathering import as_items
from engine.kernels.kept import kept
from engine.kernels.patches import within
from engine.kernels.spacing import READ, pitch, spaced

Array = NDArray[Any]

BLOCK_BYTES = PART_BYTES // 2
"""Columns of the samples that share a block: enough to be worth a call, and few enough for the cache."""

LONG_BYTES = LINE
"""Rows from which a copy of each is quicker than another copy of all that makes runs of them."""


@dataclass(frozen=True)
class Flat:
    """How small maps are laid out: all integers.

    Attributes:
        padded: a plane's size along each axis, padding included.
        inner: where the inputs stand in it.
        steps: numbers of it from one position to the next along each axis.
        reach: the offset of the last tap.
        length: numbers from the first to the last output.
        samples: samples of one block of columns; 0 where not even one fits the scratch.
        most: samples whose columns fit the scratch.
        spread: samples of one block of the adjoint; 0 where not even one fits the scratch.
    """

    padded: tuple[int, ...]
    inner: tuple[slice, ...]
    steps: tuple[int, ...]
    reach: int
    length: int
    samples: int
    most: int
    spread: int


@lru_cache(maxsize=1024)
def flat(c: Correlation) -> Flat:
    """How the maps of a correlation are laid out."""
    padded = tuple(a.low + a.size + a.high for a in c.axes)
    plane, outputs = prod(padded), c.places
    steps = row_major(padded)
    length = 1 + sum((p - 1) * step for p, step in zip(c.positions, steps, strict=True))
    rows, capacity = c.channels * c.taps, PART_BYTES // c.itemsize
    shifted = c.channels * c.kernel[-1] * prod(padded[:-1]) * c.positions[-1]
    columns = max((rows + 1) * pitch(outputs, c.itemsize, READ), c.outputs * outputs)
    largest = c.groups * max(columns, shifted, c.channels * plane, rows * c.outputs)
    spread = c.groups * max(rows * plane, c.outputs * length)
    block = BLOCK_BYTES // c.itemsize
    return Flat(
        padded,
        tuple(slice(a.low, a.low + a.size) for a in c.axes),
        steps,
        plane - length,
        length,
        max(1, block // largest) if largest <= capacity else 0,
        capacity // largest,
        max(1, block // spread) if spread + plane - length <= capacity else 0,
    )


@dataclass(frozen=True)
class Columns:
    """Views of a thread's scratch for the windows of some samples of one shape.

    Attributes:
        slab: padded planes (n, G, C, *S'); `inner` are the inputs in them.
        copies: targets and sources, in their order, that make columns of the slab.
        columns: the windows, (n, G, C, *K, *P).
        matrix: the columns as (n, G, C·K, P); `ones` is a row after it, which makes them `biased`.
        rows: what stands on the other side, (n, G, O, P).
        sums: products of columns and rows, (n, G, C·K, O); it lies where the slab does.
    """

    slab: Array
    inner: Array
    copies: tuple[tuple[Array, Array], ...]
    columns: Array
    matrix: Array
    ones: Array
    biased: Array
    rows: Array
    sums: Array

    def load(self, x: Array) -> None:
        """Lay the inputs x (n, G, C, *S) out in columns."""
        if self.inner.size < self.slab.size:
            self.slab.fill(0)
        self.inner[...] = x
        for target, source in self.copies:
            target[...] = source


@dataclass(frozen=True)
class Spread:
    """Views of a thread's scratch for the adjoint of some samples of one shape.

    Attributes:
        rows: (n, G, O, L); `outputs` are its columns (n, G, O, *P).
        before: what lies before the first column.
        columns: (n, G, C·K, L + reach); `made` are the first L, `after` the others.
        moved: the columns (n, G, C, *K, L + reach), each moved to where it is added.
        planes: their sums, (n, G, C, L + reach); `inner` are the inputs in them.
    """

    rows: Array
    outputs: Array
    before: Array
    columns: Array
    made: Array
    after: Array
    moved: Array
    planes: Array
    inner: Array

    def add(self) -> None:
        """Sum the columns up on the planes that they were taken from."""
        np.add.reduce(self.moved, axis=tuple(range(3, self.moved.ndim - 1)), out=self.planes)


@kept
def columns(c: Correlation, samples: int) -> Columns:
    """This thread's columns for a number of samples."""
    plan, dtype = flat(c), np.dtype(f"f{c.itemsize}")
    lead, rows = (samples, c.groups), c.channels * c.taps
    slab = part(1, (*lead, c.channels, *plan.padded), dtype)
    biased = spaced((*lead, rows + 1, c.places), dtype, READ, partial(part, 0), planes=3)
    found = biased[:, :, :-1].reshape(*lead, c.channels, *c.kernel, *c.positions, copy=False)
    return Columns(
        slab,
        slab[within(plan.inner)],
        tuple(_copies(c, slab, found)),
        found,
        biased[:, :, :-1],
        biased[:, :, -1],
        biased,
        part(2, (*lead, c.outputs, c.places), dtype),
        part(1, (*lead, rows, c.outputs), dtype),
    )


def _copies(c: Correlation, slab: Array, columns: Array) -> Iterator[tuple[Array, Array]]:
    """Copies that make columns (n, G, C, *K, *P) of a slab (n, G, C, *S')."""
    lead, last, dtype = slab.shape[:3], c.axes[-1], slab.dtype
    taps = [a.dilation * step for a, step in zip(c.axes, slab.strides[3:], strict=True)]
    if last.out * c.itemsize >= LONG_BYTES:
        windows = (*slab.strides[:3], *taps, *slab.strides[3:])
        yield as_items(columns), as_items(np.ndarray(columns.shape, dtype, slab, 0, windows))
        return
    moved = (*slab.strides[:3], taps[-1], *slab.strides[3:])
    shifted = part(2, (*lead, last.kernel, *slab.shape[3:-1], last.out), dtype)
    yield as_items(shifted), as_items(np.ndarray(shifted.shape, dtype, slab, 0, moved))
    tap, *steps = shifted.strides[3:]
    across = [a.dilation * step for a, step in zip(c.axes[:-1], steps, strict=False)]
    runs = (*shifted.strides[:3], *across, tap, *steps)
    yield columns, np.ndarray(columns.shape, dtype, shifted, 0, runs)


@kept
def spread(c: Correlation, samples: int) -> Spread:
    """This thread's views of the adjoint for a number of samples."""
    plan, dtype = flat(c), np.dtype(f"f{c.itemsize}")
    lead, plane = (samples, c.groups, c.channels), prod(plan.padded)
    rows = part(2, (samples, c.groups, c.outputs, plan.length), dtype)
    steps = [step * c.itemsize for step in plan.steps]
    memory = part(0, (plan.reach + prod(lead) * c.taps * plane,), dtype)
    found = memory[plan.reach :].reshape(samples, c.groups, -1, plane)
    taps = found.reshape(*lead, *c.kernel, plane).strides
    moves = [a.dilation * step for a, step in zip(c.axes, steps, strict=True)]
    moved = (*taps[:3], *(t - m for t, m in zip(taps[3:-1], moves, strict=True)), c.itemsize)
    planes = part(1, (*lead, plane), dtype)
    return Spread(
        rows,
        np.ndarray(
            (*lead[:2], c.outputs, *c.positions), dtype, rows, 0, (*rows.strides[:3], *steps)
        ),
        memory[: plan.reach],
        found,
        found[..., : plan.length],
        found[..., plan.length :],
        np.ndarray((*lead, *c.kernel, plane), dtype, memory, plan.reach * c.itemsize, moved),
        planes,
        planes.reshape(*lead, *plan.padded)[within(plan.inner)],
    )
