"""Inputs along an axis laid in a row with their padding, so that every tap reads a run of it.

Along an axis with a stride, the row keeps residues modulo the stride apart: what one tap reads over
all outputs then is consecutive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis
from engine.kernels.borders import runs

Array = NDArray[Any]

LITTLE = sys.byteorder == "little"

MOST_RESIDUES = 1 << 10
"""Residues of a row: each is a move that is found, kept and made by itself."""


@dataclass(frozen=True, slots=True)
class Taps:
    """Taps of one residue: the first of them reads from `first` on, each next from `step` further."""

    taps: slice
    residue: int
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a slab: `residues` parts of `width` numbers.

    `moves` are (residue, where in it, which inputs); where none goes, padding stands. Tap k of output
    o reads number o + k's place of its residue.
    """

    residues: int
    width: int
    moves: tuple[tuple[int, slice, slice], ...]
    taps: tuple[Taps, ...]


def in_row(axis: Axis) -> bool:
    """True for strides so short that an axis is laid out as a `row`, whose moves are found one by one."""
    return axis.stride <= MOST_RESIDUES


@lru_cache(maxsize=4096)
def row(axis: Axis) -> Row:
    """The row that the outputs of an axis read, which is `in_row`."""
    width = -(-((axis.out - 1) * axis.stride + axis.extent) // axis.stride)
    moves = tuple(
        (residue, run.places, run.inputs)
        for residue in occupied(axis.stride, axis.low, axis.size)
        for run in runs(axis, residue - axis.low, width, axis.stride, "zeros")
    )
    return Row(axis.stride, width, moves, _taps(axis))


def occupied(stride: int, low: int, size: int) -> Iterable[int]:
    """The residues modulo `stride` of `size` inputs that stand behind `low` numbers of padding.

    Where the stride is longer than the inputs, they are few of all residues there are.
    """
    return range(stride) if stride <= size else sorted((i + low) % stride for i in range(size))


def _taps(axis: Axis) -> tuple[Taps, ...]:
    alike = axis.alike
    step = alike * axis.dilation // axis.stride
    found = []
    for tap in range(min(alike, axis.kernel)):
        first, residue = divmod(tap * axis.dilation, axis.stride)
        found.append(Taps(slice(tap, None, alike), residue, first, step))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Copy:
    """Some inputs of an axis, which are copied to `target`; `wide` ones in pairs, as integers."""

    target: Array
    inputs: slice
    wide: bool = False

    def source(self, x: Array) -> Array:
        """What is copied of x (..., S)."""
        taken = x[..., self.inputs]
        return taken.view(np.uint64) if self.wide else taken


def copies(target: Array, size: int, inputs: slice, *, runs: bool) -> tuple[Copy, ...]:
    """What copies `inputs` of an axis of `size` to target; whether the axis `runs` without gaps.

    Every second number of four bytes is the low half of an integer of eight, which NumPy cuts off in
    vectors: two thirds of the time that it takes to pick the numbers one by one.
    """
    count = target.shape[-1]
    pairs = min(count, (size - inputs.start) // 2)
    runs = runs and LITTLE and target.strides[-1] == target.itemsize == 4
    if not (runs and inputs.step == 2 and pairs > 0):
        return (Copy(target, inputs),)
    end = inputs.start + 2 * pairs
    if pairs == count:
        return (Copy(target.view(np.uint32), slice(inputs.start, end), wide=True),)
    # Half of the last integer would lie beyond the inputs.
    halves = Copy(target[..., :pairs].view(np.uint32), slice(inputs.start, end), wide=True)
    return (halves, Copy(target[..., pairs:], slice(end, inputs.stop, 2)))
