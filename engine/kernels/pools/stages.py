"""How many values the reduction of a tile holds at a time, from the windows alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from engine.geometry import Axis, Windows
from engine.kernels.pools.windows import short


def held(axes: Sequence[Windows], tile: Sequence[int], *, copied: bool) -> int:
    """Values of one plane at the largest stage of reducing so many outputs along each axis.

    Args:
        axes: the windows.
        tile: outputs along each axis.
        copied: whether the inputs under the tile are held as well, or values of their own for each
            input of a window. The order of axes is any then, and the first to the last else.
    """
    read = [_read(axis, outs) for axis, outs in zip(axes, tile, strict=True)]
    ways = [(list(tile), read), (read, list(tile))] if copied else [(list(tile), read)]
    laid = [_laid(axis, outs, copied) for axis, outs in zip(axes, tile, strict=True)]
    # Integers say where long windows begin and end and which input comes where, whatever lies beside.
    listed = [
        0 if short(axis) else runs + 3 * max(outs, under if copied else 0)
        for axis, outs, under, runs in zip(axes, tile, read, laid, strict=True)
    ]
    inputs = prod(read) if copied else 1
    return max(inputs, *(each for way in ways for each in _stages(*way, laid, listed)))


def _stages(
    before: Sequence[int], after: Sequence[int], laid: Sequence[int], listed: Sequence[int]
) -> Iterator[int]:
    """Sizes of the results, and of what is laid out, where axes before one are of the first sizes.

    Where no axis or all of them are, stages are the inputs or the outputs.
    """
    for axis in range(len(before)):
        beside = prod(before[:axis]) * prod(after[axis + 1 :])
        yield beside * laid[axis] + listed[axis]
        if axis:
            yield beside * after[axis]


def _read(axis: Windows, outs: int) -> int:
    """At most so many inputs lie under neighbouring outputs."""
    if isinstance(axis, Axis):
        return min(axis.size, (outs - 1) * axis.stride + axis.extent)
    return min(axis.size, -(-outs * axis.size // axis.out) + 1)


def _laid(axis: Windows, outs: int, copied: bool) -> int:
    """Values along an axis where long windows are laid out one after another; 0 where none are."""
    if short(axis) or not (copied or (outs > 1 and _overlap(axis))):
        return 0
    if isinstance(axis, Axis):
        return outs * min(axis.kernel, axis.size)
    return _read(axis, outs) + outs - 1


def _overlap(axis: Windows) -> bool:
    """Whether the inputs of long windows are not one run without gaps."""
    return axis.stride != axis.kernel if isinstance(axis, Axis) else axis.size % axis.out > 0
