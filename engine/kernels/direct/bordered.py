"""The gradient of an input whose padding repeats inputs, in the modes reflect, replicate and circular.

Were the padding zeros, the gradient would be the adjoint of the same correlation. Added to that is what the
numbers in the padding are given, strip by strip: those before and those behind the inputs along each axis,
as long as the padded inputs along the axes before it, and as the inputs along those after. A strip is a
small map of its own, and what its numbers are given goes to the inputs that they repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.arena import PART_BYTES, aligned
from engine.geometry import Axis, ranges
from engine.kernels.borders import Run, runs
from engine.kernels.correlation import Correlation
from engine.kernels.nan import settle
from engine.kernels.patches import put_back, within

Array = NDArray[Any]
Adjoint = Callable[[Correlation, Array, Array, Array], None]


FEW_COLUMNS = 100_000
"""Numbers of a sample's columns below which these are scattered, if taps are few."""

FEW_TAPS = 64
"""Taps up to which they are few: each takes some calls."""


@dataclass(frozen=True)
class Along:
    """A strip along one axis.

    Attributes:
        axis: its numbers under the windows that read them.
        outputs: those windows.
        start: where the first of its numbers stands, counted from the first input.
    """

    axis: Axis
    outputs: slice
    start: int


@dataclass(frozen=True)
class Strip:
    """Some of the padding, as a map of its own with nothing around it.

    Attributes:
        along: how it lies.
        nbytes: what it and its outputs take, for one sample.
    """

    correlation: Correlation
    along: tuple[Along, ...]
    nbytes: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers along each axis."""
        return tuple(a.axis.size for a in self.along)

    def boxes(self, c: Correlation) -> Iterator[tuple[Run, ...]]:
        """Its numbers, and the inputs that they repeat."""
        pairs = zip(c.axes, self.along, strict=True)
        return product(*(runs(axis, a.start, a.axis.size, 1, c.mode) for axis, a in pairs))


@lru_cache(maxsize=1024)
def unbordered(c: Correlation) -> Correlation:
    """The same correlation with zeros in the padding, whose weights are rows of channels."""
    # A plain sum, as what is run for such padding is called.
    return replace(c, mode="zeros", wanted="direct", taps_apart=False)


def suits(c: Correlation) -> bool:
    """True where padding repeats inputs, and is no more numbers than windows have.

    There is more where windows lie far apart: scattering what they read is the better way then, and for
    small maps with few taps, of which it takes many samples at a time.
    """
    if c.mode == "zeros":
        return False
    if c.taps <= FEW_TAPS and c.gathered < FEW_COLUMNS:
        return False
    return sum(prod(strip.sizes) for strip in strips(c)) <= c.places * c.taps


@lru_cache(maxsize=256)
def strips(c: Correlation) -> tuple[Strip, ...]:
    """All of the padding."""
    found = []
    for d, axis in enumerate(c.axes):
        before = [_padded(a) for a in c.axes[:d]]
        after = [Along(a, slice(None), 0) for a in c.axes[d + 1 :]]
        found += [_strip(c, (*before, own, *after)) for own in _outside(axis)]
    return tuple(found)


def _padded(axis: Axis) -> Along:
    """All of an axis, its padding included."""
    size = axis.low + axis.size + axis.high
    return Along(replace(axis, size=size, low=0, high=0), slice(None), -axis.low)


def _outside(axis: Axis) -> Iterator[Along]:
    """The strips before and behind the inputs that some window reads."""
    if axis.low:
        yield _seen(axis, -axis.low, axis.low, 0, min(axis.out, -(-axis.low // axis.stride)))
    end = (axis.out - 1) * axis.stride + axis.extent - axis.low
    high = min(axis.high, end - axis.size)
    if high > 0:
        first = max(0, -(-(axis.size + axis.low - axis.extent + 1) // axis.stride))
        yield _seen(axis, axis.size, high, first, axis.out)


def _seen(axis: Axis, start: int, size: int, first: int, last: int) -> Along:
    """The strip of `size` numbers from the position `start` on, read by the windows [first, last)."""
    low = start - axis.input_of(0, first)
    high = (last - first - 1) * axis.stride + axis.extent - low - size
    own = replace(axis, size=size, low=low, high=high, out=last - first)
    return Along(own, slice(first, last), start)


def _strip(c: Correlation, along: tuple[Along, ...]) -> Strip:
    own = replace(unbordered(c), axes=tuple(a.axis for a in along))
    numbers = own.channels * prod(a.axis.size for a in along) + own.outputs * own.places
    return Strip(own, along, c.groups * numbers * c.itemsize)


def strip_bytes(c: Correlation) -> int:
    """What strips take at a time: those of one sample, or of more while that is little."""
    return max([PART_BYTES, *(strip.nbytes for strip in strips(c))])


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array, adjoint: Adjoint) -> None:
    """Write dx (N, G, C, *S) from dy (N, G, O, *P) and w (G, O, C·K); `adjoint` does so for zeros."""
    adjoint(unbordered(c), dy, w, dx)
    for strip in strips(c):
        for lo, hi in ranges(len(dx), max(1, PART_BYTES // strip.nbytes)):
            _add(c, strip, dy[lo:hi], w, dx[lo:hi], adjoint)


def _add(c: Correlation, strip: Strip, dy: Array, w: Array, dx: Array, adjoint: Adjoint) -> None:
    """Add what the numbers of a strip are given to the inputs that they repeat."""
    upstream = dy[within(a.outputs for a in strip.along)]
    given = _place(c, upstream.shape, dy.dtype)
    np.copyto(given, upstream)
    found = _place(c, (*dx.shape[:3], *strip.sizes), dx.dtype)
    adjoint(strip.correlation, given, w, found)
    for box in strip.boxes(c):
        # Infinities of both signs make NaN with bits of its own.
        settle(put_back(found, box, dx))


def _place(c: Correlation, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array (n, g, c, *S) whose memory has the order that the correlation says."""
    if not c.channels_last:
        return aligned(tuple(shape), dtype)
    n, g, channels, *sizes = shape
    return np.moveaxis(aligned((n, *sizes, g, channels), dtype), (-2, -1), (1, 2))
