"""Small maps at stride 1 laid out so that taps are a few long runs: the plan, and views of the scratch.

Two ways. `Columns` hold the windows of every output and nothing else. Inputs are copied once for each
tap of the last axis, in rows as long as those of the outputs; all other taps of such a plane are then one
run of it each, at a constant offset.

`Spread` is for the adjoint. A channel's padded plane is one row of numbers, in which output p stands at
l = Σ_d p_d · step_d, with `step_d` the numbers from one position along axis d to the next. A tap of all
outputs is then one run of the plane at the offset Σ_d k_d · dilation_d · step_d. So all taps of the
columns, each moved by its offset, are one view, and its sum is the plane.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.kernels.correlation import Correlation
from engine.kernels.direct import part
from engine.kernels.gathering import as_items
from engine.kernels.kept import kept
from engine.kernels.patches import within
from engine.threads import PART_BYTES

Array = NDArray[Any]

BLOCK_BYTES = PART_BYTES // 2
"""Columns of the samples that share a block: enough to be worth a call, and few enough for the cache."""


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
    steps = tuple(prod(padded[d + 1 :]) for d in range(len(padded)))
    length = 1 + sum((p - 1) * step for p, step in zip(c.positions, steps, strict=True))
    rows, capacity = c.channels * c.taps, PART_BYTES // c.itemsize
    shifted = c.channels * c.kernel[-1] * prod(padded[:-1]) * c.positions[-1]
    columns = max(rows + 1, c.outputs) * outputs
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
        moved: the rows of the slab that each tap of the last axis reads, (n, G, C, K', *S'), one item
            each, to be copied to `shifted`.
        taps: all taps in `shifted`, (n, G, C, *K, *P), to be copied to `columns`.
        matrix: the columns as (n, G, C·K, P); `ones` is a row after it, which makes them `biased`.
        rows: what stands on the other side, (n, G, O, P).
        sums: products of columns and rows, (n, G, C·K, O); it lies where the slab does.
    """

    slab: Array
    inner: Array
    moved: Array
    shifted: Array
    taps: Array
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
        self.shifted[...] = self.moved
        self.columns[...] = self.taps


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
    lead, last = (samples, c.groups, c.channels), c.axes[-1]
    slab = part(1, (*lead, *plan.padded), dtype)
    shifted = part(2, (*lead, last.kernel, *plan.padded[:-1], last.out), dtype)
    biased = part(0, (samples, c.groups, c.channels * c.taps + 1, c.places), dtype)
    found = biased[:, :, :-1].reshape(*lead, *c.kernel, *c.positions, copy=False)
    *across, one = slab.strides[3:]
    moved = (*slab.strides[:3], last.dilation * one, *across, one)
    tap, *steps = shifted.strides[3:]
    moves = [a.dilation * step for a, step in zip(c.axes[:-1], steps, strict=False)]
    return Columns(
        slab,
        slab[within(plan.inner)],
        as_items(np.ndarray(shifted.shape, dtype, slab, 0, moved)),
        as_items(shifted),
        np.ndarray(found.shape, dtype, shifted, 0, (*shifted.strides[:3], *moves, tap, *steps)),
        found,
        biased[:, :, :-1],
        biased[:, :, -1],
        biased,
        part(2, (samples, c.groups, c.outputs, c.places), dtype),
        part(1, (samples, c.groups, c.channels * c.taps, c.outputs), dtype),
    )


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
