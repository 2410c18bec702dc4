"""Tiles of the gradient by shifts: that they meet every output once, and its inputs with it."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.correlation import Correlation
from engine.kernels.direct import shifting
from tests.engine.kernels.direct.test_shifts import LAYERS, Case, layer

WIDE = [
    ((224, 224), (7, 7), (2, 2), (1, 1), (3, 3), 1, 3, 64),
    ((4000,), (9,), (1,), (1,), (4, 4), 1, 64, 64),
    ((16, 56, 56), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1), 1, 16, 32),
]


def read(c: Correlation, axis: int, lo: int, hi: int) -> set[int]:
    """The inputs that the outputs [lo, hi) read along an axis."""
    a = c.axes[axis]
    found = {a.input_of(tap, o) for tap in range(a.kernel) for o in range(lo, hi)}
    return {i for i in found if 0 <= i < a.size}


@pytest.mark.parametrize("case", [*LAYERS, *WIDE])
def test_every_output_is_in_one_tile_and_its_inputs_with_it(case: Case) -> None:
    c = layer(case, itemsize=4)
    met = np.zeros(c.positions, int)
    for cut in shifting.cuts(c):
        met[cut.upstream] += 1
        boxes = zip(cut.upstream[1:], cut.source[1:], cut.inputs, cut.axes, strict=True)
        for d, (own, source, span, axis) in enumerate(boxes):
            assert read(c, d, own.start, own.stop) <= set(range(source.start, source.stop))
            assert axis.size == source.stop - source.start
            assert axis.out == span[1] - span[0] >= own.stop - own.start
            # What the first tap of the first output reads is where it is in the map.
            first = c.axes[d].input_of(0, own.start)
            assert axis.input_of(0, 0) + source.start == first or axis.size == 0
    assert (met == 1).all()


@pytest.mark.parametrize("size", [(1_000_000,), (3000, 100), (600, 3000)])
def test_tiles_share_a_few_shapes(size: tuple[int, ...]) -> None:
    n = len(size)
    case = (size, (3,) * n, (1,) * n, (1,) * n, (1, 1), 1, 16, 32)
    cuts = shifting.cuts(layer(case, itemsize=4))
    assert len(cuts) > 30
    assert len({id(cut.axes) for cut in cuts}) == len({cut.axes for cut in cuts}) <= 9


@pytest.mark.parametrize(
    ("positions", "most", "found"), [(64, 64, 64), (65, 64, 33), (60, 25, 20), (11, 6, 6)]
)
def test_positions_of_a_product(positions: int, most: int, found: int) -> None:
    """Few products of about as many positions each, of equal ones where a divisor is near."""
    assert shifting.length(positions, most) == found
