"""How the gradient of an input of few channels is cut, whose columns are added up on planes: all integers.

Columns of one block are those of some channels and rows of outputs, and of all taps, if so many fit the
scratch. Else taps of the first axis go some at a time. All of these but the first are so many whole rows
further down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from engine.arena import PART_BYTES
from engine.geometry import Axis, ranges, row_major
from engine.kernels.correlation import Correlation
from engine.kernels.products import LINE
from engine.kernels.slabs import Row, Taps, row

MOST_PASSED = 4
"""Numbers passed over for each that is added, above which adding tap by tap takes less time."""


MOST_SUMS = 1 << 11
"""Sums of a sample whose views are kept: half a kibibyte each, beside the scratch."""


@dataclass(frozen=True)
class Folding:
    """How the gradient is cut: all integers.

    Attributes:
        rows: how each axis lies in planes.
        steps: numbers from one place to the next along each axis of a plane.
        few: taps of the first axis that are added at a time.
        reach: numbers from an output's own place to that of its last tap among them.
        height: positions along the first axis of one block.
        channels: channels of one block.
        pitch: numbers from one column to the next; the last `reach` of them are zeros.
        covered: True where every input is seen by some output.
    """

    rows: tuple[Row, ...]
    steps: tuple[int, ...]
    few: int
    reach: int
    height: int
    channels: int
    pitch: int
    covered: bool


@lru_cache(maxsize=1024)
def plan(c: Correlation) -> Folding | None:
    """How the gradient of an input is cut; None where the planes of one channel do not fit the scratch."""
    whole = _cut(c, c.axes[0].kernel, c.channels, True)
    return whole if whole is not None else _in_parts(c)


def in_parts(c: Correlation) -> Folding | None:
    """The plan, where the taps of the first axis are added some at a time."""
    found = plan(c)
    return found if found is not None and found.few < c.axes[0].kernel else None


def columns(c: Correlation, found: Folding) -> int:
    """Numbers of all columns of a sample and group, with what lies behind each."""
    return -(-c.positions[0] // found.height) * found.pitch * c.taps * c.channels


def sums(c: Correlation, found: Folding) -> int:
    """How often columns are added for a sample and group."""
    blocks = -(-c.positions[0] // found.height) * -(-c.channels // found.channels)
    return blocks * -(-c.axes[0].kernel // found.few) * prod(len(r.taps) for r in found.rows)


def reached(widths: Sequence[int], positions: Sequence[int]) -> int:
    """How far the last tap of all reaches beyond an output's own place, in planes of these widths."""
    steps = row_major(widths)
    return sum((w - n) * s for w, n, s in zip(widths, positions, steps, strict=True))


def _cut(c: Correlation, few: int, most: int, close: bool) -> Folding | None:
    """A block of at most `most` channels and of `few` taps; None if it does not fit.

    A `close` one has as many rows of outputs as are between their first and last taps.
    """
    rows, capacity = tuple(map(row, c.axes)), PART_BYTES // c.itemsize
    first = row(replace(c.axes[0], kernel=few))
    widths = (first.width, *(r.width for r in rows[1:]))
    steps, reach = row_major(widths), reached(widths, c.positions)
    plane = rows[0].width * steps[0] * prod(r.residues for r in rows)
    columns = few * c.taps // c.axes[0].kernel
    # Rows of outputs that a block has at least, in places.
    least = min(c.positions[0], reach // steps[0] + 1 if close else 1) * steps[0]
    fitting = (capacity - reach) // (columns * (least + reach + LINE))
    channels = min(most, capacity // plane, fitting)
    if channels < 1 or capacity // c.outputs - LINE < least:
        return None
    room = (capacity - reach) // (channels * columns) - reach - LINE
    height = min(room, capacity // c.outputs - LINE) // steps[0]
    channels = -(-c.channels // -(-c.channels // channels))
    height = -(-c.positions[0] // -(-c.positions[0] // height))
    pitch = -(-(height * steps[0] + reach) // LINE) * LINE
    covered = all(
        axis.low >= 0 and r.width * axis.stride - axis.low >= axis.size
        for r, axis in zip(rows, c.axes, strict=True)
    )
    return Folding(rows, steps, few, reach, height, channels, pitch, covered)


def _in_parts(c: Correlation) -> Folding | None:
    """The block of some taps and channels that has the least to pass over for each column of an output."""
    few, found = c.axes[0].alike, list[Folding]()
    while few < c.axes[0].kernel:
        most = c.channels
        while most:
            cut = _cut(c, few, most, False)
            if cut is not None and sums(c, cut) <= MOST_SUMS and _passing(c, cut) <= MOST_PASSED:
                found.append(cut)
            most //= 2
        few *= 2
    return min(found, key=lambda cut: _passing(c, cut), default=None)


def _passing(c: Correlation, cut: Folding) -> float:
    """Numbers passed over for each that is added: zeros after outputs, planes and outputs as well."""
    columns = cut.few * c.taps // c.axes[0].kernel
    beside = 2 * prod(r.residues for r in cut.rows) + c.outputs / cut.channels
    return (1 + cut.reach / (cut.height * cut.steps[0])) * (1 + beside / columns)


@dataclass(frozen=True)
class Part:
    """Some taps of the first axis.

    Attributes:
        first, last: the taps.
        down: rows of a plane from the first tap of all to the first of these.
        taps: how they lie from there.
    """

    first: int
    last: int
    down: int
    taps: tuple[Taps, ...]


@lru_cache(maxsize=1024)
def parts(axis: Axis, few: int) -> tuple[Part, ...]:
    """All taps of the first axis, `few` at a time: as many as lead back to the residue of the first."""
    return tuple(
        Part(
            first,
            last,
            first * axis.dilation // axis.stride,
            row(replace(axis, kernel=last - first)).taps,
        )
        for first, last in ranges(axis.kernel, few)
    )
