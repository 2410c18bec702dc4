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

from engine.geometry import Axis, ranges
from engine.kernels.borders import Run, runs
from engine.kernels.correlation import Correlation
from engine.kernels.nan import settle
from engine.kernels.patches import within
from engine.threads import PART_BYTES, aligned

Array = NDArray[Any]
Adjoint = Callable[[Correlation, Array, Array, Array], None]


@dataclass(frozen=True)
class Along:
    """A strip along one axis.

    Attributes:
        axis: its numbers under the windows that read them.
        outputs: those windows.
        runs: the inputs that its numbers repeat.
    """

    axis: Axis
    outputs: slice
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Strip:
    """Some of the padding, as a map of its own with nothing around it.

    Attributes:
        outputs: those that read it.
        boxes: its numbers, and the inputs that they repeat, axis by axis.
        nbytes: what it and its outputs take, for one sample.
    """

    correlation: Correlation
    outputs: tuple[slice, ...]
    boxes: tuple[tuple[Run, ...], ...]
    nbytes: int


@lru_cache(maxsize=1024)
def unbordered(c: Correlation) -> Correlation:
    """The same correlation with zeros in the padding."""
    # A plain sum, as what is run for such padding is called.
    return replace(c, mode="zeros", wanted="direct")


@lru_cache(maxsize=256)
def strips(c: Correlation) -> tuple[Strip, ...]:
    """All of the padding."""
    found = []
    for d, axis in enumerate(c.axes):
        before = [_padded(a, c.mode) for a in c.axes[:d]]
        after = [Along(a, slice(None), runs(a, 0, a.size, 1, c.mode)) for a in c.axes[d + 1 :]]
        found += [_strip(c, (*before, own, *after)) for own in _outside(axis, c.mode)]
    return tuple(found)


def _padded(axis: Axis, mode: str) -> Along:
    """All of an axis, its padding included."""
    size = axis.low + axis.size + axis.high
    whole = replace(axis, size=size, low=0, high=0)
    return Along(whole, slice(None), runs(axis, -axis.low, size, 1, mode))


def _outside(axis: Axis, mode: str) -> Iterator[Along]:
    """The strips before and behind the inputs that some window reads."""
    if axis.low:
        count = min(axis.out, -(-axis.low // axis.stride))
        yield _seen(axis, -axis.low, axis.low, 0, count, mode)
    end = (axis.out - 1) * axis.stride + axis.extent - axis.low
    high = min(axis.high, end - axis.size)
    if high > 0:
        first = max(0, -(-(axis.size + axis.low - axis.extent + 1) // axis.stride))
        yield _seen(axis, axis.size, high, first, axis.out, mode)


def _seen(axis: Axis, start: int, size: int, first: int, last: int, mode: str) -> Along:
    """The strip of `size` numbers from the position `start` on, read by the windows [first, last)."""
    low = start - axis.input_of(0, first)
    high = (last - first - 1) * axis.stride + axis.extent - low - size
    own = replace(axis, size=size, low=low, high=high, out=last - first)
    return Along(own, slice(first, last), runs(axis, start, size, 1, mode))


def _strip(c: Correlation, along: Sequence[Along]) -> Strip:
    own = replace(unbordered(c), axes=tuple(a.axis for a in along))
    numbers = own.channels * prod(a.axis.size for a in along) + own.outputs * own.places
    boxes = tuple(product(*(a.runs for a in along)))
    return Strip(own, tuple(a.outputs for a in along), boxes, c.groups * numbers * c.itemsize)


def strip_bytes(c: Correlation) -> int:
    """What strips take at a time: those of one sample, or of more while that is little."""
    return max([PART_BYTES, *(strip.nbytes for strip in strips(c))])


def backward_input(c: Correlation, dy: Array, w: Array, dx: Array, adjoint: Adjoint) -> None:
    """Write dx (N, G, C, *S) from dy (N, G, O, *P) and w (G, O, C·K); `adjoint` does so for zeros."""
    adjoint(unbordered(c), dy, w, dx)
    for strip in strips(c):
        sizes = tuple(axis.size for axis in strip.correlation.axes)
        for lo, hi in ranges(len(dx), max(1, PART_BYTES // strip.nbytes)):
            upstream = dy[lo:hi][within(strip.outputs)]
            given = _place(c, upstream.shape, dy.dtype)
            np.copyto(given, upstream)
            found = _place(c, (*dx[lo:hi].shape[:3], *sizes), dx.dtype)
            adjoint(strip.correlation, given, w, found)
            for box in strip.boxes:
                _add(found, box, dx[lo:hi])


def _place(c: Correlation, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array (n, g, c, *S) whose memory has the order that the correlation says."""
    if not c.channels_last:
        return aligned(tuple(shape), dtype)
    n, g, channels, *sizes = shape
    return np.moveaxis(aligned((n, *sizes, g, channels), dtype), (-2, -1), (1, 2))


def _add(found: Array, box: Sequence[Run], dx: Array) -> None:
    """Add numbers of a strip onto the inputs that they repeat."""
    source = found[within(run.places for run in box)]
    repeated = tuple(3 + axis for axis, run in enumerate(box) if run.repeated)
    if repeated:
        source = np.add.reduce(source, axis=repeated, keepdims=True)
    target = dx[within(run.inputs for run in box)]
    target += source
    # Infinities of both signs make NaN with bits of its own.
    settle(target)
