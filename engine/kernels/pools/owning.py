"""Which inputs a tile of outputs writes the gradient of, so that each input is written once.

A tile owns the inputs from its first window on, up to the first of the next tile along each axis. It
looks at the windows before it that reach these as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from engine.geometry import Axis, Tile
from engine.kernels.pools.residues import Split, boxes, fold

Index = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Own:
    """What a tile of outputs owns.

    Attributes:
        reach: the outputs whose windows meet its inputs; `outputs` is the same as a box.
        inputs: its inputs, a box; `read` are all those under `reach`.
        split: how the inputs are opened for these moves.
        moves: boxes of the gradient by residues, and the inputs that they go to.
        covered: whether these are all of its inputs.
    """

    reach: Tile
    outputs: Index
    inputs: Index
    read: Index
    split: Split
    moves: tuple[tuple[Index, Index], ...]
    covered: bool


@lru_cache(maxsize=4096)
def own(axes: tuple[Axis, ...], tile: Tile, inner: int) -> Own:
    """What a tile owns of arrays whose last axis has `inner` elements; all tiles together own all."""
    reach, inputs, read, places = [], [], [], []
    for axis, (lo, hi) in zip(axes, tile, strict=True):
        first = max(0, lo - (axis.extent - 1) // axis.stride)
        start = min(max(axis.input_of(0, lo), 0), axis.size) if lo else 0
        stop = min(max(axis.input_of(0, hi), 0), axis.size) if hi < axis.out else axis.size
        reach.append((first, hi))
        inputs.append(slice(start, stop))
        read.append(slice(*axis.inputs_of(first, hi)))
        places.append([_clipped(*move, start, stop) for move in fold(axis, first, hi).moves])
    split, moves = boxes(places, inner)
    covered = all(
        sum(place.stop - place.start for place, _ in each) == part.stop - part.start
        for each, part in zip(places, inputs, strict=True)
    )
    outputs = [slice(*span) for span in reach]
    return Own(tuple(reach), _box(outputs), _box(inputs), _box(read), split, moves, covered)


def _box(spans: list[slice]) -> Index:
    return (..., *spans, slice(None))


def _clipped(places: slice, inputs: slice, start: int, stop: int) -> tuple[slice, slice]:
    """The part of a move whose inputs are in [start, stop)."""
    step, count = inputs.step or 1, places.stop - places.start
    first = min(max(0, -(-(start - inputs.start) // step)), count)
    end = max(first, min(count, -(-(stop - inputs.start) // step)))
    begin = inputs.start + first * step
    taken = slice(begin, begin + (end - first - 1) * step + 1, step)
    return slice(places.start + first, places.start + end), taken if end > first else slice(0, 0)
