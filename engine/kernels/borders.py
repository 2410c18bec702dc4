"""Places along an axis, among its inputs and in their padding, as runs of the inputs that stand there.

Whatever the padding mode, a few slices say which: past an end, inputs come again one after another, in the
same order (circular) or the other way round (reflect), or one of them over and over (replicate).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.geometry import Axis

Array = NDArray[Any]


class Run(NamedTuple):
    """Some places, counted from the first, and the inputs there.

    Attributes:
        repeated: True where one input stands at all of several places.
    """

    places: slice
    inputs: slice
    repeated: bool


@lru_cache(maxsize=4096)
def runs(axis: Axis, start: int, count: int, step: int, mode: str) -> tuple[Run, ...]:
    """What stands at `count` places, the first at the position `start` and each `step` after the last.

    Position 0 is the first input. In the mode `zeros`, nothing stands in the padding. Positions that no
    window reads have what stands at the last that one does.
    """
    lo = min(count, max(0, -(start // step)))
    hi = max(lo, min(count, -(-(axis.size - start) // step)))
    real = slice(start + lo * step, start + (hi - 1) * step + 1, step)
    found = [Run(slice(lo, hi), real, repeated=False)] if hi > lo else []
    if mode != "zeros":
        end = (axis.out - 1) * axis.stride + axis.extent - axis.low
        for first, last in ((0, lo), (hi, count)):
            positions = np.minimum(start + step * np.arange(first, last), end - 1)
            found += _alike(first, reflected(positions, axis.size, mode))
    return tuple(found)


def reflected(i: Array, size: int, mode: str) -> Array:
    """The inputs that stand at the positions `i`, inside and outside [0, size)."""
    if mode == "circular":
        return i % size
    if mode == "replicate":
        return np.clip(i, 0, size - 1)
    i = np.abs(i)
    return np.minimum(i, 2 * (size - 1) - i)


def _alike(first: int, inputs: Array) -> Iterator[Run]:
    """Inputs at places from `first` on, cut where the step from one to the next changes."""
    steps = np.diff(inputs)
    turns = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(steps)]
    place = 0
    while place < len(inputs):
        last = next((turn for turn in turns if turn > place), place)
        begin, end = int(inputs[place]), int(inputs[last])
        step = int(steps[place]) if last > place else 1
        if step < 0:
            taken = slice(begin, end - 1 if end else None, step)
        else:
            taken = slice(begin, end + 1, step or 1)
        yield Run(slice(first + place, first + last + 1), taken, repeated=not step)
        place = last + 1
