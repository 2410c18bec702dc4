"""Places along an axis, among its inputs and in their padding, as runs of the inputs that stand there.

Whatever the padding mode, a few slices say which: past an end, inputs come again one after another, in the
same order (circular) or the other way round (reflect), or one of them over and over (replicate).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from engine.geometry import Axis


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
    found = [_run(lo, hi, start + lo * step, step)]
    if mode != "zeros":
        slope = {"reflect": -step, "replicate": 0, "circular": step}[mode]
        found.append(_run(0, lo, reflected(start, axis.size, mode), slope))
        # Nobody reads further: there, the mode may name no input.
        end = (axis.out - 1) * axis.stride + axis.extent - axis.low
        read = max(hi, min(count, -(-(end - start) // step)))
        found.append(_run(hi, read, reflected(start + hi * step, axis.size, mode), slope))
        last = min(max(0, reflected(end - 1, axis.size, mode)), axis.size - 1)
        found.append(_run(read, count, last, 0))
    return tuple(run for run in found if run.places.stop > run.places.start)


def reflected(i: int, size: int, mode: str) -> int:
    """The input that stands at the position i, inside or outside [0, size)."""
    if mode == "circular":
        return i % size
    if mode == "replicate":
        return min(max(i, 0), size - 1)
    i = abs(i)
    return min(i, 2 * (size - 1) - i)


def _run(first: int, last: int, begin: int, step: int) -> Run:
    """At the places [first, last), the input `begin` and those that follow, each `step` after the last."""
    if step == 0:
        return Run(slice(first, last), slice(begin, begin + 1), repeated=last - first > 1)
    end = begin + (last - first - 1) * step
    stop = end + 1 if step > 0 else end - 1
    return Run(slice(first, last), slice(begin, stop if stop >= 0 else None, step), repeated=False)
