"""What is one block of a depthwise layer that goes pixel by pixel: rows, planes, or small samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

from engine.arena import PART_BYTES
from engine.geometry import Axis, ranges
from engine.kernels.correlation import Correlation

BLOCK_BYTES = 1 << 20
"""The slab of a block, at most, where one row of outputs needs no more."""

TOGETHER_BYTES = 1 << 17
"""Slabs of small samples that are one block, at most: calls for each of them take longer than its sums."""

SHARED = 4
"""Blocks that samples make together, at least, so that threads can share them."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Rows of outputs that make one block, or planes of them.

    Attributes:
        target: the outputs, along each axis but the last; `outputs` is how many.
        source: the inputs that they read, along each axis.
        stands: where in the slab those begin, and end, along each axis but the last.
    """

    target: tuple[slice, ...]
    outputs: tuple[int, ...]
    source: tuple[slice, ...]
    stands: tuple[tuple[int, int], ...]


@lru_cache(maxsize=256)
def cuts(c: Correlation) -> tuple[Cut, ...]:
    """All blocks of a sample."""
    each = zip(c.positions[:-1], _outputs(c), strict=True)
    return tuple(_cut(c, part) for part in product(*(ranges(*one) for one in each)))


def _cut(c: Correlation, part: Sequence[tuple[int, int]]) -> Cut:
    """The block of some outputs, along each axis but the last."""
    outputs = tuple(hi - lo for lo, hi in part)
    source, stands = [], []
    for axis, (lo, _), number in zip(c.axes, part, outputs, strict=False):
        start = axis.input_of(0, lo)
        inputs, place = axis.placed(start, start + span(axis, number))
        source.append(inputs)
        stands.append((place.start, place.stop))
    columns, _ = c.axes[-1].placed(-c.axes[-1].low, width(c) - c.axes[-1].low)
    return Cut(tuple(slice(*each) for each in part), outputs, (*source, columns), tuple(stands))


def _outputs(c: Correlation) -> tuple[int, ...]:
    """Outputs of a block along each axis but the last: of volumes whole planes, where one fits."""
    *deep, down = c.axes[:-1]
    room = min(BLOCK_BYTES, PART_BYTES) // line(c)
    rows = min(down.out, _most(down, room // prod(axis.extent for axis in deep)))
    return (*(_most(axis, room // span(down, rows)) for axis in deep), rows)


def together(c: Correlation, samples: int) -> int:
    """Samples of a block: several where each has one block, and there are enough for all threads."""
    if len(cuts(c)) > 1:
        return 1
    slab = prod(span(axis, axis.out) for axis in c.axes) * c.groups * c.itemsize
    return max(1, min(TOGETHER_BYTES // slab, samples // SHARED))


def _most(axis: Axis, room: int) -> int:
    """Outputs along an axis that read no more than so many inputs; but one in any case."""
    return max(1, (room - axis.extent) // axis.stride + 1)


def line(c: Correlation) -> int:
    """Bytes of a row of the slab."""
    return width(c) * c.groups * c.itemsize


def width(c: Correlation) -> int:
    return span(c.axes[-1], c.axes[-1].out)


def span(axis: Axis, outputs: int) -> int:
    """Inputs from the first to the last that so many outputs read."""
    return (outputs - 1) * axis.stride + axis.extent
