"""Handing gradients to maxima of windows of two by two, against their positions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.arena import SCRATCH_BYTES, Arena
from engine.geometry import Axis, tiles
from engine.kernels.pools import squares
from engine.kernels.pools.maxima import tile_argmax
from engine.kernels.pools.placing import scatter_indices
from engine.kernels.pools.pooling import BLOCK, RUN_BLOCKS, Pooling, canonical, stored

EVEN = Axis(8, 2, 2, 1, 0, 0, 4)
ODD = Axis(11, 2, 2, 1, 0, 0, 5)
WIDE = Axis(71, 2, 2, 1, 0, 0, 35)
POOLS = [
    Pooling((EVEN, ODD), 3, channels_last=True),
    Pooling((ODD, EVEN), 5, channels_last=True),
    Pooling((EVEN, ODD), 3),
    Pooling((ODD, EVEN), 5),
    Pooling((ODD, WIDE), 3),
]


@pytest.mark.parametrize(
    "p",
    POOLS,
    ids=["odd across", "odd down", "odd across, first", "odd down, first", "in order, first"],
)
@pytest.mark.parametrize("numbers", ["distinct", "equal", "infinite"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tile", [(9, 9), (2, 9), (1, 3)], ids=["whole", "rows", "parts"])
def test_the_first_maximum_gets_the_gradient(
    p: Pooling, numbers: str, dtype: type[np.floating], tile: tuple[int, int]
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3 * p.channels, 11, 71)).astype(dtype)
    if numbers != "distinct":
        x = np.round(x).clip(-1, 1)
    if numbers == "infinite":
        x[rng.random(x.shape) < 0.3] = -np.inf
        x[rng.random(x.shape) < 0.1] = np.inf
    x = x[:, : p.channels, : p.inputs[0], : p.inputs[1]]
    dy = rng.integers(-9, 9, (2, p.channels, *p.positions)).astype(dtype)
    dy[0, 0, 0] = np.inf
    whole = tuple((0, n) for n in p.positions)
    want = np.zeros_like(x)
    scatter_indices(tile_argmax(p, x, whole)[1], dy, want)
    laid = [np.ascontiguousarray(stored(p, a)) for a in (x, dy, np.full_like(x, 7))]
    axes = (p.axes[0], p.axes[1])
    for one in tiles(p.positions, tile):
        assert squares.hand(laid[0], laid[1], squares.part_of(axes, one), laid[2])
    np.testing.assert_array_equal(canonical(p, laid[2]), want)


@pytest.mark.parametrize("across", [EVEN, WIDE], ids=["short rows", "in order"])
def test_nan_is_left_to_others(across: Axis) -> None:
    x = np.zeros((1, 8, across.size, 1), np.float32)
    x[0, 7, 3] = np.nan
    dx = np.full_like(x, 7)
    part = squares.part_of((EVEN, across), ((0, 4), (0, across.out)))
    assert not squares.hand(x, x[:, :4, : across.out], part, dx)
    assert (dx == 7).all()


@pytest.mark.parametrize(
    "axis",
    [
        Axis(9, 3, 2, 1, 0, 0, 4),
        Axis(9, 2, 3, 1, 0, 0, 3),
        Axis(8, 2, 2, 2, 0, 0, 3),
        Axis(8, 2, 2, 1, 1, 1, 5),
        Axis(9, 2, 2, 1, 0, 0, 5),
    ],
    ids=["overlapping", "gaps", "dilated", "padded", "beyond the inputs"],
)
def test_other_windows_are_left_to_others(axis: Axis) -> None:
    assert squares.suits((EVEN, ODD))
    assert not squares.suits((EVEN, axis))
    assert not squares.suits((EVEN,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, BLOCK // 256, 128, 1),
        (BLOCK // 4, 1, 1, 2, 1),
        (RUN_BLOCKS, BLOCK // 1024, 32, 16),
        (1, 1, 2, 1 << 16),
    ],
    ids=["first", "many planes", "last", "one window"],
)
def test_views_of_the_largest_blocks_lie_in_the_scratch(
    shape: tuple[int, ...], dtype: type[np.floating]
) -> None:
    scratch = Arena().take((SCRATCH_BYTES,), np.dtype(np.uint8))
    v = squares.views(shape, np.dtype(dtype))
    arrays = [v.best, v.lower, v.left, v.right, v.won, v.equal, v.higher, v.mask, v.handed]
    for array in (*arrays, *v.low, *v.columns, *(to for to, _ in (*v.apart, *v.together))):
        assert np.may_share_memory(array, scratch)
    assert squares.views(shape, np.dtype(dtype)) is v
