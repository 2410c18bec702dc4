"""Tiles share the inputs between them, and see every window that reaches theirs."""

from __future__ import annotations

import numpy as np
import pytest

from engine.geometry import Axis, tiles
from engine.kernels.pools.owning import own
from engine.kernels.pools.residues import opened

AXES: list[tuple[Axis, ...]] = [
    (Axis(9, 3, 1, 1, 1, 1, 9),),
    (Axis(5, 2, 2, 1, 4, 0, 4),),  # the first two windows hold no input
    (Axis(9, 2, 3, 2, 0, 2, 3), Axis(10, 1, 4, 1, 0, 0, 3)),  # gaps between windows
    (Axis(7, 3, 2, 1, 1, 1, 4), Axis(9, 3, 2, 1, 1, 1, 5)),
]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_each_input_has_one_owner(axes: tuple[Axis, ...], step: int) -> None:
    sizes = tuple(axis.size for axis in axes)
    owners, moved = (np.zeros((*sizes, 3), int) for _ in range(2))
    for tile in tiles([axis.out for axis in axes], [step] * len(axes)):
        mine = own(axes, tile, 3)
        owners[mine.inputs] += 1
        for _, inputs in mine.moves:
            opened(moved, mine.split)[inputs] += 1
        assert mine.covered == (moved[mine.inputs] == 1).all()
        for axis, (lo, hi), part in zip(axes, mine.reach, mine.inputs[1:-1], strict=True):
            for i in range(part.start, part.stop):
                taps = range(axis.kernel)
                windows = [o for o in range(axis.out) for t in taps if axis.input_of(t, o) == i]
                assert all(lo <= o < hi for o in windows)
    assert (owners == 1).all()
    for index in np.ndindex(*sizes):
        met = all(
            any(axis.input_of(t, o) == i for t in range(axis.kernel) for o in range(axis.out))
            for axis, i in zip(axes, index, strict=True)
        )
        assert (moved[index] == met).all()
