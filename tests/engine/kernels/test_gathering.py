"""What a recipe for gathering holds; what it gathers is tested with `patches`."""

from __future__ import annotations

import pytest

from engine.geometry import Axis, strided_out
from engine.kernels import gathering


def axis(kernel: int, stride: int, dilation: int) -> Axis:
    out = strided_out(9000, dilation * (kernel - 1) + 1, stride, 0, 0)
    return Axis(9000, kernel, stride, dilation, 0, 0, out)


@pytest.mark.parametrize(
    ("stride", "dilation", "views"), [(1, 1, 1), (2, 1, 2), (2, 2, 1), (6, 4, 3), (3, 1, 3)]
)
def test_a_thousand_taps_are_as_few_views_as_there_are_residues(
    stride: int, dilation: int, views: int
) -> None:
    found = gathering.recipe((axis(1000, stride, dilation),), ((0, 50),), 4, "zeros")
    assert found.slab is not None
    assert len(found.slab.views) == views
    assert len(found.slab.moves) == stride


def test_long_recipes_are_not_kept() -> None:
    gathering._recipe.cache_clear()
    for lo in range(5):
        gathering.recipe((axis(1000, gathering.MANY + 1, 2),), ((lo, lo + 1),), 4, "zeros")
    assert gathering._recipe.cache_info().currsize == 0
    for each in (axis(1000, gathering.MANY, 2), axis(1000, gathering.MANY + 1, 1)):
        gathering.recipe((each,), ((0, 1),), 4, "zeros")
    assert gathering._recipe.cache_info().currsize == 2


def test_under_long_strides_all_taps_are_one_view_of_inputs_as_they_lie() -> None:
    long = axis(400, 160, 1)
    assert gathering.in_windows((long,))
    found = gathering.recipe((long,), ((0, 50),), 4, "zeros")
    assert found.direct
    assert found.slab is not None
    assert (len(found.slab.views), len(found.slab.moves)) == (1, 1)
    for other in (axis(400, 15, 1), axis(15, 16, 1), axis(400, 160, 2)):
        assert not gathering.in_windows((other,))
