"""What reductions hold, counted by hand."""

from __future__ import annotations

import pytest

from engine.geometry import Adaptive, Axis, Windows
from engine.kernels.pools.stages import held

PAIRS = Axis(100, 2, 2, 1, 0, 0, 50)
LONG = Axis(100, 40, 12, 1, 0, 0, 6)
SHARED = Axis(100, 40, 10, 1, 0, 0, 7)
APART = Axis(100, 50, 50, 1, 0, 0, 2)
FIFTHS = Adaptive(100, 5)
SEVENTHS = Adaptive(100, 7)


@pytest.mark.parametrize(
    ("axes", "tile", "copied", "expected"),
    [
        # 10 outputs lie over 20 inputs; rows of 8 are left of columns, or columns of 20 of rows.
        ((PAIRS, PAIRS), (10, 4), True, 20 * 8),
        ((PAIRS, PAIRS), (4, 10), False, 4 * 20),
        ((PAIRS, PAIRS), (10, 4), False, 10 * 8),
        # Three windows that overlap are laid out, over each of 10 rows; or over each of 20.
        ((PAIRS, LONG), (10, 3), False, 10 * 3 * 40 + 3 * 40 + 3 * 3),
        ((LONG, PAIRS), (3, 10), False, 20 * 3 * 40 + 3 * 40 + 3 * 3),
        # One window is a run where it lies, and so are those that share nothing.
        ((PAIRS, LONG), (10, 1), False, 10 * 40),
        ((APART,), (2,), False, 3 * 2),
        # Where windows are many for their length, nothing is laid out: 10 columns over 60 inputs.
        ((PAIRS, SHARED), (10, 3), False, 10 * 60),
        ((APART,), (2,), True, 100 + 100 + 3 * 100),
        ((FIFTHS,), (5,), False, 3 * 5),
        ((SEVENTHS,), (7,), False, 106 + 106 + 3 * 7),
    ],
)
def test_largest_stage(
    axes: tuple[Windows, ...], tile: tuple[int, ...], copied: bool, expected: int
) -> None:
    assert held(axes, tile, copied=copied) == expected
